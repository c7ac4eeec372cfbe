"""Erasing single turns: what was made of them goes, and the turns behind them are indexed without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgvector import HalfVector

from recollect.model import Scope
from recollect.model.memory import Episode, SessionRecord
from recollect.store.database import Connection, Database, rows
from recollect.store.memory import PreparedTurn, episode_of, note_forgotten
from recollect.store.search_rows import Ints, to_sparse
from recollect.store.sql import queries

_SQL = queries("memory")
_FACTS = queries("facts")


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """A turn among those that are indexed with it.

    Attributes:
        before: The turns before it, oldest first.
        turn: The turn.
        after: The turns behind it that are indexed with it.
    """

    before: tuple[Episode, ...]
    turn: Episode
    after: tuple[Episode, ...]

    @property
    def episode_ids(self) -> list[int]:
        """Of all of them, in their order."""
        return [one.episode_id for one in (*self.before, self.turn, *self.after)]


class ForgettingRepository:
    """Erases single turns of conversations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def neighbourhood(self, scope: Scope, session: SessionRecord, position: int, *, reach: int) -> Neighbourhood | None:
        """The turn at a position, with so many before and behind it; None where there is none."""
        with self._database.single_reads(scope) as connection:
            found = _around(connection, scope, session, position, reach)
        at = next((index for index, one in enumerate(found) if one.position == position), None)
        if at is None:
            return None
        return Neighbourhood(tuple(found[:at]), found[at], tuple(found[at + 1 :]))

    def erase(
        self,
        scope: Scope,
        session: SessionRecord,
        place: Neighbourhood,
        *,
        own_lexemes: Ints,
        following: Sequence[PreparedTurn],
        reach: int,
        actor: str,
    ) -> bool:
        """Remove a turn with its vector, words, counts, and the facts drawn from it, physically, leaving a receipt.

        Args:
            scope: Whose.
            session: Its conversation.
            place: The turn among its neighbours, as they were read.
            own_lexemes: Of the turn alone, none twice.
            following: The turns behind it, prepared to follow the turns before it.
            reach: As for `neighbourhood`.
            actor: Who asks, for the receipt.

        Returns:
            False where the neighbours are others now: nothing was done.
        """
        params = {"tenant_id": scope.tenant_id, "session_id": session.session_id}
        erased = {**params, "episode_id": place.turn.episode_id, "episode_ids": [place.turn.episode_id]}
        lexemes = {**params, "lexemes": own_lexemes.tolist()}
        with self._database.transaction(scope) as connection:
            rows(connection, _SQL["lock_session"], params)
            now = _around(connection, scope, session, place.turn.position, reach)
            if [one.episode_id for one in now] != place.episode_ids:
                return False
            facts = connection.execute(_FACTS["delete_drawn_from_turns"], erased).rowcount
            connection.execute(_SQL["delete_turn"], erased)
            for one, prepared in zip(place.after, following, strict=True):
                _reindex(connection, scope, one.episode_id, prepared)
            connection.execute(_SQL["uncount_terms"], lexemes)
            connection.execute(_SQL["drop_terms"], lexemes)
            connection.execute(_SQL["recount"], params)
            note_forgotten(connection, scope, session.name, actor=actor, turns=1, facts=facts)
        return True


def _around(connection: Connection, scope: Scope, session: SessionRecord, position: int, reach: int) -> list[Episode]:
    params = {
        "tenant_id": scope.tenant_id,
        "session_id": session.session_id,
        "position": position,
        "reach": reach,
    }
    return [episode_of(row) for row in rows(connection, _SQL["turn"], params)]


def _reindex(connection: Connection, scope: Scope, episode_id: int, prepared: PreparedTurn) -> None:
    params = {
        "tenant_id": scope.tenant_id,
        "episode_id": episode_id,
        "embedding": HalfVector(prepared.embedding),
        "length": prepared.length,
        "lexemes": prepared.lexemes.tolist(),
        "weights": to_sparse(prepared.lexemes, prepared.weights),
    }
    connection.execute(_SQL["reindex_vector"], params)
    connection.execute(_SQL["reindex_words"], params)
