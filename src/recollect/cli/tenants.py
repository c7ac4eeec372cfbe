"""``recollect tenants``: whose knowledge a store holds."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from recollect.cli._bound import bind
from recollect.cli._command_context import CommandContext
from recollect.cli._options import command
from recollect.cli._terminal import one_line, plain, print_list, size
from recollect.errors import UsageError
from recollect.model.arguments import whole_number
from recollect.model.tenant import TenantQuota
from recollect.operations.people import TenantOperations

if TYPE_CHECKING:
    from recollect.model.page import Page
    from recollect.model.tenant import PersonalDataPolicy, Tenant

app = typer.Typer(
    help="Make, list, suspend, limit, export and erase tenants, whose knowledge is kept apart.", no_args_is_help=True
)

_POLICIES: dict[str, PersonalDataPolicy | None] = {
    "off": "off",
    "tag": "tag",
    "redact": "redact",
    "refuse": "refuse",
    "none": None,
}
_Name = Annotated[str, typer.Argument(metavar="TENANT", help="By name or number.")]
_Documents = Annotated[
    str | None, typer.Option(metavar="N", help="Current documents that it may have; none: any number.")
]
_Chunks = Annotated[str | None, typer.Option(metavar="N", help="Chunks of these; none: any number.")]
_Bytes = Annotated[
    str | None,
    typer.Option(metavar="N", help="Bytes of text and originals, past versions included; none: any number."),
]


def _create(
    ctx: CommandContext,
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name, which is not a number.")],
    max_documents: _Documents = None,
    max_chunks: _Chunks = None,
    max_bytes: _Bytes = None,
) -> int:
    """Make a tenant."""
    quota = _changed(TenantQuota(), max_documents, max_chunks, max_bytes)
    with ctx.view() as view:
        made = view.tenants.create(name, quota=quota)
    return _told(ctx, made, f"Made the tenant {made.name!r}, number {made.tenant_id}.")


def _listed(ctx: CommandContext, tenants: Page[Tenant]) -> None:
    rows = [
        (
            str(tenant.tenant_id),
            Text(one_line(tenant.name), style="cyan"),
            Text(tenant.status, style="yellow" if tenant.status == "suspended" else ""),
            _used(tenant.documents, tenant.quota.max_documents),
            _used(tenant.chunks, tenant.quota.max_chunks),
        )
        for tenant in tenants
    ]
    columns = {"Number": "right", "Tenant": "fold", "Status": "", "Documents": "right", "Chunks": "right"}
    print_list(ctx.out, columns, rows)


def _shown(ctx: CommandContext, found: Tenant) -> None:
    out = ctx.out
    out.print(plain(f"{found.name}, number {found.tenant_id}, {found.status}, since {found.created_at:%Y-%m-%d %H:%M}"))
    out.print(f"  documents  {_used(found.documents, found.quota.max_documents)}")
    out.print(f"  chunks     {_used(found.chunks, found.quota.max_chunks)}")
    limit = "" if found.quota.max_bytes is None else f" of {size(found.quota.max_bytes)}"
    out.print(f"  text       {size(found.bytes or 0)}{limit}, past versions included")
    if found.pii is not None:
        out.print(f"  pii        {found.pii}")
    for one in found.shared_with_it or ():
        note = "" if one.active else " (suspended)"
        out.print(plain(f"  reads      {one.collection} of {one.tenant_name}{note}"))


def _set_pii(
    ctx: CommandContext,
    *,
    wanted: _Name,
    policy: Annotated[str, typer.Argument(metavar="POLICY", help="off, tag, redact, refuse; or none: as configured.")],
) -> int:
    """Say what becomes of personal data in what a tenant stores from now on.

    off: nobody looks for it; tag: documents have counts of it; redact: it is taken out before anything is stored;
    refuse: nothing that has any is stored. What is stored already stays as it is.
    """
    if policy not in _POLICIES:
        raise UsageError(f"A policy is off, tag, redact or refuse, or none for the configured one; not {policy!r}.")
    with ctx.view() as view:
        found = view.tenants.get(wanted)
        found = view.tenants.set_pii(found.tenant_id, _POLICIES[policy])
    return _told(ctx, found, f"Personal data in what {found.name!r} stores: {found.pii or 'as configured'}.")


def _suspend(ctx: CommandContext, *, wanted: _Name) -> int:
    """Refuse every search and write of a tenant, which keeps what it has."""
    with ctx.view() as view:
        found = view.tenants.suspend(wanted)
    return _told(ctx, found, f"{found.name!r} is suspended: it can neither be searched nor written to.")


def _resume(ctx: CommandContext, *, wanted: _Name) -> int:
    """Take the suspension of a tenant back."""
    with ctx.view() as view:
        found = view.tenants.resume(wanted)
    return _told(ctx, found, f"{found.name!r} is active.")


def _set_quota(
    ctx: CommandContext,
    *,
    wanted: _Name,
    max_documents: _Documents = None,
    max_chunks: _Chunks = None,
    max_bytes: _Bytes = None,
) -> int:
    """Say how much a tenant may store. What it has already stays."""
    if max_documents is None and max_chunks is None and max_bytes is None:
        raise UsageError("Name a quota: --max-documents N, --max-chunks N or --max-bytes N; none takes it away.")
    with ctx.view() as view:
        found = view.tenants.get(wanted)
        found = view.tenants.set_quota(found.tenant_id, _changed(found.quota, max_documents, max_chunks, max_bytes))
    words = [
        f"{'any number of' if limit is None else f'{limit:,}'} {name.removeprefix('max_')}"
        for name, limit in asdict(found.quota).items()
    ]
    return _told(ctx, found, f"{found.name!r} may have {', '.join(words)}.")


def _export(
    ctx: CommandContext,
    *,
    wanted: _Name,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to write; a new or empty one.")],
) -> int:
    """Write everything of a tenant into a folder: documents with vectors, conversations, and all other rows."""
    with ctx.view() as view:
        done = view.tenants.export(wanted, folder)
    if ctx.json:
        ctx.emit(done)
        return 0
    rows = sum(done.rows.values())
    ctx.out.print(
        f"Wrote {sum(done.documents.values()):,} documents of {len(done.documents):,} collections, "
        f"{sum(done.turns.values()):,} turns of {len(done.turns):,} conversations and {rows:,} rows of "
        f"{len(done.rows):,} tables to {done.folder}.",
        soft_wrap=True,
    )
    return 0


def _erase(
    ctx: CommandContext,
    *,
    wanted: _Name,
    reason: Annotated[str | None, typer.Option(help="Why, for the receipt.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> int:
    """Remove a tenant with everything that belongs to it, for good."""
    with ctx.view() as view:
        found = view.tenants.get(wanted)
        ctx.confirm(f"Erase {found.name!r} with its {found.documents:,} documents for good?", yes=yes)
        receipt = view.tenants.erase(found.tenant_id, reason=reason)
    if ctx.json:
        ctx.emit(receipt)
        return 0
    gone = ", ".join(f"{count:,} {table}" for table, count in sorted(receipt.rows.items()) if count)
    ctx.out.print(plain(f"Erased {receipt.name!r}: {gone}, {receipt.indexes:,} vector indexes."), soft_wrap=True)
    for line in receipt.remains:
        ctx.out.print(f"  {line}", soft_wrap=True)
    ctx.out.print(f"Receipt {receipt.receipt_id}, in the audit of tenant {receipt.tenant_id}.", style="dim")
    return 0


def _share(
    ctx: CommandContext,
    *,
    wanted: _Name,
    collection: Annotated[str, typer.Argument(metavar="COLLECTION", help="Of that tenant.")],
    reader: Annotated[str, typer.Argument(metavar="READER", help="The tenant that reads it, by name or number.")],
) -> int:
    """Let another tenant read a collection ([rag.multi_tenant] isolation_level = "shared")."""
    return _sharing(ctx, wanted, collection, reader, shared=True)


def _unshare(
    ctx: CommandContext,
    *,
    wanted: _Name,
    collection: Annotated[str, typer.Argument(metavar="COLLECTION", help="Of that tenant.")],
    reader: Annotated[str, typer.Argument(metavar="READER", help="The tenant that reads it, by name or number.")],
) -> int:
    """Keep another tenant from a collection again."""
    return _sharing(ctx, wanted, collection, reader, shared=False)


def _sharing(ctx: CommandContext, owner: str, collection: str, reader: str, *, shared: bool) -> int:
    with ctx.view() as view:
        change = view.tenants.share if shared else view.tenants.unshare
        changed = change(owner, collection, reader)
    if ctx.json:
        ctx.emit(changed)
    else:
        words = "may read" if shared else "no longer reads"
        ctx.out.print(plain(f"{reader!r} {words} the collection {collection!r} of {owner!r}."))
    return 0


def _changed(quota: TenantQuota, documents: str | None, chunks: str | None, of_bytes: str | None) -> TenantQuota:
    given = {"max_documents": documents, "max_chunks": chunks, "max_bytes": of_bytes}
    return replace(quota, **{name: _limit(name, text) for name, text in given.items() if text is not None})


def _limit(name: str, text: str) -> int | None:
    if text.strip().lower() == "none":
        return None
    digits = text.strip().replace(",", "").replace("_", "")
    number = whole_number(digits)
    if number is None:
        raise UsageError(f"--{name.replace('_', '-')} is a number, or none for no limit; not {text!r}.")
    return number


def _used(count: int, limit: int | None) -> str:
    return f"{count:,}" if limit is None else f"{count:,} of {limit:,}"


def _told(ctx: CommandContext, tenant: Tenant, words: str) -> int:
    return ctx.tell(tenant, plain(words), soft_wrap=True)


_LOCAL = {"export": "it writes every row of a tenant into a folder beside the database"}

for name, function in (
    ("create", _create),
    ("suspend", _suspend),
    ("resume", _resume),
    ("set-quota", _set_quota),
    ("set-pii", _set_pii),
    ("export", _export),
    ("erase", _erase),
    ("share", _share),
    ("unshare", _unshare),
):
    command(app, name, remote=name not in _LOCAL, local=_LOCAL.get(name, ""))(function)
bind(
    app, "tenants", TenantOperations, lambda view: view.tenants, {"list": _listed, "get": _shown}, names={"get": "show"}
)
