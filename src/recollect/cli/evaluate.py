"""``recollect eval``: retrieval quality on data sets with judgements."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.cli import compare, evaluate_memory, make, report
from recollect.cli._command_context import CommandContext
from recollect.cli._evaluation import MAX_TOP_K, Engine, fresh_collection
from recollect.cli._options import ChunkingOptions, CollectionOption, SearchOptions, command
from recollect.cli.ingest import chunking_of

if TYPE_CHECKING:
    from recollect.model import RetrievalOptions
    from recollect.pipeline import View

app = typer.Typer(help="Measure retrieval quality on data sets with judgements.", no_args_is_help=True)

_Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The data set's folder.")]
_Keep = Annotated[bool, typer.Option("--keep", help="Keep the collection made for this run.")]
_Language = Annotated[str | None, typer.Option(metavar="CODE", help="Of the texts (ISO 639-1).")]


def _beir(
    ctx: CommandContext,
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

    options = measured_options(ctx, search)
    dataset = load_beir(folder)
    with (
        ctx.view() as view,
        fresh_collection(
            view, collection.collection, chunking=_parameters(view, chunking), keep=keep, language=language
        ) as fresh,
        WorkBar(ctx.err, "Ingesting", unit="documents") as corpus_bar,
        WorkBar(ctx.err, "Searching", unit="queries") as query_bar,
    ):
        engine = Engine(fresh, options, depth=search.top_k)
        report = run_beir(
            dataset,
            ingest=lambda documents: engine.ingest_corpus(documents, corpus_bar),
            search=engine.ranked_documents,
            progress=query_bar.update,
        )
    if ctx.json:
        ctx.emit(report.as_json())
        return 0
    _show_metrics(ctx, report.metrics)
    out = ctx.out
    out.print(f"{report.queries:,} queries on {report.documents:,} documents in {report.seconds:,.1f} s")
    out.print(f"a query: {report.query_ms.p50:,.1f} ms (median), {report.query_ms.p95:,.1f} ms (95th percentile)")
    return 0


def _spans(
    ctx: CommandContext,
    collection: CollectionOption,
    search: SearchOptions,
    chunking: ChunkingOptions,
    *,
    folder: _Folder,
    budget: Annotated[int, typer.Option(min=1, help="Characters that may be shown for a question.")] = 4_000,
    passages: Annotated[
        int | None, typer.Option(min=1, max=MAX_TOP_K, help="Show this many passages instead, however long.")
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

    options = measured_options(ctx, search)
    dataset = load_spans(folder)
    with (
        ctx.view() as view,
        fresh_collection(
            view, collection.collection, chunking=_parameters(view, chunking), keep=keep, language=language
        ) as fresh,
        WorkBar(ctx.err, "Searching", unit="questions") as bar,
    ):
        engine = Engine(fresh, options, depth=search.top_k)
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
    if ctx.json:
        ctx.emit({"metrics": dict(report.metrics), "budget_chars": report.budget_chars, "questions": report.questions})
        return 0
    _show_metrics(ctx, report.metrics)
    limit = f"{report.passages:,} passages" if report.passages else f"{report.budget_chars:,} characters"
    ctx.out.print(f"{report.questions:,} questions, {limit} each")
    return 0


def measured_options(ctx: CommandContext, search: SearchOptions) -> RetrievalOptions:
    """The options of every search of an evaluation, refused before anything is ingested; the depth is the engine's.

    Raises:
        UsageError: One of them makes no sense.
    """
    from recollect.retrieval.validation import validate

    options = search.retrieval(mode=ctx.config.retrieval.mode, top_k=ctx.config.top_k)
    validate("any question", options)
    return options


def _parameters(view: View, chunking: ChunkingOptions) -> dict[str, Any] | None:
    return chunking_of(view.config, chunking) if chunking.given else None


def _show_metrics(ctx: CommandContext, metrics: Mapping[str, float]) -> None:
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    for name, value in metrics.items():
        table.add_row(name, f"{value:.4f}")
    ctx.out.print(table)


command(app, "beir")(_beir)
command(app, "spans")(_spans)
evaluate_memory.register(app)
compare.register(app)
report.register(app)
make.register(app)
