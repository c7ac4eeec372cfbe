"""Names of documents whose path other roots (folders, uploads, given sources) have too: ``docs/README.md``."""

from __future__ import annotations

from collections.abc import Collection as Several
from collections.abc import Iterable, Sequence
from typing import LiteralString

from recollect.model import Scope
from recollect.model.collection import Collection
from recollect.store.database import Database, rows
from recollect.store.rights import access_params, may_read_version
from recollect.store.sql import queries

_SQL = queries("documents")


def names_with_roots(database: Database, scope: Scope, collection: Collection, uris: Sequence[str]) -> dict[int, str]:
    """Return the names, by id, of documents whose URI documents of several roots have that the scope may read."""
    params = {
        "tenant_id": scope.tenant_id,
        "collection_id": collection.collection_id,
        "uris": list(uris),
        "as_of": scope.as_of,
        **access_params(scope),
    }
    known = _SQL["known_now"] if scope.as_of is None else _SQL["known_as_of"]
    query: LiteralString = f"{_SQL['roots']} AND {known} AND {may_read_version(scope)}"
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
