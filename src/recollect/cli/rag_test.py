"""``recollect rag-test``: test cases against the engine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli._command_context import CommandContext
from recollect.cli._evaluation import LOCAL, measured, under_test
from recollect.cli._options import CollectionOption, command
from recollect.cli._searching import SearchOptions
from recollect.errors import UsageError

if TYPE_CHECKING:
    from rich.text import Text

    from recollect.evaluation.persona_audit import AsEachResult, PersonaFile
    from recollect.evaluation.rag_test import CaseResult, SuiteResult

DEFAULT_FILE = Path("rag-tests.yaml")

_MEANS = {"precision": "precision", "recall": "recall", "MRR": "mrr"}
_FOUND_SHOWN = 3
_LEAKS_SHOWN = 20


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "rag-test", local=LOCAL)(_rag_test)


def _rag_test(
    ctx: CommandContext,
    collection: CollectionOption,
    search: SearchOptions,
    *,
    file: Annotated[
        Path, typer.Argument(metavar="[FILE]", help="Test cases in YAML; by default rag-tests.yaml.")
    ] = DEFAULT_FILE,
    test: Annotated[
        list[str] | None,
        typer.Option("--test", "-t", metavar="NAME", help="Only this case (* and ? allowed); repeat for more."),
    ] = None,
    runs: Annotated[int, typer.Option("--runs", "-n", min=1, max=10_000, help="Searches of each case.")] = 1,
    ingest: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Test this folder, in a collection that is removed afterwards."),
    ] = None,
    as_each: Annotated[
        Path | None,
        typer.Option(
            metavar="PERSONAS",
            help="Run every case as each of these people, and fail if one is shown what they may not read.",
        ),
    ] = None,
) -> int:
    """Run test cases: precision, recall, MRR and latency; the exit status is 1 if a case falls below its thresholds.

    With --as-each it is 1 if somebody is shown what they may not read.
    """
    from recollect.cli._progress import WorkBar
    from recollect.evaluation.case_files import load_suite
    from recollect.evaluation.rag_test import selected
    from recollect.pipeline.persona_audit import evaluate_personas, give_permissions
    from recollect.pipeline.saved_cases import run_cases
    from recollect.retrieval.validation import validate

    suite = load_suite(file)
    cases = selected(suite, test or [])
    options = search.retrieval(ctx.config)
    for case in cases:
        validate(case.query, suite.search(case).options(options))
    personas = None if as_each is None else _personas(as_each, runs=runs, ingested=ingest is not None)
    show: Callable[[], None]
    with (
        ctx.view(measured(ctx.config)) as whole,
        under_test(ctx, whole, ingest, collection.collection) as view,
        WorkBar(ctx.err, "Testing", unit="cases") as bar,
    ):
        if personas is None:
            # The first search loads the model, which is no part of any case's latency.
            view.search(cases[0].query, options)
            tested = run_cases(view, suite, options, cases=cases, runs=runs, progress=bar.update)
            passed, report, show = tested.passed, tested.as_json(), partial(_show, ctx, tested)
        else:
            if personas.grants:
                give_permissions(view, personas.permissions())
            askers = personas.principals()
            audit = evaluate_personas(view, suite, askers, options=options, cases=cases, progress=bar.update)
            passed, report, show = audit.passed, audit.as_json(), partial(_show_personas, ctx, audit)
    if ctx.json:
        ctx.emit({"file": str(file), "collection": view.standpoint.collection, **report})
    else:
        show()
    return 0 if passed else 1


def _personas(file: Path, *, runs: int, ingested: bool) -> PersonaFile:
    """Read the personas that cases run as."""
    if runs != 1:
        raise UsageError("--as-each runs every case once as each persona: leave --runs out.")
    from recollect.evaluation.persona_audit import load_personas

    personas = load_personas(file)
    if personas.grants and not ingested:
        raise UsageError(
            f"{file} holds grants, which are for documents that --ingest DIR brings. What is in a collection has its "
            "own: recollect grants list."
        )
    return personas


def _show(ctx: CommandContext, result: SuiteResult) -> None:
    from rich.text import Text

    from recollect.cli._terminal import one_line, print_table

    rows: list[tuple[str | Text, ...]] = []
    for one in result.results:
        figures = ("–" if value is None else f"{value:.2f}" for value in one.metrics.values())
        refusal = {None: "", True: "refused", False: "answered"}[one.refused]
        mark = Text("✓", "green") if one.passed else Text("✗", "bold red")
        notes = ", ".join(part for part in (refusal, "" if one.stable else "varies between runs") if part)
        rows.append((mark, one_line(one.case.name), *figures, f"{one.latency_ms:,.1f}", Text(notes, style="dim")))
    print_table(ctx.out, ("", "Case", "Precision", "Recall", "MRR", "ms", ""), rows, left=(0, 1, 6))
    for one in result.results:
        if not one.passed:
            ctx.out.print()
            ctx.out.print(_failure(one), soft_wrap=True)
    ctx.out.print()
    count, passed = result.counts()["cases"], result.counts()["passed"]
    style = "green" if result.passed else "bold red"
    ctx.out.print(f"{passed:,} of {count:,} case{'' if count == 1 else 's'} passed", style=style)
    means = [(name, result.mean(key)) for name, key in _MEANS.items()]
    if told := ", ".join(f"{name} {mean:.3f}" for name, mean in means if mean is not None):
        ctx.out.print(f"mean {told}")
    runs = f", {result.runs:,} runs each" if result.runs > 1 else ""
    half, most = result.latencies().values()
    ctx.out.print(f"a search: {half:,.1f} ms (median), {most:,.1f} ms (95th percentile){runs}", style="dim")


def _failure(result: CaseResult) -> Text:
    from rich.text import Text

    from recollect.cli._terminal import one_line, shortened
    from recollect.evaluation.outcomes import place_of

    text = Text.assemble(("✗ ", "bold red"), (one_line(result.case.name), "bold"), f": {one_line(result.case.query)}")
    for failure in result.failures:
        text.append(f"\n    {one_line(failure)}", "red")
    for passage in result.found[:_FOUND_SHOWN]:
        text.append(f"\n    found {one_line(place_of(passage))}: {shortened(passage.content, 90)}", "dim")
    return text


def _show_personas(ctx: CommandContext, result: AsEachResult) -> None:
    from rich.text import Text

    from recollect.cli._terminal import one_line, print_table

    rows = [
        (
            one_line(one.name),
            f"{one.readable_documents:,} of {one.documents:,}",
            f"{sum(case.recall is not None for case in one.cases):,} of {len(one.cases):,}",
            "–" if one.recall is None else f"{one.recall:.2f}",
            f"{one.withheld:,}",
            Text(f"{len(one.leaks):,}", "bold red" if one.leaks else "green"),
        )
        for one in result.personas
    ]
    print_table(ctx.out, ("Persona", "May read", "Cases", "Recall", "Withheld", "Leaks"), rows)
    ctx.out.print()
    for leak in result.leaks[:_LEAKS_SHOWN]:
        persona, source, case = map(one_line, (leak.persona, leak.source, leak.case))
        text = Text.assemble(("✗ ", "bold red"), f"{persona} was shown {source} by the {leak.place} of {case}")
        ctx.out.print(text, soft_wrap=True)
    if len(result.leaks) > _LEAKS_SHOWN:
        ctx.note(f"… and {len(result.leaks) - _LEAKS_SHOWN:,} more; --json lists all of them")
    if result.passed:
        ctx.out.print("nobody was shown what they may not read", style="green")
