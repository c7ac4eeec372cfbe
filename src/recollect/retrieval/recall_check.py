"""The recall of approximate searches where nobody searches: a collection is asked with words of its own."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from recollect.retrieval.candidates import CandidateRequest
from recollect.retrieval.enhance.plan import QueryPlan, query_vector
from recollect.retrieval.lexical import SCANNED_COLLECTION_CHUNKS
from recollect.retrieval.probe import RECALL_AT, sample_of
from recollect.retrieval.stopwatch import Stopwatch

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider
    from recollect.model import Scope
    from recollect.model.collection import Collection
    from recollect.retrieval.candidates import CandidateSource
    from recollect.retrieval.probe import RecallProbe
    from recollect.store.search_health import SearchHealthRepository

#: A collection that was measured within so many seconds, by searches or by this, is not asked.
FRESH_SECONDS = 3600.0

_QUESTIONS = 5
# As many words as people's questions have, in a row: words that belong together, as theirs do.
_WORDS = 10


class RecallCheck:
    """Asks collections whose searches are approximate, and adds what they find of the exact result to their counts.

    Args:
        repository: Keeps the counts, and draws passages.
        source: Finds candidates as searches do.
        probe: Repeats a search exactly.
        limit: Candidates that each way contributes, as in searches.
        draw: Gives a number below the one that it is given.
    """

    def __init__(
        self,
        repository: SearchHealthRepository,
        source: CandidateSource,
        probe: RecallProbe,
        *,
        limit: int,
        draw: Callable[[int], int] = random.randrange,
    ) -> None:
        self._repository = repository
        self._source = source
        self._probe = probe
        self._limit = limit
        self._draw = draw

    def is_due(self, scope: Scope, collection: Collection) -> bool:
        """Whether searches of a collection are approximate, and none of them was measured lately."""
        if not collection.indexed and collection.chunk_count <= SCANNED_COLLECTION_CHUNKS:
            return False
        known = self._repository.recent(scope).get(collection.collection_id)
        since = datetime.now(UTC) - timedelta(seconds=FRESH_SECONDS)
        return known is None or known.last_probe is None or known.last_probe < since

    def measure(self, scope: Scope, collection: Collection, embedder: EmbeddingProvider) -> int:
        """Ask a collection some questions, each once as searches do and once exactly; returns how many were compared.

        Args:
            scope: Whose it is; nobody in particular asks.
            collection: Which.
            embedder: Its model.

        Raises:
            StoreError: A search was refused, failed or took too long.
            ProviderError: The embedding model failed.
        """
        compared = 0
        for passage in self._repository.passages(scope, collection, count=_QUESTIONS):
            plan = QueryPlan(query=self._question(passage))
            request = CandidateRequest(
                collection=collection,
                plan=plan,
                mode="hybrid",
                top_k=RECALL_AT,
                limit=self._limit,
                embedding=query_vector(plan, embedder),
            )
            sample = sample_of(scope, request, self._source.candidates(scope, request, Stopwatch()))
            measured = None if sample is None else self._probe.measure(sample)
            if measured is not None:
                self._repository.add(scope, collection.collection_id, measured)
                compared += 1
        return compared

    def _question(self, passage: str) -> str:
        words = passage.split()
        start = self._draw(max(1, len(words) - _WORDS + 1))
        return " ".join(words[start : start + _WORDS])
