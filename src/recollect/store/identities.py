"""What identifies a document within its root and among its owner's: its given id, or else its source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, LiteralString, NamedTuple

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
