"""``recollect db``: the store as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.cli._command_context import CommandContext
from recollect.cli._options import command
from recollect.cli._progress import WorkBar
from recollect.cli._terminal import plain, size
from recollect.cli.documents import show_scrub
from recollect.errors import UsageError
from recollect.model.record import json_of
from recollect.store.attacks import attack
from recollect.store.backup import backup
from recollect.store.catalogue import remedy_text
from recollect.store.connections import application_dsn
from recollect.store.embedded import EmbeddedServer
from recollect.store.migrate import migrate
from recollect.store.restore import build_indexes, restore

if TYPE_CHECKING:
    from recollect.model.tenant import Isolation
    from recollect.store.verification import VerifyCheck, VerifyProgress, VerifyReport


def _values(value: object, *names: str) -> dict[str, Any]:
    """Attributes of an object as JSON values, in this order.

    Args:
        value: The object.
        names: Of the attributes; ``key=attribute`` where it has another name in JSON.
    """
    pairs = (name.rpartition("=") for name in names)
    return {key or attribute: _plain(getattr(value, attribute)) for key, _, attribute in pairs}


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    """A value as JSON has it: times in ISO 8601, dataclasses and mappings as objects, what holds several as a list."""
    match value:
        case datetime():
            return value.isoformat()
        case Path():
            return str(value)
        case Mapping():
            return dict(value)
        case list() | tuple():
            return [_plain(one) for one in value]
        case _ if is_dataclass(value):
            return _values(value, *(field.name for field in fields(value)))
        case _:
            return value


app = typer.Typer(help="Migrate, check, mend, back up and restore the store.", no_args_is_help=True)


@contextmanager
def _server(ctx: CommandContext) -> Iterator[str]:
    """The store's connection string; an embedded server runs meanwhile."""
    storage = ctx.config.storage
    if storage.dsn is not None:
        yield storage.dsn.get_secret_value()
        return

    with EmbeddedServer(storage.data_dir) as dsn:
        yield dsn


def _migrate(ctx: CommandContext) -> int:
    """Bring the store's schema up to date. Every command does so when it opens the store."""
    with _server(ctx) as dsn:
        report = migrate(dsn, own_server=ctx.config.storage.dsn is None)
    if ctx.json:
        ctx.emit({"schema_version": report.schema_version, "applied": list(report.applied)})
    else:
        done = f"applied {', '.join(report.applied)}" if report.applied else "nothing to do"
        ctx.out.print(f"Schema version {report.schema_version}: {done}.")
    return 0


def _check(ctx: CommandContext) -> int:
    """Look for anything in the store that contradicts itself. Exit status 1 if there is."""
    with ctx.view() as view:
        findings, isolation = view.maintenance.check(), view.tenants.isolation()
        replica = view.store.replica
        reads = None if replica is None else replica.status()
    if ctx.json:
        found = [{"problem": finding.problem, "count": finding.count} for finding in findings]
        told = {} if reads is None else {"replica": _values(reads, "problem", "behind_bytes", "behind_seconds")}
        ctx.emit({"ok": not findings, "findings": found, "isolation": _isolation_json(isolation), **told})
    elif findings:
        for finding in findings:
            ctx.out.print(f"✗ {finding.problem}: {finding.count:,}")
        remedies = dict.fromkeys(finding.remedy for finding in findings)
        ctx.note("\n".join(["The store is inconsistent.", *remedies]))
    else:
        ctx.out.print("The store is sound.")
    if not ctx.json:
        _show_isolation(ctx, isolation)
        if reads is not None and reads.problem is None:
            ctx.out.print(f"The replica is read from; it is {reads.behind_bytes:,} bytes behind.")
        elif reads is not None:
            ctx.note(plain(f"The replica is not read from: {reads.problem}"))
    return 1 if findings else 0


def _isolation_json(isolation: Isolation) -> dict[str, object]:
    return _values(isolation, "in_force", "role", "login", "unguarded", "remedy")


def _show_isolation(ctx: CommandContext, isolation: Isolation) -> None:
    if isolation.in_force:
        ctx.out.print(plain(f"Row-level security keeps tenants apart (role {isolation.role})."))
    else:
        ctx.note(
            f"Row-level security does not bind the role {isolation.role!r} ({len(isolation.unguarded)} tables). With "
            f"one tenant that is no matter; a second one is refused. {remedy_text(isolation)}"
        )


def _attack(ctx: CommandContext) -> int:
    """Try to break the store's isolation of tenants, and roll everything back. Exit status 1 if something is open.

    Works as the program's own role: reads and writes across tenants in every table, functions that run as the owner,
    changes of roles, policies and audit, objects that would shadow others, access lists passed by. Nothing is left.
    """
    storage = ctx.config.storage
    own = storage.application_dsn.get_secret_value() if storage.application_dsn else None
    with _server(ctx) as dsn:
        attacks = attack(dsn, application_dsn=application_dsn(dsn) if storage.dsn is None else own)
    through = [one for one in attacks if one.outcome == "open"]
    if ctx.json:
        told = [{"name": one.name, "outcome": one.outcome, "detail": one.detail} for one in attacks]
        ctx.emit({"clean": not through, "attacks": told})
        return 1 if through else 0
    for one in attacks:
        if one.outcome != "held":
            sign = "✗ open" if one.outcome == "open" else "- not tried"
            ctx.out.print(plain(f"{sign}: {one.name}: {one.detail}"), soft_wrap=True)
    held = sum(one.outcome == "held" for one in attacks)
    ctx.out.print(f"{held:,} of {len(attacks):,} attacks held, {len(through):,} went through.")
    return 1 if through else 0


