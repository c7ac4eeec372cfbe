"""A source of a view's collection, by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from recollect.model.source import SourceRecord
    from recollect.pipeline.standpoint import Standpoint


def source_record(at: Standpoint, name: str) -> SourceRecord:
    """What is known of a source.

    Raises:
        NotFoundError: There is none of that name.
        PermissionDeniedError: The view has a principal.
    """
    scope = at.owner()
    found = at.store.sources.records(scope, collection=at.place(scope), name=name)
    if not found:
        raise NotFoundError(
            f"There is no source {name!r} in the collection {at.collection!r}. `recollect sources list` shows what "
            "there is."
        )
    return found[0]


def require_refreshable(record: SourceRecord) -> SourceRecord:
    """The source, where something reads it.

    Raises:
        UsageError: Nothing does: documents are put there.
    """
    if record.connector is None and record.type not in {"directory", "web"}:
        raise UsageError(f"Nothing refreshes the source {record.name!r} ({record.type}): documents are put there.")
    return record
