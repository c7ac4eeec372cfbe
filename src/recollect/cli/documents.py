"""``recollect documents`` and ``history``: documents listed, shown, deleted and erased, and what became of them."""

from __future__ import annotations

import json
import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from recollect.cli._access import AccessOptions, ActorOptions
from recollect.cli._command_context import CommandContext
from recollect.cli._options import command
from recollect.cli._searching import vain
from recollect.cli._terminal import moment_text, one_line, plain, print_facts, print_list
from recollect.cli.logs import BeforeReceipt, ReceiptLimit, show_receipts
from recollect.errors import ParseError
from recollect.model import RetrievalOptions
from recollect.model.page import MOST_OF_A_PAGE, cursor_at
from recollect.model.record import json_of
from recollect.model.source import told_apart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.model import IngestResult
    from recollect.model.audit import AuditRecord
    from recollect.model.document_record import DocumentRecord
    from recollect.model.history import DocumentHistory, ErasureReceipt, ScrubReport, VersionDiff
    from recollect.pipeline import View


_OPTIONAL = (("Event", "event_time"), ("until", "event_end"), ("Expires", "expires_at"))


_Document = Annotated[str, typer.Argument(metavar="ID", help="A document, by number, by source or by given id.")]


def named_documents(view: View, documents: list[str]) -> list[int]:
    """The documents that the command line names, in the collection that it names; of a shared source, all.

    Raises:
        NotFoundError: One of them does not exist there.
        UsageError: Several have one of the sources.
    """
    return view.documents.resolve(documents)


def named_document(view: View, document: str) -> int:
    """The one document that the command line names, by number, by source or by given id.

    Raises:
        NotFoundError: There is none.
        UsageError: Several documents have that name.
    """
    (found,) = view.documents.resolve([document], each_one=True)
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
    return ctx.tell(history, lambda: _show_history(ctx, history))


def _show_history(ctx: CommandContext, history: DocumentHistory) -> None:
    ctx.out.print(Text(one_line(history.source), style="bold cyan"))
    # Only what some version has: a terminal is eighty columns wide.
    optional = [(name, field) for name, field in _OPTIONAL if any(getattr(one, field) for one in history.versions)]
    times = dict.fromkeys(("Known from", "to", *(name for name, _ in optional)), "whole")
    rows: list[tuple[str | Text, ...]] = [
        (
            str(version.version),
            moment_text(version.known_from),
            "now" if version.known_to is None else moment_text(version.known_to),
            *(moment_text(getattr(version, field)) for _, field in optional),
            f"{version.character_count:,}",
            Text(one_line(version.title)),
        )
        for version in history.versions
    ]
    print_list(ctx.out, {"Version": "right", **times, "Characters": "figure", "Title": "fold"}, rows)


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
    return ctx.tell(diff, lambda: _show_diff(ctx, diff))


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
        department = view.documents.history(known).department
        written = view.documents.restore(known, version)
    if ctx.json:
        ctx.emit({**json_of(written), "department": department})
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
        told = {"document": document, "department": history.department}
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


documents_app = typer.Typer(help="List, show, delete and erase documents.", no_args_is_help=True)


_Documents = Annotated[list[str], typer.Argument(metavar="ID…", help="Documents, by number, by source or by given id.")]


_Cursor = Annotated[str | None, typer.Option(help="Where the page begins, as the page before tells.")]


_After = Annotated[int, typer.Option(min=0, hidden=True, help="As --cursor, by the id that stands last before it.")]


_Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


class _Status(StrEnum):
    PENDING = "pending"
    EMBEDDED = "embedded"
    ERROR = "error"


def _list(
    ctx: CommandContext,
    access: AccessOptions,
    *,
    department: Annotated[
        str | None, typer.Option(help="Only this department; with --as, that of the one who asks.")
    ] = None,
    status: Annotated[
        _Status | None, typer.Option(help="Only those that are stored, that a job is to store, or that it could not.")
    ] = None,
    cursor: _Cursor = None,
    limit: Annotated[int, typer.Option(min=1, max=MOST_OF_A_PAGE, help="Documents at most.")] = 100,
    after: _After = 0,
) -> int:
    """List the documents of a collection."""
    principal, begin = access.principal(department), _begin(cursor, after)
    with ctx.view(principal=principal) as view:
        wanted = department if principal is None else None
        found = view.documents.list(
            department=wanted, status=None if status is None else status.value, cursor=begin, limit=limit
        )
        warnings = [] if found or begin or principal or status else _why_none(view, department)
    if ctx.json:
        ctx.emit(json_of(found) | ({"warnings": warnings} if warnings else {}))
        return 0
    _show_list(ctx, found, nothing="\n".join(warnings) or "No documents.")
    if found.next_cursor is not None:
        same = f" -c {shlex.quote(ctx.collection)}" if ctx.names_collection else ""
        same += f" --status {status}" if status else ""
        same += f" --department {shlex.quote(department)}" if department else ""
        ctx.note(f"There are more: recollect documents list{same} --cursor {found.next_cursor}")
    return 0


