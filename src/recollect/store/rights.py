"""What somebody may read: resolved in the database, and kept for as long as a collection stays what it is."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, LiteralString, TypeVar

from recollect.forking import renew_in_children
from recollect.model import Scope
from recollect.store.database import Database, rows
from recollect.store.sql import queries

_SQL = queries("access")

# Callers and collections whose rights are kept in memory.
_KEPT = 4_096

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """What somebody may do in a collection.

    Attributes:
        reads: Whether it exists for him.
        writes: Whether he may put documents into it and take them out.
        everything: Whether he may read all that is in it.
        access_ids: The lists of the documents that he may read, ascending.
    """

    reads: bool
    writes: bool
    everything: bool
    access_ids: tuple[int, ...] = ()


class RightsResolver:
    """Resolves principals. Safe to share between threads.

    Every change of grants, and of what is stored, gives a collection another revision. What was resolved for one
    revision therefore holds for as long as that is the collection's, and nothing is ever invalidated.

    Args:
        database: The store's connections.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = Lock()
        renew_in_children(self)
        self._rights: OrderedDict[tuple[object, ...], Rights] = OrderedDict()
        self._counts: OrderedDict[tuple[object, ...], Mapping[int, tuple[int, int]]] = OrderedDict()

    def renew_in_child(self) -> None:
        """In the child of a fork: nobody releases the lock that another thread held."""
        self._lock = Lock()

    def rights(self, scope: Scope, collection_id: int, revision: int) -> Rights:
        """What the scope's principal may do in a collection of that revision; everything, without a principal."""
        if scope.principal is None:
            return Rights(reads=True, writes=True, everything=True)
        tokens = scope.principal.tokens
        key = (scope.tenant_id, collection_id, revision, tokens)
        known = self._recall(self._rights, key)
        if known is not None:
            return known
        params = {"tenant_id": scope.tenant_id, "collection_id": collection_id, "tokens": list(tokens)}
        with self._database.single_reads(scope) as connection:
            found = rows(connection, _SQL["rights"], params)
        if not found:  # deleted meanwhile
            return Rights(reads=False, writes=False, everything=False)
        reads, writes, everything, access_ids = found[0]
        resolved = Rights(reads=reads, writes=writes, everything=everything, access_ids=tuple(access_ids))
        return self._keep(self._rights, key, resolved)

    def revision(self, scope: Scope, collection_id: int) -> int | None:
        """The revision of a collection now; None where it is gone."""
        params = {"tenant_id": scope.tenant_id, "collection_id": collection_id}
        with self._database.single_reads(scope) as connection:
            found = rows(connection, _SQL["revision"], params)
        return found[0][0] if found else None

    def count(self, scope: Scope, collection_id: int, revision: int, access_ids: tuple[int, ...]) -> tuple[int, int]:
        """How many current documents, and chunks of these, have one of some lists."""
        key = (scope.tenant_id, collection_id, revision)
        counts = self._recall(self._counts, key)
        if counts is None:
            params = {"tenant_id": scope.tenant_id, "collection_id": collection_id}
            with self._database.single_reads(scope) as connection:
                found = rows(connection, _SQL["counts"], params)
            counts = self._keep(self._counts, key, {row[0]: (row[1], row[2]) for row in found})
        own = [counts[access_id] for access_id in access_ids if access_id in counts]
        return sum(documents for documents, _ in own), sum(chunks for _, chunks in own)

    def _recall(self, kept: OrderedDict[tuple[object, ...], _Value], key: tuple[object, ...]) -> _Value | None:
        with self._lock:
            found = kept.get(key)
            if found is not None:
                kept.move_to_end(key)
            return found

    def _keep(self, kept: OrderedDict[tuple[object, ...], _Value], key: tuple[object, ...], value: _Value) -> _Value:
        with self._lock:
            kept[key] = value
            while len(kept) > _KEPT:
                kept.popitem(last=False)
        return value


def may_read(scope: Scope) -> LiteralString:
    """The condition that a document ``d`` exists for the scope, its session and its principal.

    Its parameters are `access_params`.
    """
    return _SQL["in_sight"] if scope.principal is None else f"{_SQL['in_sight']} AND {_SQL['may_read']}"


def access_params(scope: Scope) -> dict[str, Any]:
    """The parameters of `may_read`."""
    session = {"session": scope.session}
    return session if scope.principal is None else {**session, "tokens": list(scope.principal.tokens)}
