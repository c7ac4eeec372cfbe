"""``recollect audit``: what was done, by whom and when, in a chain that shows whether it was changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli._bound import bind
from recollect.cli._command_context import CommandContext, argument_text
from recollect.cli._options import command
from recollect.cli._terminal import one_line, plain
from recollect.cli.transfer import STANDARD_OUTPUT, writing
from recollect.errors import UsageError
from recollect.model.audit import AuditVerification
from recollect.operations.people import AuditOperations

if TYPE_CHECKING:
    from recollect.model.activity import Access
    from recollect.model.audit import AuditRecord
    from recollect.model.page import Page

app = typer.Typer(help="List, verify and export the audit: what was done, by whom and when.", no_args_is_help=True)


def _listed(ctx: CommandContext, records: Page[AuditRecord]) -> None:
    for one in records:
        told = ", ".join(f"{name} {value}" for name, value in one.details.items() if isinstance(value, str | int))
        line = f"{one.audit_id}  {one.at:%Y-%m-%d %H:%M:%S}  {one.actor}  {one.action}  {told}"
        ctx.out.print(one_line(line), soft_wrap=True)
    if not records:
        ctx.out.print("Nothing is recorded.")


def _shown(ctx: CommandContext, accesses: Page[Access]) -> None:
    for one in accesses:
        documents = ", ".join(str(document.document_id) for document in one.documents)
        told = " ".join(part for part in (one.question, f"documents {documents}" if documents else None) if part)
        line = f"{one.access_id}  {one.at:%Y-%m-%d %H:%M:%S}  {one.actor}  {one.action}  {told}"
        ctx.out.print(one_line(line), soft_wrap=True)
    if not accesses:
        ctx.out.print("Nothing is recorded.")


def _verify(ctx: CommandContext) -> int:
    """Follow the audit's chain of every tenant, or of --tenant. Exit status 1 if an entry was changed or removed."""
    with ctx.view(tenant=_tenant(ctx)) as view:
        # A tenant that is named has a chain also where nothing was recorded.
        chains = [chain for chain in view.audit.verify().chains if chain.number or chain.broken]
    broken = [chain for chain in chains if chain.broken]
    if ctx.json:
        ctx.emit(AuditVerification(tuple(chains)))
        return 1 if broken else 0
    for chain in broken:
        ctx.out.print(plain(f"✗ tenant {chain.tenant_id}: {chain.broken}."), soft_wrap=True)
    for chain in chains:
        if chain.intact:
            dropped = f", {chain.dropped:,} of them dropped" if chain.dropped else ""
            ctx.out.print(f"✓ tenant {chain.tenant_id}: {chain.number:,} entries{dropped}, head {chain.hash}")
    if not chains:
        ctx.out.print("Nothing is recorded.")
    return 1 if broken else 0


def _export(
    ctx: CommandContext,
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write; - for standard output.")],
    action: Annotated[
        str | None, typer.Option(metavar="KIND", help="Only of this kind: erase, restore, forget, …")
    ] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="Only of this time or later.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Only before this time.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
) -> int:
    """Write the audit as JSON Lines with its hashes, oldest first, so that others can verify it without the store."""
    if ctx.json and file == STANDARD_OUTPUT:
        raise UsageError("With --json the report stands on standard output: name a file to export to.")
    entries = 0
    with ctx.view(tenant=_tenant(ctx)) as view, writing(file, overwrite=overwrite) as target:
        for line in view.audit.export(
            action=None if action is None else argument_text(action), since=since, until=until
        ):
            target.write(line)
            entries += 1
    if ctx.json:
        ctx.emit({"entries": entries, "file": str(file)})
    elif file != STANDARD_OUTPUT:
        ctx.out.print(f"{entries:,} entries in {file}", soft_wrap=True)
    return 0


def _tenant(ctx: CommandContext) -> int | str | None:
    """The tenant that is named, if any. One that was erased has no name any more, but its number and its audit."""
    named = ctx.config.tenant
    return named if named is None or not named.isdecimal() else int(named)


bind(
    app,
    "audit",
    AuditOperations,
    lambda view: view.audit,
    {"list": _listed, "accesses": _shown},
    tenant=_tenant,
)
command(app, "verify", remote=True)(_verify)
command(app, "export", remote=True)(_export)
