"""One answer from collections of several tenants: what each of them found, brought to one measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from recollect.model import SearchReply
from recollect.retrieval import fusion

if TYPE_CHECKING:
    from recollect.model import RetrievalOptions, RetrievedContext


def search_each(
    query: str,
    options: RetrievalOptions,
    collections: Sequence[str],
    search: Callable[[str, RetrievalOptions], SearchReply],
    *,
    dense_weight: float,
) -> SearchReply:
    """Search collections one after the other, and order what they found together.

    No statement sees two tenants, so they cannot be searched as if they were one (`Searcher.search_together`).
    Scores say how a passage stands among the candidates of its own search, so the best of a collection that has nothing
    to say would come as high as the best of one that has. Cosine similarities are comparable, and BM25 nearly is; they
    are fused anew over everything that was found.

    Args:
        query: In plain words.
        options: Of each search; ``top_k`` passages come from all together.
        collections: By the names that ``search`` knows them by; all of one embedding model.
        search: Searches one collection.
        dense_weight: Share of the similarity, where both are known.

    Returns:
        The passages, each with its ``collection``; the reply names the first one.
    """
    # Only an explanation names the score of each arm.
    replies = [search(name, replace(options, explain=True)) for name in collections]
    found = {
        passage.chunk_id: replace(passage, collection=reply.collection)
        for reply in replies
        for passage in reply.results
    }
    ranked = _ranked(options, list(found.values()), dense_weight)[: options.top_k]
    results = tuple(
        replace(
            found[chunk_id],
            rank=rank,
            score=score,
            explain=found[chunk_id].explain if options.explain else None,
        )
        for rank, (chunk_id, score) in enumerate(ranked, 1)
    )
    return SearchReply(
        query=query,
        collection=collections[0],
        mode=options.mode,
        results=results,
        timings_ms={reply.collection: reply.timings_ms.get("total", 0.0) for reply in replies},
        exact=all(reply.exact for reply in replies),
    )


def _ranked(
    options: RetrievalOptions, found: Sequence[RetrievedContext], dense_weight: float
) -> list[tuple[int, float]]:
    similar = {one.chunk_id: one.similarity for one in found if one.similarity is not None}
    worded = {one.chunk_id: one.explain.lexical.score for one in found if one.explain and one.explain.lexical}
    preferred = {one.chunk_id: one.explain.preference or 1.0 for one in found if one.explain is not None}
    weight = {"dense": 1.0, "lexical": 0.0}.get(options.mode, dense_weight)
    fused = fusion.weighted(_best_first(similar), _best_first(worded), dense_weight=weight)
    scored = [(chunk_id, fusion.presented(score) * preferred.get(chunk_id, 1.0)) for chunk_id, score in fused]
    return sorted(scored, key=lambda item: (-item[1], item[0]))


def _best_first(scores: dict[int, float]) -> list[tuple[int, float]]:
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))