def _verify(
    ctx: CommandContext,
    *,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what can be mended, and check again.")] = False,
    deep: Annotated[
        bool, typer.Option("--deep", help="Compare every row with its text, not a thousand of each collection.")
    ] = False,
    collection: Annotated[
        str | None,
        typer.Option(
            "--collection", "-c", metavar="NAME", help="Only this collection; by default the whole store, every tenant."
        ),
    ] = None,
) -> int:
    """Compare everything in the store with what it belongs to. Exit status 1 if something wrong is left."""
    with ctx.view(collections=collection) as view, ExitStack() as bars:
        show = None if ctx.json else _progress(ctx, bars)
        report = view.maintenance.verify(repair=repair, deep=deep, on_progress=show)
    if ctx.json:
        checks = [
            {"name": check.name, "found": check.found, "repaired": check.repaired, "detail": check.detail}
            for check in report.checks
        ]
        ctx.emit({"checks": checks, "clean": report.clean})
    else:
        _show_verified(ctx, report, repair=repair)
    return 0 if report.clean else 1


def _progress(ctx: CommandContext, bars: ExitStack) -> Callable[[VerifyProgress], None]:
    titles = {"checking": ("Verifying", "chunks"), "mending": ("Mending", "versions")}
    shown: dict[str, WorkBar] = {}

    def show(state: VerifyProgress) -> None:
        if state.stage not in shown:
            # One bar at a time: a stage that comes again begins anew.
            bars.close()
            shown.clear()
            title, unit = titles[state.stage]
            shown[state.stage] = bars.enter_context(WorkBar(ctx.err, title, unit=unit))
        shown[state.stage].update(state.done, state.total)

    return show


def _show_verified(ctx: CommandContext, report: VerifyReport, *, repair: bool) -> None:
    found = [check for check in report.checks if check.found]
    for check in found:
        sign = "✓" if check.found == check.repaired else "✗"
        ctx.out.print(plain(f"{sign} {_counted(check, repair=repair)}: {check.detail}"), soft_wrap=True)
    looked = f"{len(report.checks)} checks of {report.chunks:,} chunks in {_collections(report.collections)}"
    if not found:
        ctx.out.print(f"The store is sound: {looked}.")
    elif report.clean:
        ctx.out.print(f"The store is sound again: {looked}.")
    elif repair:
        ctx.note("Something could not be mended: what to do stands beside it.")
    else:
        ctx.note("Mend what can be mended: recollect db verify --repair")


def _counted(check: VerifyCheck, *, repair: bool) -> str:
    if not repair:
        return f"{check.found:,}"
    return (
        f"{check.found:,} mended" if check.found == check.repaired else f"{check.repaired:,} of {check.found:,} mended"
    )


def _collections(count: int) -> str:
    return "1 collection" if count == 1 else f"{count:,} collections"


def _scrub(
    ctx: CommandContext,
    *,
    after: Annotated[
        int,
        typer.Option(
            min=0, help="Only where so many documents and turns were erased since the last time; for schedules."
        ),
    ] = 0,
    look_for: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A string a line that must not be in the database's files afterwards."),
    ] = None,
) -> int:
    """Take what was erased out of the database's files, where its bytes stay until they are written over.

    Every table is written anew, and waits for that. On recollect's own server the write-ahead log is renewed and the
    server's log emptied too, and every file is read afterwards. Exit status 1 if something is left.
    """
    strings = [] if look_for is None else _lines(look_for)
    with ctx.view() as view:
        due = view.store.scrubber.due()
        report = view.maintenance.scrub(look_for=strings) if due >= after else None
    if ctx.json:
        ctx.emit({"scrub": report and json_of(report), "remains": list(report.remains) if report else []})
    elif report is None:
        ctx.out.print(f"Nothing to do: {due:,} erased since the last time.")
    else:
        show_scrub(ctx, report)
        ctx.out.print("What remains, and until when:", style="bold")
        for line in report.remains:
            ctx.out.print(f"  {line}", highlight=False)
    return 0 if report is None or report.complete else 1


def _lines(file: Path) -> list[str]:
    try:
        return [line for line in file.read_text(encoding="utf-8").splitlines() if line]
    except (OSError, UnicodeDecodeError) as exc:
        raise UsageError(f"The file {str(file)!r} cannot be read as UTF-8 text: {exc}.") from exc


def _backup(
    ctx: CommandContext,
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write the backup.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
) -> int:
    """Write the whole store into one file, while others go on using it."""
    with _server(ctx) as dsn:
        migrate(dsn)
        report = backup(dsn, file, overwrite=overwrite)
    return ctx.tell(
        {"file": str(report.file), "bytes": report.bytes_written},
        f"Wrote {report.file} ({size(report.bytes_written)}).",
        soft_wrap=True,
    )


def _restore(
    ctx: CommandContext,
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A backup.")],
    force: Annotated[bool, typer.Option("--force", help="Replace a store that has documents: they are lost.")] = False,
) -> int:
    """Put a backup in place of an empty store."""
    with _server(ctx) as dsn:
        restore(dsn, file, force=force)
        with ctx.view() as view:
            build_indexes(view.store)
            version = view.store.schema_version
    return ctx.tell(
        {"file": str(file), "schema_version": version},
        f"Restored {file}; the schema version is {version}.",
        soft_wrap=True,
    )


command(app, "migrate", local="it changes the tables of the database")(_migrate)


command(app, "check", local="it looks at the database itself")(_check)


command(app, "verify", local="it compares every row of the database with what it should be")(_verify)


command(app, "attack", local="it attacks the database's own rules as another user of it")(_attack)


command(app, "scrub", local="it rewrites the files of the database")(_scrub)


command(app, "backup", local="it copies the database")(_backup)


command(app, "restore", local="it fills a database")(_restore)
