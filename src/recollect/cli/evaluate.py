"""``recollect eval``: retrieval quality on data sets with judgements."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from recollect.cli import compare, evaluate_all, evaluate_memory, evaluate_pages, make, report
from recollect.cli._command_context import CommandContext
from recollect.cli._evaluation import MAX_TOP_K, measured_options
from recollect.cli._measuring import Measuring
from recollect.cli._options import ChunkingOptions, CollectionOption, SearchOptions, command

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
    measuring = Measuring(
        ctx=ctx,
        options=measured_options(ctx, search),
        depth=search.top_k,
        chunking=chunking,
        collection=collection.collection,
        language=language,
        keep=keep,
    )
    report = measuring.beir(folder)
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
    measuring = Measuring(
        ctx=ctx,
        options=measured_options(ctx, search),
        depth=search.top_k,
        chunking=chunking,
        collection=collection.collection,
        language=language,
        keep=keep,
    )
    (report,) = measuring.spans(folder, [(budget, passages)])
    if ctx.json:
        ctx.emit({"metrics": dict(report.metrics), "budget_chars": report.budget_chars, "questions": report.questions})
        return 0
    _show_metrics(ctx, report.metrics)
    limit = f"{report.passages:,} passages" if report.passages else f"{report.budget_chars:,} characters"
    ctx.out.print(f"{report.questions:,} questions, {limit} each")
    return 0


def _show_metrics(ctx: CommandContext, metrics: Mapping[str, float]) -> None:
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    for name, value in metrics.items():
        table.add_row(name, f"{value:.4f}")
    ctx.out.print(table)


command(app, "beir", local="it measures what searches and answers do in its own process")(_beir)
command(app, "spans", local="it measures what searches and answers do in its own process")(_spans)
evaluate_pages.register(app)
evaluate_memory.register(app)
evaluate_all.register(app)
compare.register(app)
report.register(app)
make.register(app)
