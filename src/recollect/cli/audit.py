"""``recollect audit``: what was done, by whom and when, in a chain that shows whether it was changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli._command_context import CommandContext, argument_text
from recollect.cli._options import command
from recollect.cli._terminal import one_line, plain
from recollect.cli.transfer import STANDARD_OUTPUT, writing
from recollect.errors import UsageError
from recollect.replies.accesses import access_list_json
from recollect.replies.audit import audit_list_json, audit_verification_json

if TYPE_CHECKING:
    pass

app = typer.Typer(help="List, verify and export the audit: what was done, by whom and when.", no_args_is_help=True)

_Action = Annotated[str | None, typer.Option(metavar="KIND", help="Only of this kind: erase, restore, forget, …")]
_Since = Annotated[str | None, typer.Option(metavar="TIME", help="Only of this time or later.")]
_Until = Annotated[str | None, typer.Option(metavar="TIME", help="Only before this time.")]


def _list(
    ctx: CommandContext,
    *,
    action: _Action = None,
    since: _Since = None,
    until: _Until = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Entries at most.")] = 100,
    before: Annotated[int | None, typer.Option(min=1, help="Only entries before this id: the next page.")] = None,
) -> int:
    """List what was done, newest first."""
    with ctx.view(tenant=_tenant(ctx)) as view:
        found = view.audit.list(action=_text(action), since=since, until=until, before=before, limit=limit + 1)
    page, more = found[:limit], len(found) > limit
    if ctx.json:
        ctx.emit(audit_list_json(page, more=more))
        return 0
    for one in page:
        told = ", ".join(f"{name} {value}" for name, value in one.details.items() if isinstance(value, str | int))
        line = f"{one.audit_id}  {one.at:%Y-%m-%d %H:%M:%S}  {one.actor}  {one.action}  {told}"
        ctx.out.print(one_line(line), soft_wrap=True)
    if not page:
        ctx.out.print("Nothing is recorded.")
    if more:
        ctx.note(f"There are more: recollect audit list --before {page[-1].audit_id}")
    return 0


def _verify(ctx: CommandContext) -> int:
    """Follow the audit's chain of every tenant, or of --tenant. Exit status 1 if an entry was changed or removed."""
    with ctx.view(tenant=_tenant(ctx)) as view:
        # A tenant that is named has a chain also where nothing was recorded.
        chains = [chain for chain in view.audit.verify() if chain.number or chain.broken]
    broken = [chain for chain in chains if chain.broken]
    if ctx.json:
        ctx.emit(audit_verification_json(chains))
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
    action: _Action = None,
    since: _Since = None,
    until: _Until = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
) -> int:
    """Write the audit as JSON Lines with its hashes, oldest first, so that others can verify it without the store."""
    if ctx.json and file == STANDARD_OUTPUT:
        raise UsageError("With --json the report stands on standard output: name a file to export to.")
    entries = 0
    with ctx.view(tenant=_tenant(ctx)) as view, writing(file, overwrite=overwrite) as target:
        for line in view.audit.export(action=_text(action), since=since, until=until):
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


def _text(action: str | None) -> str | None:
    return None if action is None else argument_text(action)


def _accesses(
    ctx: CommandContext,
    *,
    document: Annotated[
        int | None, typer.Option(metavar="ID", min=1, help="Only where this document was shown.")
    ] = None,
    actor: Annotated[str | None, typer.Option(metavar="NAME", help="Only of this one, for instance user:ann.")] = None,
    since: _Since = None,
    until: _Until = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Accesses at most.")] = 100,
    before: Annotated[int | None, typer.Option(min=1, help="Only accesses before this id: the next page.")] = None,
) -> int:
    """List what the server was asked, and which documents it showed to whom, newest first."""
    with ctx.view(tenant=_tenant(ctx)) as view:
        found = view.audit.accesses(
            document=document, actor=_text(actor), since=since, until=until, before=before, limit=limit + 1
        )
    page, more = found[:limit], len(found) > limit
    if ctx.json:
        ctx.emit(access_list_json(page, more=more))
        return 0
    for one in page:
        shown = ", ".join(map(str, one.documents))
        told = " ".join(part for part in (one.question, f"documents {shown}" if shown else None) if part)
        line = f"{one.access_id}  {one.at:%Y-%m-%d %H:%M:%S}  {one.actor}  {one.action}  {told}"
        ctx.out.print(one_line(line), soft_wrap=True)
    if not page:
        ctx.out.print("Nothing is recorded.")
    if more:
        ctx.note(f"There are more: recollect audit accesses --before {page[-1].access_id}")
    return 0


command(app, "list", remote=True)(_list)
command(app, "accesses", remote=True)(_accesses)
command(app, "verify", remote=True)(_verify)
command(app, "export", remote=True)(_export)
