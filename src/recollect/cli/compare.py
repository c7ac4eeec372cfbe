"""``recollect eval compare``: whether one configuration is better than another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli._command_context import CommandContext
from recollect.cli._options import command
from recollect.cli._systems import Task, load_data, run_systems
from recollect.errors import UsageError

if TYPE_CHECKING:
    from recollect.config import RAGConfig
    from recollect.evaluation.compare import Comparison

Data = Annotated[
    Path, typer.Option("--data", metavar="DIR", help="A data set in BEIR or span form, or a YAML file of test cases.")
]
Documents = Annotated[
    Path | None,
    typer.Option("--ingest", metavar="DIR", help="With test cases: their documents; else what is in the collection."),
]
Budget = Annotated[int, typer.Option(min=1, help="With spans: characters that may be shown for a question.")]
Passages = Annotated[int | None, typer.Option(min=1, max=1000, help="With spans: show this many passages instead.")]
Language = Annotated[str | None, typer.Option(metavar="CODE", help="Of a data set's texts (ISO 639-1).")]
Samples = Annotated[int, typer.Option(min=100, max=10_000_000, help="Random draws of each test.")]
Seed = Annotated[int, typer.Option(min=0, help="Of the random numbers.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "compare", collection=True, local="it measures what searches and answers do in its own process")(
        _compare
    )


def _compare(
    ctx: CommandContext,
    *,
    configurations: Annotated[
        list[Path], typer.Argument(metavar="A.toml B.toml …", help="Two or more files of settings.")
    ],
    data: Data,
    ingest: Documents = None,
    budget: Budget = 4_000,
    passages: Passages = None,
    language: Language = None,
    samples: Samples = 10_000,
    seed: Seed = 0,
) -> int:
    """Run configurations on the same queries, and say by paired tests whether the difference is real.

    The settings of each file count, but for where data are stored: all use this command's store. Configurations that
    cut and embed alike share one ingest.
    """
    from recollect.evaluation.compare import compare

    if len(configurations) < 2:
        raise UsageError("Give two or more files of settings to compare.")
    systems = named_systems(ctx, configurations)
    task = Task(data=load_data(data), documents=ingest, budget_chars=budget, passages=passages, language=language)
    comparison = compare(run_systems(ctx, systems, task), samples=samples, seed=seed)
    if ctx.json:
        ctx.emit(comparison.as_json())
    else:
        _show(ctx, comparison)
    return 0


def named_systems(ctx: CommandContext, paths: list[Path]) -> list[tuple[str, RAGConfig]]:
    """Settings from files, each with the shortest name that tells it from the others.

    Raises:
        ConfigurationError: A file cannot be read, or is not valid.
        UsageError: A file is given twice.
    """
    from recollect.config import RAGConfig

    stems = [path.stem for path in paths]
    names = stems if len(set(stems)) == len(stems) else [str(path) for path in paths]
    if len(set(names)) < len(names):
        raise UsageError("A file is given twice: a configuration does not differ from itself.")
    here = {"storage": ctx.config.storage, "collection": ctx.collection}
    return [(name, RAGConfig.load(path).model_copy(update=here)) for name, path in zip(names, paths, strict=True)]


def _show(ctx: CommandContext, comparison: Comparison) -> None:
    from rich.table import Table
    from rich.text import Text

    metrics = list(comparison.runs[0].means())
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("System", overflow="fold")
    for metric in metrics:
        table.add_column(metric, justify="right")
    table.add_column("ms p50 / p95", justify="right")
    for run in comparison.runs:
        means = run.means()
        times = f"{run.milliseconds(50):,.1f} / {run.milliseconds(95):,.1f}"
        table.add_row(Text(run.name, "bold"), *(f"{means[metric]:.4f}" for metric in metrics), times)
    ctx.out.print(table)
    ctx.out.print()
    pairs = Table(box=None, header_style="bold", pad_edge=False)
    pairs.add_column("Metric", overflow="fold")
    for title in ("Difference", f"{comparison.confidence:.0%} interval", "p"):
        pairs.add_column(title, justify="right", no_wrap=True)
    pairs.add_column("Better", overflow="fold")
    for verdict in comparison.verdicts:
        result = verdict.result
        pairs.add_row(
            Text.assemble((verdict.metric, "bold"), f" {verdict.second} − {verdict.first}"),
            f"{result.difference:+.4f}",
            f"{result.low:+.4f} … {result.high:+.4f}",
            "< 0.001" if verdict.corrected_p < 0.001 else f"{verdict.corrected_p:.3f}",
            Text(verdict.winner or "unclear", "green" if verdict.winner else "dim"),
        )
    ctx.out.print(pairs)
    queries = len(comparison.runs[0].outcomes)
    ctx.out.print(
        f"{queries:,} queries; p of a randomisation test, corrected for the number of pairs; bootstrap interval",
        style="dim",
        soft_wrap=True,
    )
