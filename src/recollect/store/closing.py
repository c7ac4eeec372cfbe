"""Closing versions, at once or when they expire, with what is attached to them: they stay for history alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, LiteralString

from recollect.errors import StoreError, StoreUnavailableError
from recollect.model import Scope
from recollect.store.database import Connection, Repository, rows
from recollect.store.prepared import Identity
from recollect.store.rights import access_params, met, require_changeable
from recollect.store.sql import queries

_SQL = queries("writer")


def moment_of_change(connection: Connection, scope: Scope, document_ids: Sequence[int]) -> datetime:
    """Now, or the latest moment known of these documents where a clock was set back."""
    params = {"tenant_id": scope.tenant_id, "document_ids": list(document_ids)}
    moment: datetime = rows(connection, _SQL["moment"], params)[0][0]
    return moment


def with_attached(connection: Connection, scope: Scope, document_ids: Sequence[int]) -> list[int]:
    """Documents with what is attached to them, which has the same fate."""
    params = {"tenant_id": scope.tenant_id, "document_ids": list(document_ids)}
    return sorted({*document_ids, *(row[0] for row in rows(connection, _SQL["attached"], params))})


def lock_with_attached(connection: Connection, scope: Scope, document_ids: Sequence[int]) -> list[int]:
    """Take the locks of `lock_documents` for documents and what is attached to them.

    Who may change a document may change what is attached to it.

    Returns:
        All of them: what is attached to a locked document stays so.
    """
    together = with_attached(connection, scope, document_ids)
    lock_documents(connection, scope, document_ids, beside=together)
    later = with_attached(connection, scope, document_ids)
    if later != together:  # stored between the two statements
        lock_documents(connection, scope, document_ids, beside=later)
    return later


def lock_documents(
    connection: Connection, scope: Scope, document_ids: Sequence[int], *, beside: Sequence[int] = ()
) -> None:
    """Take the locks of a change of documents in the order of every writer: their collections, then they by name.

    Args:
        connection: In the transaction of the change.
        scope: Who changes them.
        document_ids: Which.
        beside: More that are locked, whoever may change them.

    Raises:
        NotFoundError: The scope's principal may not read one of them.
        PermissionDeniedError: The principal may not change one of them.
    """
    params = {"tenant_id": scope.tenant_id, "document_ids": [*document_ids, *beside]}
    connection.execute(_SQL["hold_collections_of" if scope.principal is None else "hold_rights_of"], params)
    connection.execute(_SQL["lock_documents_by_id"], params)
    require_changeable(connection, scope, document_ids)


def close_documents(connection: Connection, scope: Scope, document_ids: Sequence[int]) -> list[tuple[int, int]]:
    """Lock documents, with what is attached to them, and close their current versions.

    Returns:
        (collection_id, chunk_count) of each closed one.
    """
    document_ids = lock_with_attached(connection, scope, document_ids)
    params = {"tenant_id": scope.tenant_id, "document_ids": list(document_ids)}
    version_ids = [row[0] for row in rows(connection, _SQL["current_version_ids"], params)]
    return close_versions(connection, scope, version_ids, moment_of_change(connection, scope, document_ids))


def close_versions(
    connection: Connection, scope: Scope, version_ids: list[int], now: datetime
) -> list[tuple[int, int]]:
    """Close versions of locked documents; returns (collection_id, chunk_count) of each."""
    if not version_ids:
        return []
    params = {"tenant_id": scope.tenant_id, "version_ids": version_ids, "now": now}
    keep_grants(connection, scope, version_ids)
    closed = rows(connection, _SQL["close_versions"], params)
    connection.execute(_SQL["close_vectors"], params)
    connection.execute(_SQL["close_lexical"], params)
    return [(row[0], row[1]) for row in closed]


def keep_grants(connection: Connection, scope: Scope, version_ids: list[int]) -> None:
    """Let versions that are about to be closed keep what they are granted; their chunks follow when they are closed."""
    params = {"tenant_id": scope.tenant_id, "version_ids": version_ids}
    connection.execute(_SQL["add_past_lists"], params)
    connection.execute(_SQL["keep_grants"], params)


def count_closed(connection: Connection, scope: Scope, closed: Sequence[tuple[int, int]]) -> None:
    """Take closed versions off the counters of their collections; the last statement of a change.

    Args:
        connection: In the transaction that closed them.
        scope: Whose they are.
        closed: (collection_id, chunk_count) of each.
    """
    documents = Counter(collection_id for collection_id, _ in closed)
    chunks: Counter[int] = Counter()
    for collection_id, chunk_count in closed:
        chunks[collection_id] += chunk_count
    for collection_id in sorted(documents):
        params: dict[str, Any] = {
            "tenant_id": scope.tenant_id,
            "collection_id": collection_id,
            "documents": -documents[collection_id],
            "chunks": -chunks[collection_id],
            "pending": chunks[collection_id],
            "next_expiry": None,
            "languages": [],
        }
        connection.execute(_SQL["count"], params)


# Documents that expire: their versions are closed at the moment that was set for them, whoever notices first.
#
# A version past its time leaves the indexes like a deleted one, so that searches of a collection without anything due
# cost what they cost without expiries. Where closing is not possible (a read-only database, a document that is being
# written), `recollect.store.filters` leaves the versions out instead.

_EXPIRY = queries("expiry")


_PAST = queries("past")


#: Versions that are closed in one transaction: a search does not wait for many more than it would wait for itself.
BATCH_VERSIONS = 500


_SET_LOCK_TIMEOUT = "SET LOCAL lock_timeout = '500ms'"


class ExpiryRepository(Repository):
    """Closes versions whose time has come."""

    def close_due(self, scope: Scope, collection_id: int) -> bool:
        """Close what is due in a collection, up to `BATCH_VERSIONS` versions; several processes may do it at once.

        Returns:
            Whether nothing that has expired is current any more. False: some is being written or there is too much for
            once, or the database takes no writes; then a search has to leave the expired out itself.
        """
        try:
            return self._close_batch(scope, collection_id)[1]
        except StoreUnavailableError:
            raise
        except StoreError:
            # A standby, a role without the right to write, or a lock that did not come in time.
            return False

    def close_all(self, scope: Scope, collection_id: int | None = None) -> int:
        """Close everything that is due.

        Args:
            scope: Whose documents.
            collection_id: Of one collection; None: of all.

        Returns:
            How many documents expired by this call. What another process is writing is left to it.
        """
        params = {"tenant_id": scope.tenant_id, "collection_id": collection_id}
        due = [row[0] for row in self._database.run(scope, _EXPIRY["due_collections"], params)]
        total = 0
        for place in due:
            closed, done = self._close_batch(scope, place)
            total += closed
            while closed and not done:
                closed, done = self._close_batch(scope, place)
                total += closed
        return total

    def set_lifetime(self, scope: Scope, document_id: int, lifetime: timedelta | None) -> bool:
        """Decide when a document's current version expires: so long from now; None: never.

        What is attached to it expires with it.

        Returns:
            Whether the document has a current version.
        """
        with self._database.transaction(scope) as connection:
            params: dict[str, Any] = {"tenant_id": scope.tenant_id}
            together = lock_with_attached(connection, scope, [document_id])
            current = {
                number: found[0]
                for number in together
                if (found := rows(connection, _EXPIRY["current_version"], {**params, "document_id": number}))
            }
            if document_id not in current:
                return False
            versions = [version_id for version_id, _ in current.values()]
            if lifetime is None:
                for version_id in versions:
                    connection.execute(_EXPIRY["keep"], {**params, "version_id": version_id})
                return True
            earliest = store_lifetimes(connection, scope, dict.fromkeys(versions, lifetime), since=None)
            lower_next_expiry(connection, scope, current[document_id][1], earliest)
            return True

    def _close_batch(self, scope: Scope, collection_id: int) -> tuple[int, bool]:
        """How many were closed, and whether nothing is left that is due."""
        params: dict[str, Any] = {
            "tenant_id": scope.tenant_id,
            "collection_id": collection_id,
            "limit": BATCH_VERSIONS,
        }
        with self._database.transaction(scope) as connection:
            connection.execute(_SET_LOCK_TIMEOUT)
            if not rows(connection, _EXPIRY["hold_collection"], params):
                return 0, True
            due = [row[0] for row in rows(connection, _EXPIRY["due"], params)]
            if due:
                keep_grants(connection, scope, due)
            closed = rows(connection, _EXPIRY["close_expired"], {**params, "version_ids": due}) if due else []
            if closed:
                own = {**params, "version_ids": [row[2] for row in closed]}
                connection.execute(_EXPIRY["close_vectors"], own)
                connection.execute(_EXPIRY["close_lexical"], own)
            # Statements of their own, after the lock: the last one's snapshot holds what the lock waited for.
            connection.execute(_EXPIRY["lock_state"], params)
            if closed:
                connection.execute(_PAST["widen"], own)
            count_closed(connection, scope, [(row[0], row[1]) for row in closed])
            settled = rows(connection, _EXPIRY["settle_next_expiry"], params)
        return len(closed), bool(settled and settled[0][0])


def store_lifetimes(
    connection: Connection, scope: Scope, lifetimes: Mapping[int, timedelta], *, since: datetime | None
) -> datetime | None:
    """Say of versions when they expire, in the transaction that stores them.

    Args:
        connection: In that transaction.
        scope: Whose versions.
        lifetimes: By version id; versions that are not named never expire.
        since: What the lifetimes are counted from; None: now.

    Returns:
        When the first of them expires; `collection_state.next_expiry` must not be later.
    """
    if not lifetimes:
        return None
    params = {
        "tenant_id": scope.tenant_id,
        "version_ids": list(lifetimes),
        "seconds": [lifetime.total_seconds() for lifetime in lifetimes.values()],
        "since": since,
    }
    earliest: datetime | None = rows(connection, _EXPIRY["set_expiry"], params)[0][0]
    return earliest


def lower_next_expiry(connection: Connection, scope: Scope, collection_id: int, earliest: datetime | None) -> None:
    """Let searches know of an expiry; the last statement of a change that counts nothing else."""
    if earliest is not None:
        params = {"tenant_id": scope.tenant_id, "collection_id": collection_id, "next_expiry": earliest}
        connection.execute(_EXPIRY["lower_next_expiry"], params)


# What hangs on what: documents that are attached to messages, and share their fate.


class AttachmentRepository(Repository):
    """Knows and decides what is attached to stored messages."""

    def hang(self, scope: Scope, attached: Mapping[int, Identity]) -> set[int]:
        """Hang documents, which were stored by themselves, on the messages of their source that they are attached to.

        From then on they are closed, erased, granted and tagged with the message. What hung on them hangs on it too.

        Args:
            scope: Whose.
            attached: By document, what identifies its message.

        Returns:
            Those of the documents whose message is not there: they stay as they are.

        Raises:
            PermissionDeniedError: The scope's principal may not change one of them.
        """
        if not attached:
            return set()
        params: dict[str, Any] = {"tenant_id": scope.tenant_id}
        with self._database.transaction(scope) as connection:
            messages = _messages(connection, scope, attached)
            pairs = outermost(messages)
            given = {**params, "document_ids": list(pairs), "messages": list(pairs.values())}
            loose = {row[0]: pairs[row[0]] for row in rows(connection, _SQL["to_hang"], given)}
            if loose:
                lock_with_attached(connection, scope, sorted({*loose, *loose.values()}))
                given = {**params, "document_ids": list(loose), "messages": list(loose.values())}
                connection.execute(_SQL["hang"], given)
        return set(attached) - set(messages)

    def current(self, scope: Scope, document_id: int) -> list[int]:
        """The current documents that are attached to a message."""
        params = {"tenant_id": scope.tenant_id, "document_ids": [document_id], "kept": []}
        return sorted(row[0] for row in self._database.run(scope, _SQL["attached_now"], params))

    def names_apart(self, scope: Scope, document_id: int) -> bool:
        """Whether something hangs on a document that was not read out of the document's own file."""
        params = {"tenant_id": scope.tenant_id, "document_id": document_id}
        return bool(self._database.run(scope, _SQL["named_apart"], params)[0][0])


