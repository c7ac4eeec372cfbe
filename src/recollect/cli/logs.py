"""``recollect audit`` and ``requests``: what was done, what was removed, and what was asked of providers of models."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli._bound import bind
from recollect.cli._command_context import CommandContext
from recollect.cli._options import command
from recollect.cli._terminal import one_line, plain
from recollect.cli.transfer import STANDARD_OUTPUT, writing
from recollect.errors import UsageError
from recollect.model.audit import AuditVerification
from recollect.model.page import MOST_OF_A_PAGE, cursor_at, every
from recollect.operations.people import AuditOperations, RequestOperations

if TYPE_CHECKING:
    from recollect.model.activity import Access
    from recollect.model.audit import AuditRecord
    from recollect.model.page import Page
    from recollect.model.requests import LoggedRequest, RequestTotals


ReceiptLimit = Annotated[int, typer.Option(min=1, max=10_000, help="Receipts at most.")]


BeforeReceipt = Annotated[int | None, typer.Option(min=1, help="Only receipts before this one: the next page.")]


def show_receipts(
    ctx: CommandContext,
    action: str,
    *,
    limit: int,
    before: int | None,
    describe: Callable[[AuditRecord], str],
    nothing: str,
) -> int:
    """Print the receipts of one kind of removal, newest first.

    Args:
        ctx: Where, and in which form.
        action: As the audit names it.
        limit: Receipts at most.
        before: Only receipts before this one; None: from the newest.
        describe: What was removed, in a few words.
        nothing: What to say where there are none.
    """
    with ctx.view() as view:
        cursor = None if before is None else cursor_at(before)
        records = list(
            islice(every(view.audit.list, action=action, cursor=cursor, limit=min(limit, MOST_OF_A_PAGE)), limit)
        )
    if ctx.json:
        receipts = [
            {"receipt_id": one.audit_id, "erased_at": one.at.isoformat(), "erased_by": one.actor, **one.details}
            for one in records
        ]
        ctx.emit({"receipts": receipts})
        return 0
    for one in records:
        ctx.out.print(f"{one.audit_id}  {one.at:%Y-%m-%d %H:%M:%S}  {one.actor}  {describe(one)}", highlight=False)
    if not records:
        ctx.out.print(nothing)
    return 0


audit_app = typer.Typer(
    help="List, verify and export the audit: what was done, by whom and when.", no_args_is_help=True
)


def _show_audit(ctx: CommandContext, records: Page[AuditRecord]) -> None:
    for one in records:
        told = ", ".join(f"{name} {value}" for name, value in one.details.items() if isinstance(value, str | int))
        line = f"{one.audit_id}  {one.at:%Y-%m-%d %H:%M:%S}  {one.actor}  {one.action}  {told}"
        ctx.out.print(one_line(line), soft_wrap=True)
    if not records:
        ctx.out.print("Nothing is recorded.")


def _show_accesses(ctx: CommandContext, accesses: Page[Access]) -> None:
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
        for line in view.audit.export(action=action, since=since, until=until):
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
    audit_app,
    "audit",
    AuditOperations,
    lambda view: view.audit,
    {"list": _show_audit, "accesses": _show_accesses},
    tenant=_tenant,
)


command(audit_app, "verify", remote=True)(_verify)


command(audit_app, "export", remote=True)(_export)


requests_app = typer.Typer(
    help="What was asked of providers of models, what it took and what it cost; never what it said.",
    no_args_is_help=True,
)


def _show_requests(ctx: CommandContext, requests: Page[LoggedRequest]) -> None:
    for one in requests:
        ctx.out.print(one_line(_request_line(one)), soft_wrap=True)
    if not requests:
        ctx.out.print("Nothing was asked of a provider, or it is past its retention.")


def _request_line(one: LoggedRequest) -> str:
    about = "about " if one.tokens_estimated else ""
    tokens = f"{about}{one.input_tokens:,} tokens" + (f" + {one.output_tokens:,}" if one.output_tokens else "")
    outcome = "ok" if one.success else f"{one.error}{f' (HTTP {one.status})' if one.status else ''}"
    attempts = f", {one.attempts} attempts" if one.attempts > 1 else ""
    cost = "" if one.cost is None else f"  {one.cost:.6f}"
    return (
        f"{one.request_id}  {one.at:%Y-%m-%d %H:%M:%S}  {one.kind}  {one.provider}/{one.model}  {one.inputs:,} inputs, "
        f"{tokens}  {one.milliseconds:,.0f} ms{attempts}  {outcome}{cost}"
    )


def _show_totals(ctx: CommandContext, totals: list[RequestTotals]) -> None:
    for one in totals:
        ctx.out.print(one_line(_total_line(one)), soft_wrap=True)
    if not totals:
        ctx.out.print("Nothing was asked of a provider, or it is past its retention.")


def _total_line(one: RequestTotals) -> str:
    took = (
        ""
        if one.mean_milliseconds is None
        else f", {one.mean_milliseconds:,.0f} ms (95 %: {one.p95_milliseconds:,.0f})"
    )
    failures = f", {one.failures:,} failed" if one.failures else ""
    written = f" + {one.output_tokens:,}" if one.output_tokens else ""
    cost = "" if one.cost is None else f", cost {one.cost:.4f}"
    return (
        f"{one.kind}  {one.provider}/{one.model}  {one.requests:,} requests{failures}, {one.input_tokens:,}{written} "
        f"tokens{took}{cost}"
    )


bind(
    requests_app,
    "requests",
    RequestOperations,
    lambda view: view.audit,
    {"requests": _show_requests, "request_totals": _show_totals},
    names={"requests": "list", "request_totals": "stats"},
    tenant=lambda _: None,
)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(audit_app, name="audit")
    app.add_typer(requests_app, name="requests")
