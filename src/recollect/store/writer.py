"""Writing documents: a batch of them in one transaction, each whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, LiteralString

from recollect.errors import NotFoundError, PermissionDeniedError, QuotaExceededError, VersionChangedError
from recollect.model import IngestResult, Scope
from recollect.model.collection import Collection
from recollect.model.document import ExpiryPolicy
from recollect.model.once import is_own_work
from recollect.model.original import Original
from recollect.model.principal import DefaultPermissions
from recollect.store.access import Given, assign_lists, share_lists
from recollect.store.batch_copy import NewVersion, copy_all
from recollect.store.closing import (
    close_documents,
    close_versions,
    count_closed,
    hang_locked,
    lock_documents,
    lower_next_expiry,
    moment_of_change,
    store_lifetimes,
)
from recollect.store.database import Connection, Database, rows
from recollect.store.document_sessions import Room, hold_session, make_room, require_room
from recollect.store.documents import Source
from recollect.store.embedding_cache import keep_embeddings
from recollect.store.files import keep_originals
from recollect.store.prepared import (
    Identity,
    PreparedDocument,
    among,
    by_identity,
    by_kind,
    identity_of,
    identity_params,
    source_of,
)
from recollect.store.rights import access_params, met, not_a_writer
from recollect.store.search import Floats
from recollect.store.spaces import require_same_space
from recollect.store.sql import queries

_SQL = queries("writer")


@dataclass(frozen=True, slots=True)
class _Latest:
    version_id: int
    version: int
    current: bool
    content_hash: bytes
    fingerprint: str
    chunk_count: int
    file_hash: bytes | None
    expired: bool
    known_from: datetime
    uri: str
    given_id: str | None


@dataclass(frozen=True, slots=True)
class _Locked:
    """Documents that are stored together, locked.

    Attributes:
        items: By number.
        messages: By the number of what is attached, the message that it hangs on.
        left: Current versions, by document, of what is not attached any more.
        renamed: Those whose source is another than before.
    """

    items: Mapping[int, PreparedDocument]
    messages: Mapping[int, int]
    left: Mapping[int, int]
    renamed: Set[int] = frozenset()


class _ErasedMeanwhileError(Exception):
    """A document was erased between the statement that found it and the one that locked it."""


class DocumentWriter:
    """Stores and closes documents; `recollect.store.erasure` erases them.

    Args:
        database: The store's connections.
        expiry: When what is stored expires; None: when a document itself says so.
        default_permissions: Who may read what is given no permissions.
    """

    def __init__(
        self,
        database: Database,
        *,
        expiry: ExpiryPolicy | None = None,
        default_permissions: DefaultPermissions | None = None,
    ) -> None:
        self._database = database
        self.default_permissions = default_permissions or DefaultPermissions()
        self._expiry = expiry or ExpiryPolicy()

    def write(
        self,
        scope: Scope,
        collection: Collection,
        source: Source,
        batch: Sequence[PreparedDocument],
        *,
        force: bool = False,
    ) -> list[IngestResult]:
        """Store a batch in one transaction: after it all of its documents can be found, or none.

        A document whose current version has the same content and fingerprint is left alone (another process may
        have stored it meanwhile), unless ``force``. Otherwise the current version is closed and a new one begins.
        What is attached to a document is stored with it, and what was attached before and is not any more is closed.
        The identities of a batch must differ. What a principal does not meet of others stays beside it (`rights.met`).

        Returns:
            What became of each document, in the order of ``batch``.

        Raises:
            NotFoundError: The collection was deleted meanwhile, or its session ended.
            ModelChangedError: It has another embedding model than the one that the batch was embedded with.
            PermissionDeniedError: The scope's principal may not write there.
            QuotaExceededError: The tenant would have more than it may.
            SessionExpiredError: The collection is a session's whose time is over.
            SessionFullError: The session has no room for all of them, and is configured to refuse them.
        """
        while batch:
            try:
                return self._write_once(scope, collection, source, batch, force=force)
            except _ErasedMeanwhileError:
                continue
            except QuotaExceededError as exc:
                if scope.principal is None:
                    raise
                # How much the tenant has is made of what they may not read too.
                raise PermissionDeniedError("There is no room left: ask whoever looks after the store.") from exc
        return []

    def _write_once(
        self,
        scope: Scope,
        collection: Collection,
        source: Source,
        batch: Sequence[PreparedDocument],
        *,
        force: bool,
    ) -> list[IngestResult]:
        with self._database.transaction(scope) as connection:
            room, writer = self._hold(connection, scope, collection)
            whole = [one for item in batch for one in (item, *item.attached)]
            ids = self._lock(connection, writer, collection, source, whole)
            messages = {ids[identity_of(one)]: ids[identity_of(item)] for item in batch for one in item.attached}
            tops = [ids[identity_of(item)] for item in batch if not item.keeps_attached]
            left = hang_locked(connection, scope, messages, tops)
            items = {ids[identity_of(item)]: item for item in whole}
            locked = _Locked(items, messages, left, _rename(connection, scope, items))
            results = self._store(connection, writer, collection, locked, room=room, force=force)
        return [results[ids[identity_of(item)]] for item in batch]

    def _store(
        self,
        connection: Connection,
        scope: Scope,
        collection: Collection,
        locked: _Locked,
        *,
        room: Room | None,
        force: bool,
    ) -> dict[int, IngestResult]:
        """Store what has changed of locked documents, and close what is not attached any more."""
        latest = self._latest(connection, scope, list(locked.items))
        written: dict[int, IngestResult] = {}
        fresh: list[tuple[PreparedDocument, int, int]] = []
        originals: list[tuple[int, Original]] = []
        for document_id, item in locked.items.items():
            old = latest.get(document_id)
            same = old is not None and _same(old, item) and document_id not in locked.renamed
            if old and same and not (force and not is_own_work(old.known_from)):
                self._restamp(connection, scope, collection, old, item)
                originals += _originals({old.version_id: item})
                written[document_id] = IngestResult(document_id, old.version, "unchanged", old.chunk_count)
                continue
            version = old.version + 1 if old else 1
            status: Literal["added", "updated"] = "updated" if old and old.current else "added"
            fresh.append((item, document_id, version))
            written[document_id] = IngestResult(document_id, version, status, len(item.chunks))
        if fresh:
            closing = [latest[d].version_id for _, d, _ in fresh if d in latest and latest[d].current]
            closing += locked.left.values()
            new = {document_id: of for document_id, of in locked.messages.items() if document_id not in latest}
            require_room(connection, scope, collection.collection_id, room, [number for _, number, _ in fresh])
            self._replace(connection, scope, collection, fresh, closing, room=room, originals=originals, sharing=new)
        else:
            now = moment_of_change(connection, scope, list(locked.left))
            count_closed(connection, scope, close_versions(connection, scope, list(locked.left.values()), now))
            if originals:
                keep_originals(connection, scope, originals)
                connection.execute(_SQL["require_quota"], {"tenant_id": scope.tenant_id})
        return written

    def rewrite(
        self,
        scope: Scope,
        collection: Collection,
        document_id: int,
        item: PreparedDocument,
        *,
        force: bool = False,
        if_version: int | None = None,
        read_alike: bool = False,
    ) -> IngestResult:
        """Store a new version of a document that there is, whoever stored it and under whatever source.

        Args:
            scope: Whose.
            collection: Where it is.
            document_id: Which.
            item: What it says from now on.
            force: Even if nothing is different.
            if_version: Only while this version is current; None: whichever is.
            read_alike: It is of the same file or text as the version before, whose next ingest finds it unchanged.

        Raises:
            NotFoundError: The document, or its collection, is gone.
            VersionChangedError: Another version than ``if_version`` is current, or none.
            ModelChangedError: The collection has another embedding model than the one that it was embedded with.
            PermissionDeniedError: The scope's principal may not change it.
            QuotaExceededError: The tenant would have more than it may.
        """
        with self._database.transaction(scope) as connection:
            lock_documents(connection, scope, [document_id])
            place = {"tenant_id": scope.tenant_id, "collection_id": collection.collection_id}
            for _, _, space_id in rows(connection, _SQL["hold_collection"], place):
                require_same_space(collection, space_id)
            old = self._latest(connection, scope, [document_id]).get(document_id)
            if old is None:
                raise NotFoundError(f"The document {document_id} was erased meanwhile.")
            _require_version(document_id, old, if_version)
            if _same(old, item) and not (force and not is_own_work(old.known_from)):
                return IngestResult(document_id, old.version, "unchanged", old.chunk_count)
            item = replace(item, document=replace(item.document, source=old.uri, id=old.given_id))
            if read_alike:
                document = replace(item.document, file_hash=old.file_hash)
                item = replace(item, document=document, fingerprint=old.fingerprint)
            fresh = [(item, document_id, old.version + 1)]
            closing = [old.version_id] if old.current else []
            self._replace(connection, scope, collection, fresh, closing, room=None, originals=[])
        return IngestResult(document_id, old.version + 1, "updated" if old.current else "added", len(item.chunks))

    def rewrite_whole(
        self, scope: Scope, collection: Collection, document_id: int, item: PreparedDocument, *, force: bool = False
    ) -> IngestResult:
        """Store a message that there is, with what is attached to it, whoever stored it and under whatever source.

        What is attached belongs to the message's source and owner, and hangs on what the message hangs on, if that is
        attached itself.

        Args:
            scope: Whose.
            collection: Where it is.
            document_id: Which.
            item: What it says from now on.
            force: Even if nothing is different.

        Raises:
            NotFoundError: The message, or its collection, is gone.
            ModelChangedError: The collection has another embedding model than the one that it was embedded with.
            PermissionDeniedError: The scope's principal may not change it.
            QuotaExceededError: The tenant would have more than it may.
        """
        params: dict[str, Any] = {
            "tenant_id": scope.tenant_id,
            "document_id": document_id,
            **identity_params(item.attached),
        }
        named: LiteralString = f"{_SQL['below']} AND {among(item.attached)}"
        while True:
            with self._database.transaction(scope) as connection:
                place = {"tenant_id": scope.tenant_id, "collection_id": collection.collection_id}
                held = rows(connection, _SQL["hold_collection"], place)
                for _, _, space_id in held:
                    require_same_space(collection, space_id)
                room = hold_session(connection, scope, collection) if held and held[0][1] else None
                connection.execute(_SQL["ensure_below"], params)
                below = list(by_identity(rows(connection, named, params)).values())
                lock_documents(connection, scope, [document_id], beside=below)
                found = rows(connection, _SQL["outermost"], params)
                if not found:
                    raise NotFoundError(f"The document {document_id} was erased meanwhile.")
                ids = by_identity(rows(connection, named, params))
                if len(ids) < len(item.attached):
                    continue  # erased between the statement that made it and the one that locked it
                outer: int = found[0][0]
                messages = dict.fromkeys(ids.values(), outer)
                left = hang_locked(connection, scope, messages, [document_id] if outer == document_id else [])
                items = {document_id: item} | {ids[identity_of(one)]: one for one in item.attached}
                locked = _Locked(items, messages, left, _rename(connection, scope, items))
                return self._store(connection, scope, collection, locked, room=room, force=force)[document_id]

    def close(self, scope: Scope, document_ids: Sequence[int], *, if_version: int | None = None) -> int:
        """Close the current versions of documents: they leave every search of the present, but stay for history.

        Args:
            scope: Whose.
            document_ids: Which.
            if_version: Only while this version of each is current; None: whichever is.

        Returns:
            How many documents were current and are not any more.

        Raises:
            VersionChangedError: Of one of them another version is current, or none; then none is closed.
        """
        with self._database.transaction(scope) as connection:
            if if_version is not None:
                lock_documents(connection, scope, document_ids)
                latest = self._latest(connection, scope, list(document_ids))
                for document_id in document_ids:
                    _require_version(document_id, latest.get(document_id), if_version)
            closed = close_documents(connection, scope, document_ids)
            count_closed(connection, scope, closed)
        return len(closed)

    def settle(self, scope: Scope) -> None:  # noqa: ARG002 - the list holds the words of every tenant
        """Let searches find new words as fast as old ones; called once after many writes."""
        with self._database.autocommit() as connection:
            connection.execute(_SQL["settle"])

    @staticmethod
    def _hold(connection: Connection, scope: Scope, collection: Collection) -> tuple[Room | None, Scope]:
        """Keep the collection, and who may write there, until the end of the transaction.

        Returns:
            Of a session's, how much it has room for. And the scope that documents are stored in: without a principal
            for owners of the collection, because what they store is the collection's.
        """
        params = {"tenant_id": scope.tenant_id, "collection_id": collection.collection_id, **access_params(scope)}
        held = rows(connection, _SQL["hold_collection" if scope.principal is None else "hold_as_writer"], params)
        if not held:
            raise NotFoundError(f"The collection {collection.name!r} was deleted meanwhile: the rest was not stored.")
        _, hidden, space_id, *rights = held[0]
        require_same_space(collection, space_id)
        room = hold_session(connection, scope, collection) if hidden else None
        if scope.principal is None:
            return room, scope
        owns, writes = rights
        if not writes:
            raise not_a_writer(collection.name)
        if owns:
            return room, replace(scope, principal=None)
        if scope.principal.user_id is None:
            raise PermissionDeniedError("Documents belong to users: name the user (--as USER, Principal(user_id=…)).")
        return room, scope

    @staticmethod
    def _lock(
        connection: Connection,
        scope: Scope,
        collection: Collection,
        source: Source,
        items: Sequence[PreparedDocument],
    ) -> dict[Identity, int]:
        place = {
            "tenant_id": scope.tenant_id,
            "collection_id": collection.collection_id,
            "source_id": source.source_id,
            **access_params(scope),
        }
        params = place | identity_params(items)
        meant: LiteralString = _SQL["exactly"] if scope.principal is None else met(scope)
        lock: LiteralString = f"{_SQL['lock_documents']} AND {among(items)} AND {meant} {_SQL['in_order']}"
        if scope.principal is None:
            connection.execute(_SQL["ensure_documents"], params)
        else:
            for kind in by_kind(items):
                same = _SQL["same_source" if kind[0].document.id is None else "same_given_id"]
                own: LiteralString = f"{_SQL['ensure_own']} {same} {_SQL['ensure_own_end']}"
                connection.execute(own, place | identity_params(kind))
        ids = by_identity(rows(connection, lock, params))
        if scope.principal is not None:
            # Once more, with the snapshot of after the lock: what it waited for may have been a withdrawal.
            ids = by_identity(rows(connection, lock, params))
        if len(ids) < len(items):
            # Begun anew rather than repeated here: locks taken out of order could block two writers for good.
            raise _ErasedMeanwhileError
        return ids

    @staticmethod
    def _latest(connection: Connection, scope: Scope, document_ids: list[int]) -> dict[int, _Latest]:
        # A statement of its own, after the lock: its snapshot holds what the lock waited for.
        params = {"tenant_id": scope.tenant_id, "document_ids": document_ids}
        return {row[0]: _Latest(*row[1:]) for row in rows(connection, _SQL["latest_versions"], params)}

    def _restamp(
        self, connection: Connection, scope: Scope, collection: Collection, old: _Latest, item: PreparedDocument
    ) -> None:
        """Note what an unchanged document says of itself: other bytes, and that its time begins anew."""
        if item.document.file_hash is not None and item.document.file_hash != old.file_hash:
            params = {
                "tenant_id": scope.tenant_id,
                "version_id": old.version_id,
                "file_hash": item.document.file_hash,
            }
            connection.execute(_SQL["restamp"], params)
        lifetime = None if item.document.ttl is None else self._expiry.lifetime(item.document)
        if lifetime is not None:
            earliest = store_lifetimes(connection, scope, {old.version_id: lifetime}, since=None)
            lower_next_expiry(connection, scope, collection.collection_id, earliest)

    def _replace(
        self,
        connection: Connection,
        scope: Scope,
        collection: Collection,
        fresh: Sequence[tuple[PreparedDocument, int, int]],
        closing: list[int],
        *,
        room: Room | None,
        originals: Sequence[tuple[int, Original]],
        sharing: Mapping[int, int] | None = None,
    ) -> None:
        chunk_total = sum(len(item.chunks) for item, _, _ in fresh)
        allocation = {"versions": len(fresh), "chunks": chunk_total}
        now = moment_of_change(connection, scope, [document_id for _, document_id, _ in fresh])
        version_ids, chunk_ids = rows(connection, _SQL["allocate"], allocation)[0]
        closed = close_versions(connection, scope, closing, now)
        access_ids = assign_lists(
            connection,
            scope,
            collection,
            {
                document_id: Given(item.document.permissions, item.document.department)
                for item, document_id, _ in fresh
                if document_id not in (sharing or {})
            },
            default=self.default_permissions,
        )
        access_ids |= share_lists(connection, scope, sharing or {})
        numbers = iter(chunk_ids)
        versions = [
            NewVersion(
                item,
                document_id,
                version_id,
                version,
                [next(numbers) for _ in item.chunks],
                access_ids[document_id],
            )
            for (item, document_id, version), version_id in zip(fresh, version_ids, strict=True)
        ]
        copy_all(connection, scope, collection, versions, now)
        lifetimes = {new.version_id: self._expiry.lifetime(new.prepared.document) for new in versions}
        expiring = {version_id: lifetime for version_id, lifetime in lifetimes.items() if lifetime is not None}
        own = _originals({new.version_id: new.prepared for new in versions})
        keep_originals(connection, scope, [*originals, *own])
        keep_embeddings(connection, scope, collection.embedding_model, _cacheable(fresh))
        gone = make_room(connection, scope, collection.collection_id, room)
        left_chunks = sum(chunk_count for _, chunk_count in closed) + sum(gone)
        params: dict[str, Any] = {
            "tenant_id": scope.tenant_id,
            "collection_id": collection.collection_id,
            "documents": len(fresh) - len(closed) - len(gone),
            "chunks": chunk_total - left_chunks,
            "pending": chunk_total + left_chunks,
            "next_expiry": store_lifetimes(connection, scope, expiring, since=now),
            "languages": sorted({code for item, _, _ in fresh for code in item.analysed_as or ()}),
        }
        connection.execute(_SQL["count"], params)
        connection.execute(_SQL["require_quota"], params)


def _originals(versions: Mapping[int, PreparedDocument]) -> list[tuple[int, Original]]:
    kept = {version_id: item.document.original for version_id, item in versions.items()}
    return [(version_id, original) for version_id, original in kept.items() if original is not None]


def _cacheable(fresh: Sequence[tuple[PreparedDocument, int, int]]) -> dict[bytes, Floats]:
    return {
        key: vector
        for item, _, _ in fresh
        if item.cacheable is not None
        for key, vector in zip(item.embedding_keys, item.cacheable, strict=True)
    }


def _rename(connection: Connection, scope: Scope, items: Mapping[int, PreparedDocument]) -> Set[int]:
    """Give locked documents with ids, and their versions, the sources that they have from now on; returns which."""
    sources = {number: source_of(item) for number, item in items.items() if item.document.id is not None}
    if not sources:
        return frozenset()
    params = {"tenant_id": scope.tenant_id, "document_ids": list(sources), "uris": list(sources.values())}
    return {row[0] for row in rows(connection, _SQL["rename"], params)}


def _require_version(document_id: int, latest: _Latest | None, wanted: int | None) -> None:
    if wanted is None or (latest is not None and latest.current and latest.version == wanted):
        return
    now = f"at version {latest.version}" if latest is not None and latest.current else "deleted"
    raise VersionChangedError(f"The document {document_id} is {now} by now, not at version {wanted}: read it again.")


def _same(old: _Latest, item: PreparedDocument) -> bool:
    return (
        old.current
        and not old.expired
        and old.fingerprint == item.fingerprint
        and old.content_hash == item.document.content_hash
    )
