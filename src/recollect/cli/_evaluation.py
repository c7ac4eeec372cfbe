"""The pipeline as evaluations talk to it: data sets in, rankings and passages out, collections for one run only."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from recollect.model import Document

if TYPE_CHECKING:
    from recollect.cli._command_context import CommandContext
    from recollect.cli._options import SearchOptions
    from recollect.cli._progress import WorkBar
    from recollect.config import RAGConfig
    from recollect.evaluation.datasets import BeirDocument
    from recollect.evaluation.outcomes import Hit
    from recollect.evaluation.runner import ShownPassage
    from recollect.model import RetrievalOptions, RetrievedContext
    from recollect.pipeline import View

MAX_TOP_K = 1_000
# R@100 needs a hundred distinct documents, of which some give several passages.
_RANKED_DOCUMENTS = 100
_SPARE = 1.5


class Engine:
    """The pipeline, as the evaluation wants to talk to it.

    Args:
        view: Of the collection where the data set goes.
        options: How to search.
        depth: Passages asked for; None: as many as the measure needs.
    """

    def __init__(self, view: View, options: RetrievalOptions, *, depth: int | None) -> None:
        self._view = view
        # What is measured is the order: a measure of a hundred documents needs them all.
        self._options = options if options.min_relevance is not None else replace(options, min_relevance=0.0)
        self._depth = depth
        self._default_depth = _RANKED_DOCUMENTS

    def ingest_corpus(self, documents: Iterable[BeirDocument], bar: WorkBar) -> int:
        """Store a corpus; returns how many documents hold text."""
        results = self._view.ingest(_counted(_texts(documents), bar))
        chunks = sum(result.chunk_count for result in results)
        if results:
            # As deep as a hundred documents usually take.
            passages = math.ceil(_RANKED_DOCUMENTS * _SPARE * chunks / len(results))
            self._default_depth = min(MAX_TOP_K, max(_RANKED_DOCUMENTS, passages))
        return len(results)

    def ingest_texts(self, texts: Mapping[str, str]) -> None:
        """Store texts unchanged, by name."""
        documents = (Document(content=text, source=name) for name, text in texts.items() if text.strip())
        self._view.ingest(documents)

    def ranked_documents(self, query: str) -> list[str]:
        """The documents of the passages found, best first."""
        options = replace(self._options, top_k=self._depth or self._default_depth)
        return [passage.source for passage in self._view.search(query, options).results]

    def shown_passages(self, question: str, *, budget: int | None, least: int | None) -> Sequence[ShownPassage]:
        """Passages, best first: more than fill ``budget`` characters, and at least ``least``, as far as there are."""
        from recollect.evaluation.runner import ShownPassage

        found = self._filling(question, budget=budget, least=least)
        return [ShownPassage(hit.source, hit.start_offset, hit.end_offset) for hit in found]

    def hits(self, query: str, *, budget: int | None = None, least: int | None = None) -> list[Hit]:
        """As `shown_passages`, with their texts; without a limit, as many as a hundred documents take."""
        if budget is None and least is None:
            least = self.depth
        return [hit_of(passage) for passage in self._filling(query, budget=budget, least=least)]

    @property
    def depth(self) -> int:
        """Passages asked for where no limit says more."""
        return self._depth or self._default_depth

    def _filling(self, question: str, *, budget: int | None, least: int | None) -> Sequence[RetrievedContext]:
        depth = self._depth or max(_RANKED_DOCUMENTS, least or 0)
        while True:
            reply = self._view.search(question, replace(self._options, top_k=depth))
            found = reply.results
            length = sum(hit.end_offset - hit.start_offset for hit in found)
            enough = budget is None or length > budget or len(found) < depth
            if enough or self._depth is not None or depth == MAX_TOP_K:
                return found
            depth = min(MAX_TOP_K, 2 * depth)


def measured_options(ctx: CommandContext, search: SearchOptions) -> RetrievalOptions:
    """The options of every search of an evaluation, refused before anything is ingested; the depth is the engine's.

    Raises:
        UsageError: One of them makes no sense.
    """
    from recollect.retrieval.validation import validate

    options = search.retrieval(ctx.config)
    validate("any question", options)
    return options


def measured(config: RAGConfig) -> RAGConfig:
    """Settings under which a search that is repeated is a search, and not a look into a cache."""
    uncached = config.retrieval.model_copy(update={"cache_entries": 0, "query_cache_entries": 0})
    return config.model_copy(update={"retrieval": uncached})


def hit_of(passage: RetrievedContext) -> Hit:
    """A passage as evaluations see it."""
    from recollect.cli.query import place
    from recollect.evaluation.outcomes import Hit

    return Hit(
        document=passage.source,
        start=passage.start_offset,
        end=passage.end_offset,
        text=passage.content,
        place=place(passage.source, passage.section, passage.page).plain,
    )


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


def _texts(documents: Iterable[BeirDocument]) -> Iterator[Document]:
    for document in documents:
        title = document.title.strip()
        content = f"{title}\n\n{document.text}" if title else document.text
        # Some corpora hold empty documents, which no search can find.
        if content.strip():
            yield Document(content=content, source=document.document_id, title=title or None)


def _counted(documents: Iterable[Document], bar: WorkBar) -> Iterator[Document]:
    for count, document in enumerate(documents, start=1):
        yield document
        bar.update(count, None)
