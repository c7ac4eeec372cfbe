"""``recollect rag-test --as-each``: test cases as every persona."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from recollect.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.cli._command_context import CommandContext
    from recollect.evaluation.cases import Case, Suite
    from recollect.evaluation.persona_audit import AsEachResult
    from recollect.evaluation.persona_files import PersonaFile
    from recollect.model import RetrievalOptions
    from recollect.pipeline import View

_LEAKS_SHOWN = 20


def wanted_personas(file: Path | None, *, runs: int, ingested: bool) -> PersonaFile | None:
    """Who cases are run as; None: nobody in particular.

    Args:
        file: As given on the command line.
        runs: Of each case, likewise.
        ingested: Whether a folder is ingested for the test.

    Raises:
        NotFoundError: There is no such file.
        UsageError: It is no file of personas, or does not go with the other options.
    """
    if file is None:
        return None
    if runs != 1:
        raise UsageError("--as-each runs every case once as each persona: leave --runs out.")
    from recollect.evaluation.persona_files import load_personas

    personas = load_personas(file)
    if personas.grants and not ingested:
        raise UsageError(
            f"{file} holds grants, which are for documents that --ingest DIR brings. What is in a collection has its "
            "own: recollect grants list."
        )
    return personas


def run_persona_audit(
    ctx: CommandContext,
    view: View,
    suite: Suite,
    personas: PersonaFile,
    *,
    cases: Sequence[Case],
    options: RetrievalOptions,
    file: Path,
) -> int:
    """Run the cases as everybody, and show what became of it; the exit status."""
    from recollect.cli._progress import WorkBar
    from recollect.pipeline.persona_audit import evaluate_personas, give_permissions

    if personas.grants:
        give_permissions(view, personas.permissions())
    with WorkBar(ctx.err, "Testing", unit="cases") as bar:
        result = evaluate_personas(
            view,
            suite,
            personas.principals(),
            options=options,
            cases=cases,
            progress=bar.update,
        )
    if ctx.json:
        ctx.emit({"file": str(file), "collection": view.standpoint.collection, **result.as_json()})
    else:
        _show(ctx, result)
    return 0 if result.passed else 1


def _show(ctx: CommandContext, result: AsEachResult) -> None:
    from rich.table import Table
    from rich.text import Text

    from recollect.cli._terminal import one_line

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("Persona", overflow="fold")
    for name in ("May read", "Cases", "Recall", "Withheld", "Leaks"):
        table.add_column(name, justify="right")
    for one in result.personas:
        within = sum(case.recall is not None for case in one.cases)
        table.add_row(
            Text(one_line(one.name)),
            f"{one.readable_documents:,} of {one.documents:,}",
            f"{within:,} of {len(one.cases):,}",
            "–" if one.recall is None else f"{one.recall:.2f}",
            f"{one.withheld:,}",
            Text(f"{len(one.leaks):,}", "bold red" if one.leaks else "green"),
        )
    ctx.out.print(table)
    ctx.out.print()
    for leak in result.leaks[:_LEAKS_SHOWN]:
        told = (
            f"{one_line(leak.persona)} was shown {one_line(leak.source)} by the {leak.place} of {one_line(leak.case)}"
        )
        ctx.out.print(Text.assemble(("✗ ", "bold red"), told), soft_wrap=True)
    if len(result.leaks) > _LEAKS_SHOWN:
        ctx.note(f"… and {len(result.leaks) - _LEAKS_SHOWN:,} more; --json lists all of them")
    if result.passed:
        ctx.out.print("nobody was shown what they may not read", style="green")
