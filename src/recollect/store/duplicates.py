"""Documents that say the same, or nearly so, wherever they came from."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, LiteralString

from recollect.errors import NotFoundError
from recollect.model.duplicates import Duplicates, SameDocument
from recollect.store.database import Database, rows
from recollect.store.rights import access_params, may_read_version
from recollect.store.sql import queries

if TYPE_CHECKING:
    from recollect.model import Scope

_SQL = queries("duplicates")
_DOCUMENTS = queries("documents")

#: Documents that are named of each kind, at most.
MOST_NAMED = 50
# Texts that are compared word by word.
_MOST_COMPARED = 20


class DuplicateRepository:
    """Finds documents by what they say. What the scope's principal may not read is not there, in every statement.

    Args:
        database: The store's connections.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def of_document(
        self, scope: Scope, document_id: int, *, likeness: Callable[[str, str], float], threshold: float
    ) -> Duplicates:
        """The documents of the scope's tenant that say what a document says, or nearly that.

        Args:
            scope: Whose, who and when.
            document_id: Of the document.
            likeness: Compares two texts, from 0 to 1.
            threshold: Of what is nearly the same.

        Raises:
            NotFoundError: There is no such document.
        """
        params: dict[str, Any] = {"document_id": document_id}
        found = self._rows(scope, _SQL["content_of"], params)
        if not found:
            raise NotFoundError(f"There is no document {document_id}. `recollect documents list` shows what there is.")
        version_id, content_hash, content = found[0]
        params |= {"version_id": version_id, "content_hash": content_hash, "limit": MOST_NAMED}
        same = self._rows(scope, _SQL["same"], params, end=_SQL["by_id"])
        alike = self._rows(scope, _SQL["alike"], params | {"limit": _MOST_COMPARED}, end=_SQL["most_first"])
        measured = ((SameDocument(*row[:-1]), likeness(content, row[-1])) for row in alike)
        near = [SameDocument(**{**_values(one), "likeness": share}) for one, share in measured if share >= threshold]
        return Duplicates(
            same=tuple(SameDocument(*row) for row in same),
            near=tuple(sorted(near, key=lambda one: (-one.likeness, one.document_id))),
        )

    def groups(self, scope: Scope, *, after: int, limit: int) -> list[tuple[SameDocument, ...]]:
        """Documents of the scope's tenant that say the same, by the first id of each group."""
        found = self._rows(scope, _SQL["groups"], {"after": after, "limit": limit}, end=_SQL["several"])
        return [tuple(SameDocument(*one) for one in zip(*row, strict=True)) for row in found]

    def _rows(
        self, scope: Scope, query: LiteralString, params: dict[str, Any], *, end: LiteralString = ""
    ) -> list[tuple[Any, ...]]:
        known = _DOCUMENTS["known_now"] if scope.as_of is None else _DOCUMENTS["known_as_of"]
        complete: LiteralString = f"{query} AND {known} AND {may_read_version(scope)} {end}"
        given = {"tenant_id": scope.tenant_id, "as_of": scope.as_of, **access_params(scope), **params}
        with self._database.single_reads(scope) as connection:
            return rows(connection, complete, given)


def _values(one: SameDocument) -> dict[str, Any]:
    return {name: getattr(one, name) for name in SameDocument.__dataclass_fields__}
