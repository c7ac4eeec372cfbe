"""Answers without a language model out of annual reports, and what is refused.

Asked are the questions of ``filing_answers.jsonl``, of all six development filings together, written by hand: ``cell``
are such of ``filing_questions.jsonl`` that one figure answers, ``plain`` were written for this, and without an answer
there are those of a ``year`` or a ``company`` that no filing is of, and for what has to be ``computed``. An answer
holds the figure where its text or a quote has it::

    python benchmarks/filing_answers.py [--shared ../shared/data] [--show]
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from harness import SHARED, machine, say, store_folder, table, versions

from recollect import RAGConfig, RAGPipeline
from recollect.model import Answer

QUESTIONS = Path(__file__).with_name("filing_answers.jsonl")


def verdict(reply: Answer, figures: list[str]) -> str:
    """What becomes of a question."""
    if reply.refused:
        return "refused"
    told = " ".join((reply.text, *(citation.quote for citation in reply.citations)))
    return "held" if any(figure in told for figure in figures) else "something else"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=SHARED)
    parser.add_argument("--show", action="store_true", help="print every answer")
    arguments = parser.parse_args()
    questions = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    found: dict[str, Counter[str]] = {question["kind"]: Counter() for question in questions}
    with store_folder() as folder:
        config = RAGConfig.load(storage={"data_dir": str(Path(folder) / "data")})
        with RAGPipeline(config) as rag:
            say("reading the filings")
            rag.ingest(arguments.shared / "filings/pdf")
            for question in questions:
                reply = rag.ask(question["question"])
                outcome = verdict(reply, question["answer"])
                found[question["kind"]][outcome] += 1
                if arguments.show:
                    print(f"{question['kind']}, {outcome}: {question['question']}\n    {reply.text}")
    print(f"\n{machine()}\n{', '.join(versions())}\n")
    outcomes = ("held", "something else", "refused")
    lines = [[kind, str(own.total()), *(str(own[outcome]) for outcome in outcomes)] for kind, own in found.items()]
    print(table(("questions", "number", *outcomes), lines))


if __name__ == "__main__":
    main()
