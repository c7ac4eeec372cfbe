"""Conversations in the store: sessions, turns, how often those were found and of use, and how they are forgotten."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, LiteralString

from pgvector import HalfVector
from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb

from recollect.errors import NotFoundError, UsageError
from recollect.model import Scope
from recollect.model.feedback import FeedbackCounts
from recollect.model.memory import ConversationEntry, Episode, SessionRecord, Turn
from recollect.store.admission import forget_replies, note_effect
from recollect.store.database import Connection, Repository, made_of, rows
from recollect.store.logs import record
from recollect.store.search import Floats, Ints, to_sparse
from recollect.store.sql import queries
from recollect.store.wire import copy_into

_SQL = queries("memory")


_FACTS = queries("facts")


_EPISODE_TYPES = "int4 int8 int8 int4 text text text timestamptz timestamptz jsonb"


_VECTOR_TYPES = "int4 int8 int8 int4 timestamptz timestamptz halfvec"


_LEXICAL_TYPES = "int4 int8 int8 int4 timestamptz timestamptz float4 int4[] sparsevec"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTurn:
    """A turn with everything that is stored of it.

    Attributes:
        turn: What was said.
        embedding: float32 unit vector.
        length: Of the turn with those before it, in terms, the latter counted in part.
        lexemes: int32 array, ascending: of the turn and of those before it.
        weights: float32 array of BM25 document weights, parallel to ``lexemes``.
        own_lexemes: int32 array: of the turn alone, none twice.
    """

    turn: Turn
    embedding: Floats
    length: float
    lexemes: Ints
    weights: Floats
    own_lexemes: Ints


@dataclass(frozen=True, slots=True)
class SessionTail:
    """Where a session ends.

    Attributes:
        position: Of its last turn, 0 where it has none.
        turns: The last few, oldest first.
    """

    position: int
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A turn that is there already, as far as it tells whether another is the same."""

    position: int
    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievedEpisode:
    """An episode, and how often searches found it.

    Attributes:
        episode: The turn.
        retrievals: How often.
        first_at: When the first time was written down.
        last_at: When the latest was.
    """

    episode: Episode
    retrievals: int
    first_at: datetime
    last_at: datetime


