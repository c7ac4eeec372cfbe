"""Facts in the store: drawn from turns, ordered by chains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pgvector import HalfVector
from psycopg.rows import TupleRow

from recollect.errors import NotFoundError
from recollect.model import Scope
from recollect.model.facts import Fact, FactEvidence
from recollect.model.memory import Episode
from recollect.store.database import Connection, Repository, made_of, rows
from recollect.store.memory import episode_of, reader
from recollect.store.search import Floats, Ints, to_sparse
from recollect.store.sql import queries

_SQL = queries("facts")


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose facts may supersede one another: a user's, or those of a conversation that is nobody's in particular."""

    user: str | None
    session_id: int


@dataclass(frozen=True, slots=True)
class FactSource:
    """A turn to draw facts from; ``model`` embedded its session."""

    episode: Episode
    session_id: int
    user: str | None
    model: str = ""

    @property
    def owner(self) -> Owner:
        """Whose it is; a user's conversations are one."""
        return Owner(self.user, 0 if self.user is not None else self.session_id)


@dataclass(frozen=True, slots=True)
class Span:
    """Characters of a turn."""

    episode_id: int
    start_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedFact:
    """A new fact with everything that is stored of it.

    Attributes:
        same_as: The statement as it is compared.
        source: The latest turn that it is drawn from.
        spans: The words that it rests on.
        embedding: float32 unit vector.
        length: In terms.
        lexemes: int32 array, ascending.
        weights: float32 array parallel to ``lexemes``.
    """

    statement: str
    same_as: str
    subject: str | None
    attribute: str | None
    value: str | None
    source: FactSource
    spans: tuple[Span, ...]
    made_by: str
    embedding: Floats
    length: float
    lexemes: Ints
    weights: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFact:
    """A stored fact, as far as it tells what a new one has to do with it."""

    fact_id: int
    chain_id: int
    session_id: int
    episode_id: int
    subject: str | None
    attribute: str | None
    value: str | None
    same_as: str
    said_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """What becomes of a new fact.

    Attributes:
        chain_id: The chain that it belongs to.
        repeats: The fact that it says again: then it is evidence for that, and no fact of its own.
        supersedes: Whether it takes a fact's place, or a later one has taken its own.
    """

    chain_id: int
    repeats: int | None = None
    supersedes: bool = False


#: Decides, for facts with the numbers given, what becomes of each.
Plan = Callable[[Sequence[PreparedFact], Sequence[int], Sequence[KnownFact]], Sequence[Placement]]


@dataclass(frozen=True, slots=True)
class Stored:
    """What was stored of a batch: the placements of its new facts, and how many turns were looked at."""

    placements: tuple[Placement, ...]
    examined: int


class FactRepository(Repository):
    """Stores, reads and deletes facts."""

    def candidates(
        self, scope: Scope, *, min_retrievals: int, user: str | None = None, limit: int = 100
    ) -> list[FactSource]:
        """Turns that were found so often or more and were not looked at yet; ``user``: of this user's only."""
        params = {**reader(scope), "least": min_retrievals, "user_id": user, "limit": limit}
        found = self._database.read(scope, _SQL["candidates"], params)
        return [FactSource(episode_of(row[:-3]), *row[-3:]) for row in found]

    def attributes(self, scope: Scope, owner: Owner, subjects: Sequence[str]) -> list[tuple[int, str, str]]:
        """What an owner's facts say of subjects: (the latest fact, subject, attribute)."""
        if not subjects:
            return []
        params = {**_owner(scope, owner), "subjects": list(subjects)}
        return [(row[0], row[1], row[2]) for row in self._database.read(scope, _SQL["attributes"], params)]

    def store(
        self,
        scope: Scope,
        owner: Owner,
        episodes: Sequence[Episode],
        facts: Sequence[PreparedFact],
        *,
        related: Sequence[int],
        made_by: str,
        plan: Plan,
    ) -> Stored:
        """Store what was drawn from turns, and that they were looked at; all of it, or nothing.

        Turns that are gone, or that somebody else has looked at meanwhile, give nothing.

        Args:
            scope: Whose.
            owner: Whose conversations the turns are of.
            episodes: What was looked at.
            facts: What was drawn from them.
            related: Stored facts that ``plan`` must know of beside those of the same words or attributes.
            made_by: What looked at the turns.
            plan: Decides what becomes of each fact.
        """
        with self._database.transaction(scope) as connection:
            rows(connection, _SQL["lock"], {"tenant_id": scope.tenant_id})
            wanted = {"tenant_id": scope.tenant_id, "episode_ids": [episode.episode_id for episode in episodes]}
            still = {row[0] for row in rows(connection, _SQL["still_open"], wanted)}
            fresh = [fact for fact in facts if all(span.episode_id in still for span in fact.spans)]
            placements = self._insert(connection, scope, owner, fresh, related, plan) if fresh else ()
            now = _now(connection)
            params = {"tenant_id": scope.tenant_id, "episode_ids": sorted(still), "now": now, "made_by": made_by}
            connection.execute(_SQL["mark"], params)
        return Stored(tuple(placements), len(still))

    def _insert(
        self,
        connection: Connection,
        scope: Scope,
        owner: Owner,
        facts: Sequence[PreparedFact],
        related: Sequence[int],
        plan: Plan,
    ) -> Sequence[Placement]:
        params = {
            **_owner(scope, owner),
            "fact_ids": list(related),
            "same_as": [fact.same_as for fact in facts],
            "subjects": [fact.subject for fact in facts if fact.subject],
            "attributes": [fact.attribute for fact in facts if fact.attribute],
        }
        known = [_known(row) for row in rows(connection, _SQL["related"], params)]
        ids = rows(connection, _SQL["allocate"], {"count": len(facts)})[0][0]
        placements = plan(facts, ids, known)
        # After the lock: what is superseded later is not known to be earlier.
        now = _now(connection)
        for fact, fact_id, placement in zip(facts, ids, placements, strict=True):
            if placement.repeats is None:
                _insert_fact(connection, scope, fact, fact_id, placement, now)
            kind = "source" if placement.repeats is None else "repeat"
            for span in fact.spans:
                evidence = {
                    "tenant_id": scope.tenant_id,
                    "fact_id": fact_id if placement.repeats is None else placement.repeats,
                    "episode_id": span.episode_id,
                    "start_offset": span.start_offset,
                    "end_offset": span.end_offset,
                    "kind": kind,
                }
                connection.execute(_SQL["insert_evidence"], evidence)
        return placements

    # Reading

    def page(
        self,
        scope: Scope,
        *,
        user: str | None = None,
        session: str | None = None,
        superseded: bool = False,
        limit: int = 100,
        after: tuple[datetime, int] | None = None,
    ) -> list[Fact]:
        """Facts with their evidence, what was said last before the others.

        Args:
            scope: Whose, and as of when.
            user: Only those from this user's conversations.
            session: Only those from this conversation.
            superseded: Also those that others have taken the place of.
            limit: How many at most.
            after: When the last one of the page before was said, and its number.
        """
        at, number = after or (None, None)
        params = {
            "after_at": at,
            "after_id": number,
            **_moment(scope),
            "user_id": user,
            "session": session,
            "superseded": superseded,
            "limit": limit,
        }
        with self._database.transaction(scope) as connection:
            return _with_evidence(connection, scope, rows(connection, _SQL["facts_page"], params))

    def by_id(self, scope: Scope, fact_ids: Sequence[int]) -> dict[int, Fact]:
        """Those of the facts that there are, with their evidence."""
        params = {**_moment(scope), "fact_ids": list(fact_ids)}
        with self._database.transaction(scope) as connection:
            found = _with_evidence(connection, scope, rows(connection, _SQL["facts_by_id"], params))
        return {fact.fact_id: fact for fact in found}

    def chain(self, scope: Scope, fact_id: int) -> list[Fact]:
        """A fact with those before and after it, the one said first before the others.

        Raises:
            NotFoundError: There is no such fact.
        """
        with self._database.transaction(scope) as connection:
            found = rows(connection, _SQL["chain"], {**_moment(scope), "fact_id": fact_id})
            facts = _with_evidence(connection, scope, found)
        if not facts:
            raise _missing(fact_id)
        return facts

    def delete(self, scope: Scope, fact_id: int) -> None:
        """Remove a fact; the turns that it rests on stay, and the fact that it superseded is current again.

        Raises:
            NotFoundError: There is no such fact.
        """
        params = {**reader(scope), "fact_id": fact_id}
        with self._database.transaction(scope) as connection:
            if not connection.execute(_SQL["delete_fact"], params).rowcount:
                raise _missing(fact_id)


