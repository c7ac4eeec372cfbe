"""The two arms of a search of facts. Vectors and weights in, numbers of facts out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pgvector import HalfVector
from psycopg.rows import TupleRow

from recollect.model import Scope
from recollect.store.database import Database, rows
from recollect.store.recall import TurnWords, Window
from recollect.store.search import Floats, to_sparse
from recollect.store.sql import queries
from recollect.store.wire import sparsevec_batch

_SQL = queries("facts")


class FactSearchRepository:
    """Searches the facts that are current, at the moment of the scope."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def dense(self, scope: Scope, window: Window, embedding: Floats) -> list[tuple[int, float]]:
        """Current facts as (fact_id, cosine similarity), the most similar first."""
        params = {**_window(scope, window), "embedding": HalfVector(embedding)}
        with self._database.single_reads(scope) as connection:
            return [(row[0], row[1]) for row in rows(connection, _SQL["dense"], params, prepare=False)]

    def lexical(self, scope: Scope, window: Window, query: dict[int, float], *, candidates: Sequence[int]) -> TurnWords:
        """The current facts that score most, of those with one of the candidate lexemes at least."""
        lexemes = sorted(query)
        params = {
            **_window(scope, window),
            "lexemes": list(candidates),
            "query": to_sparse(lexemes, [query[lexeme] for lexeme in lexemes]),
        }
        with self._database.single_reads(scope) as connection:
            return _words(rows(connection, _SQL["lexical"], params, prepare=False))

    def index_rows(
        self, scope: Scope, embedding: Floats, fact_ids: Sequence[int]
    ) -> tuple[dict[int, float], TurnWords]:
        """The similarities and the words of given facts."""
        params = {
            "tenant_id": scope.tenant_id,
            "embedding": HalfVector(embedding),
            "fact_ids": list(fact_ids),
        }
        with self._database.single_reads(scope) as connection:
            found = rows(connection, _SQL["index_rows"], params, prepare=False)
        return {row[0]: row[1] for row in found}, _words([(row[0], row[2], row[3]) for row in found])


def _window(scope: Scope, window: Window) -> dict[str, Any]:
    return {
        "tenant_id": scope.tenant_id,
        "as_of": scope.as_of,
        "session_ids": None if window.session_ids is None else list(window.session_ids),
        "since": window.since,
        "until": window.until,
        "limit": window.limit,
    }


def _words(found: Sequence[TupleRow]) -> TurnWords:
    counts, indices, weights = sparsevec_batch([row[2] for row in found])
    lengths = np.array([row[1] for row in found], dtype=np.float64)
    return TurnWords([row[0] for row in found], lengths, counts, indices + 1, weights)
