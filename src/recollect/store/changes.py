"""What changed in a collection since one of its revisions, so that a copy of it can follow.

Every transaction that changes what a search could find gives the collection its next revision as its last step, so
revisions become visible in their order. Triggers note which versions each one changed (``sql/routines/changes.sql``). A
copy reads ``collection_state.revision`` and ``revision_id`` in the snapshot that it is made from, and asks here what
came after them.

The number of a revision alone does not tell what a collection held: a crash, a promotion or a restore can lose the last
revisions, whose numbers are then given again. ``revision_id`` is random and never given again.

Vectors of a space that the collection does not use are not noted. A copy cannot follow it to another one.
"""

from __future__ import annotations

from dataclasses import dataclass

from recollect.model import Scope
from recollect.store.database import Connection, Repository, rows
from recollect.store.sql import queries

_SQL = queries("changes")

# In place of a version: the statistics of terms were counted.
_TERMS = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What changed in a collection since a revision.

    Attributes:
        revision: The collection's revision now.
        revision_id: Its random id, a UUID.
        version_ids: Versions that were stored, closed, changed or removed since, with any of their chunks. Ascending.
            Read them again: those that are not found any more are gone.
        terms_counted: Whether the statistics of terms were counted since.
    """

    revision: int
    revision_id: str
    version_ids: tuple[int, ...]
    terms_counted: bool


class ChangeRepository(Repository):
    """Knows what each revision of a collection changed."""

    def since(self, scope: Scope, collection_id: int, revision: int, revision_id: str) -> Changes | None:
        """Return what changed after a revision, read in one snapshot with the revision now.

        Args:
            scope: Whose collection.
            collection_id: Which.
            revision: The revision that the caller knows.
            revision_id: Its ``revision_id``.

        Returns:
            None where the collection is gone, never had that revision (it was lost) or uses another vector space since,
            and where that is so long ago that its changes are not kept: copy the collection whole.
        """
        with self._database.single_reads(scope) as connection:
            return changes_since(connection, scope.tenant_id, collection_id, revision, revision_id)


def changes_since(
    connection: Connection, tenant_id: int, collection_id: int, revision: int, revision_id: str
) -> Changes | None:
    """As `ChangeRepository.since`, over a connection that has the tenant set."""
    params = {
        "tenant_id": tenant_id,
        "collection_id": collection_id,
        "revision": revision,
        "revision_id": revision_id,
    }
    found = rows(connection, _SQL["since"], params)
    if not found or found[0][2] is None:
        return None
    now, now_id, version_ids = found[0]
    return Changes(
        revision=now,
        revision_id=now_id,
        version_ids=tuple(one for one in version_ids if one != _TERMS),
        terms_counted=_TERMS in version_ids,
    )
