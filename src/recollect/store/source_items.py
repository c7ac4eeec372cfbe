"""What connectors named of their sources: what of it need not be fetched again, and what has gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.model import Scope
from recollect.store.database import Database, rows
from recollect.store.documents import Source
from recollect.store.sql import queries

_SQL = queries("sources")

_MOST_PROBLEM_CHARACTERS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceItem:
    """What is known of an item that a connector named.

    Attributes:
        uri: Its document's, within the source.
        document_id: None: it could not be stored.
        revision: That was read.
        fingerprint: Of what else its version depends on.
        grants: As the source said; None: it said nothing.
        problem: Why it could not be stored.
    """

    uri: str
    document_id: int | None
    revision: str
    fingerprint: str
    grants: tuple[str, ...] | None
    problem: str | None


class SourceItemRepository:
    """Keeps what is known of the items of sources.

    Args:
        database: The store's connections.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def items(self, scope: Scope, source: Source, uris: Sequence[str]) -> dict[str, SourceItem]:
        """What is known of items, by URI."""
        with self._database.transaction(scope) as connection:
            found = rows(connection, _SQL["items"], {**_of(scope, source), "uris": list(uris)})
        return {
            row[0]: SourceItem(
                uri=row[0],
                document_id=row[1],
                revision=row[2],
                fingerprint=row[3],
                grants=None if row[4] is None else tuple(row[4]),
                problem=row[5],
            )
            for row in found
        }

    def save_items(self, scope: Scope, source: Source, items: Sequence[SourceItem], *, listing: int) -> None:
        """Note items that were read."""
        params = {
            **_of(scope, source),
            "listing": listing,
            "uris": [one.uri for one in items],
            "document_ids": [one.document_id for one in items],
            "revisions": [one.revision for one in items],
            "fingerprints": [one.fingerprint for one in items],
            # An array of arrays of different lengths is none: each travels as its text.
            "grants": [None if one.grants is None else _array(one.grants) for one in items],
            "problems": [None if one.problem is None else one.problem[:_MOST_PROBLEM_CHARACTERS] for one in items],
        }
        self._execute(scope, "save_items", params)

    def touch_items(self, scope: Scope, source: Source, uris: Sequence[str], *, listing: int) -> None:
        """Note items that are there still."""
        self._execute(scope, "touch_items", {**_of(scope, source), "uris": list(uris), "listing": listing})

    def mark_removed(self, scope: Scope, source: Source, uris: Sequence[str]) -> None:
        """Note items that have gone."""
        self._execute(scope, "mark_removed", {**_of(scope, source), "uris": list(uris)})

    def mark_unnamed(self, scope: Scope, source: Source, *, listing: int) -> None:
        """Note that whatever a listing did not name has gone."""
        self._execute(scope, "mark_unnamed", {**_of(scope, source), "listing": listing})

    def counts(self, scope: Scope, source: Source) -> tuple[int, int]:
        """How many items have a document, and how many of these have gone."""
        with self._database.transaction(scope) as connection:
            total, gone = rows(connection, _SQL["counts"], _of(scope, source))[0]
        return total, gone

    def gone_items(self, scope: Scope, source: Source, *, limit: int) -> list[tuple[str, int | None]]:
        """Some that have gone: their URIs, and documents where they have one."""
        with self._database.transaction(scope) as connection:
            found = rows(connection, _SQL["gone_items"], {**_of(scope, source), "limit": limit})
        return [(row[0], row[1]) for row in found]

    def forget_items(self, scope: Scope, source: Source, uris: Sequence[str]) -> None:
        """Forget items that have gone."""
        self._execute(scope, "forget_items", {**_of(scope, source), "uris": list(uris)})

    def _execute(self, scope: Scope, query: str, params: Mapping[str, Any]) -> None:
        with self._database.transaction(scope) as connection:
            connection.execute(_SQL[query], params)


def _of(scope: Scope, source: Source) -> dict[str, Any]:
    return {"tenant_id": scope.tenant_id, "source_id": source.source_id}


def _array(texts: Sequence[str]) -> str:
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return "{" + ",".join(f'"{text}"' for text in quoted) + "}"
