"""What somebody may read and change: resolved in the database, and kept while a collection stays what it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, LiteralString

from cachetools import LRUCache
from psycopg.types.json import Jsonb

from recollect.errors import NotFoundError, PermissionDeniedError
from recollect.forking import renew_in_children
from recollect.model import Scope
from recollect.store.database import Connection, Database, rows
from recollect.store.sql import queries

if TYPE_CHECKING:
    from recollect.model.collection import Collection


_SQL = queries("access")


# Callers and collections whose rights are kept in memory.
_KEPT = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """What somebody may do in a collection.

    Attributes:
        reads: Whether it exists for them.
        writes: Whether they may put documents into it and take them out.
        everything: Whether they may read all that is in it.
        access_ids: The lists of the documents that they may read, ascending; in a scope of the past also those of past
            versions.
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
        self._rights: LRUCache[tuple[object, ...], Rights] = LRUCache(_KEPT)
        self._counts: LRUCache[tuple[object, ...], Mapping[int, tuple[int, int]]] = LRUCache(_KEPT)

    def renew_in_child(self) -> None:
        """In the child of a fork: nobody releases the lock that another thread held."""
        self._lock = Lock()

    def rights(self, scope: Scope, collection_id: int, revision_id: str) -> Rights:
        """What the scope's principal may do in a collection of that revision; everything, without a principal."""
        if scope.principal is None:
            return Rights(reads=True, writes=True, everything=True)
        tokens = scope.principal.tokens
        past = scope.as_of is not None
        key = (scope.tenant_id, collection_id, revision_id, tokens, scope.reads_as, past)
        with self._lock:
            known = self._rights.get(key)
        if known is not None:
            return known
        params = {"tenant_id": scope.tenant_id, "collection_id": collection_id, "past": past, **access_params(scope)}
        found = self._database.read(scope, _SQL["rights"], params)
        if not found:  # deleted meanwhile
            return Rights(reads=False, writes=False, everything=False)
        reads, writes, everything, access_ids = found[0]
        resolved = Rights(reads=reads, writes=writes, everything=everything, access_ids=tuple(access_ids))
        with self._lock:
            self._rights[key] = resolved
        return resolved

    def revision(self, scope: Scope, collection_id: int) -> int | None:
        """The revision of a collection now; None where it is gone."""
        params = {"tenant_id": scope.tenant_id, "collection_id": collection_id}
        found = self._database.read(scope, _SQL["revision"], params)
        return found[0][0] if found else None

    def count(self, scope: Scope, collection_id: int, revision_id: str, access_ids: tuple[int, ...]) -> tuple[int, int]:
        """How many current documents, and chunks of these, have one of some lists."""
        key = (scope.tenant_id, collection_id, revision_id)
        with self._lock:
            counts = self._counts.get(key)
        if counts is None:
            params = {"tenant_id": scope.tenant_id, "collection_id": collection_id}
            found = self._database.read(scope, _SQL["counts"], params)
            counts = {row[0]: (row[1], row[2]) for row in found}
            with self._lock:
                self._counts[key] = counts
        own = [counts[access_id] for access_id in access_ids if access_id in counts]
        return sum(documents for documents, _ in own), sum(chunks for _, chunks in own)


def not_a_writer(collection: str) -> PermissionDeniedError:
    """The error for somebody who may not change what is in a collection."""
    return PermissionDeniedError(
        f"You may not change what is in the collection {collection!r}: ask one of its owners to make you a writer of "
        "it."
    )


def may_read(scope: Scope) -> LiteralString:
    """The condition that a document ``d``, as it is now, exists for the scope, its session and its principal.

    Its parameters are `access_params`.
    """
    return _SQL["in_sight"] if scope.principal is None else f"{_SQL['in_sight']} AND {_SQL['may_read']}"


def may_read_version(scope: Scope) -> LiteralString:
    """The condition that a version ``v`` of a document ``d`` exists for the scope; its parameters are `access_params`.

    A past version is read by who was granted it, as long as its document is not withdrawn from them: neither does a
    later grant open what was written before it, nor does asking for the past undo a withdrawal.
    """
    return _SQL["in_sight"] if scope.principal is None else f"{_SQL['in_sight']} AND {_SQL['may_read_version']}"


def may_find(scope: Scope) -> LiteralString:
    """The condition that some version of a document ``d`` exists for the scope."""
    if scope.principal is None:
        return may_read(scope)
    return f"{_SQL['in_sight']} AND {_SQL['some_version']} AND {_SQL['may_read_version']})"


def met(scope: Scope) -> LiteralString:
    """The condition that an ingest of the scope's principal meets a document ``d``; its parameters are `access_params`.

    What others have stored under the same name it does not meet: it stores its own beside it, as if theirs were not
    there. Nobody can prepare a document, with the writer among its readers, for what somebody else is going to store.
    """
    return _SQL["met"] if scope.principal is None else _SQL["met_by"]


def access_params(scope: Scope) -> dict[str, Any]:
    """The parameters of `may_read` and `met`."""
    session = {"session": scope.session}
    if scope.principal is None:
        return session
    tokens = scope.principal.tokens
    return {
        **session,
        "tokens": list(tokens),
        "reads": [*tokens, *scope.reads_as],
        "user": scope.principal.user_id,
    }


def asker_params(scope: Scope) -> dict[str, Any]:
    """Whose jobs and files a statement is about: a principal's own; without one, everybody's."""
    who = scope.principal
    fields = None if who is None else Jsonb(asdict(who))
    return {"own": who is not None, "user": None if who is None else who.user_id, "principal": fields}


def owns_nothing(connection: Connection, scope: Scope, collection: Collection) -> bool:
    """Whether the scope has a principal who does not own the collection."""
    if scope.principal is None:
        return False
    params = {"tenant_id": scope.tenant_id, "collection_id": collection.collection_id, **access_params(scope)}
    return not rows(connection, _SQL["owned"], params)


def require_changeable(connection: Connection, scope: Scope, document_ids: Sequence[int]) -> None:
    """Refuse the scope's principal to change documents, in the transaction that has locked them.

    Raises:
        NotFoundError: The principal may not read one of them, or there is no such one.
        PermissionDeniedError: One of them is another's, and its collection too.
    """
    if scope.principal is None:
        return
    params = {"tenant_id": scope.tenant_id, "document_ids": list(document_ids), **access_params(scope)}
    readable: LiteralString = f"{_SQL['given']} AND {may_read(scope)}"
    visible = {row[0] for row in rows(connection, readable, params)}
    own = {row[0] for row in rows(connection, f"{readable} AND {_SQL['may_change']}", params)}
    for document_id in document_ids:
        if document_id not in visible:
            raise NotFoundError(f"There is no document {document_id}. `recollect documents list` shows what there is.")
        if document_id not in own:
            raise PermissionDeniedError(
                f"You may not change the document {document_id}: you do not own its collection, nor did you store it "
                "as the writer that you still are. Ask one of its owners."
            )
