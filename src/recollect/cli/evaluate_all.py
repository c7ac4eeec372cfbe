"""``recollect eval all``: several data sets in one table, beside what was measured before."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from recollect.cli._command_context import CommandContext
from recollect.cli._evaluation import measured_options
from recollect.cli._options import ChunkingOptions, SearchOptions, command
from recollect.errors import UsageError

if TYPE_CHECKING:
    from recollect.cli._measuring import Measuring
    from recollect.evaluation.several import Judged, NamedSet
    from recollect.model.memory import RecallMode

# What is shown of texts: so many passages, and as many as fit in so many characters.
_PASSAGES = 5
_CHARACTERS = 4_000


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "all", local="it measures what searches and answers do in its own process")(_all)


def _all(
    ctx: CommandContext,
    search: SearchOptions,
    chunking: ChunkingOptions,
    *,
    sets: Annotated[
        list[str],
        typer.Argument(metavar="[NAME=]DIR…", help="Data sets of any kind: their folders, or files of conversations."),
    ],
    baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Compare with these figures, which --save wrote.")
    ] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the figures down as a baseline.")] = None,
    most_loss: Annotated[
        float | None,
        typer.Option(min=0, metavar="PERCENT", help="Exit with 1 where a figure has lost more than that."),
    ] = None,
) -> int:
    """Judge a change by all data sets at once: one table, and the worst loss against a baseline.

    Each set is measured as its own command does: nDCG@10 of documents (corpus.jsonl), recall and IoU of characters in 5
    passages and recall in 4,000 characters (corpora/), hit@10 of pages (pdf/), recall of turns (a file).
    """
    from recollect.cli._measuring import Measuring
    from recollect.evaluation.several import as_json, judged, named_sets, read_baseline, worst, write_baseline

    if most_loss is not None and baseline is None:
        raise UsageError("--most-loss compares with a baseline: name its file with --baseline.")
    options = measured_options(ctx, search)
    before = {} if baseline is None else read_baseline(baseline)
    kept = read_baseline(save) if save is not None and save.exists() else {}
    chosen = named_sets(sets)
    measuring = Measuring(ctx=ctx, options=options, depth=search.top_k, chunking=chunking)
    started = time.perf_counter()
    found = [row for one in chosen for row in judged(one, _figures(measuring, one), before)]
    seconds = time.perf_counter() - started
    if save is not None:
        write_baseline(save, found, kept)
    if ctx.json:
        ctx.emit(as_json(found, seconds))
    else:
        _show(ctx, found, seconds)
    least = worst(found)
    lost = 0.0 if least is None else -100 * (least.change or 0.0)
    return 1 if most_loss is not None and lost > most_loss else 0


def _figures(measuring: Measuring, one: NamedSet) -> Mapping[str, float]:
    """What a set is judged by."""
    match one.kind:
        case "beir":
            return {"nDCG@10": measuring.beir(one.path).metrics["nDCG@10"]}
        case "spans":
            passages, characters = measuring.spans(one.path, [(_CHARACTERS, _PASSAGES), (_CHARACTERS, None)])
            return {
                f"recall, {_PASSAGES} passages": passages.metrics["recall"],
                f"IoU, {_PASSAGES} passages": passages.metrics["iou"],
                f"recall, {_CHARACTERS:,} characters": characters.metrics["recall"],
            }
        case "pages":
            metrics = measuring.pages(one.path).metrics
            return {f"hit@10, {place}": figures["hit@10"] for place, figures in metrics.items()}
        case "memory":
            from recollect.evaluation.memory_files import load_memory

            mode = cast("RecallMode", measuring.options.mode or "hybrid")
            figures = measuring.memory(load_memory(one.path), mode).metrics
            return {name: figures[name] for name in ("evidence_recall@10", "session_hit@10")}


def _show(ctx: CommandContext, found: Sequence[Judged], seconds: float) -> None:
    from rich.table import Table

    from recollect.cli._terminal import one_line
    from recollect.evaluation.several import worst

    compared = any(one.baseline is not None for one in found)
    table = Table(box=None, pad_edge=False)
    for name, justify in (("set", "left"), ("metric", "left"), ("now", "right")):
        table.add_column(name, justify="right" if justify == "right" else "left")
    if compared:
        table.add_column("before", justify="right")
        table.add_column("change", justify="right")
    for one in found:
        cells = [one_line(one.name), one.metric, f"{one.value:.4f}"]
        if compared:
            cells += ["" if one.baseline is None else f"{one.baseline:.4f}", _percent(one.change)]
        table.add_row(*cells)
    ctx.out.print(table)
    least = worst(found)
    if least is not None:
        ctx.out.print(f"worst: {_percent(least.change)} ({one_line(least.name)}, {least.metric})")
    ctx.out.print(f"{len({one.name for one in found}):,} data sets in {seconds:,.1f} s")


def _percent(change: float | None) -> str:
    return "" if change is None else f"{100 * change:+.1f} %"
