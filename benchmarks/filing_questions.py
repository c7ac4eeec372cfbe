"""Pages of annual reports that answer questions, with names of financial measures understood and without.

Asked are the questions that come with the development filings and those of ``filing_questions.jsonl``, written by hand
about the same six: 137 about pages drawn by lot and about the statements, among them lines of tables in other words
(``cell``), figures that are computed (``derived``) and text (``prose``), and 44 (``later``) that were written when the
glossary was finished. A passage counts that stands on a page that answers::

    python benchmarks/filing_questions.py [--shared ../shared/data]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness import SHARED, machine, say, store_folder, table, versions

from recollect import RAGConfig, RAGPipeline, RetrievalOptions
from recollect.pipeline import View

_DEPTHS = (1, 5, 10)
_OPTIONS = RetrievalOptions(top_k=max(_DEPTHS), min_relevance=0.0, outline=True)


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the pages of one document that answer it."""

    kind: str
    text: str
    document: str
    pages: frozenset[int]


def read_questions(path: Path, kind: str | None = None) -> Iterator[Question]:
    """The questions of a file; ``kind``: of all of them, where the lines' own are not wanted."""
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        yield Question(kind or record["kind"], record["question"], record["document"], frozenset(record["pages"]))


def first_hit(view: View, question: Question, options: RetrievalOptions) -> int:
    """The place of the first passage with a page that answers, from 1; behind all of them where there is none."""
    for place, passage in enumerate(view.search(question.text, options).results, start=1):
        pages = {part.page for part in passage.parts}
        if passage.source == question.document and pages & question.pages:
            return place
    return options.top_k + 1


def rows(view: View, questions: Sequence[Question], label: str) -> Iterator[list[str]]:
    """A line for each kind of question."""
    for kind in dict.fromkeys(question.kind for question in questions):
        asked = [question for question in questions if question.kind == kind]
        cells = []
        for within in (True, False):
            sources = [(question.document,) if within else () for question in asked]
            places = [
                first_hit(view, question, replace(_OPTIONS, source=source))
                for question, source in zip(asked, sources, strict=True)
            ]
            cells += [f"{sum(place <= depth for place in places) / len(asked):.1%}" for depth in _DEPTHS]
        yield [label, kind, str(len(asked)), *cells]


def main() -> None:
    """Ingest once, ask twice."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=SHARED, help="the development data")
    given = parser.parse_args()
    filings = given.shared / "filings"
    questions = [
        *read_questions(filings / "questions.jsonl", kind="development"),
        *read_questions(Path(__file__).with_suffix(".jsonl")),
    ]
    say(machine(), versions())
    found: list[list[str]] = []
    with store_folder() as folder:
        for understood in (False, True):
            settings = {"cache_entries": 0, "enhance": {"accounting": understood}}
            with RAGPipeline(RAGConfig.load(storage={"data_dir": folder}, retrieval=settings)) as rag:
                rag.ingest(filings / "pdf")
                found += rows(rag.view(), questions, "with" if understood else "without")
    in_document = [f"document {depth}" for depth in _DEPTHS]
    print(table(["measures", "kind", "questions", *in_document, *(f"collection {depth}" for depth in _DEPTHS)], found))


if __name__ == "__main__":
    main()