def _insert_fact(
    connection: Connection, scope: Scope, fact: PreparedFact, fact_id: int, placement: Placement, now: datetime
) -> None:
    episode = fact.source.episode
    params = {
        "tenant_id": scope.tenant_id,
        "fact_id": fact_id,
        "chain_id": placement.chain_id,
        "session_id": fact.source.session_id,
        "episode_id": episode.episode_id,
        "statement": fact.statement,
        "same_as": fact.same_as,
        "subject": fact.subject,
        "attribute": fact.attribute,
        "value": fact.value,
        "role": episode.role,
        "event_time": episode.at,
        "said_at": episode.at or episode.known_from,
        "now": now,
        "made_by": fact.made_by,
        "embedding": HalfVector(fact.embedding),
        "length": fact.length,
        "lexemes": fact.lexemes.tolist(),
        "weights": to_sparse(fact.lexemes, fact.weights),
    }
    connection.execute(_SQL["insert_fact"], params)
    connection.execute(_SQL["insert_index"], params)


def _now(connection: Connection) -> datetime:
    moment: datetime = rows(connection, "SELECT clock_timestamp()")[0][0]
    return moment


def _owner(scope: Scope, owner: Owner) -> dict[str, Any]:
    return {"tenant_id": scope.tenant_id, "user_id": owner.user, "session_id": owner.session_id}


def _moment(scope: Scope) -> dict[str, Any]:
    return {**reader(scope), "as_of": scope.as_of}


def _known(row: TupleRow) -> KnownFact:
    columns = "fact_id chain_id session_id episode_id subject attribute value same_as said_at"
    return made_of(KnownFact, columns, row)


def _missing(fact_id: int) -> NotFoundError:
    return NotFoundError(f"There is no fact {fact_id}. `recollect facts list` shows them.")


def _with_evidence(connection: Connection, scope: Scope, found: Sequence[TupleRow]) -> list[Fact]:
    facts = [_fact(row) for row in found]
    if not facts:
        return []
    params = {"tenant_id": scope.tenant_id, "fact_ids": [fact.fact_id for fact in facts]}
    evidence: dict[int, list[FactEvidence]] = {}
    for fact_id, *row in rows(connection, _SQL["evidence"], params):
        evidence.setdefault(fact_id, []).append(_evidence(row))
    return [replace(fact, evidence=tuple(evidence.get(fact.fact_id, ()))) for fact in facts]


def _fact(row: TupleRow) -> Fact:
    columns = (
        "fact_id chain_id statement subject attribute value session user role at said_at known_from made_by "
        "superseded_by superseded_at"
    )
    return made_of(Fact, columns, [*row[:6], *row[7:]])


def _evidence(row: Sequence[Any]) -> FactEvidence:
    columns = "kind episode_id session position role at start_offset end_offset quote"
    return made_of(FactEvidence, columns, row)
