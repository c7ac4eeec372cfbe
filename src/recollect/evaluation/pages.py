"""Questions about PDF files whose answers stand on known pages, and whether a search shows those pages."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from recollect.errors import UsageError
from recollect.evaluation.datasets import existing_file, existing_folder, identifier, records, text_of
from recollect.evaluation.runner import Progress

DEPTHS = (1, 5, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageQuestion:
    """A question, and the pages of one document that answer it.

    Attributes:
        text: The question.
        document: The file's name below ``pdf/``.
        pages: From 1; any of them answers.
    """

    text: str
    document: str
    pages: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageDataset:
    """PDF files, and questions that are answered by pages of theirs.

    Attributes:
        path: The folder it was read from.
        documents: The folder of the files.
        questions: In the file's order.
    """

    path: Path
    documents: Path
    questions: tuple[PageQuestion, ...]


@dataclass(frozen=True, slots=True)
class ShownPages:
    """A passage that a search returned: the pages that its characters stand on, of the document of that name."""

    document: str
    pages: frozenset[int]


@dataclass(frozen=True, slots=True)
class StoredFiles:
    """What became of the files: how many are documents now, and in how many chunks."""

    documents: int
    chunks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PageReport:
    """The outcome of a data set of pages.

    Attributes:
        metrics: ``document``: searched in the question's document alone; ``collection``: among all. Of each ``hit@1``,
            ``hit@5`` and ``hit@10``, the share of the questions with an answering page among so many passages.
        questions: How many were asked.
        documents: How many files are documents.
        chunks: How many pieces they were cut into.
        seconds: Wall time of ingest and questions together.
    """

    metrics: Mapping[str, Mapping[str, float]]
    questions: int
    documents: int
    chunks: int
    seconds: float

    def as_json(self) -> dict[str, object]:
        """Plain values for ``json.dumps``."""
        return {
            "metrics": {place: dict(figures) for place, figures in self.metrics.items()},
            "questions": self.questions,
            "documents": self.documents,
            "chunks": self.chunks,
            "seconds": round(self.seconds, 3),
        }


def load_pages(path: Path | str) -> PageDataset:
    """Open a data set of pages.

    Args:
        path: A folder with ``pdf/`` and ``questions.jsonl`` (``question``, ``document``: a file's name below ``pdf/``,
            ``pages``: a list of whole numbers from 1); more keys are left alone.

    Raises:
        NotFoundError: The folder or one of its parts does not exist.
        UsageError: A line is malformed, or asks about a file that is not there.
    """
    folder = existing_folder(path)
    files = existing_folder(folder / "pdf")
    lines = existing_file(folder / "questions.jsonl")
    questions = tuple(_question(record, where, files) for record, where in records(lines))
    if not questions:
        raise UsageError(f"{lines}: there is no question in it")
    return PageDataset(path=folder, documents=files, questions=questions)


def run_pages(
    dataset: PageDataset,
    *,
    ingest: Callable[[Path], StoredFiles],
    search: Callable[[str, str | None, int], Sequence[ShownPages]],
    progress: Progress | None = None,
) -> PageReport:
    """Ingest the files, ask every question twice, and look for its pages among the passages.

    Args:
        dataset: From :func:`load_pages`.
        ingest: Stores the files of a folder.
        search: Returns for a question so many passages, best first: of one document, or where none is named of all.
        progress: Told about each finished question.
    """
    started = time.perf_counter()
    stored = ingest(dataset.documents)
    hits = {place: dict.fromkeys(DEPTHS, 0) for place in ("document", "collection")}
    for done, question in enumerate(dataset.questions, start=1):
        for place, within in (("document", question.document), ("collection", None)):
            found = search(question.text, within, max(DEPTHS))
            first = _first_hit(question, found)
            for depth in DEPTHS:
                hits[place][depth] += first < depth
        if progress is not None:
            progress(done, len(dataset.questions))
    count = len(dataset.questions)
    return PageReport(
        metrics={place: {f"hit@{depth}": hit / count for depth, hit in of.items()} for place, of in hits.items()},
        questions=count,
        documents=stored.documents,
        chunks=stored.chunks,
        seconds=time.perf_counter() - started,
    )


def _first_hit(question: PageQuestion, found: Sequence[ShownPages]) -> int:
    """The place of the first passage with an answering page, from 0; behind all of them where there is none."""
    for place, passage in enumerate(found):
        if passage.document == question.document and passage.pages & question.pages:
            return place
    return max(DEPTHS)


def _question(record: Mapping[str, object], where: str, files: Path) -> PageQuestion:
    document = identifier(record, "document", where)
    # A name and nothing else: files elsewhere are not part of the data set.
    if document in {".", ".."} or "/" in document or not (files / document).is_file():
        raise UsageError(f"{where}: the document {document!r} is not in {files}")
    pages = record.get("pages")
    if not isinstance(pages, list) or not pages or not all(type(page) is int and page >= 1 for page in pages):
        raise UsageError(f"{where}: 'pages' must be a list of at least one whole number from 1, not {pages!r}")
    return PageQuestion(text=text_of(record, "question", where), document=document, pages=frozenset(pages))
