"""``recollect documents history | diff | restore | ttl | receipts``: what became of documents."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from recollect.cli._access import ActorOptions
from recollect.cli._command_context import CommandContext, argument_text
from recollect.cli._options import command
from recollect.cli._receipts import BeforeReceipt, ReceiptLimit, show_receipts
from recollect.cli._terminal import one_line, plain

if TYPE_CHECKING:
    from recollect.model.audit import AuditRecord
    from recollect.model.history import DocumentHistory, ErasureReceipt, ScrubReport, VersionDiff
    from recollect.pipeline import View

_OPTIONAL = (("Event", "event_time"), ("until", "event_end"), ("Expires", "expires_at"))
_Document = Annotated[str, typer.Argument(metavar="ID", help="A document, by number, by source or by given id.")]


def add_history_commands(app: typer.Typer) -> None:
    """Add the commands to those of ``recollect documents``."""
    command(app, "history", collection=True, remote=True)(_history)
    command(app, "diff", collection=True, remote=True)(_diff)
    command(app, "restore", collection=True, remote=True)(_restore)
    command(app, "ttl", collection=True, remote=True)(_ttl)
    command(app, "receipts", remote=True)(_receipts)


def register(app: typer.Typer) -> None:
    """Add ``recollect history``, short for ``recollect documents history``."""
    command(app, "history", collection=True, remote=True)(_history)


def named_documents(view: View, documents: list[str]) -> list[int]:
    """The documents that the command line names, in the collection that it names; of a shared source, all.

    Raises:
        NotFoundError: One of them does not exist there.
        UsageError: Several have one of the sources.
    """
    return view.documents.resolve([argument_text(one) for one in documents])


def named_document(view: View, document: str) -> int:
    """The one document that the command line names, by number, by source or by given id.

    Raises:
        NotFoundError: There is none.
        UsageError: Several documents have that name.
    """
    (found,) = view.documents.resolve([argument_text(document)], each_one=True)
    return found


def _history(
    ctx: CommandContext,
    actor: ActorOptions,
    *,
    document: _Document,
) -> int:
    """List the versions of a document, deleted ones and those that expired included."""
    with ctx.view(principal=actor.actor()) as view:
        history = view.documents.history(named_document(view, document))
    if ctx.json:
        ctx.emit(history)
    else:
        _show_history(ctx, history)
    return 0


def _show_history(ctx: CommandContext, history: DocumentHistory) -> None:
    ctx.out.print(Text(one_line(history.source), style="bold cyan"))
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("Version", justify="right")
    # Only what some version has: a terminal is eighty columns wide.
    optional = [(name, field) for name, field in _OPTIONAL if any(getattr(one, field) for one in history.versions)]
    for name in ("Known from", "to", *(name for name, _ in optional)):
        table.add_column(name, no_wrap=True)
    table.add_column("Characters", justify="right", no_wrap=True)
    table.add_column("Title", overflow="fold")
    for version in history.versions:
        table.add_row(
            str(version.version),
            moment_text(version.known_from),
            "now" if version.known_to is None else moment_text(version.known_to),
            *(moment_text(getattr(version, field)) for _, field in optional),
            f"{version.character_count:,}",
            Text(one_line(version.title)),
        )
    ctx.out.print(table)


def moment_text(moment: datetime | None) -> str:
    """A time for people, in UTC; nothing where there is none."""
    return f"{moment:%Y-%m-%d %H:%M:%S}" if moment else ""


def _diff(
    ctx: CommandContext,
    actor: ActorOptions,
    *,
    document: _Document,
    from_: Annotated[
        int | None, typer.Option("--from", metavar="VERSION", help="By default the one before --to.")
    ] = None,
    to: Annotated[int | None, typer.Option("--to", metavar="VERSION", help="By default the newest.")] = None,
    context: Annotated[int, typer.Option(min=0, help="Unchanged lines around each change.")] = 3,
) -> int:
    """Show how the text of a document changed from one version to another."""
    with ctx.view(principal=actor.actor()) as view:
        known = named_document(view, document)
        diff = view.documents.diff(known, from_version=from_, to_version=to, context_lines=context)
    if ctx.json:
        ctx.emit(diff)
    else:
        _show_diff(ctx, diff)
    return 0


def _show_diff(ctx: CommandContext, diff: VersionDiff) -> None:
    if not diff.lines:
        ctx.out.print(f"Versions {diff.from_version} and {diff.to_version} read the same.")
        return
    for line in diff.lines:
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        ctx.out.print(Text(plain(line), style=style), soft_wrap=True)


def _restore(
    ctx: CommandContext,
    actor: ActorOptions,
    *,
    document: _Document,
    version: Annotated[int, typer.Argument(metavar="VERSION", help="The version, from 1.")],
) -> int:
    """Make what an old version said the newest version.

    Department, tags and grants stay as they are. The next ingest of an unchanged file leaves it alone.
    """
    with ctx.view(principal=actor.actor()) as view:
        known = named_document(view, document)
        written = view.documents.restore(known, version)
    if ctx.json:
        ctx.emit(written)
    elif written.status == "unchanged":
        ctx.out.print(f"Version {version} is the current one already.")
    else:
        ctx.out.print(f"Version {version} is current again, as version {written.version}.")
    return 0


def _ttl(
    ctx: CommandContext,
    actor: ActorOptions,
    *,
    document: _Document,
    duration: Annotated[str, typer.Argument(metavar="DURATION", help="From now on, such as 12h or 30d, or never.")],
) -> int:
    """Decide how long a document is found from now on."""
    with ctx.view(principal=actor.actor()) as view:
        known = named_document(view, document)
        view.documents.set_ttl(known, duration)
        history = view.documents.history(known)
        expires_at = history.versions[-1].expires_at
    if ctx.json:
        told = {"document": argument_text(document), "department": history.department}
        ctx.emit({**told, "expires_at": expires_at and expires_at.isoformat()})
    else:
        ctx.out.print(f"It expires {moment_text(expires_at)} UTC." if expires_at else "It never expires.")
    return 0


def _receipts(ctx: CommandContext, *, limit: ReceiptLimit = 20, before: BeforeReceipt = None) -> int:
    """List the receipts of erasures, newest first."""
    return show_receipts(
        ctx, "erase", limit=limit, before=before, describe=_erased_documents, nothing="Nothing has been erased."
    )


def _erased_documents(record: AuditRecord) -> str:
    return f"documents {', '.join(str(one['document_id']) for one in record.details.get('documents', ())) or 'none'}"


def show_scrub(ctx: CommandContext, report: ScrubReport) -> None:
    """What a scrub did, for people."""
    out = ctx.out
    log = "" if report.log_segments is None else f", {report.log_segments:,} segments of the write-ahead log removed"
    out.print(f"Written anew: {report.relations:,} tables and indexes{log}.", highlight=False)
    if report.kept:
        out.print(f"Could not be written anew: {', '.join(report.kept)}.", style="bold red", highlight=False)
    looked = (
        f"{report.files:,} files ({report.bytes / 1e6:,.0f} MB) were read for {report.strings:,} strings and hashes"
    )
    if report.found:
        found = ", ".join(f"{count:,} in {file}" for file, count in report.found.items())
        out.print(f"{looked}: still found {found}.", style="bold red", highlight=False)
    elif report.proven:
        out.print(f"{looked}: none is left.", style="green", highlight=False)
    if report.held:
        out.print(f"{report.held:,} strings were not looked for: rows of the store hold them.", highlight=False)


def show_receipt(ctx: CommandContext, receipt: ErasureReceipt) -> None:
    """A receipt for people."""
    out = ctx.out
    counts = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in receipt.counts.items() if count)
    out.print(f"Erased: {counts or 'nothing'}.", highlight=False)
    probe = receipt.probe
    looked = f"{probe.hashes:,} hashes and {probe.phrases:,} phrases in {probe.places:,} columns"
    if receipt.complete:
        out.print(f"Looked for {looked}: nothing is left.", style="green", highlight=False)
    else:
        found = ", ".join(f"{count:,} in {place}" for place, count in probe.found.items())
        out.print(f"Looked for {looked}: still found {found}.", style="bold red", highlight=False)
    if probe.mentions:
        places = ", ".join(f"{count:,} in {place}" for place, count in probe.mentions.items())
        said = (
            f"Rows with its titles, paths, tags, metadata or short phrases, which anybody may have written: {places}."
        )
        out.print(said, style="yellow", highlight=False)
    if receipt.scrub:
        show_scrub(ctx, receipt.scrub)
    if receipt.copies:
        ids = ", ".join(map(str, receipt.copies))
        out.print(f"The same content stands in other documents, which were not erased: {ids}.", style="yellow")
    out.print("What remains, and until when:", style="bold")
    for line in receipt.remains:
        out.print(f"  {line}", highlight=False)
    out.print(f"Receipt {receipt.receipt_id}: recollect documents receipts --json", style="dim", highlight=False)
