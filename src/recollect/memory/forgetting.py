"""Erasing single turns of a conversation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from recollect.errors import NotFoundError
from recollect.memory.indexing import REACH, SessionEmbedders, TurnIndexer, dated
from recollect.model.memory import Episode, SessionRecord, Turn

if TYPE_CHECKING:
    from recollect.model import Scope
    from recollect.retrieval.indexing import TurnTerms
    from recollect.store.forgetting import ForgettingRepository
    from recollect.store.memory import MemoryRepository


class Forgetter:
    """Erases turns so that nothing of them is left, in the index of the turns behind them either.

    Args:
        memory: Knows the conversations.
        repository: Erases turns.
        embedders: Embed the turns behind an erased one anew.
        lexicon: Counts and weighs words.
    """

    def __init__(
        self,
        memory: MemoryRepository,
        repository: ForgettingRepository,
        embedders: SessionEmbedders,
        lexicon: TurnTerms,
    ) -> None:
        self._memory = memory
        self._repository = repository
        self._embedders = embedders
        self._lexicon = lexicon

    def forget(
        self, scope: Scope, session: str, positions: Iterable[int], *, actor: str, user: str | None = None
    ) -> int:
        """Remove turns, each in a transaction of its own; the positions of the others stay as they are.

        Args:
            scope: Whose.
            session: The conversation.
            positions: Of the turns.
            actor: Who asks, for the receipts.
            user: Whose conversation it is; None: nobody's, or that of whoever alone has one of that id.

        Returns:
            How many were removed.

        Raises:
            NotFoundError: There is no such session, or no turn at one of the positions: then none is removed.
            UsageError: The model that the session was embedded with cannot be made here.
        """
        record = self._memory.get_session(scope, session, user=user)
        indexer = TurnIndexer(self._embedders.of_session(record.embedding_model), self._lexicon)
        wanted = sorted(set(positions))
        for position in wanted:
            self._found(scope, record, position)
        for position in wanted:
            while not self._erased(scope, record, indexer, position, actor):
                pass
        return len(wanted)

    def _erased(self, scope: Scope, record: SessionRecord, indexer: TurnIndexer, position: int, actor: str) -> bool:
        found = self._repository.neighbourhood(scope, record, position, reach=REACH)
        if found is None:  # somebody else was faster
            return True
        before = [_turn(one) for one in found.before]
        return self._repository.erase(
            scope,
            record,
            found,
            own_lexemes=self._lexicon.count([dated(_turn(found.turn))])[0].lexemes,
            following=indexer.prepare(before, [_turn(one) for one in found.after]),
            reach=REACH,
            actor=actor,
        )

    def _found(self, scope: Scope, record: SessionRecord, position: int) -> None:
        if self._repository.neighbourhood(scope, record, position, reach=0) is None:
            raise NotFoundError(
                f"The session {record.name!r} has no turn {position}. `recollect sessions show` has their numbers."
            )


def _turn(episode: Episode) -> Turn:
    return Turn(content=episode.content, role=episode.role, at=episode.at)
