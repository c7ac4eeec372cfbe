"""Remembering conversations and recalling them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recollect.errors import ConflictError, NotFoundError
from recollect.memory.indexing import REACH, SessionEmbedders, TurnIndexer, dated
from recollect.memory.search import TURNS, Found, MemorySearcher
from recollect.memory.validation import (
    checked_metadata,
    checked_name,
    checked_options,
    checked_question,
    checked_turns,
    own_user,
)
from recollect.model.memory import Episode, RecallOptions, Recollection, Remembered, SessionRecord, Turn
from recollect.model.record import fields_of

if TYPE_CHECKING:
    from recollect.memory.patterns import QueryPatternTracker
    from recollect.model import Scope
    from recollect.retrieval.indexing import TurnTerms
    from recollect.store.memory import ForgettingRepository, MemoryRepository
    from recollect.store.recall import RecallRepository


#: Turns that are embedded and stored in one transaction.
BATCH_TURNS = 500


class Memory:
    """One tenant's memory of conversations. Safe to share between threads.

    Args:
        repository: Stores turns.
        recalls: Searches them.
        embedders: Embed turns and questions.
        lexicon: Counts and weighs words.
        tracker: Told what was found; None: nobody is.
    """

    def __init__(
        self,
        repository: MemoryRepository,
        recalls: RecallRepository,
        embedders: SessionEmbedders,
        lexicon: TurnTerms,
        *,
        tracker: QueryPatternTracker | None = None,
    ) -> None:
        self._repository = repository
        self._recalls = recalls
        self._embedders = embedders
        self._lexicon = lexicon
        self._searcher = MemorySearcher(repository, recalls, embedders, lexicon)
        self._tracker = tracker

    # Remembering

    def remember(
        self,
        scope: Scope,
        session: str,
        turns: Sequence[Turn],
        *,
        user: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Remembered:
        """Append turns to a session, which is made where it is missing.

        Up to `BATCH_TURNS` turns are stored together, or none of them. Several may append to one session at the same
        time: every turn gets a place of its own, in the order in which they came.

        Args:
            scope: Whose.
            session: The caller's id of the conversation.
            turns: In the order in which they were said. One whose ``turn_id`` is stored already is not stored again.
            user: Whose conversation it is; None: nobody's in particular, or that of whoever alone has one of that id.
            metadata: Of a new session.

        Raises:
            UsageError: A name or a turn is not valid, several users have a session of that id and none is named, or the
                model that the session was embedded with cannot be made here; then nothing is stored.
            ConflictError: A turn's id is stored with other words.
            PermissionDeniedError: The scope's principal would write another's conversation.
            ProviderError: The embedding model failed.
        """
        name = checked_name("The session id", session)
        owner = own_user(scope, None if user is None else checked_name("The user id", user))
        checked = checked_turns(turns)
        facts = checked_metadata("The session's metadata", dict(metadata or {}))
        record = self._repository.ensure_session(
            scope, name, embedding_model=self._embedders.configured.model_name, user=owner, metadata=facts
        )
        indexer = TurnIndexer(self._embedders.of_session(record.embedding_model), self._lexicon)
        positions: list[int] = []
        added = 0
        for start in range(0, len(checked), BATCH_TURNS):
            part, fresh = self._append(scope, record, indexer, checked[start : start + BATCH_TURNS])
            positions += part
            added += fresh
        return Remembered(name, tuple(positions), added)

    def _append(
        self, scope: Scope, record: SessionRecord, indexer: TurnIndexer, turns: Sequence[Turn]
    ) -> tuple[list[int], int]:
        """Each turn's position, and how many are new."""
        ids = [turn.turn_id for turn in turns if turn.turn_id is not None]
        while True:
            # The end first: what is appended behind it later is then noticed by the append itself.
            tail = self._repository.tail(scope, record, limit=REACH)
            stored = self._repository.stored_turns(scope, record, ids)
            known: dict[str, int] = {}
            for turn in turns:
                if turn.turn_id is not None and (old := stored.get(turn.turn_id)) is not None:
                    if (old.role, old.content) != (turn.role, turn.content):
                        raise ConflictError(
                            f"The session {record.name!r} has a turn {turn.turn_id!r} that says something else: give a "
                            "new turn an id of its own, or none."
                        )
                    known[turn.turn_id] = old.position
            fresh = _new_ones(turns, known)
            if not fresh:
                return [known[turn.turn_id or ""] for turn in turns], 0
            prepared = indexer.prepare(tail.turns, fresh)
            placed = self._repository.append(scope, record, prepared, after=tail.position)
            if placed is not None:
                return _positions(turns, known, dict(zip(map(id, fresh), placed, strict=True))), len(fresh)

    # Recalling

    def recall(
        self,
        scope: Scope,
        query: str,
        options: RecallOptions | None = None,
        *,
        session: str | None = None,
        user: str | None = None,
    ) -> list[Recollection]:
        """The turns that answer a question, best first, each with those around it.

        Args:
            scope: Whose memory, and as of when: what was not known then does not exist.
            query: In plain words.
            options: How to search; None: the defaults.
            session: Search this session.
            user: Search all sessions of this user, beside the one named; without either, every session of the tenant.

        Raises:
            UsageError: The query or an option is not valid, or the model that a session was embedded with cannot be
                made here.
            NotFoundError: There is no such session.
        """
        question = checked_question(query)
        wanted = checked_options(options or RecallOptions())
        searched = self._searcher.sessions(scope, session, user)
        if not searched.turns:
            return []
        best = self._searcher.search(scope, TURNS, question, wanted, searched)
        found = self._recollections(scope, wanted, best)
        if self._tracker is not None and wanted.counted:
            self._tracker.record(scope, [recollection.episode.episode_id for recollection in found])
        return found

    def _recollections(self, scope: Scope, options: RecallOptions, best: Sequence[Found]) -> list[Recollection]:
        ids = [one.number for one in best]
        around = self._recalls.surroundings(scope, ids, before=options.before, after=options.after) if ids else {}
        # What was deleted since it was found is not there any more.
        present = [(one, around[one.number]) for one in best if one.number in around]
        return [
            Recollection(
                **fields_of(turn.episode),
                rank=rank,
                score=one.score,
                user=turn.user,
                before=turn.before,
                after=turn.after,
                similarity=one.similarity,
                bm25=one.bm25,
                embedding_model=one.model,
            )
            for rank, (one, turn) in enumerate(present, start=1)
        ]


