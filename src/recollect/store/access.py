"""Who may read documents and collections: kept as few lists that many documents share.

Everyone takes locks in one order: documents by given id or URI, then lists by number, then the collection's counters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, LiteralString

from recollect.errors import NotFoundError, PermissionDeniedError
from recollect.model import Scope
from recollect.model.access import CollectionAccess, DocumentPermissions
from recollect.model.collection import Collection
from recollect.model.principal import EVERYONE, DefaultPermissions, Permissions, includes, read_permissions
from recollect.store.closing import lock_documents, lock_with_attached
from recollect.store.database import Connection, Repository, rows
from recollect.store.rights import access_params, may_read, met, owns_nothing, require_changeable
from recollect.store.sql import queries

_SQL = queries("access")

#: Neither grants nor denials.
NOTHING = Permissions(grants=())


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionChange:
    """What becomes of permissions.

    Attributes:
        add: Grants and denials that come to them.
        remove: Grants and denials that go.
        only: Whether the grants added are the only ones from now on; denials stay.
    """

    add: Permissions = NOTHING
    remove: Permissions = NOTHING
    only: bool = False

    def of(self, old: Permissions) -> Permissions:
        """The permissions after the change."""
        grants = set() if self.only else set(old.grants) - set(self.remove.grants)
        denials = set(old.denials) - set(self.remove.denials)
        return Permissions(
            grants=tuple(sorted(grants | set(self.add.grants))),
            denials=tuple(sorted(denials | set(self.add.denials))),
        )


class AccessRepository(Repository):
    """Reads and changes who may read what. Each change is a transaction, and counts from the next search on."""

    def of_collection(self, scope: Scope, collection: Collection) -> CollectionAccess:
        """Who may do what in a collection.

        Raises:
            NotFoundError: It was deleted meanwhile.
            PermissionDeniedError: The scope's principal does not own it.
        """
        with self._database.transaction(scope) as connection:
            if scope.principal is not None:
                self._hold(connection, scope, collection)
            return self._read(connection, scope, collection)

    @staticmethod
    def _read(connection: Connection, scope: Scope, collection: Collection) -> CollectionAccess:
        found = rows(connection, _SQL["of_collection"], _of(scope, collection))
        if not found:
            raise _deleted(collection)
        owners, readers, writers, grants, denials = map(tuple, found[0])
        return CollectionAccess(
            collection=collection.name,
            owners=owners,
            readers=readers,
            writers=writers,
            default=Permissions(grants=grants, denials=denials),
        )

    def set_collection(
        self,
        scope: Scope,
        collection: Collection,
        *,
        owners: Sequence[str] | None = None,
        readers: Sequence[str] | None = None,
        writers: Sequence[str] | None = None,
        check: Callable[[CollectionAccess], object] | None = None,
    ) -> None:
        """Say who owns, reads and writes a collection.

        Args:
            scope: Whose collection.
            collection: It.
            owners: Checked tokens; None: as they are.
            readers: Likewise.
            writers: Likewise.
            check: Told what was said before, which nobody changes until this has; what it raises changes nothing.

        Raises:
            NotFoundError: It was deleted meanwhile.
            PermissionDeniedError: The scope's principal does not own it.
        """
        params = _of(scope, collection)
        for name, tokens in (("owners", owners), ("readers", readers), ("writers", writers)):
            params[name] = None if tokens is None else sorted(set(tokens))
        with self._database.transaction(scope) as connection:
            self._hold(connection, scope, collection)
            if check is not None:
                check(self._read(connection, scope, collection))
            connection.execute(_SQL["set_collection"], params)
            connection.execute(_SQL["touch"], params)

    def close_unused(self, scope: Scope, collection: Collection, readers: Sequence[str]) -> None:
        """Have a collection exist for some alone, if nothing was ever stored there.

        Raises:
            NotFoundError: It was deleted meanwhile.
            PermissionDeniedError: The scope's principal does not own it.
        """
        params = {**_of(scope, collection), "readers": sorted(set(readers))}
        with self._database.transaction(scope) as connection:
            self._hold(connection, scope, collection)
            connection.execute(_SQL["close_unused"], params)
            connection.execute(_SQL["touch"], params)

    def change_default(self, scope: Scope, collection: Collection, change: PermissionChange) -> Permissions:
        """Change who may read the documents of a collection that have no permissions of their own.

        Raises:
            NotFoundError: It was deleted meanwhile.
            PermissionDeniedError: The scope's principal does not own it.
        """
        params = _of(scope, collection)
        with self._database.transaction(scope) as connection:
            self._hold(connection, scope, collection)
            found = rows(connection, _SQL["lock_default"], params)
            if not found:
                raise _deleted(collection)
            after = change.of(_permissions(*found[0]))
            connection.execute(_SQL["set_list"], {**params, "access_id": 0, **_values(after)})
            connection.execute(_SQL["touch"], params)
        return after

    def of_documents(self, scope: Scope, document_ids: Sequence[int]) -> list[DocumentPermissions]:
        """Who may read documents, by their id; those that do not exist are left out.

        Raises:
            NotFoundError: The scope's principal may not read one of them.
            PermissionDeniedError: The principal may not change one of them.
        """
        params = {"tenant_id": scope.tenant_id, "document_ids": list(document_ids)}
        with self._database.transaction(scope) as connection:
            require_changeable(connection, scope, document_ids)
            found = rows(connection, _SQL["of_documents"], params)
        return [
            DocumentPermissions(
                document_id=document_id,
                source=source,
                collection=collection,
                department=department,
                grants=tuple(grants),
                denials=tuple(denials),
                inherited=access_id == 0,
            )
            for document_id, source, collection, department, access_id, grants, denials in found
        ]

    def documents_of_source(self, scope: Scope, collection: Collection, name: str) -> list[int]:
        """Every document, current or closed, that came from a source of that name: a folder, a domain.

        With a principal, those that they may change.
        """
        params = {**_of(scope, collection), "name": name.replace("\0", "")}
        query: LiteralString = _SQL["documents_of_source"]
        if scope.principal is not None:
            query, params = (
                f"{query} AND {_SQL['may_change']} AND {may_read(scope)}",
                {**params, **access_params(scope)},
            )
        return sorted(row[0] for row in self._database.run(scope, query, params))

    def change(
        self, scope: Scope, document_ids: Sequence[int], change: PermissionChange, *, attached: bool = True
    ) -> int:
        """Change who may read documents, and what is attached to them; from whom one is withdrawn, its past is too.

        Past versions keep what they were granted, so a new reader does not get to them. A list that only these
        documents have is changed where it is, which costs the same for any number of them. Otherwise they move to
        another list, with every chunk.

        Args:
            scope: Whose documents.
            document_ids: Which.
            change: What becomes of their permissions.
            attached: Whether of what is attached to them too.

        Returns:
            How many documents have other permissions now.

        Raises:
            NotFoundError: The scope's principal may not read one of them.
            PermissionDeniedError: The principal may not change one of them.
        """
        changed = 0
        with self._database.transaction(scope) as connection:
            if attached:
                document_ids = lock_with_attached(connection, scope, document_ids)
            else:
                lock_documents(connection, scope, document_ids)
            params = {"tenant_id": scope.tenant_id, "document_ids": list(document_ids)}
            before = {
                (place, access_id): _permissions(grants, denials)
                for place, access_id, grants, denials in rows(connection, _SQL["lock_lists"], params)
            }
            places: set[int] = set()
            for place, access_id, members in rows(connection, _SQL["members"], params):
                old = before.get((place, access_id), NOTHING)
                new = change.of(old)
                if new != old:
                    _give(connection, scope, _Held(place, access_id, members), new)
                    places.add(place)
                    changed += len(members)
            for place in sorted(places):
                connection.execute(_SQL["touch"], {"tenant_id": scope.tenant_id, "collection_id": place})
        return changed

    def apply_default(
        self, scope: Scope, collection: Collection, source_ids: Sequence[int], default: DefaultPermissions
    ) -> int:
        """Give the documents of sources that have the configured default what it is now, and leave all others alone.

        Args:
            scope: Whose documents; of others than an ingest of its principal meets nothing is changed.
            collection: Where they are.
            source_ids: Their sources.
            default: As it is configured now.

        Returns:
            How many documents have other permissions now.
        """
        params = {
            "tenant_id": scope.tenant_id,
            "source_ids": list(source_ids),
            "everyone": default.rule == "everyone",
            **access_params(scope),
        }
        query: LiteralString = f"{_SQL['defaulted']} AND {met(scope)} {_SQL['by_list']}"
        groups = self._database.run(scope, query, params)
        changed = 0
        for department, access_id, document_ids in groups:
            given = {document_id: Given(None, department) for document_id in document_ids}
            with self._database.transaction(scope) as connection:
                lock_documents(connection, scope, document_ids)
                own = scope if owns_nothing(connection, scope, collection) else replace(scope, principal=None)
                assigned = assign_lists(connection, own, collection, given, default=default)
                moved = sum(number != access_id for number in assigned.values())
                if moved:
                    connection.execute(_SQL["touch"], _of(scope, collection))
            changed += moved
        return changed

    @staticmethod
    def _hold(connection: Connection, scope: Scope, collection: Collection) -> None:
        tokens = None if scope.principal is None else list(scope.principal.tokens)
        held = rows(connection, _SQL["hold_collection"], {**_of(scope, collection), "tokens": tokens})
        if not held:
            raise _deleted(collection)
        if not held[0][0]:
            raise PermissionDeniedError(
                f"Only the owners of the collection {collection.name!r} know and say who may do what in it: ask one of "
                "them."
            )


def assign_lists(
    connection: Connection,
    scope: Scope,
    collection: Collection,
    given: Mapping[int, Given],
    *,
    default: DefaultPermissions,
) -> dict[int, int]:
    """The access lists of documents that are stored anew, in the transaction that stores and has locked them.

    Args:
        connection: In that transaction.
        scope: Whose documents; its principal, where there is one, owns them and may read what they store.
        collection: Where they are.
        given: By document id, what it is given.
        default: What is given where nobody has given anything.

    Returns:
        The number of its list by document id.

    Raises:
        PermissionDeniedError: A denial would keep the principal from what they store.
    """
    params = {"tenant_id": scope.tenant_id, "document_ids": list(given)}
    found = rows(connection, _SQL["lists_of_documents"], params)
    known = {0: NOTHING} if default.rule == "everyone" else {0: _default_of(connection, scope, collection)}
    assigned: dict[int, int] = {}
    stored: set[int] = set()
    moving: dict[tuple[Permissions, bool], list[int]] = {}
    for document_id, access_id, grants, denials, by_default, is_stored in found:
        assigned[document_id] = access_id
        if is_stored:
            stored.add(document_id)
        one, old = given[document_id], _permissions(grants or (), denials or ())
        untouched = one.permissions is None and (by_default or access_id == 0)
        wanted = default.of(one.department) if untouched and not collection.hidden else None
        if one.permissions is not None:
            new, own = _told(read_permissions(one.permissions), old), False
        elif wanted is not None:
            new, own = _told(wanted, known[0], replacing=True), True
        elif by_default:  # it is the collection's default again
            new, own = _default_of(connection, scope, collection), False
        else:
            new, own = old, by_default
        readable = _readable_by(scope, new)
        plain = readable == new and one.permissions is None and wanted is None
        if plain and by_default:
            assigned[document_id] = 0
            _move(connection, scope, [document_id], 0)
        elif readable != old or own != by_default or (access_id == 0 and not plain):
            moving.setdefault((readable, own), []).append(document_id)
    for (permissions, own), document_ids in moving.items():
        access_id = _list_of(connection, scope, collection.collection_id, permissions, by_default=own)
        if moved := [document_id for document_id in document_ids if document_id in stored]:
            _move(connection, scope, moved, access_id)
        assigned.update(dict.fromkeys(document_ids, access_id))
    _place(connection, scope, {number: access_id for number, access_id in assigned.items() if number not in stored})
    return assigned


def share_lists(connection: Connection, scope: Scope, sharing: Mapping[int, int]) -> dict[int, int]:
    """Give documents that are stored for the first time the lists of others, in the transaction that has locked both.

    Args:
        connection: In that transaction.
        scope: Whose documents.
        sharing: By document id, whose list it gets.

    Returns:
        The number of its list by document id.
    """
    if not sharing:
        return {}
    params = {"tenant_id": scope.tenant_id, "document_ids": sorted(set(sharing.values()))}
    lists = {row[0]: row[1] for row in rows(connection, _SQL["lists_of_documents"], params)}
    assigned = {document_id: lists[other] for document_id, other in sharing.items()}
    _place(connection, scope, assigned)
    return assigned


def _default_of(connection: Connection, scope: Scope, collection: Collection) -> Permissions:
    found = rows(connection, _SQL["default_list"], _of(scope, collection))
    return _permissions(*found[0]) if found else NOTHING


def _told(told: Permissions, old: Permissions, *, replacing: bool = False) -> Permissions:
    # Who was shut out by hand stays out, whatever a new file says.
    if not told.grants and EVERYONE in told.denials:  # nobody is granted anything, which is no denial
        told, replacing = replace(told, denials=tuple(one for one in told.denials if one != EVERYONE)), True
    denials = tuple(sorted({*told.denials, *old.denials}))
    return Permissions(grants=told.grants if replacing else told.grants or old.grants, denials=denials)


def _readable_by(scope: Scope, permissions: Permissions) -> Permissions:
    """Permissions that include whoever stores the document: otherwise it would not be theirs to replace."""
    writer = scope.principal
    if writer is None:
        return permissions
    if not set(writer.tokens).isdisjoint(permissions.denials):
        raise PermissionDeniedError(
            "You could not read what you store: a denial keeps you from it, of the collection or among those given."
        )
    if includes(permissions.grants, [*writer.tokens, *scope.reads_as]):
        return permissions
    return replace(permissions, grants=tuple(sorted({*permissions.grants, f"user:{writer.user_id}"})))


@dataclass(frozen=True, slots=True)
class Given:
    """What decides who may read a document that is stored anew.

    Attributes:
        permissions: What it is given (`recollect.model.Document.permissions`); None: what it has, or the default.
        department: Its department.
    """

    permissions: Sequence[str] | None
    department: str | None


@dataclass(frozen=True, slots=True)
class _Held:
    """Locked documents that have one list."""

    collection_id: int
    access_id: int
    document_ids: Sequence[int]


def _give(connection: Connection, scope: Scope, held: _Held, permissions: Permissions) -> None:
    params: dict[str, Any] = {
        "tenant_id": scope.tenant_id,
        "collection_id": held.collection_id,
        "access_id": held.access_id,
        "document_ids": list(held.document_ids),
    }
    shared = held.access_id == 0 or bool(rows(connection, _SQL["has_others"], params)[0][0])
    if not shared:
        connection.execute(_SQL["set_list"], {**params, **_values(permissions)})
        return
    access_id = _list_of(connection, scope, held.collection_id, permissions)
    _move(connection, scope, held.document_ids, access_id)
    connection.execute(_SQL["drop_unused"], params)


def _list_of(
    connection: Connection, scope: Scope, collection_id: int, permissions: Permissions, *, by_default: bool = False
) -> int:
    params = {
        "tenant_id": scope.tenant_id,
        "collection_id": collection_id,
        "by_default": by_default,
        **_values(permissions),
    }
    found = rows(connection, _SQL["find_list"], params) or rows(connection, _SQL["make_list"], params)
    return int(found[0][0])


def _move(connection: Connection, scope: Scope, document_ids: Sequence[int], access_id: int) -> None:
    params = {"tenant_id": scope.tenant_id, "document_ids": list(document_ids), "access_id": access_id}
    for statement in ("move_documents", "move_current", "add_past", "move_past", "move_vectors", "move_lexical"):
        connection.execute(_SQL[statement], params)


def _place(connection: Connection, scope: Scope, lists: Mapping[int, int]) -> None:
    """Give documents without versions their lists, all in one statement: there is nothing else to move."""
    if lists:
        params = {"tenant_id": scope.tenant_id, "document_ids": list(lists), "access_ids": list(lists.values())}
        connection.execute(_SQL["place_documents"], params)


def _permissions(grants: Sequence[str], denials: Sequence[str]) -> Permissions:
    return Permissions(grants=tuple(grants), denials=tuple(denials))


def _values(permissions: Permissions) -> dict[str, list[str]]:
    return {"grants": list(permissions.grants), "denials": list(permissions.denials)}


def _of(scope: Scope, collection: Collection) -> dict[str, Any]:
    return {"tenant_id": scope.tenant_id, "collection_id": collection.collection_id}


def _deleted(collection: Collection) -> NotFoundError:
    return NotFoundError(f"The collection {collection.name!r} was deleted meanwhile.")
