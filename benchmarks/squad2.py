"""SQuAD 2.0's development questions, half of which their paragraph does not answer, asked of all paragraphs.

    python benchmarks/squad2.py DEV-V2.0.JSON [--questions 600]

The paragraphs are ingested as one document an article. With the installed threshold: how many answers to
answerable questions hold the gold, and how many of the others are not answered. The data (Rajpurkar et al. 2018,
CC BY-SA 4.0) measures only: nothing is trained or chosen on it.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from pathlib import Path

from families import wilson
from harness import machine, store_folder, table, versions

from recollect import Document, RAGConfig, RAGPipeline

SEED = 28


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--questions", type=int, default=600, help="taken by chance, the same ones each time")
    arguments = parser.parse_args()
    articles = json.loads(arguments.file.read_text(encoding="utf-8"))["data"]
    documents = [
        Document(
            source=f"{one['title']}.md",
            title=one["title"].replace("_", " "),
            content="\n\n".join(paragraph["context"] for paragraph in one["paragraphs"]),
        )
        for one in articles
    ]
    questions = [one for article in articles for paragraph in article["paragraphs"] for one in paragraph["qas"]]
    questions = random.Random(SEED).sample(questions, min(len(questions), arguments.questions))
    answerable = hits = refused = 0
    seconds: list[float] = []
    with store_folder() as data_dir, RAGPipeline(RAGConfig.load(storage={"data_dir": data_dir})) as rag:
        rag.ingest(documents)
        rag.ask("Is this the first question?")
        for question in questions:
            begun = time.perf_counter()
            answer = rag.ask(question["question"])
            seconds.append(time.perf_counter() - begun)
            if question["is_impossible"]:
                refused += answer.outcome != "answer"
                continue
            answerable += 1
            quoted = " ".join(" ".join(one.quote for one in answer.citations).split())
            hits += any(" ".join(gold["text"].split()) in quoted for gold in question["answers"])
    print(f"{machine()}\n{', '.join(versions())}\n")
    rows = [
        ["answer holds the gold", wilson(hits, answerable)],
        ["unanswerable not answered", wilson(refused, len(questions) - answerable)],
        ["ask, p50, ms", f"{1000 * statistics.median(seconds):.0f}"],
    ]
    print(table(["", "share"], rows))


if __name__ == "__main__":
    main()
