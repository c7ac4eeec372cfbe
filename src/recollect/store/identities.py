"""What identifies a document within its root and among its owner's: its given id, or else its source."""

from __future__ import annotations

from collections.abc import Collection as Several
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, LiteralString, NamedTuple

from recollect.model import Scope
from recollect.model.collection import Collection
from recollect.store.database import Database, rows
from recollect.store.rights import access_params, may_read_version
from recollect.store.sql import queries

if TYPE_CHECKING:
    from recollect.store.prepared import PreparedDocument


_SQL = queries("writer")


class Identity(NamedTuple):
    """A given id, or the source of a document without one: the same text may be both, of two documents."""

    name: str
    is_given_id: bool = False


def identity_of(item: PreparedDocument) -> Identity:
    """The identity of a document that is about to be stored."""
    given_id = item.document.id
    return Identity(source_of(item)) if given_id is None else Identity(given_id, is_given_id=True)


def source_of(item: PreparedDocument) -> str:
    """The source of a document that is about to be stored."""
    if item.document.source is None:
        raise ValueError("A prepared document has a source.")
    return item.document.source


def by_identity(found_rows: Iterable[Sequence[Any]]) -> dict[Identity, int]:
    """Documents by identity, from rows of (name, is_given_id, document_id); of several, the latest."""
    found: dict[Identity, int] = {}
    for name, is_given_id, document_id in found_rows:
        identity = Identity(name, is_given_id)
        found[identity] = max(document_id, found.get(identity, 0))
    return found


def identity_params(items: Sequence[PreparedDocument]) -> dict[str, Any]:
    """The parameters of statements that store or find documents by their identities, one of each kind a document."""
    return {
        "uris": [source_of(item) for item in items],
        "given_ids": [item.document.id for item in items],
        "owners": [item.owner for item in items],
        "twins": [item.twin for item in items],
    }


def among(items: Sequence[PreparedDocument]) -> LiteralString:
    """The condition that a document ``d`` has one of the identities; its parameters are `identity_params`.

    Only the kinds that occur are named: each is found by an index of its own.
    """
    kinds = {item.document.id is not None for item in items}
    if kinds == {True, False}:
        return f"({_SQL['among_sources']} OR {_SQL['among_given_ids']})"
    return _SQL["among_given_ids" if True in kinds else "among_sources"]


def by_kind(items: Sequence[PreparedDocument]) -> list[Sequence[PreparedDocument]]:
    """The documents without a given id, and those with one, as far as there are any: in the order of every writer."""
    kinds = [[item for item in items if (item.document.id is not None) is given] for given in (False, True)]
    return [kind for kind in kinds if kind]


# Names of documents whose path other roots (folders, uploads, given sources) have too: `docs/README.md`.


_ROOTS = queries("documents")


def names_with_roots(database: Database, scope: Scope, collection: Collection, uris: Sequence[str]) -> dict[int, str]:
    """Return the names, by id, of documents whose URI documents of several roots have that the scope may read."""
    params = {
        "tenant_id": scope.tenant_id,
        "collection_id": collection.collection_id,
        "uris": list(uris),
        "as_of": scope.as_of,
        **access_params(scope),
    }
    known = _ROOTS["known_now"] if scope.as_of is None else _ROOTS["known_as_of"]
    query: LiteralString = f"{_ROOTS['roots']} AND {known} AND {may_read_version(scope)}"
    with database.single_reads(scope) as connection:
        found = rows(connection, query, params)
    labels = {uri: told_apart({root for _, other, root in found if other == uri}) for _, uri, _ in found}
    return {number: f"{labels[uri][root]}/{uri}" for number, uri, root in found if len(labels[uri]) > 1}


def told_apart(roots: Several[str]) -> dict[str, str]:
    """Return for each root the last parts of its name that no other one ends with, by the root's name."""
    parts = {root: root.strip("/").split("/") for root in roots}
    told: dict[str, str] = {}
    for root, own in parts.items():
        others = [other for name, other in parts.items() if name != root]
        enough = (n for n in range(1, len(own)) if all(other[-n:] != own[-n:] for other in others))
        told[root] = "/".join(own[-next(enough, len(own)) :])
    return told


def ends(names: Iterable[str]) -> list[str]:
    """Return what may be the path within a root, of names that may begin with the root's."""
    split = [name.split("/") for name in names]
    return list(dict.fromkeys("/".join(parts[n:]) for parts in split for n in range(1, len(parts))))
