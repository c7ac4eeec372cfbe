"""``recollect rag-test``: test cases against the engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli._command_context import CommandContext
from recollect.cli._evaluation import fresh_collection, measured
from recollect.cli._options import CollectionOption, SearchOptions, command
from recollect.errors import UsageError
from recollect.evaluation.case_options import options_of

if TYPE_CHECKING:
    from rich.text import Text

    from recollect.evaluation.cases import CaseSearch
    from recollect.evaluation.rag_test import CaseResult, Found, SuiteResult
    from recollect.model import RetrievalOptions
    from recollect.pipeline import View

DEFAULT_FILE = Path("rag-tests.yaml")

_FOUND_SHOWN = 3


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "rag-test", local="it measures what searches and answers do in its own process")(_rag_test)


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
    from recollect.cli._persona_audit import run_persona_audit, wanted_personas
    from recollect.cli._progress import WorkBar
    from recollect.evaluation.case_files import load_suite
    from recollect.evaluation.rag_test import run_suite, selected
    from recollect.retrieval.validation import validate

    suite = load_suite(file)
    cases = selected(suite, test or [])
    asked = [suite.search(case) for case in cases]
    options = search.retrieval(ctx.config)
    for one in asked:
        validate(one.query, options_of(one, options))
    personas = wanted_personas(as_each, runs=runs, ingested=ingest is not None)
    with (
        ctx.view(measured(ctx.config)) as whole,
        under_test(ctx, whole, ingest, collection.collection) as view,
    ):
        if personas is not None:
            return run_persona_audit(ctx, view, suite, personas, cases=cases, options=options, file=file)
        engine = _Engine(view, options)
        with WorkBar(ctx.err, "Testing", unit="cases") as bar:
            # The first search loads the model, which is no part of any case's latency.
            engine.search(asked[0])
            result = run_suite(
                suite, search=engine.search, refuses=engine.refuses, cases=cases, runs=runs, progress=bar.update
            )
    if ctx.json:
        ctx.emit({"file": str(file), "collection": view.standpoint.collection, **result.as_json()})
    else:
        _show(ctx, result)
    return 0 if result.passed else 1


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
    from recollect.cli._progress import WorkBar

    with fresh_collection(view) as fresh:
        with WorkBar(ctx.err, "Ingesting", unit="files") as bar:
            report = fresh.ingest(folder, on_progress=bar.ingest)
        for error in report.errors:
            ctx.note(f"✗ {error.path}: {error.error}")
        if not report.added:
            raise UsageError(f"{folder} holds no document that can be read.")
        yield fresh


class _Engine:
    """A view, as test cases talk to it."""

    def __init__(self, view: View, options: RetrievalOptions) -> None:
        self._view = view
        self._options = options

    def search(self, asked: CaseSearch) -> list[Found]:
        from recollect.cli.query import place
        from recollect.evaluation.rag_test import Found

        reply = self._of(asked).search(asked.query, options_of(asked, self._options))
        return [
            Found(hit.source, hit.content, place(hit.source, hit.section, hit.page).plain, department=hit.department)
            for hit in reply.results
        ]

    def refuses(self, asked: CaseSearch) -> bool:
        options = replace(options_of(asked, self._options), top_k=None)
        return self._of(asked).ask(asked.query, options).refused

    def _of(self, asked: CaseSearch) -> View:
        return self._view.view(tenant=asked.tenant_id, as_of=asked.as_of)


def _show(ctx: CommandContext, result: SuiteResult) -> None:
    from rich.table import Table
    from rich.text import Text

    from recollect.cli._terminal import one_line

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("")
    table.add_column("Case", overflow="fold")
    for name in ("Precision", "Recall", "MRR", "ms"):
        table.add_column(name, justify="right")
    table.add_column("")
    for one in result.results:
        scores = one.scores
        figures = (f"{scores.precision:.2f}", f"{scores.recall:.2f}", f"{scores.mrr:.2f}") if scores else ("–",) * 3
        refusal = {None: "", True: "refused", False: "answered"}[one.refused]
        mark = Text("✓", "green") if one.passed else Text("✗", "bold red")
        notes = ", ".join(part for part in (refusal, "" if one.stable else "varies between runs") if part)
        table.add_row(mark, one_line(one.case.name), *figures, f"{one.latency_ms:,.1f}", Text(notes, style="dim"))
    ctx.out.print(table)
    for one in result.results:
        if not one.passed:
            ctx.out.print()
            ctx.out.print(_failure(one), soft_wrap=True)
    ctx.out.print()
    _show_summary(ctx, result)


def _failure(result: CaseResult) -> Text:
    from rich.text import Text

    from recollect.cli._terminal import one_line, shortened

    text = Text.assemble(("✗ ", "bold red"), (one_line(result.case.name), "bold"), f": {one_line(result.case.query)}")
    for failure in result.failures:
        text.append(f"\n    {one_line(failure)}", "red")
    for passage in result.found[:_FOUND_SHOWN]:
        text.append(f"\n    found {one_line(passage.place)}: {shortened(passage.text, 90)}", "dim")
    return text


def _show_summary(ctx: CommandContext, result: SuiteResult) -> None:
    count, passed = len(result.results), sum(one.passed for one in result.results)
    means = result.means()
    style = "green" if passed == count else "bold red"
    ctx.out.print(f"{passed:,} of {count:,} case{'' if count == 1 else 's'} passed", style=style)
    if means:
        ctx.out.print(f"mean precision {means.precision:.3f}, recall {means.recall:.3f}, MRR {means.mrr:.3f}")
    runs = f", {result.runs:,} runs each" if result.runs > 1 else ""
    half, most = result.latency_ms(0.5), result.latency_ms(0.95)
    ctx.out.print(f"a search: {half:,.1f} ms (median), {most:,.1f} ms (95th percentile){runs}", style="dim")