def _begin(cursor: str | None, after: int) -> str | None:
    return cursor_at(after) if cursor is None and after else cursor


def _why_none(view: View, department: str | None) -> list[str]:
    return vain(view, RetrievalOptions(department=(department,) if department else ()))


def _show_list(ctx: CommandContext, records: Sequence[DocumentRecord], *, nothing: str) -> None:
    if not records:
        ctx.out.print(plain(nothing), soft_wrap=True)
        return
    origins: dict[str, set[str]] = {}
    for record in records:
        origins.setdefault(record.source, set()).add(record.origin)
    given = any(record.id is not None for record in records)
    rows: list[tuple[str | Text, ...]] = []
    for record in records:
        title = Text(one_line(record.title))
        # A column that may not wrap takes the room of all others.
        title.truncate(max(12, ctx.out.width // 3), overflow="ellipsis")
        # Where several roots have the path, the root tells the documents apart, as in searches.
        several = told_apart(origins[record.source]) if len(origins[record.source]) > 1 else {}
        source = "/".join(filter(None, (several.get(record.origin), record.source)))
        row: tuple[str | Text, ...] = (
            str(record.document_id),
            Text(one_line(source), style="cyan"),
            *([one_line(record.id or "")] if given else []),
            title,
            str(record.version),
            f"{record.chunk_count:,}" if record.status == "embedded" else record.status,
        )
        rows.append(row)
    names = {"Source": "fold", **({"Given id": "fold"} if given else {}), "Title": "whole"}
    print_list(ctx.out, {"Id": "figure", **names, "Version": "figure", "Chunks": "figure"}, rows)
    for record in records:
        if record.error:
            told = record.error.removeprefix(f"{record.source}: ")
            ctx.err.print(Text(f"✗ {one_line(record.source)}: {one_line(told)}"), soft_wrap=True)


def _show(
    ctx: CommandContext,
    actor: ActorOptions,
    *,
    document: Annotated[str, typer.Argument(metavar="ID", help="A document, by number, by source or by given id.")],
) -> int:
    """Show a document with its text."""
    from recollect.model.document_record import Duplicates

    with ctx.view(principal=actor.actor()) as view:
        record = view.documents.get(named_document(view, document))
        copies = view.documents.duplicates(record.document_id) if record.status == "embedded" else Duplicates()
    if ctx.json:
        ctx.emit({**json_of(record), "content": record.content, **json_of(copies)})
        return 0

    facts: list[tuple[str, Text]] = []
    for name, value in json_of(record).items():
        if value not in (None, [], {}):
            shown = ", ".join(record.tags) if name == "tags" else json.dumps(value, ensure_ascii=False, default=str)
            text = one_line(shown if name in {"tags", "metadata"} else str(value))
            facts.append((name.replace("_", " "), Text(text)))
    for name, documents in {"same content": copies.same, "nearly the same": copies.near}.items():
        facts += [(name, Text(one_line(f"{one.document_id} {one.source}"))) for one in documents]
    print_facts(ctx.out, facts)
    ctx.out.print()
    ctx.out.print(plain(record.content or ""), soft_wrap=True)
    return 0


def _duplicates(
    ctx: CommandContext,
    actor: ActorOptions,
    *,
    cursor: _Cursor = None,
    limit: Annotated[int, typer.Option(min=1, max=MOST_OF_A_PAGE, help="Groups at most.")] = 100,
    after: _After = 0,
) -> int:
    """List documents that have the same text, group by group, in all collections.

    `recollect documents show ID` names those that say nearly the same, too.
    """
    with ctx.view(principal=actor.actor()) as view:
        groups = view.documents.list_duplicates(cursor=_begin(cursor, after), limit=limit)
    if ctx.json:
        ctx.emit(groups)
        return 0
    for group in groups:
        ctx.out.print(f"{len(group):,} documents:", style="dim")
        for one in group:
            ctx.out.print(plain(f"  {one.document_id}  {one.source} ({one.collection})"), soft_wrap=True)
    if not groups:
        ctx.out.print("No two documents have the same text.")
    if groups.next_cursor is not None:
        ctx.note(f"There are more: recollect documents duplicates --cursor {groups.next_cursor}")
    return 0


def _delete(
    ctx: CommandContext,
    actor: ActorOptions,
    *,
    documents: _Documents,
) -> int:
    """Close documents: they are no longer found, but their history is kept."""
    with ctx.view(principal=actor.actor()) as view:
        count = view.documents.delete(named_documents(view, documents))
    return ctx.tell(
        {"deleted": count}, f"{count:,} closed. Their history is kept; `recollect documents erase` removes it."
    )


def _erase(
    ctx: CommandContext,
    actor: ActorOptions,
    *,
    documents: _Documents,
    yes: _Yes = False,
    reason: Annotated[str | None, typer.Option(help="Why, for the receipt.")] = None,
    scrub: Annotated[
        bool, typer.Option("--scrub", help="Take them out of the database's files too: see recollect db scrub.")
    ] = False,
) -> int:
    """Remove documents for good: every version, chunk, vector and cached embedding.

    Afterwards the store is searched for what they said. The receipt holds none of it. Exit status 1 if some is left.
    """
    with ctx.view(principal=actor.actor()) as view:
        named = named_documents(view, documents)
        ctx.confirm(f"Remove {len(named):,} document(s) with their history for good?", yes=yes)
        receipt = view.documents.erase(named, reason=reason, scrub=scrub)
    return ctx.tell(receipt, lambda: show_receipt(ctx, receipt), status=0 if receipt.complete else 1)


def _original(
    ctx: CommandContext,
    actor: ActorOptions,
    *,
    document: Annotated[str, typer.Argument(metavar="ID", help="A document, by number, by source or by given id.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write it; - for standard output.")
    ],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
) -> int:
    """Write the file that a document was read from, as it came, where it was kept."""
    with ctx.view(principal=actor.actor()) as view:
        document_id = named_document(view, document)
        collection = view.documents.get(document_id).collection
        original = view.view(collections=collection).contents.original(document_id)
        if str(output) == "-":
            for piece in original.pieces():
                sys.stdout.buffer.write(piece)
            return 0
        original.save(output, overwrite=overwrite)
    if ctx.json:
        told = {"name": original.name, "mime_type": original.mime_type, "byte_count": original.byte_count}
        ctx.emit({**told, "sha256": original.file_hash.hex()})
    else:
        ctx.out.print(plain(f"{original.byte_count:,} bytes of {original.name!r} ({original.mime_type})."))
    return 0


def _reread(
    ctx: CommandContext,
    actor: ActorOptions,
    *,
    documents: _Documents,
    force: Annotated[bool, typer.Option("--force", help="Store it anew even if nothing is different.")] = False,
) -> int:
    """Read the kept originals of documents anew, with the present settings: each becomes a new version.

    Title, tags, department, dates and grants stay as they are. Exit status 1 if some could not be read.
    """
    done: list[IngestResult] = []
    errors: list[str] = []
    with ctx.view(principal=actor.actor()) as view:
        for document_id in named_documents(view, documents):
            try:
                done.append(view.documents.reread(document_id, force=force))
            except ParseError as exc:
                errors.append(str(exc))
    if ctx.json:
        ctx.emit({"documents": json_of(done), "errors": errors})
    else:
        for one in done:
            ctx.out.print(f"{one.document_id}: version {one.version}, {one.status}")
        for error in errors:
            ctx.note(error)
    return 1 if errors else 0


command(documents_app, "list", collection=True, remote=True)(_list)


command(documents_app, "show", collection=True, remote=True)(_show)


command(documents_app, "delete", collection=True, remote=True)(_delete)


command(documents_app, "erase", collection=True, remote=True)(_erase)


command(documents_app, "duplicates", remote=True)(_duplicates)


command(documents_app, "original", collection=True, remote=True)(_original)


command(documents_app, "reread", collection=True, remote=True)(_reread)


for _name, _function in (("history", _history), ("diff", _diff), ("restore", _restore), ("ttl", _ttl)):
    command(documents_app, _name, collection=True, remote=True)(_function)


command(documents_app, "receipts", remote=True)(_receipts)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(documents_app, name="documents")
    command(app, "history", collection=True, remote=True)(_history)
