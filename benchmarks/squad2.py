"""SQuAD 2.0's development questions, half of which their paragraph does not answer, asked of all paragraphs.

    python benchmarks/squad2.py DEV-V2.0.JSON [--questions 600]

The paragraphs are ingested as one document an article. At each threshold: how many answers to answerable questions
hold the gold, and how many of the others are not answered. Then the paragraphs are ingested as one document each, and
the answerable questions are searched for: nDCG@10. The data (Rajpurkar et al. 2018, CC BY-SA 4.0) measures only:
nothing is trained or chosen on it.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from families import wilson
from harness import machine, store_folder, table, versions

from recollect import Document, RAGConfig, RAGPipeline
from recollect.answer import extractive
from recollect.answer.refusal import RefusalRule

SEED = 28
INSTALLED = RefusalRule().threshold
THRESHOLDS = (0.5, INSTALLED, 0.6, 0.63, 0.65, 0.7)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--questions", type=int, default=600, help="taken by chance, the same ones each time")
    arguments = parser.parse_args()
    articles = json.loads(arguments.file.read_text(encoding="utf-8"))["data"]
    answered(articles, arguments.questions)
    searched(articles)


def answered(articles: list[dict], count: int) -> None:
    questions = [one for article in articles for paragraph in article["paragraphs"] for one in paragraph["qas"]]
    questions = random.Random(SEED).sample(questions, min(len(questions), count))
    hits: list[float] = []
    misses: list[float] = []
    others: list[float] = []
    seconds: list[float] = []
    with filled(
        Document(
            source=f"{one['title']}.md",
            title=one["title"].replace("_", " "),
            content="\n\n".join(paragraph["context"] for paragraph in one["paragraphs"]),
        )
        for one in articles
    ) as rag:
        rag.ask("Is this the first question?")
        for question in questions:
            begun = time.perf_counter()
            quoted, probability = surest(rag, question["question"])
            seconds.append(time.perf_counter() - begun)
            if question["is_impossible"]:
                others.append(probability)
            else:
                holds = any(" ".join(gold["text"].split()) in quoted for gold in question["answers"])
                (hits if holds else misses).append(probability)
    print(f"{machine()}\n{', '.join(versions())}\n")
    rows = [
        [
            f"{threshold:.2f}{', installed' if threshold == INSTALLED else ''}",
            wilson(sum(one >= threshold for one in hits), len(hits) + len(misses)),
            wilson(sum(one < threshold for one in others), len(others)),
        ]
        for threshold in THRESHOLDS
    ]
    print(table(["threshold", "answer holds the gold", "unanswerable not answered"], rows))
    print(f"\nask, p50: {1000 * statistics.median(seconds):.0f} ms")


def surest(rag: RAGPipeline, question: str) -> tuple[str, float]:
    """What is quoted where any probability is enough, and the probability that it answers."""
    said: list[float] = []
    probability = extractive.Reading.probability

    def always(reading: extractive.Reading, rule: RefusalRule) -> float:
        said.append(probability(reading, rule))
        return 1.0

    with patch.object(extractive.Reading, "probability", always):
        answer = rag.ask(question)
    return " ".join(" ".join(one.quote for one in answer.citations).split()), said[0] if said else 0.0


def searched(articles: list[dict]) -> None:
    paragraphs = [
        (f"{article['title']}-{number}", article["title"].replace("_", " "), paragraph)
        for article in articles
        for number, paragraph in enumerate(article["paragraphs"])
    ]
    asked = [
        (one["question"], source) for source, _, paragraph in paragraphs for one in paragraph["qas"] if one["answers"]
    ]
    gains: list[float] = []
    with filled(
        Document(source=source, title=title, content=one["context"]) for source, title, one in paragraphs
    ) as rag:
        for question, source in asked:
            found = [*dict.fromkeys(hit.source for hit in rag.search(question, top_k=40, min_relevance=0.0).results)]
            gains.append(1 / math.log2(found.index(source) + 2) if source in found[:10] else 0.0)
    print(f"\n{len(paragraphs)} paragraphs, {len(asked)} questions, nDCG@10: {statistics.mean(gains):.4f}")


@contextmanager
def filled(documents: Iterable[Document]) -> Iterator[RAGPipeline]:
    with store_folder() as data_dir, RAGPipeline(RAGConfig.load(storage={"data_dir": data_dir})) as rag:
        rag.ingest(documents)
        yield rag


if __name__ == "__main__":
    main()
