"""Several collections searched as if they were one: their words weighed alike, their candidates in one order.

A word that is rare in a small collection may be frequent in all of them together, and the other way round. BM25 of
different collections can be compared only where its document frequencies and average length are those of all; cosine
similarities of one model can be compared as they are (of several: `recollect.retrieval.spaces`). So the statistics are
added up before candidates are looked for, and what is found is joined before it is fused and reranked.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import TypeVar

from recollect.retrieval.analysis import lexeme
from recollect.retrieval.candidates import CandidateRequest, Candidates, PooledStatistics
from recollect.retrieval.lexical import usually_beside

_Value = TypeVar("_Value")


def pooled(requests: Sequence[CandidateRequest], frequencies: Sequence[Mapping[str, int]]) -> list[CandidateRequest]:
    """The requests with the statistics of all their collections.

    Args:
        requests: One for each collection.
        frequencies: In how many chunks of each collection the words of its request stand. Only words of one language
            are added up: analysed in another one, they are others.
    """
    sizes = [max(request.collection.stats_chunks, request.collection.chunk_count) for request in requests]
    terms = sum(size * request.collection.average_length for size, request in zip(sizes, requests, strict=True))
    chunks = max(1, sum(sizes))
    # Of collections that are all empty, any length will do.
    length = terms / chunks or 1.0
    beside = usually_beside([request.collection for request in requests])
    joined = []
    for request, own in zip(requests, frequencies, strict=True):
        elsewhere = {
            lexeme(word, request.collection.collection_id): sum(
                other.get(word, 0)
                for one, other in zip(requests, frequencies, strict=True)
                if one is not request and one.collection.language == request.collection.language
            )
            for word in own
        }
        joined.append(replace(request, pooled=PooledStatistics(elsewhere, chunks, length, beside)))
    return joined


def merged(results: Sequence[Candidates], *, limit: int, comparable: Mapping[int, float] | None = None) -> Candidates:
    """What was found in several collections, as if they were one.

    Args:
        results: Of each collection; no chunk is in two of them.
        limit: Candidates that each way contributes.
        comparable: The similarities on one scale, where they are of several models.
    """
    if len(results) == 1:
        return results[0]
    dense = _best((item for one in results for item in one.dense), limit, comparable)
    lexical = _best((item for one in results for item in one.lexical), limit)
    kept = {chunk_id for chunk_id, _ in (*dense, *lexical)}

    return Candidates(
        dense=dense,
        lexical=lexical,
        similarities=_of(kept, (one.similarities for one in results)),
        bm25=_of(kept, (one.bm25 for one in results)),
        in_context=_of(kept, (one.in_context for one in results)),
        coverage=_of(kept, (one.coverage for one in results)),
        paths={
            way: " and ".join(sorted({one.paths[way] for one in results if way in one.paths}))
            for way in ("dense", "lexical")
            if any(way in one.paths for one in results)
        },
        embedding=next((one.embedding for one in results if one.embedding is not None), None),
        vectors=_of(kept, (one.vectors for one in results)),
        weights={number: weight for one in results for number, weight in one.weights.items()},
        dense_exact=all(one.dense_exact for one in results),
        lexical_exact=all(one.lexical_exact for one in results),
    )


def _of(chunk_ids: Set[int], maps: Iterable[Mapping[int, _Value]]) -> dict[int, _Value]:
    return {chunk_id: value for known in maps for chunk_id, value in known.items() if chunk_id in chunk_ids}


def _best(
    scored: Iterable[tuple[int, float]], limit: int, comparable: Mapping[int, float] | None = None
) -> list[tuple[int, float]]:
    measured = comparable or {}
    return heapq.nsmallest(limit, scored, key=lambda item: (-measured.get(item[0], item[1]), item[0]))