def _new_ones(turns: Sequence[Turn], known: Mapping[str, int]) -> list[Turn]:
    """Those that are not stored yet, one that is given twice only once."""
    fresh: list[Turn] = []
    seen: set[str] = set()
    for turn in turns:
        if turn.turn_id is not None:
            if turn.turn_id in known or turn.turn_id in seen:
                continue
            seen.add(turn.turn_id)
        fresh.append(turn)
    return fresh


def _positions(turns: Sequence[Turn], known: Mapping[str, int], placed: Mapping[int, int]) -> list[int]:
    """Where each turn stands; a turn with an id that was given twice is one and the same object."""
    return [placed[id(turn)] if id(turn) in placed else known[turn.turn_id or ""] for turn in turns]


# Erasing single turns of a conversation.


@dataclass(eq=False)
class Forgetter:
    """Erases turns so that nothing of them is left, in the index of the turns behind them either.

    Args:
        memory: Knows the conversations.
        repository: Erases turns.
        embedders: Embed the turns behind an erased one anew.
        lexicon: Counts and weighs words.
    """

    memory: MemoryRepository
    repository: ForgettingRepository
    embedders: SessionEmbedders
    lexicon: TurnTerms

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
        record = self.memory.get_session(scope, session, user=user)
        indexer = TurnIndexer(self.embedders.of_session(record.embedding_model), self.lexicon)
        wanted = sorted(set(positions))
        for position in wanted:
            self._found(scope, record, position)
        for position in wanted:
            while not self._erased(scope, record, indexer, position, actor):
                pass
        return len(wanted)

    def _erased(self, scope: Scope, record: SessionRecord, indexer: TurnIndexer, position: int, actor: str) -> bool:
        found = self.repository.neighbourhood(scope, record, position, reach=REACH)
        if found is None:  # somebody else was faster
            return True
        before = [_turn(one) for one in found.before]
        return self.repository.erase(
            scope,
            record,
            found,
            own_lexemes=self.lexicon.count([dated(_turn(found.turn))])[0].lexemes,
            following=indexer.prepare(before, [_turn(one) for one in found.after]),
            reach=REACH,
            actor=actor,
        )

    def _found(self, scope: Scope, record: SessionRecord, position: int) -> None:
        if self.repository.neighbourhood(scope, record, position, reach=0) is None:
            raise NotFoundError(
                f"The session {record.name!r} has no turn {position}. `recollect sessions show` has their numbers."
            )


def _turn(episode: Episode) -> Turn:
    return Turn(content=episode.content, role=episode.role, at=episode.at)
