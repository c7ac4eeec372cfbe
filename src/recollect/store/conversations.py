"""Conversations as people look at them: with titles, found by their words, with what is said of their answers."""

from __future__ import annotations

from datetime import datetime

from psycopg.types.json import Jsonb

from recollect.model import Scope
from recollect.model.memory import ConversationEntry, Episode, SessionRecord
from recollect.store.database import Database, rows
from recollect.store.memory import episode_of, reader, session_of
from recollect.store.sql import queries

_SQL = queries("conversations")


class ConversationRepository:
    """Lists and names conversations, and keeps what is said of their answers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def overview(
        self,
        scope: Scope,
        *,
        text: str | None = None,
        user: str | None = None,
        limit: int = 100,
        after: tuple[datetime, int] | None = None,
    ) -> list[ConversationEntry]:
        """Conversations with something in them, the one with the latest turn first.

        Args:
            scope: Whose.
            text: Only those whose title or turns hold this, in whatever case.
            user: Only this user's.
            limit: How many at most.
            after: When the last one of the page before was updated, and its number.
        """
        at, number = after or (None, None)
        params = {
            **reader(scope),
            "text": text,
            "user_id": user,
            "limit": limit,
            "after_at": at,
            "after_id": number,
        }
        with self._database.single_reads(scope) as connection:
            found = rows(connection, _SQL["overview"], params)
        return [ConversationEntry(record=session_of(row[:-1]), opening=row[-1] or "") for row in found]

    def latest(self, scope: Scope, session: SessionRecord, *, before: int | None, limit: int) -> list[Episode]:
        """The last turns of a session, or the last before a position, in their order."""
        params = {
            "tenant_id": scope.tenant_id,
            "session_id": session.session_id,
            "before": before,
            "limit": limit,
            "as_of": scope.as_of,
        }
        with self._database.single_reads(scope) as connection:
            return [episode_of(row) for row in reversed(rows(connection, _SQL["turns_before"], params))]

    def rename(self, scope: Scope, session: SessionRecord, title: str | None) -> None:
        """Call a conversation something; None: by the words that it begins with."""
        named = {} if title is None else {"title": title}
        params = {"tenant_id": scope.tenant_id, "session_id": session.session_id, "named": Jsonb(named)}
        with self._database.transaction(scope) as connection:
            connection.execute(_SQL["rename"], params)

    def judge(self, scope: Scope, session: SessionRecord, position: int, *, helpful: bool) -> bool:
        """Keep whether an answer helped; returns whether nobody had said so before."""
        params = {
            "tenant_id": scope.tenant_id,
            "session_id": session.session_id,
            "position": str(position),
            "helpful": helpful,
        }
        with self._database.transaction(scope) as connection:
            return bool(rows(connection, _SQL["judge"], params))
