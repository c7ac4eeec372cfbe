"""``recollect eval report``: an evaluation as a page to look at."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli._command_context import CommandContext
from recollect.cli._options import command
from recollect.cli._systems import Task, load_data, run_systems
from recollect.cli.compare import Budget, Data, Documents, Language, Passages, Samples, Seed, named_systems
from recollect.model.written_files import require_writable

if TYPE_CHECKING:
    from recollect.config import RAGConfig
    from recollect.evaluation.cases import Suite
    from recollect.evaluation.datasets import BeirDataset, SpanDataset

DEFAULT_FILE = Path("recollect-report.html")


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "report", collection=True, local="it measures what searches and answers do in its own process")(
        _report
    )


def _report(
    ctx: CommandContext,
    *,
    configurations: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[A.toml …]", help="Settings to show side by side; by default the ways to search."),
    ] = None,
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where to write the page.")] = DEFAULT_FILE,
    ingest: Documents = None,
    budget: Budget = 4_000,
    passages: Passages = None,
    language: Language = None,
    worst: Annotated[int, typer.Option(min=0, help="Queries to show at most.")] = 20,
    samples: Samples = 10_000,
    seed: Seed = 0,
) -> int:
    """Write an HTML page: quality, latency, recall by what is shown, and the worst queries with what was found.

    The first system is the one whose worst queries are shown.
    """
    from recollect.evaluation.compare import compare
    from recollect.evaluation.html_report import render_report

    require_writable(out, overwrite=True)
    systems = named_systems(ctx, configurations) if configurations else _strategies(ctx.config)
    task = Task(data=load_data(data), documents=ingest, budget_chars=budget, passages=passages, language=language)
    runs = run_systems(ctx, systems, task)
    comparison = compare(runs, samples=samples, seed=seed) if len(runs) > 1 else None
    points, label = _curve(task.data)
    page = render_report(
        runs,
        title=f"Retrieval on {data.name or data}",
        subtitle=_subtitle(ctx, len(runs[0].outcomes)),
        curve_points=points,
        curve_label=label,
        comparison=comparison,
        worst=worst,
    )
    out.write_text(page, encoding="utf-8")
    if ctx.json:
        ctx.emit({"file": str(out), "systems": {run.name: run.means() for run in runs}})
    else:
        ctx.out.print(f"Written to {out}", soft_wrap=True)
    return 0


def _strategies(config: RAGConfig) -> list[tuple[str, RAGConfig]]:
    """The ways to search, all else as configured; the configured one first."""
    variants: dict[str, dict[str, str]] = {
        "hybrid, scores added": {"mode": "hybrid", "fusion": "weighted"},
        "hybrid, ranks added (RRF)": {"mode": "hybrid", "fusion": "rrf"},
        "meaning only": {"mode": "dense"},
        "words only": {"mode": "lexical"},
    }
    now = config.retrieval
    systems = [
        (name, config.model_copy(update={"retrieval": now.model_copy(update=update)}))
        for name, update in variants.items()
    ]

    def other(system: tuple[str, RAGConfig]) -> bool:
        chosen = system[1].retrieval
        return chosen.mode != now.mode or (now.mode == "hybrid" and chosen.fusion != now.fusion)

    return sorted(systems, key=other)


def _curve(data: BeirDataset | SpanDataset | Suite) -> tuple[tuple[int, ...], str]:
    from recollect.evaluation.datasets import BeirDataset, SpanDataset
    from recollect.evaluation.outcomes import BUDGETS, DEPTHS

    if isinstance(data, SpanDataset):
        return BUDGETS, "characters shown"
    return DEPTHS, "documents found" if isinstance(data, BeirDataset) else "passages found"


def _subtitle(ctx: CommandContext, queries: int) -> str:
    from recollect.embedding.models import DEFAULT_MODEL
    from recollect.installation import version

    when = datetime.now(UTC).strftime("%d %B %Y, %H:%M UTC")
    embedding = ctx.config.embedding
    model = embedding.model or (DEFAULT_MODEL if embedding.provider == "local" else embedding.provider)
    return f"{queries:,} queries · recollect {version()} · {model} · {when}"
