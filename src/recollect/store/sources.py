"""Sources that connectors read: how, and how far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg.types.json import Jsonb

from recollect.errors import ConflictError, NotFoundError
from recollect.model import Scope
from recollect.model.collection import Collection
from recollect.model.source import SourceRecord
from recollect.store.database import Repository, rows
from recollect.store.documents import Source
from recollect.store.sql import queries

# What connectors named of their sources: what of it need not be fetched again, and what has gone.


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


class SourceItemRepository(Repository):
    """Keeps what is known of the items of sources."""

    def items(self, scope: Scope, source: Source, uris: Sequence[str]) -> dict[str, SourceItem]:
        """What is known of items, by URI."""
        found = self._database.run(scope, _SQL["items"], {**_of(scope, source), "uris": list(uris)})
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
        self._database.run(scope, _SQL["save_items"], params)

    def touch_items(self, scope: Scope, source: Source, uris: Sequence[str], *, listing: int) -> None:
        """Note items that are there still."""
        self._database.run(scope, _SQL["touch_items"], {**_of(scope, source), "uris": list(uris), "listing": listing})

    def mark_removed(self, scope: Scope, source: Source, uris: Sequence[str]) -> None:
        """Note items that have gone."""
        self._database.run(scope, _SQL["mark_removed"], {**_of(scope, source), "uris": list(uris)})

    def mark_unnamed(self, scope: Scope, source: Source, *, listing: int) -> None:
        """Note that whatever a listing did not name has gone."""
        self._database.run(scope, _SQL["mark_unnamed"], {**_of(scope, source), "listing": listing})

    def counts(self, scope: Scope, source: Source) -> tuple[int, int]:
        """How many items have a document, and how many of these have gone."""
        total, gone = self._database.run(scope, _SQL["counts"], _of(scope, source))[0]
        return total, gone

    def gone_items(self, scope: Scope, source: Source, *, limit: int) -> list[tuple[str, int | None]]:
        """Some that have gone: their URIs, and documents where they have one."""
        found = self._database.run(scope, _SQL["gone_items"], {**_of(scope, source), "limit": limit})
        return [(row[0], row[1]) for row in found]

    def forget_items(self, scope: Scope, source: Source, uris: Sequence[str]) -> None:
        """Forget items that have gone."""
        self._database.run(scope, _SQL["forget_items"], {**_of(scope, source), "uris": list(uris)})


def _array(texts: Sequence[str]) -> str:
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return "{" + ",".join(f'"{text}"' for text in quoted) + "}"


_SQL = queries("sources")


_MOST_PROBLEM_CHARACTERS = 500


class SourceRepository(Repository):
    """Keeps what connectors need to go on where they were."""

    def records(
        self,
        scope: Scope,
        *,
        collection: Collection | None = None,
        name: str | None = None,
        due: bool = False,
        after: Sequence[str] = (),
        limit: int | None = None,
    ) -> list[SourceRecord]:
        """Sources with what is known of their refreshing.

        Args:
            scope: Whose.
            collection: Only of this one.
            name: Only those of this name.
            due: Only those whose time has come.
            after: Only those behind the one of this collection, type and name.
            limit: So many at most; None: all.
        """
        params = {
            "tenant_id": scope.tenant_id,
            "collection_id": None if collection is None else collection.collection_id,
            "name": name,
            "due": due,
            "after": list(after),
            "limit": limit,
        }
        found = self._database.run(scope, _SQL["records"], params)
        names = tuple(SourceRecord.__dataclass_fields__)
        return [SourceRecord(**{**dict(zip(names, row, strict=True)), "settings": row[6] or {}}) for row in found]

    def connect(
        self,
        scope: Scope,
        source: Source,
        *,
        connector: str,
        location: str,
        settings: Mapping[str, Any],
        interval_seconds: float | None,
    ) -> None:
        """Have a source read by a connector from now on.

        Raises:
            ConflictError: It is read by one already.
        """
        params = {
            **_of(scope, source),
            "connector": connector,
            "location": location,
            "settings": Jsonb(dict(settings)),
            "interval_seconds": interval_seconds,
        }
        with self._database.transaction(scope) as connection:
            if not rows(connection, _SQL["connect"], params):
                raise ConflictError(f"There is a source {source.name!r} already: remove it first, or give --name.")

    def disconnect(self, scope: Scope, source: Source) -> None:
        """Have it read no longer, and forget what it named; a source without documents goes."""
        with self._database.transaction(scope) as connection:
            connection.execute(_SQL["disconnect"], _of(scope, source))
            connection.execute(_SQL["drop_empty"], _of(scope, source))

    def begin(self, scope: Scope, source: Source, *, anew: bool = False) -> tuple[str | None, int]:
        """A refresh begins.

        Args:
            scope: Whose.
            source: Which.
            anew: Whether to read everything, wherever the last refresh ended.

        Returns:
            The connector's cursor, and the number of the listing that runs or ran last.

        Raises:
            NotFoundError: It is not read by a connector any more.
        """
        with self._database.transaction(scope) as connection:
            connection.execute(_SQL["begin"], _of(scope, source))
            if anew:
                connection.execute(_SQL["forget_cursor"], _of(scope, source))
            found = rows(connection, _SQL["progress"], _of(scope, source))
        if not found:
            raise NotFoundError(f"There is no source {source.name!r} any more.")
        return found[0][0], found[0][1]

    def end(self, scope: Scope, source: Source) -> None:
        """A refresh has come to its end."""
        self._database.run(scope, _SQL["end"], _of(scope, source))

    def fail(self, scope: Scope, source: Source, problem: str) -> None:
        """A refresh has failed; what it has stored stays, and the next one goes on there."""
        self._database.run(scope, _SQL["fail"], {**_of(scope, source), "problem": problem[:_MOST_PROBLEM_CHARACTERS]})

    def begin_listing(self, scope: Scope, source: Source) -> int:
        """Everything is named from now on; returns the number that items bear which are."""
        return int(self._database.run(scope, _SQL["begin_listing"], _of(scope, source))[0][0])

    def save_cursor(self, scope: Scope, source: Source, cursor: str | None) -> None:
        """What came before the cursor is stored."""
        self._database.run(scope, _SQL["save_cursor"], {**_of(scope, source), "cursor": cursor})

    def documents(self, scope: Scope, source: Source) -> list[int]:
        """Every document of a source, current or not."""
        return [row[0] for row in self._database.run(scope, _SQL["documents"], _of(scope, source))]

    def connector_of(self, scope: Scope, document_id: int) -> str | None:
        """The connector that reads a document's source; None: none does."""
        params = {"tenant_id": scope.tenant_id, "document_id": document_id}
        found = self._database.run(scope, _SQL["connector_of"], params)
        return found[0][0] if found else None


def _of(scope: Scope, source: Source) -> dict[str, Any]:
    return {"tenant_id": scope.tenant_id, "source_id": source.source_id}
