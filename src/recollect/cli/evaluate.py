"""``recollect eval``: retrieval quality on data sets with judgements."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli._options import ChunkingOptions, CollectionOption, SearchOptions, command
from recollect.cli._session import Session
from recollect.cli.ingest import chunking_of
from recollect.model import Document

if TYPE_CHECKING:
    from recollect.cli._progress import WorkBar
    from recollect.evaluation.datasets import BeirDocument
    from recollect.evaluation.runner import ShownPassage
    from recollect.model import RetrievalOptions
    from recollect.pipeline import RAGPipeline

app = typer.Typer(help="Measure retrieval quality on data sets with judgements.", no_args_is_help=True)

_MAX_TOP_K = 1_000
# R@100 needs a hundred distinct documents, of which some give several passages.
_RANKED_DOCUMENTS = 100
_SPARE = 1.5

_Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The data set's folder.")]
_Keep = Annotated[bool, typer.Option("--keep", help="Keep the collection made for this run.")]
_Language = Annotated[str | None, typer.Option(metavar="CODE", help="Of the texts (ISO 639-1).")]


def _beir(
    session: Session,
    collection: CollectionOption,
    search: SearchOptions,
    chunking: ChunkingOptions,
    *,
    folder: _Folder,
    keep: _Keep = False,
    language: _Language = None,
) -> int:
    """Rank documents: nDCG@10, recall and precision on a data set in BEIR form.

    DIR holds corpus.jsonl, queries.jsonl and qrels.tsv. The corpus is ingested into a collection of its own, every
    judged query is run, and a document ranks by its best passage.
    """
    from recollect.cli._progress import WorkBar
    from recollect.evaluation.datasets import load_beir
    from recollect.evaluation.runner import run_beir

    dataset = load_beir(folder)
    options = search.retrieval(mode=session.config.retrieval.mode, top_k=0)
    with (
        session.pipeline() as rag,
        _fresh_collection(rag, collection.collection, chunking, keep=keep, language=language) as name,
        WorkBar(session.err, "Ingesting", unit="documents") as corpus_bar,
        WorkBar(session.err, "Searching", unit="queries") as query_bar,
    ):
        engine = _Engine(rag, name, options, depth=search.top_k)
        report = run_beir(
            dataset,
            ingest=lambda documents: engine.ingest_corpus(documents, corpus_bar),
            search=engine.ranked_documents,
            progress=query_bar.update,
        )
    if session.json:
        session.emit(report.as_json())
        return 0
    _show_metrics(session, report.metrics)
    out = session.out
    out.print(f"{report.queries:,} queries on {report.documents:,} documents in {report.seconds:,.1f} s")
    out.print(f"a query: {report.query_ms.p50:,.1f} ms (median), {report.query_ms.p95:,.1f} ms (95th percentile)")
    return 0


def _spans(
    session: Session,
    collection: CollectionOption,
    search: SearchOptions,
    chunking: ChunkingOptions,
    *,
    folder: _Folder,
    budget: Annotated[int, typer.Option(min=1, help="Characters that may be shown for a question.")] = 4_000,
    passages: Annotated[
        int | None, typer.Option(min=1, max=_MAX_TOP_K, help="Show this many passages instead, however long.")
    ] = None,
    keep: _Keep = False,
    language: _Language = None,
) -> int:
    """Find characters: recall, precision and IoU of the characters that answer a question.

    DIR holds corpora/* and questions.jsonl with character ranges.
    """
    from recollect.cli._progress import WorkBar
    from recollect.evaluation.datasets import load_spans
    from recollect.evaluation.runner import run_spans

    dataset = load_spans(folder)
    options = search.retrieval(mode=session.config.retrieval.mode, top_k=0)
    with (
        session.pipeline() as rag,
        _fresh_collection(rag, collection.collection, chunking, keep=keep, language=language) as name,
        WorkBar(session.err, "Searching", unit="questions") as bar,
    ):
        engine = _Engine(rag, name, options, depth=search.top_k)
        report = run_spans(
            dataset,
            ingest=engine.ingest_texts,
            search=lambda question: engine.shown_passages(
                question, budget=None if passages else budget, least=passages
            ),
            budget_chars=budget,
            passages=passages,
            progress=bar.update,
        )
    if session.json:
        session.emit(
            {"metrics": dict(report.metrics), "budget_chars": report.budget_chars, "questions": report.questions}
        )
        return 0
    _show_metrics(session, report.metrics)
    limit = f"{report.passages:,} passages" if report.passages else f"{report.budget_chars:,} characters"
    session.out.print(f"{report.questions:,} questions, {limit} each")
    return 0


class _Engine:
    """The pipeline, as the evaluation wants to talk to it.

    Args:
        rag: The pipeline.
        collection: Where the data set goes.
        options: How to search.
        depth: Passages asked for; None: as many as the measure needs.
    """

    def __init__(self, rag: RAGPipeline, collection: str, options: RetrievalOptions, *, depth: int | None) -> None:
        self._rag = rag
        self._collection = collection
        self._options = options
        self._depth = depth
        self._default_depth = _RANKED_DOCUMENTS

    def ingest_corpus(self, documents: Iterable[BeirDocument], bar: WorkBar) -> int:
        results = self._rag.ingest_many(_counted(_texts(documents), bar), collection=self._collection)
        chunks = sum(result.chunk_count for result in results)
        if results:
            # As deep as a hundred documents usually take.
            passages = math.ceil(_RANKED_DOCUMENTS * _SPARE * chunks / len(results))
            self._default_depth = min(_MAX_TOP_K, max(_RANKED_DOCUMENTS, passages))
        return len(results)

    def ingest_texts(self, texts: Mapping[str, str]) -> None:
        documents = (Document(content=text, source=name) for name, text in texts.items() if text.strip())
        self._rag.ingest_many(documents, collection=self._collection)

    def ranked_documents(self, query: str) -> list[str]:
        options = replace(self._options, top_k=self._depth or self._default_depth)
        return [passage.source for passage in self._rag.search(query, options, collection=self._collection).results]

    def shown_passages(self, question: str, *, budget: int | None, least: int | None) -> Sequence[ShownPassage]:
        from recollect.evaluation.runner import ShownPassage

        depth = self._depth or max(_RANKED_DOCUMENTS, least or 0)
        while True:
            reply = self._rag.search(question, replace(self._options, top_k=depth), collection=self._collection)
            found = [ShownPassage(hit.source, hit.start_offset, hit.end_offset) for hit in reply.results]
            length = sum(passage.end - passage.start for passage in found)
            enough = budget is None or length > budget or len(found) < depth
            if enough or self._depth is not None or depth == _MAX_TOP_K:
                return found
            depth = min(_MAX_TOP_K, 2 * depth)


@contextmanager
def _fresh_collection(
    rag: RAGPipeline, name: str | None, chunking: ChunkingOptions, *, keep: bool, language: str | None
) -> Iterator[str]:
    """A collection for one run, removed afterwards unless it is to be kept."""
    fresh = name or f"eval-{uuid.uuid4().hex[:12]}"
    rag.create_collection(
        fresh,
        description="Made by recollect eval.",
        language=language,
        chunking=chunking_of(rag, chunking) if chunking.given else None,
    )
    try:
        yield fresh
    finally:
        if not keep:
            rag.delete_collection(fresh)


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


def _show_metrics(session: Session, metrics: Mapping[str, float]) -> None:
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    for name, value in metrics.items():
        table.add_row(name, f"{value:.4f}")
    session.out.print(table)


command(app, "beir")(_beir)
command(app, "spans")(_spans)
