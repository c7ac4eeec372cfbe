"""Test cases that were saved, by collection: what people expect of searches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psycopg.types.json import Jsonb

from recollect.errors import ConflictError, NotFoundError
from recollect.model.saved_case import SavedCase
from recollect.store.database import Repository, rows
from recollect.store.sql import queries

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from recollect.model import Scope

_SQL = queries("saved_cases")

#: Test cases of a collection at most: they are run while somebody waits for the page.
MOST_CASES = 200


class SavedCaseRepository(Repository):
    """Reads and writes the test cases of collections; a principal's own are the principal's, the owner sees all."""

    def list(self, scope: Scope, collection_id: int) -> list[SavedCase]:
        """Those of a collection that the scope's principal made, or all, by name."""
        found = self._database.read(scope, _SQL["list"], _of(scope, collection_id))
        fields = SavedCase.__dataclass_fields__
        return [SavedCase(**dict(zip(fields, row, strict=True))) for row in found]

    def save(
        self,
        scope: Scope,
        collection_id: int,
        *,
        name: str,
        definition: Mapping[str, Any],
        as_of: datetime | None,
    ) -> int:
        """Save a case; one of the same name by the same maker is replaced.

        Returns:
            Its number.

        Raises:
            ConflictError: The collection has as many as it may have.
            NotFoundError: The collection was deleted meanwhile.
        """
        params = {**_of(scope, collection_id), "name": name, "as_of": as_of, "definition": Jsonb(dict(definition))}
        with self._database.transaction(scope) as connection:
            if not rows(connection, _SQL["hold"], params):
                raise NotFoundError("The collection was deleted meanwhile.")
            if rows(connection, _SQL["count"], params)[0][0] >= MOST_CASES:
                raise ConflictError(f"A collection has {MOST_CASES} test cases at most: delete some that say little.")
            return int(rows(connection, _SQL["save"], params)[0][0])

    def delete(self, scope: Scope, collection_id: int, case_id: int) -> None:
        """Delete a case.

        Raises:
            NotFoundError: There is none of that number, or it is somebody else's.
        """
        with self._database.transaction(scope) as connection:
            if not rows(connection, _SQL["delete"], {**_of(scope, collection_id), "case_id": case_id}):
                raise NotFoundError(f"There is no test case {case_id}.")


def _of(scope: Scope, collection_id: int) -> dict[str, Any]:
    return {
        "tenant_id": scope.tenant_id,
        "collection_id": collection_id,
        "everybodys": scope.principal is None,
        "made_by": "" if scope.principal is None else scope.principal.user_id,
    }
