"""Searches of memory, of its turns and the facts drawn from them. Vectors and weights in, candidates out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pgvector import HalfVector

from recollect.model import Scope
from recollect.model.memory import Episode
from recollect.store.database import Repository
from recollect.store.memory import episode_of, reader
from recollect.store.search import CandidateRows, Floats, candidate_rows, to_sparse
from recollect.store.sql import queries

_SQL = queries("memory")

#: What is searched: turns as they were said, or facts.
MemoryTable = Literal["turns", "facts"]

# Both ways of searching have the same parameters and columns everywhere; turns tell where they stand besides.
_STATEMENTS = {"turns": _SQL, "facts": queries("facts")}

#: Where an episode stands: (session_id, position).
Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class SearchedSessions:
    """The sessions that a recall looks into.

    Attributes:
        session_ids: None: every session of the tenant, for a caller who may read them all.
        turns: How many turns they have.
        terms: How long those are together, in terms.
        by_model: The numbers of those whose vectors are of each embedding model.
    """

    session_ids: tuple[int, ...] | None
    turns: int
    terms: float
    by_model: Mapping[str, tuple[int, ...]]

    @property
    def average_length(self) -> float:
        """Of a turn, in terms."""
        return self.terms / self.turns if self.turns else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What may be returned.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Surrounded:
    """A turn with its neighbours, oldest first."""

    episode: Episode
    user: str | None
    before: tuple[Episode, ...]
    after: tuple[Episode, ...]


class RecallRepository(Repository):
    """Searches conversations."""

    def searched(self, scope: Scope, *, named: Sequence[int] = (), user: str | None = None) -> SearchedSessions:
        """The named sessions together with all of a user's; without either, every session that the scope may read."""
        everything = not named and user is None
        params = {**reader(scope), "everything": everything, "named": list(named), "user_id": user}
        found = self._database.read(scope, _SQL["searched"], params, prepare=False)
        by_model: dict[str, list[int]] = {}
        for row in found:
            by_model.setdefault(row[3], []).append(row[0])
        return SearchedSessions(
            None if everything and scope.principal is None else tuple(row[0] for row in found),
            sum(row[1] for row in found),
            sum(row[2] for row in found),
            {model: tuple(own) for model, own in by_model.items()},
        )

    def document_frequencies(
        self, scope: Scope, lexemes: Sequence[int], *, session_ids: tuple[int, ...] | None
    ) -> dict[int, int]:
        """In how many turns of the sessions each lexeme stands; those in none are left out."""
        params = {"tenant_id": scope.tenant_id, "lexemes": list(lexemes), "session_ids": _list(session_ids)}
        name = "tenant_frequencies" if session_ids is None else "document_frequencies"
        return dict(self._database.read(scope, _SQL[name], params, prepare=False))

    def dense(
        self, scope: Scope, table: MemoryTable, window: Window, embedding: Floats, *, words: bool
    ) -> tuple[CandidateRows, dict[int, Place]]:
        """What is most similar to a vector, with its words where those are wanted; and where turns stand."""
        return self._found(scope, table, "dense", {**_params(scope, window), "embedding": embedding, "words": words})

    def lexical(
        self,
        scope: Scope,
        table: MemoryTable,
        window: Window,
        query: Mapping[int, float],
        *,
        candidates: Sequence[int],
        embedding: Floats | None,
    ) -> tuple[CandidateRows, dict[int, Place]]:
        """What scores most by its stored weights, of what has one of the candidate lexemes at least.

        With its similarities to the ``embedding``, where one is given; and where turns stand.
        """
        lexemes = sorted(query)
        params = {
            **_params(scope, window),
            "lexemes": list(candidates),
            "query": to_sparse(lexemes, [query[lexeme] for lexeme in lexemes]),
            "embedding": embedding,
        }
        return self._found(scope, table, "lexical", params)

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
        found = self._database.read(scope, _SQL["surroundings"], params, prepare=False)
        grouped: dict[int, list[tuple[str | None, Episode]]] = {}
        for hit, episode_id, session, user, *rest in found:
            grouped.setdefault(hit, []).append((user, episode_of((episode_id, session, *rest))))
        return {hit: around for hit, members in grouped.items() if (around := _surrounded(hit, members)) is not None}

    def _found(
        self, scope: Scope, table: MemoryTable, way: str, params: dict[str, Any]
    ) -> tuple[CandidateRows, dict[int, Place]]:
        vector = params["embedding"]
        params["embedding"] = None if vector is None else HalfVector(vector)
        found = self._database.read(scope, _STATEMENTS[table][way], params, prepare=False)
        places = {row[0]: (row[5], row[6]) for row in found if len(row) > 5}
        return candidate_rows([(*row[:4], None) for row in found]), places


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