def _messages(connection: Connection, scope: Scope, attached: Mapping[int, Identity]) -> dict[int, int]:
    found: dict[int, int] = {}
    own: LiteralString = "true" if scope.principal is None else met(scope)
    for is_given_id, same in ((False, _SQL["same_source"]), (True, _SQL["same_given_id"])):
        names = {number: one.name for number, one in attached.items() if one.is_given_id is is_given_id}
        if names:
            params = {
                "tenant_id": scope.tenant_id,
                "document_ids": list(names),
                "uris": list(names.values()),
                "given_ids": list(names.values()),
                **access_params(scope),
            }
            statement: LiteralString = f"{_SQL['messages']} AND {same} AND {own} {_SQL['latest_first']}"
            found |= dict(rows(connection, statement, params))
    return found


def hang_locked(
    connection: Connection, scope: Scope, messages: Mapping[int, int], document_ids: Sequence[int]
) -> dict[int, int]:
    """Hang locked documents on the messages that they are attached to, which are stored with them.

    Args:
        connection: In the transaction that has locked them.
        scope: Whose.
        messages: By document, the message that it is attached to.
        document_ids: Every document that is stored with all of its attachments, where it has any.

    Returns:
        What was attached to these before and is not any more, locked: its current versions by document.
    """
    params = {
        "tenant_id": scope.tenant_id,
        "document_ids": list(messages),
        "messages": list(messages.values()),
    }
    if messages:
        connection.execute(_SQL["attach"], params)
    params = {"tenant_id": scope.tenant_id, "document_ids": list(document_ids), "kept": list(messages)}
    left = [row[0] for row in rows(connection, _SQL["attached_now"], params)]
    if not left:
        return {}
    connection.execute(_SQL["lock_documents_by_id"], {"tenant_id": scope.tenant_id, "document_ids": left})
    return dict(rows(connection, _SQL["attached_now"], params))


def outermost(attached: Mapping[int, int]) -> dict[int, int]:
    """By document, the last that it hangs on where those that it hangs on hang on others; none of a circle.

    Args:
        attached: By document, what it hangs on.
    """
    found: dict[int, int | None] = {}
    for start in attached:
        path: dict[int, None] = {}
        at = start
        while at in attached and at not in found and at not in path:
            path[at] = None
            at = attached[at]
        end = None if at in path else found.get(at, at)
        found |= dict.fromkeys(path, end)
    return {document_id: end for document_id, end in found.items() if end is not None}