class MemoryRepository(Repository):
    """Stores, reads and deletes conversations."""

    # Sessions

    def ensure_session(
        self,
        scope: Scope,
        name: str,
        *,
        embedding_model: str,
        user: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> SessionRecord:
        """The session of that name, made where it is missing.

        Args:
            scope: Whose.
            name: The caller's id of the conversation.
            embedding_model: Of a new session's vectors.
            user: Whose conversation it is: every user has ids of their own. None: nobody's in particular, or that of
                whoever alone has one of that name.
            metadata: Of a new one.

        Raises:
            UsageError: Several users have one of that name, and none is named.
        """
        params = {
            **reader(scope),
            "name": name,
            "user_id": user,
            "embedding_model": embedding_model,
            "metadata": Jsonb(dict(metadata or {})),
        }
        with self._database.transaction(scope) as connection:
            session = _the_one(rows(connection, _SQL["session"], params), name, user)
            if session is None or (user is not None and session.user != user):
                connection.execute(_SQL["ensure_session"], params)
                session = _the_one(rows(connection, _SQL["session"], params), name, user)
        if session is None:
            raise NotFoundError(f"The session {name!r} was deleted while it was written to.")
        return session

    def find_session(self, scope: Scope, name: str, *, user: str | None = None) -> SessionRecord | None:
        """The session of that name, None where there is none.

        Args:
            scope: Whose; with a principal, their own.
            name: Its id.
            user: Whose it is, or else nobody's in particular, or else of whoever alone has one of that name.

        Raises:
            UsageError: Several users have one of that name, and neither the user nor nobody in particular.
        """
        found = self._database.read(scope, _SQL["session"], {**reader(scope), "name": name, "user_id": user})
        return _the_one(found, name, user)

    def get_session(self, scope: Scope, name: str, *, user: str | None = None) -> SessionRecord:
        """The session of that name; the arguments are those of `find_session`.

        Raises:
            NotFoundError: There is none.
            UsageError: Several users have one of that name, and none is named.
        """
        session = self.find_session(scope, name, user=user)
        if session is None:
            raise _missing(name)
        return session

    def list_sessions(
        self,
        scope: Scope,
        *,
        user: str | None = None,
        limit: int = 100,
        offset: int = 0,
        after: tuple[datetime, int] | None = None,
    ) -> list[SessionRecord]:
        """Sessions, the one with the latest turn first.

        Args:
            scope: Whose.
            user: Only this user's.
            limit: How many at most.
            offset: How many to pass over.
            after: When the last one of the page before was updated, and its number.
        """
        at, number = after or (None, None)
        params = {
            **reader(scope),
            "user_id": user,
            "limit": limit,
            "offset": offset,
            "after_at": at,
            "after_id": number,
        }
        return [session_of(row) for row in self._database.read(scope, _SQL["sessions_page"], params)]

    def delete_session(self, scope: Scope, session: SessionRecord, *, actor: str) -> int:
        """Remove a session with its turns and all that was made of them, physically; the audit keeps a receipt.

        Args:
            scope: Whose.
            session: Which one.
            actor: Who asks, for the receipt.

        Returns:
            How many turns it had.

        Raises:
            NotFoundError: It was deleted meanwhile.
        """
        params = {"tenant_id": scope.tenant_id, "session_id": session.session_id}
        with self._database.transaction(scope) as connection:
            facts = rows(connection, _FACTS["drawn_from_session"], params)[0][0]
            connection.execute(_FACTS["delete_drawn_from_session"], params)
            found = rows(connection, _SQL["delete_session"], params)
            if found:
                note_forgotten(connection, scope, session.name, actor=actor, turns=int(found[0][0]), facts=int(facts))
        if not found:
            raise _missing(session.name)
        return int(found[0][0])

    # Turns

    def turns(self, scope: Scope, session: SessionRecord, *, after: int = 0, limit: int = 1_000) -> list[Episode]:
        """A session's turns in their order; ``after`` is the last position of the page before."""
        params = {
            "tenant_id": scope.tenant_id,
            "session_id": session.session_id,
            "after": after,
            "limit": limit,
            "as_of": scope.as_of,
        }
        return [episode_of(row) for row in self._database.read(scope, _SQL["turns_page"], params)]

    def tail(self, scope: Scope, session: SessionRecord, *, limit: int) -> SessionTail:
        """Where a session ends, with its last ``limit`` turns."""
        params = {"tenant_id": scope.tenant_id, "session_id": session.session_id, "limit": max(1, limit)}
        found = self._database.read(scope, _SQL["tail"], params)
        turns = tuple(Turn(role=role, content=content, at=at) for _, role, content, at in found)
        return SessionTail(found[-1][0] if found else 0, turns[len(turns) - limit :] if limit else ())

    def stored_turns(self, scope: Scope, session: SessionRecord, turn_ids: Iterable[str]) -> dict[str, StoredTurn]:
        """Those of the turns with these ids that the session has already."""
        wanted = list(turn_ids)
        if not wanted:
            return {}
        params = {"tenant_id": scope.tenant_id, "session_id": session.session_id, "turn_ids": wanted}
        found = self._database.read(scope, _SQL["stored_turns"], params)
        return {row[0]: StoredTurn(row[1], row[2], row[3]) for row in found}

    def append(
        self, scope: Scope, session: SessionRecord, turns: Sequence[PreparedTurn], *, after: int
    ) -> list[int] | None:
        """Store turns behind a session's last one, all in one transaction.

        Args:
            scope: Whose.
            session: Where.
            turns: In their order.
            after: The position of the turn that they were prepared to follow.

        Returns:
            Their positions; None where somebody else has appended meanwhile: nothing was stored, for what they follow
            is another turn now.

        Raises:
            NotFoundError: The session was deleted meanwhile.
        """
        params = {"tenant_id": scope.tenant_id, "session_id": session.session_id}
        with self._database.transaction(scope) as connection:
            if not rows(connection, _SQL["lock_session"], params):
                raise NotFoundError(f"The session {session.name!r} was deleted while it was written to.")
            if rows(connection, _SQL["last_position"], params)[0][0] != after:
                return None
            positions = list(range(after + 1, after + 1 + len(turns)))
            self._store(connection, scope, session, turns, positions)
            note_effect(connection, scope)
        return positions

    def _store(
        self,
        connection: Connection,
        scope: Scope,
        session: SessionRecord,
        turns: Sequence[PreparedTurn],
        positions: Sequence[int],
    ) -> None:
        # After the lock, so that who comes later in the session is not known earlier.
        now = rows(connection, "SELECT clock_timestamp()")[0][0]
        ids = rows(connection, _SQL["allocate"], {"count": len(turns)})[0][0]
        heads = [
            (scope.tenant_id, episode_id, session.session_id, position)
            for episode_id, position in zip(ids, positions, strict=True)
        ]
        placed = list(zip(heads, turns, strict=True))
        _copy(connection, _SQL["copy_episodes"], _EPISODE_TYPES, (_episode_row(head, new, now) for head, new in placed))
        _copy(
            connection,
            _SQL["copy_vectors"],
            _VECTOR_TYPES,
            ((*head, new.turn.at, now, HalfVector(new.embedding)) for head, new in placed),
        )
        _copy(
            connection,
            _SQL["copy_lexical"],
            _LEXICAL_TYPES,
            (
                (*head, new.turn.at, now, new.length, new.lexemes.tolist(), to_sparse(new.lexemes, new.weights))
                for head, new in placed
            ),
        )
        self._count(connection, scope, session, turns, now)

    def _count(
        self,
        connection: Connection,
        scope: Scope,
        session: SessionRecord,
        turns: Sequence[PreparedTurn],
        now: datetime,
    ) -> None:
        frequencies: dict[int, int] = {}
        for new in turns:
            for lexeme in new.own_lexemes.tolist():
                frequencies[lexeme] = frequencies.get(lexeme, 0) + 1
        params = {
            "tenant_id": scope.tenant_id,
            "session_id": session.session_id,
            "lexemes": list(frequencies),
            "frequencies": list(frequencies.values()),
            "turns": len(turns),
            "terms": sum(float(new.length) for new in turns),
            "now": now,
        }
        connection.execute(_SQL["count_terms"], params)
        connection.execute(_SQL["count_turns"], params)

    # Retrievals

    def note_retrievals(self, scope: Scope, counts: Mapping[int, int], *, at: datetime) -> None:
        """Add to how often episodes were found; those that are gone are passed over."""
        if not counts:
            return
        params = {
            "tenant_id": scope.tenant_id,
            "episode_ids": list(counts),
            "counts": list(counts.values()),
            "now": at,
        }
        self._database.run(scope, _SQL["note_retrievals"], params)

    def frequently_retrieved(self, scope: Scope, *, min_retrievals: int, limit: int = 100) -> list[RetrievedEpisode]:
        """Episodes that were found so often or more, most often first."""
        params = {**reader(scope), "least": min_retrievals, "limit": limit}
        found = self._database.read(scope, _SQL["frequent"], params)
        return [
            RetrievedEpisode(episode=episode_of(row[:-3]), retrievals=row[-3], first_at=row[-2], last_at=row[-1])
            for row in found
        ]


def note_forgotten(
    connection: Connection, scope: Scope, name: str, *, actor: str, turns: int, facts: int
) -> tuple[int, datetime]:
    """Write the receipt of an erasure, which holds nothing of what was said.

    The session stands in it as SHA-256 of a salt's bytes followed by the SHA-256 of its id, so that it proves which one
    it was to those who know the id, and to nobody else.
    """
    forget_replies(connection, scope)
    salt = secrets.token_bytes(16)
    told = hashlib.sha256(salt + hashlib.sha256(name.encode()).digest()).hexdigest()
    details = {"session": told, "salt": salt.hex(), "turns": turns, "facts": facts}
    return record(connection, scope, action="forget", actor=actor, details=details)


def reader(scope: Scope) -> dict[str, Any]:
    """The parameters that say whose conversations a scope may read: a principal their own, anybody else all."""
    principal = scope.principal
    return {
        "tenant_id": scope.tenant_id,
        "restricted": principal is not None,
        "reader": None if principal is None else principal.user_id,
    }


def episode_of(row: Sequence[Any]) -> Episode:
    """An episode from (episode_id, session, position, role, content, event_time, external_id, known_from, metadata)."""
    return made_of(Episode, "episode_id session position role content at turn_id known_from metadata", row)


def _missing(name: str) -> NotFoundError:
    return NotFoundError(f"There is no session {name!r}. `recollect sessions list` shows them.")


def _the_one(found: Sequence[TupleRow], name: str, user: str | None) -> SessionRecord | None:
    sessions = [session_of(row) for row in found]
    if len(sessions) > 1 and sessions[0].user not in {user, None}:
        raise UsageError(f"Several users have a session {name!r}: say whose it is (user=…, --as USER).")
    return sessions[0] if sessions else None


def session_of(row: Sequence[Any]) -> SessionRecord:
    """A session from (session_id, name, user, turn_count, created_at, updated_at, embedding_model, metadata)."""
    columns = "session_id name user turn_count created_at updated_at embedding_model metadata"
    return made_of(SessionRecord, columns, row)


def _episode_row(head: tuple[int, int, int, int], new: PreparedTurn, now: datetime) -> tuple[Any, ...]:
    turn = new.turn
    return (*head, turn.turn_id, turn.role, turn.content, turn.at, now, Jsonb(dict(turn.metadata)))


def _copy(connection: Connection, statement: LiteralString, types: str, records: Iterable[Sequence[Any]]) -> None:
    with copy_into(connection, statement) as copy:
        copy.set_types(types.split())
        for record in records:
            copy.write_row(record)


# Conversations as people look at them: with titles, found by their words, with what is said of their answers.

_CONVERSATIONS = queries("conversations")


class ConversationRepository(Repository):
    """Lists and names conversations, and keeps what is said of their answers."""

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
        found = self._database.read(scope, _CONVERSATIONS["overview"], params)
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
        return [episode_of(row) for row in reversed(self._database.read(scope, _CONVERSATIONS["turns_before"], params))]

    def rename(self, scope: Scope, session: SessionRecord, title: str | None) -> None:
        """Call a conversation something; None: by the words that it begins with."""
        named = {} if title is None else {"title": title}
        params = {"tenant_id": scope.tenant_id, "session_id": session.session_id, "named": Jsonb(named)}
        self._database.run(scope, _CONVERSATIONS["rename"], params)

    def judge(self, scope: Scope, session: SessionRecord, position: int, *, helpful: bool) -> bool:
        """Keep whether an answer helped; returns whether nobody had said so before."""
        params = {
            "tenant_id": scope.tenant_id,
            "session_id": session.session_id,
            "position": str(position),
            "helpful": helpful,
        }
        return bool(self._database.run(scope, _CONVERSATIONS["judge"], params))


# Erasing single turns: what was made of them goes, and the turns behind them are indexed without them.


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


class ForgettingRepository(Repository):
    """Erases single turns of conversations."""

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


# Feedback on contexts in the store: counts, by session and in general.


_FEEDBACK_SQL = queries("feedback")


class FeedbackRepository(Repository):
    """Counts what people say of the passages they were shown."""

    def add(self, scope: Scope, session: SessionRecord | None, counts: FeedbackCounts) -> None:
        """Add to what was counted for a session; None: in general."""
        with self._database.transaction(scope) as connection:
            connection.execute(_FEEDBACK_SQL["add"], {**_place(scope, session), **asdict(counts)})
            note_effect(connection, scope)

    def counts(
        self, scope: Scope, session: str | None, *, user: str | None = None
    ) -> tuple[FeedbackCounts, FeedbackCounts]:
        """What was counted in general, and for the session of that name: the user's, or nobody's in particular."""
        params = {**reader(scope), "name": session, "user_id": user}
        found = {row[0]: _counts(row[1:]) for row in self._database.read(scope, _FEEDBACK_SQL["counts"], params)}
        return found.get(False, FeedbackCounts()), found.get(True, FeedbackCounts())

    def reset(self, scope: Scope, session: SessionRecord | None) -> int:
        """Forget what was counted for a session; None: in general.

        Returns:
            How many pieces of feedback that were.
        """
        found = self._database.run(scope, _FEEDBACK_SQL["reset"], _place(scope, session))
        return int(found[0][0]) if found else 0


def _place(scope: Scope, session: SessionRecord | None) -> dict[str, int | None]:
    return {"tenant_id": scope.tenant_id, "session_id": None if session is None else session.session_id}


def _counts(row: tuple[int, ...]) -> FeedbackCounts:
    return FeedbackCounts(documents_helpful=row[0], documents_not=row[1], memory_helpful=row[2], memory_not=row[3])
