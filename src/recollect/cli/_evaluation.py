"""Helpers of commands that measure: create, fill and search a collection for one run."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from recollect.cli._progress import WorkBar
from recollect.errors import UsageError
from recollect.evaluation.scoring import cover_spans, rank_documents, run
from recollect.model.search_options import validate

if TYPE_CHECKING:
    from pathlib import Path

    from recollect.cli._command_context import CommandContext
    from recollect.cli._searching import SearchOptions
    from recollect.config import RAGConfig
    from recollect.evaluation.datasets import DataSet, Question
    from recollect.evaluation.rag_test import Progress
    from recollect.evaluation.scoring import Outcome
    from recollect.model import Document, RetrievalOptions, RetrievedContext
    from recollect.pipeline import View

#: The reason why these commands do not work with --server.
LOCAL = "it measures what searches and answers do in its own process"

MAX_TOP_K = 1_000
# R@100 needs a hundred distinct documents, of which some give several passages.
_RANKED_DOCUMENTS = 100
_SPARE = 1.5


def measured_options(ctx: CommandContext, search: SearchOptions) -> RetrievalOptions:
    """The options of every search of an evaluation, refused before anything is ingested.

    Raises:
        UsageError: One of them makes no sense.
    """
    options = search.retrieval(ctx.config)
    validate("any question", options)
    return options


def measured(config: RAGConfig) -> RAGConfig:
    """Settings under which a search that is repeated is a search, and not a look into a cache."""
    uncached = config.retrieval.model_copy(update={"cache_entries": 0, "query_cache_entries": 0})
    return config.model_copy(update={"retrieval": uncached})


def ranking(options: RetrievalOptions) -> RetrievalOptions:
    """Options that leave out nothing unless that is asked for: what is measured is the order."""
    return options if options.min_relevance is not None else replace(options, min_relevance=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is found for a question, and of spans how much is scored.

    Attributes:
        depth: Find so many passages, whatever the others say.
        least: Find at least so many.
        budget: Find more than fill so many characters, as far as there are.
        shown: Characters that are scored.
        passages: Passages that are scored instead.
    """

    depth: int | None = None
    least: int | None = None
    budget: int | None = None
    shown: int = 4_000
    passages: int | None = None


def outcomes_of(
    view: View, data: DataSet, options: RetrievalOptions, limits: Limits, progress: Progress
) -> list[Outcome]:
    """Search every question of a data set in BEIR or span form."""
    options = ranking(options)

    def search(question: Question) -> Sequence[RetrievedContext]:
        count = limits.depth or max(_RANKED_DOCUMENTS, limits.least or 0)
        while True:
            found = view.search(question.text, replace(options, top_k=count)).results
            length = sum(hit.end_offset - hit.start_offset for hit in found)
            enough = limits.budget is None or length > limits.budget or len(found) < count
            if enough or limits.depth is not None or count == MAX_TOP_K:
                return found
            count = min(MAX_TOP_K, 2 * count)

    covering = partial(cover_spans, budget_chars=limits.shown, passages=limits.passages)
    return run(data.questions, search, rank_documents if data.kind == "beir" else covering, progress)


@contextmanager
def fresh_collection(
    view: View,
    name: str | None = None,
    *,
    chunking: Mapping[str, Any] | None = None,
    keep: bool = False,
    language: str | None = None,
) -> Iterator[View]:
    """The view of a collection for one run, removed afterwards unless it is to be kept.

    Args:
        view: Where to make it.
        name: None: one that no collection has.
        chunking: ``strategy`` and its parameters; None: the configured ones.
        keep: Leave it there.
        language: Of its texts; None: the configured one.
    """
    fresh = name or f"eval-{uuid.uuid4().hex[:12]}"
    view.collections.create(fresh, description="Made by recollect eval.", language=language, chunking=chunking)
    try:
        yield view.view(collections=fresh)
    finally:
        if not keep:
            view.collections.delete(fresh)


def fill(ctx: CommandContext, view: View, data: DataSet) -> tuple[int, int]:
    """Store the documents of a data set.

    Returns:
        How many there are, and how many passages a hundred documents usually take.
    """
    with WorkBar(ctx.err, "Ingesting", unit="documents") as bar:
        results = view.ingest(_counted(data.documents(), bar))
    chunks = sum(result.chunk_count for result in results)
    passages = math.ceil(_RANKED_DOCUMENTS * _SPARE * chunks / max(1, len(results)))
    return len(results), min(MAX_TOP_K, max(_RANKED_DOCUMENTS, passages))


@contextmanager
def under_test(ctx: CommandContext, view: View, folder: Path | None, collection: str | None) -> Iterator[View]:
    """The view of the collection that cases run on: a folder's, for this run only, or one that is there.

    Args:
        ctx: The running command.
        view: What it sees.
        folder: Ingested for this run; None: search what is there.
        collection: As given on the command line.

    Raises:
        UsageError: Both are given, or nothing of the folder could be ingested.
    """
    if folder is None:
        yield view
        return
    if collection is not None:
        raise UsageError("Give --ingest, which makes a collection of its own, or --collection, but not both.")
    with fresh_collection(view) as fresh:
        with WorkBar(ctx.err, "Ingesting", unit="files") as bar:
            report = fresh.ingest(folder, on_progress=bar.ingest)
        for error in report.errors:
            ctx.note(f"✗ {error.path}: {error.error}")
        if not report.added:
            raise UsageError(f"{folder} holds no document that can be read.")
        yield fresh


def _counted(documents: Iterable[Document], bar: WorkBar) -> Iterator[Document]:
    for count, document in enumerate(documents, start=1):
        yield document
        bar.update(count, None)
