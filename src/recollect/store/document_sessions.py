"""Sessions with documents of their own: each has a hidden collection, which goes with it.

A session's time and room are decided by the database's clock and under the session's lock, which every writer takes
after the collection and before any document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from psycopg.types.json import Jsonb

from recollect.errors import (
    ConflictError,
    NotFoundError,
    SessionExpiredError,
    SessionFullError,
    StoreError,
    StoreUnavailableError,
    UsageError,
)
from recollect.model import Scope
from recollect.model.document_session import DocumentSession, SessionConfig, WhenFull
from recollect.store.database import Connection, Repository, rows
from recollect.store.indexes import drop_indexes
from recollect.store.sql import queries

if TYPE_CHECKING:
    from recollect.model.collection import Collection

_SQL = queries("document_sessions")
_COLLECTIONS = queries("collections")
_WRITER = queries("writer")

#: Expired sessions that somebody who wants something else removes along the way, at most.
REMOVED_IN_PASSING = 10

# Between the parts of a hidden collection's name. No collection that somebody else makes has a control character in it.
_SEPARATOR = "\x1f"


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """A session and where its documents are.

    Attributes:
        session: What is known of it.
        collection_id: Of its hidden collection.
        collection: The name of that.
    """

    session: DocumentSession
    collection_id: int
    collection: str

    def scope(self, scope: Scope) -> Scope:
        """The scope in which its documents exist, beside those of the tenant."""
        return replace(scope, session=self.collection_id)


@dataclass(frozen=True, slots=True)
class Room:
    """What a session that is being written has room for.

    Attributes:
        session_id: Of the session.
        max_documents: Documents at most.
        when_full: What happens to a document for which there is none.
    """

    session_id: str
    max_documents: int
    when_full: WhenFull


class DocumentSessionRepository(Repository):
    """Begins, finds and ends sessions."""

    def create(
        self,
        scope: Scope,
        session_id: str,
        config: SessionConfig,
        *,
        embedding_model: str,
        embedding_dimension: int,
        language: str,
        chunking: Mapping[str, Any],
        token_vectors: bool = False,
        embedding_spec: Mapping[str, Any] | None = None,
    ) -> SessionPlace:
        """Begin a session; with a principal in the scope, it exists for that person alone.

        Raises:
            ConflictError: The principal has a session of that id, which may have expired.
            NotFoundError: There is no such tenant.
            UsageError: The principal is nobody in particular.
        """
        owner = _owner(scope)
        params: dict[str, Any] = {
            "tenant_id": scope.tenant_id,
            "name": session_id,
            # Every user has ids of their own, so that nobody learns of another's by finding one taken.
            "collection": _SEPARATOR.join(("session", owner or "", session_id)),
            "owner": owner,
            "owners": [] if owner is None else [f"user:{owner}"],
            "others": ["*"] if owner is None else [],
            "embedding_model": embedding_model,
            "embedding_dimension": embedding_dimension,
            "language": language,
            "chunking": Jsonb(dict(chunking)),
            "token_vectors": token_vectors,
            "embedding_spec": None if embedding_spec is None else Jsonb(dict(embedding_spec)),
            "ttl_seconds": None if config.lifetime is None else config.lifetime.total_seconds(),
            "max_documents": config.max_documents,
            "when_full": config.when_full,
            "auto_cleanup": config.auto_cleanup,
        }
        with self._database.transaction(scope) as connection:
            if not rows(connection, _COLLECTIONS["tenant"], params):
                raise NotFoundError(f"There is no tenant {scope.tenant_id}.")
            made = rows(connection, _SQL["create_collection"], params)
            if not made:
                raise ConflictError(
                    f"There is a session {session_id!r} already. Choose another id, or end that one first "
                    "(`recollect sessions end`)."
                )
            params["collection_id"] = made[0][0]
            connection.execute(_COLLECTIONS["create_state"], params)
            connection.execute(_SQL["create"], params)
        return self.get(scope, session_id)

    def find(self, scope: Scope, session_id: str) -> SessionPlace | None:
        """A session that the scope's principal may read, their own before nobody's, expired or not; None: none.

        Raises:
            UsageError: Several users have one of that id, and the scope has no principal.
        """
        owner = None if scope.principal is None else scope.principal.user_id
        params = {"tenant_id": scope.tenant_id, "name": session_id, "tokens": _tokens(scope), "owner": owner}
        found = [_place(row) for row in self._database.read(scope, f"{_SQL['sessions']} AND {_SQL['named']}", params)]
        if scope.principal is None and len(found) > 1 and found[0].session.owner is not None:
            raise UsageError(f"Several users have a session {session_id!r}: say whose it is (principal=…, --as USER).")
        return found[0] if found else None

    def get(self, scope: Scope, session_id: str) -> SessionPlace:
        """A session that the scope's principal may read, expired or not.

        Raises:
            NotFoundError: There is none.
        """
        found = self.find(scope, session_id)
        if found is None:
            raise _missing(session_id)
        return found

    def list_all(
        self,
        scope: Scope,
        *,
        limit: int = 100,
        offset: int = 0,
        after: tuple[datetime | None, str, str | None] | None = None,
    ) -> list[DocumentSession]:
        """Sessions, expired ones included, those first that expire first; with a principal, their own.

        Args:
            scope: Whose.
            limit: How many at most.
            offset: How many to pass over.
            after: When the last one of the page before expires, its id and its owner.
        """
        at, name, owner = after or (None, None, None)
        page = {"limit": limit, "offset": offset, "after_at": at, "after_name": name, "after_owner": owner}
        params = {"tenant_id": scope.tenant_id, "tokens": _tokens(scope), **page}
        found = self._database.read(scope, f"{_SQL['sessions']} AND {_SQL['own']}", params)
        return [_place(row).session for row in found]

    def renew(self, scope: Scope, session_id: str) -> DocumentSession:
        """Begin a session's time anew.

        Raises:
            NotFoundError: There is none.
            SessionExpiredError: Its time is over.
        """
        place = self.get(scope, session_id)
        params = {"tenant_id": scope.tenant_id, "collection_id": place.collection_id}
        renewed = self._database.run(scope, _SQL["renew"], params)
        if not renewed:
            raise expired(session_id)
        return self.get(scope, session_id).session

    def end(self, scope: Scope, session_id: str) -> int:
        """Remove a session with every document in it, physically; whoever writes into it is waited for.

        Returns:
            How many documents it held.

        Raises:
            NotFoundError: There is none.
        """
        place = self.get(scope, session_id)
        params = {"tenant_id": scope.tenant_id, "collection_id": place.collection_id}
        with self._database.transaction(scope) as connection:
            if not rows(connection, _SQL["hold_collection"], params):
                raise _missing(session_id)
            counted: int = rows(connection, _SQL["document_count"], params)[0][0]
            connection.execute(_SQL["end"], params)
        self._drop_indexes(scope, place.collection_id)
        return counted

    def end_expired(self, scope: Scope, *, limit: int | None = None) -> int:
        """Remove the sessions whose time is over, with their documents; several processes may do it at once.

        Args:
            scope: Whose sessions; a principal makes no difference.
            limit: Sessions at most; None: all.

        Returns:
            How many sessions were removed by this call.
        """
        return self._end_expired(scope, limit=limit, automatic=False, name=None)

    def end_in_passing(self, scope: Scope, session_id: str | None = None) -> int:
        """Remove what has expired and asks for it (``auto_cleanup``), where that is possible without waiting.

        Args:
            scope: Whose sessions.
            session_id: Only this one; None: the first `REMOVED_IN_PASSING`.

        Returns:
            How many were removed; 0 on a database that takes no writes.
        """
        try:
            return self._end_expired(scope, limit=REMOVED_IN_PASSING, automatic=True, name=session_id)
        except StoreUnavailableError:
            raise
        except StoreError:
            # A standby, or a role without the right to write: the clean-up elsewhere does it.
            return 0

    def _end_expired(self, scope: Scope, *, limit: int | None, automatic: bool, name: str | None) -> int:
        params = {"tenant_id": scope.tenant_id, "automatic": automatic, "name": name}
        removed = 0
        while limit is None or removed < limit:
            # A transaction each: whoever waits for one of them waits for no other.
            gone = self._database.run(scope, _SQL["end_expired"], params)
            if not gone:
                break
            self._drop_indexes(scope, gone[0][0])
            removed += 1
        return removed

    def _drop_indexes(self, scope: Scope, collection_id: int) -> None:
        # After the deletion: inside it, they would keep every reader of every collection waiting.
        drop_indexes(self._database, scope, collection_id)


def hold_session(connection: Connection, scope: Scope, collection: Collection) -> Room:
    """Make sure that a session may be written, and that nobody else writes it until the end of the transaction.

    Args:
        connection: In the transaction that writes, which holds the collection.
        scope: Whose session.
        collection: Its hidden collection.

    Raises:
        NotFoundError: It was ended.
        SessionExpiredError: Its time is over.
    """
    params = {"tenant_id": scope.tenant_id, "collection_id": collection.collection_id}
    found = rows(connection, _SQL["hold"], params)
    if not found:
        raise _missing(collection.name.split(_SEPARATOR, 2)[-1])
    name, max_documents, when_full, over = found[0]
    if over:
        raise expired(name)
    return Room(name, max_documents, when_full)


def require_room(
    connection: Connection, scope: Scope, collection_id: int, room: Room | None, document_ids: Sequence[int]
) -> None:
    """Refuse documents for which a held session has no room, where it is configured to.

    Args:
        connection: In the transaction that writes.
        scope: Whose session.
        collection_id: Of its hidden collection.
        room: Of the session; None: no session, and any number.
        document_ids: What is about to be stored; documents that the session holds already count once.

    Raises:
        SessionFullError: It has no room for all of them.
    """
    if room is None or room.when_full != "error":
        return
    params = {"tenant_id": scope.tenant_id, "collection_id": collection_id, "document_ids": list(document_ids)}
    others: int = rows(connection, _SQL["others"], params)[0][0]
    if others + len(document_ids) > room.max_documents:
        raise SessionFullError(
            f"The session {room.session_id!r} holds {others:,} of at most {room.max_documents:,} documents: there is "
            f"no room for {len(document_ids):,} more. Begin a session with a greater max_documents, or one in which "
            "the oldest document goes (when_full = 'oldest')."
        )


def make_room(connection: Connection, scope: Scope, collection_id: int, room: Room | None) -> list[int]:
    """Remove what a held session holds too much, the oldest first; after what is new was stored.

    Returns:
        The chunks of each document that went.
    """
    if room is None or room.when_full != "oldest":
        return []
    params: dict[str, Any] = {
        "tenant_id": scope.tenant_id,
        "collection_id": collection_id,
        "max_documents": room.max_documents,
    }
    surplus = rows(connection, _SQL["surplus"], params)
    if surplus:
        params["document_ids"] = [row[0] for row in surplus]
        connection.execute(_WRITER["erase_documents"], params)
    return [row[1] for row in surplus]


def expired(session_id: str) -> SessionExpiredError:
    """The error for a session whose time is over."""
    return SessionExpiredError(
        f"The session {session_id!r} has expired: its documents can no longer be searched, and none can be added. "
        "Begin a new one (`recollect sessions create`)."
    )


def _missing(session_id: str) -> NotFoundError:
    return NotFoundError(
        f"There is no session {session_id!r} with documents: it was ended, has expired, or was never begun. `recollect "
        "sessions list` shows the ones there are; `recollect sessions create` begins one."
    )


def _owner(scope: Scope) -> str | None:
    if scope.principal is None:
        return None
    if scope.principal.user_id is None:
        raise UsageError("A session belongs to a person: give the principal a user_id.")
    return scope.principal.user_id


def _tokens(scope: Scope) -> list[str] | None:
    return None if scope.principal is None else list(scope.principal.tokens)


def _place(row: Sequence[Any]) -> SessionPlace:
    collection_id, collection, *values = row
    session = DocumentSession(**dict(zip(DocumentSession.__dataclass_fields__, values, strict=True)))
    seconds: object = session.ttl
    ttl = timedelta(seconds=seconds) if isinstance(seconds, float) else None
    return SessionPlace(replace(session, ttl=ttl), collection_id, collection)
