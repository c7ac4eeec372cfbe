"""``recollect eval compare`` and ``report``: configurations on the same queries, in figures and on a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from recollect.cli._command_context import CommandContext
from recollect.cli._evaluation import LOCAL, Limits, fill, fresh_collection, measured, outcomes_of, under_test
from recollect.cli._options import command
from recollect.cli._progress import WorkBar
from recollect.cli._terminal import print_table
from recollect.config import RAGConfig
from recollect.embedding.models import DEFAULT_MODEL
from recollect.errors import UsageError
from recollect.evaluation.case_files import load_suite
from recollect.evaluation.compare import SystemRun, compare
from recollect.evaluation.datasets import DataSet, kind_of, load_beir, load_spans
from recollect.evaluation.html_report import render_report
from recollect.evaluation.scoring import BUDGETS, DEPTHS, check_cases
from recollect.installation import version
from recollect.model.written_files import require_writable
from recollect.pipeline import RAGPipeline
from recollect.pipeline.saved_cases import found_by

if TYPE_CHECKING:
    from recollect.evaluation.case_files import Suite
    from recollect.evaluation.compare import Comparison
    from recollect.evaluation.rag_test import Progress
    from recollect.evaluation.scoring import Outcome
    from recollect.model import RetrievalOptions
    from recollect.pipeline import View

    #: Searches every question in a view.
    _Measure = Callable[[View, RetrievalOptions, Progress], list[Outcome]]

DEFAULT_FILE = Path("recollect-report.html")


@dataclass(frozen=True, kw_only=True)
class TaskOptions:
    """The data and limits of a comparison."""

    data: Annotated[
        Path,
        typer.Option("--data", metavar="DIR", help="A data set in BEIR or span form, or a YAML file of test cases."),
    ]
    ingest: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="With test cases: their documents; else what is in the collection."),
    ] = None
    budget: Annotated[int, typer.Option(min=1, help="With spans: characters that may be shown for a question.")] = 4_000
    passages: Annotated[
        int | None, typer.Option(min=1, max=1000, help="With spans: show this many passages instead.")
    ] = None
    language: Annotated[str | None, typer.Option(metavar="CODE", help="Of a data set's texts (ISO 639-1).")] = None
    samples: Annotated[int, typer.Option(min=100, max=10_000_000, help="Random draws of each test.")] = 10_000
    seed: Annotated[int, typer.Option(min=0, help="Of the random numbers.")] = 0


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "compare", collection=True, local=LOCAL)(_compare)
    command(app, "report", collection=True, local=LOCAL)(_report)


def _compare(
    ctx: CommandContext,
    task: TaskOptions,
    *,
    configurations: Annotated[
        list[Path], typer.Argument(metavar="A.toml B.toml …", help="Two or more files of settings.")
    ],
) -> int:
    """Run configurations on the same queries, and say by paired tests whether the difference is real.

    The settings of each file count, but for where data are stored: all use this command's store. Configurations that
    cut and embed alike share one ingest.
    """
    if len(configurations) < 2:
        raise UsageError("Give two or more files of settings to compare.")
    systems = _named_systems(ctx, configurations)
    runs = _run_systems(ctx, systems, task, _load_data(task.data))
    comparison = compare(runs, samples=task.samples, seed=task.seed)
    return ctx.tell(comparison.as_json(), lambda: _show(ctx, comparison))


def _report(
    ctx: CommandContext,
    task: TaskOptions,
    *,
    configurations: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[A.toml …]", help="Settings to show side by side; by default the ways to search."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where to write the page.")] = DEFAULT_FILE,
    worst: Annotated[int, typer.Option(min=0, help="Queries to show at most.")] = 20,
) -> int:
    """Write an HTML page: quality, latency, recall by what is shown, and the worst queries with what was found.

    The first system is the one whose worst queries are shown.
    """
    require_writable(out, overwrite=True)
    systems = _named_systems(ctx, configurations) if configurations else _strategies(ctx.config)
    data = _load_data(task.data)
    runs = _run_systems(ctx, systems, task, data)
    kind = getattr(data, "kind", "cases")
    page = render_report(
        runs,
        title=f"Retrieval on {task.data.name or task.data}",
        subtitle=_subtitle(ctx, len(runs[0].outcomes)),
        curve_points=BUDGETS if kind == "spans" else DEPTHS,
        curve_label={"spans": "characters shown", "beir": "documents found"}.get(kind, "passages found"),
        comparison=compare(runs, samples=task.samples, seed=task.seed) if len(runs) > 1 else None,
        worst=worst,
    )
    out.write_text(page, encoding="utf-8")
    return ctx.tell(
        {"file": str(out), "systems": {run.name: run.means() for run in runs}}, f"Written to {out}", soft_wrap=True
    )


def _named_systems(ctx: CommandContext, paths: list[Path]) -> list[tuple[str, RAGConfig]]:
    """Settings from files, each with the shortest name that tells it from the others."""
    stems = [path.stem for path in paths]
    names = stems if len(set(stems)) == len(stems) else [str(path) for path in paths]
    if len(set(names)) < len(names):
        raise UsageError("A file is given twice: a configuration does not differ from itself.")
    here = {"storage": ctx.config.storage, "collection": ctx.collection}
    return [(name, RAGConfig.load(path).model_copy(update=here)) for name, path in zip(names, paths, strict=True)]


def _strategies(config: RAGConfig) -> list[tuple[str, RAGConfig]]:
    """The ways to search, all else as configured; the configured one first."""
    variants: dict[str, dict[str, str]] = {
        "hybrid, scores added": {"mode": "hybrid", "fusion": "weighted"},
        "hybrid, ranks added (RRF)": {"mode": "hybrid", "fusion": "rrf"},
        "meaning only": {"mode": "dense"},
        "words only": {"mode": "lexical"},
    }
    now = config.retrieval

    def other(name: str) -> bool:
        chosen = variants[name]
        return chosen["mode"] != now.mode or chosen.get("fusion", now.fusion) != now.fusion

    return [
        (name, config.model_copy(update={"retrieval": now.model_copy(update=variants[name])}))
        for name in sorted(variants, key=other)
    ]


def _load_data(path: Path) -> DataSet | Suite:
    """A data set in BEIR or span form, or a file of test cases, by what is there."""
    if path.is_file():
        return load_suite(path)
    kind = kind_of(path)
    if kind == "pages":
        raise UsageError(f"{path} holds pages, which `recollect eval pages` measures. Compare on BEIR or span form.")
    return load_beir(path) if kind == "beir" else load_spans(path)


def _run_systems(
    ctx: CommandContext, systems: Sequence[tuple[str, RAGConfig]], task: TaskOptions, data: DataSet | Suite
) -> list[SystemRun]:
    """Run every system on the data; those that cut and embed alike share a collection that is removed afterwards."""
    groups: dict[str, dict[str, RAGConfig]] = {}
    for name, config in systems:
        groups.setdefault(_shared(config), {})[name] = config
    outcomes: dict[str, list[Outcome]] = {}
    for members in groups.values():
        with ctx.pipeline(next(iter(members.values()))) as first, _filled(ctx, first, task, data) as (place, measure):
            for name, config in members.items():
                # The model is loaded once: systems of a group differ in how they search only.
                with (
                    RAGPipeline(measured(config), embedder=first.embedder) as rag,
                    WorkBar(ctx.err, f"Searching ({name})", unit="queries") as bar,
                ):
                    view, options = rag.view(collections=place), rag.default_options()
                    # What the first search loads is no part of any query's time.
                    view.search("warm up", options)
                    outcomes[name] = measure(view, options, bar.update)
    return [SystemRun(name=name, outcomes=tuple(outcomes[name])) for name, _ in systems]


def _shared(config: RAGConfig) -> str:
    embedding = config.embedding
    parts = (config.chunking.model_dump_json(), embedding.provider, embedding.model, embedding.precision)
    return repr((*parts, config.language))


@contextmanager
def _filled(
    ctx: CommandContext, view: View, task: TaskOptions, data: DataSet | Suite
) -> Iterator[tuple[str, _Measure]]:
    """The collection that is searched, and what searches it."""
    if not isinstance(data, DataSet):
        with under_test(ctx, view, task.ingest, None) as cases:
            yield (
                cases.standpoint.collection,
                lambda at, options, progress: check_cases(data, partial(found_by, at, options), progress=progress),
            )
        return
    with fresh_collection(view, language=task.language) as fresh:
        _, depth = fill(ctx, fresh, data)
        limits = Limits(least=depth)
        if data.kind == "spans":
            budget = max(task.budget, *BUDGETS)
            limits = Limits(least=task.passages, budget=budget, shown=task.budget, passages=task.passages)
        yield (
            fresh.standpoint.collection,
            lambda at, options, progress: outcomes_of(at, data, options, limits, progress),
        )


def _show(ctx: CommandContext, comparison: Comparison) -> None:
    metrics = list(comparison.runs[0].means())
    rows: list[tuple[str | Text, ...]] = [
        (
            Text(run.name, "bold"),
            *(f"{value:.4f}" for value in run.means().values()),
            " / ".join(f"{value:,.1f}" for value in run.times().values()),
        )
        for run in comparison.runs
    ]
    print_table(ctx.out, ("System", *metrics, "ms p50 / p95"), rows)
    ctx.out.print()
    pairs = [
        (
            Text.assemble((verdict.metric, "bold"), f" {verdict.second} − {verdict.first}"),
            *verdict.figures(),
            Text(verdict.winner or "unclear", "green" if verdict.winner else "dim"),
        )
        for verdict in comparison.verdicts
    ]
    head = ("Metric", "Difference", f"{comparison.confidence:.0%} interval", "p", "Better")
    print_table(ctx.out, head, pairs, left=(0, 4))
    ctx.out.print(
        f"{len(comparison.runs[0].outcomes):,} queries; p of a randomisation test, corrected for the number of pairs; "
        "bootstrap interval",
        style="dim",
        soft_wrap=True,
    )


def _subtitle(ctx: CommandContext, queries: int) -> str:
    when = datetime.now(UTC).strftime("%d %B %Y, %H:%M UTC")
    embedding = ctx.config.embedding
    model = embedding.model or (DEFAULT_MODEL if embedding.provider == "local" else embedding.provider)
    return f"{queries:,} queries · recollect {version()} · {model} · {when}"
