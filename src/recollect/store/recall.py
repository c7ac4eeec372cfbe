"""The two arms of a search of memory. Vectors and weights in, turns out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString

import numpy as np
from pgvector import HalfVector

from recollect.model import Scope
from recollect.model.memory import Episode
from recollect.store.database import Database, rows
from recollect.store.memory import episode_of, reader
from recollect.store.search import Floats, Ints, to_sparse
from recollect.store.sql import queries
from recollect.store.wire import sparsevec_batch

_SQL = queries("memory")

#: Where an episode stands: (session_id, position).
Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class SearchedSessions:
    """The sessions that a recall looks into.

    Attributes:
        session_ids: None: every session of the tenant, for a caller who may read them all.
        turns: How many turns they have.
        terms: How long those are together, in terms.
        models: The embedding models that their vectors are of.
    """

    session_ids: tuple[int, ...] | None
    turns: int
    terms: float
    models: frozenset[str]

    @property
    def average_length(self) -> float:
        """Of a turn, in terms."""
        return self.terms / self.turns if self.turns else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Which turns an arm may return.

    Attributes:
        session_ids: Of these sessions; None: of any of the tenant's.
        since: Said at this time or later; None: at any.
        until: Said before this time; None: at any.
        limit: How many at most.
    """

    session_ids: tuple[int, ...] | None
    since: datetime | None = None
    until: datetime | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True)
class TurnWords:
    """The words of some turns, laid out for scoring them at once.

    Attributes:
        episode_ids: Of n turns.
        lengths: float64 array of shape (n,), in terms.
        counts: int32 array of shape (n,): how many lexemes each has.
        lexemes: int32 array of shape (counts.sum(),): the first turn's, then the second's, …
        weights: float32 array parallel to ``lexemes``.
    """

    episode_ids: list[int]
    lengths: np.ndarray[Any, np.dtype[np.float64]]
    counts: Ints
    lexemes: Ints
    weights: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Surrounded:
    """A turn with its neighbours, oldest first."""

    episode: Episode
    user: str | None
    before: tuple[Episode, ...]
    after: tuple[Episode, ...]


class RecallRepository:
    """Searches the turns of conversations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def searched(self, scope: Scope, *, named: Sequence[int] = (), user: str | None = None) -> SearchedSessions:
        """The named sessions together with all of a user's; without either, every session that the scope may read."""
        everything = not named and user is None
        params = {**reader(scope), "everything": everything, "named": list(named), "user_id": user}
        with self._database.single_reads(scope) as connection:
            found = rows(connection, _SQL["searched"], params, prepare=False)
        return SearchedSessions(
            None if everything and scope.principal is None else tuple(row[0] for row in found),
            sum(row[1] for row in found),
            sum(row[2] for row in found),
            frozenset(row[3] for row in found),
        )

    def document_frequencies(
        self, scope: Scope, lexemes: Sequence[int], *, session_ids: tuple[int, ...] | None
    ) -> dict[int, int]:
        """In how many turns of the sessions each lexeme stands; those in none are left out."""
        params = {"tenant_id": scope.tenant_id, "lexemes": list(lexemes), "session_ids": _list(session_ids)}
        name = "tenant_frequencies" if session_ids is None else "document_frequencies"
        with self._database.single_reads(scope) as connection:
            return dict(rows(connection, _SQL[name], params, prepare=False))

    def dense(
        self, scope: Scope, window: Window, embedding: Floats, *, places: dict[int, Place]
    ) -> list[tuple[int, float]]:
        """Turns as (episode_id, cosine similarity), the most similar first; their places are added to ``places``."""
        params = {**_params(scope, window), "embedding": HalfVector(embedding)}
        return self._similarities(scope, _SQL["dense"], params, places)

    def lexical(
        self,
        scope: Scope,
        window: Window,
        query: dict[int, float],
        *,
        candidates: Sequence[int],
        places: dict[int, Place],
    ) -> TurnWords:
        """The turns that score most by their stored weights, of those with one of the candidate lexemes at least.

        Their places are added to ``places``.
        """
        lexemes = sorted(query)
        weights = [query[lexeme] for lexeme in lexemes]
        params = {**_params(scope, window), "lexemes": list(candidates), "query": to_sparse(lexemes, weights)}
        return self._words(scope, _SQL["lexical"], params, places)

    def similarities(
        self, scope: Scope, embedding: Floats, episode_ids: Sequence[int], *, places: dict[int, Place]
    ) -> list[tuple[int, float]]:
        """Cosine similarities of given turns, in no order."""
        params = {
            "tenant_id": scope.tenant_id,
            "embedding": HalfVector(embedding),
            "episode_ids": list(episode_ids),
        }
        return self._similarities(scope, _SQL["similarities"], params, places)

    def words(self, scope: Scope, episode_ids: Sequence[int], *, places: dict[int, Place]) -> TurnWords:
        """The words of given turns."""
        params = {"tenant_id": scope.tenant_id, "episode_ids": list(episode_ids)}
        return self._words(scope, _SQL["lexical_rows"], params, places)

    def surroundings(
        self, scope: Scope, episode_ids: Sequence[int], *, before: int, after: int
    ) -> dict[int, Surrounded]:
        """Given turns, by episode id, with so many turns before and after each."""
        params = {
            "tenant_id": scope.tenant_id,
            "episode_ids": list(episode_ids),
            "before": before,
            "after": after,
            "as_of": scope.as_of,
        }
        with self._database.single_reads(scope) as connection:
            found = rows(connection, _SQL["surroundings"], params, prepare=False)
        grouped: dict[int, list[tuple[str | None, Episode]]] = {}
        for hit, episode_id, session, user, *rest in found:
            grouped.setdefault(hit, []).append((user, episode_of((episode_id, session, *rest))))
        return {hit: around for hit, members in grouped.items() if (around := _surrounded(hit, members)) is not None}

    def _similarities(
        self, scope: Scope, statement: LiteralString, params: dict[str, Any], places: dict[int, Place]
    ) -> list[tuple[int, float]]:
        with self._database.single_reads(scope) as connection:
            found = rows(connection, statement, params, prepare=False)
        places.update({row[0]: (row[1], row[2]) for row in found})
        return [(row[0], row[3]) for row in found]

    def _words(
        self, scope: Scope, statement: LiteralString, params: dict[str, Any], places: dict[int, Place]
    ) -> TurnWords:
        with self._database.single_reads(scope) as connection:
            found = rows(connection, statement, params, prepare=False)
        places.update({row[0]: (row[1], row[2]) for row in found})
        counts, indices, weights = sparsevec_batch([row[4] for row in found])
        lengths = np.array([row[3] for row in found], dtype=np.float64)
        return TurnWords([row[0] for row in found], lengths, counts, indices + 1, weights)


def _surrounded(hit: int, members: Sequence[tuple[str | None, Episode]]) -> Surrounded | None:
    at = next((index for index, (_, episode) in enumerate(members) if episode.episode_id == hit), None)
    if at is None:  # deleted or forgotten meanwhile
        return None
    episodes = tuple(episode for _, episode in members)
    return Surrounded(episode=episodes[at], user=members[at][0], before=episodes[:at], after=episodes[at + 1 :])


def _params(scope: Scope, window: Window) -> dict[str, Any]:
    return {
        "tenant_id": scope.tenant_id,
        "session_ids": _list(window.session_ids),
        "as_of": scope.as_of,
        "since": window.since,
        "until": window.until,
        "limit": window.limit,
    }


def _list(session_ids: tuple[int, ...] | None) -> list[int] | None:
    return None if session_ids is None else list(session_ids)
