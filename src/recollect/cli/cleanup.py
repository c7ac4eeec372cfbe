"""``recollect cleanup``: what has passed its time."""

from __future__ import annotations

import typer

from recollect.cli._options import command
from recollect.cli._session import Session


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "cleanup")(_cleanup)


def _cleanup(session: Session) -> int:
    """Close the documents whose time to live is over, remove expired sessions, and drop what the audit need not keep.

    Searches leave out what has expired without it. Closed documents keep their history; `documents erase` removes it.
    """
    with session.pipeline() as rag:
        report = rag.cleanup()
    if session.json:
        session.emit(
            {
                "expired": report.expired,
                "sessions_ended": report.sessions_ended,
                "partitions_dropped": list(report.partitions_dropped),
            }
        )
        return 0
    session.out.print(f"{report.expired:,} document{'' if report.expired == 1 else 's'} expired.")
    if report.sessions_ended:
        count = report.sessions_ended
        session.out.print(f"{count:,} expired session{'' if count == 1 else 's'} removed, with all documents.")
    if report.partitions_dropped:
        count = len(report.partitions_dropped)
        session.out.print(f"{count:,} partition{'' if count == 1 else 's'} of the audit dropped.")
    return 0
