"""Feedback on contexts in the store: counts, by session and in general."""

from __future__ import annotations

from dataclasses import asdict

from recollect.model import Scope
from recollect.model.feedback import FeedbackCounts
from recollect.model.memory import SessionRecord
from recollect.store.admission import note_effect
from recollect.store.database import Repository
from recollect.store.memory import reader
from recollect.store.sql import queries

_SQL = queries("feedback")


class FeedbackRepository(Repository):
    """Counts what people say of the passages they were shown."""

    def add(self, scope: Scope, session: SessionRecord | None, counts: FeedbackCounts) -> None:
        """Add to what was counted for a session; None: in general."""
        with self._database.transaction(scope) as connection:
            connection.execute(_SQL["add"], {**_place(scope, session), **asdict(counts)})
            note_effect(connection, scope)

    def counts(
        self, scope: Scope, session: str | None, *, user: str | None = None
    ) -> tuple[FeedbackCounts, FeedbackCounts]:
        """What was counted in general, and for the session of that name: the user's, or nobody's in particular."""
        params = {**reader(scope), "name": session, "user_id": user}
        found = {row[0]: _counts(row[1:]) for row in self._database.read(scope, _SQL["counts"], params)}
        return found.get(False, FeedbackCounts()), found.get(True, FeedbackCounts())

    def reset(self, scope: Scope, session: SessionRecord | None) -> int:
        """Forget what was counted for a session; None: in general.

        Returns:
            How many pieces of feedback that were.
        """
        found = self._database.run(scope, _SQL["reset"], _place(scope, session))
        return int(found[0][0]) if found else 0


def _place(scope: Scope, session: SessionRecord | None) -> dict[str, int | None]:
    return {"tenant_id": scope.tenant_id, "session_id": None if session is None else session.session_id}


def _counts(row: tuple[int, ...]) -> FeedbackCounts:
    return FeedbackCounts(documents_helpful=row[0], documents_not=row[1], memory_helpful=row[2], memory_not=row[3])
