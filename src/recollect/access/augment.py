"""One answer from every collection that somebody may read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recollect.errors import NotFoundError, StoreError
from recollect.model import SearchReply
from recollect.retrieval.validation import validate

if TYPE_CHECKING:
    from recollect.model import RetrievalOptions, Scope
    from recollect.retrieval.search import Searcher
    from recollect.store.collections import CollectionRepository

#: What the reply of a search of every collection names as its collection.
EVERYWHERE = "*"

# How often a search is tried while collections are deleted, or closed to the caller.
_ATTEMPTS = 6


def search_everywhere(
    searcher: Searcher,
    collections: CollectionRepository,
    scope: Scope,
    query: str,
    options: RetrievalOptions,
    *,
    model: str,
) -> SearchReply:
    """Search every collection of the scope together, as if they were one.

    Args:
        searcher: Searches.
        collections: Lists them.
        scope: Who asks, and whose knowledge.
        query: In plain words.
        options: Of the search; ``top_k`` passages come from all together.
        model: The embedding model: collections of another one are left out.

    Returns:
        The passages, each with its ``collection``.

    Raises:
        UsageError: The query or an option is not valid.
        StoreError: Collections came and went all the time.
    """
    validate(query, options)
    for _ in range(_ATTEMPTS):
        names = [place.name for place in collections.list_all(scope) if place.embedding_model == model]
        if not names:
            return SearchReply(query=query, collection=EVERYWHERE, mode=options.mode, results=(), timings_ms={})
        try:
            found = searcher.search_together(scope, query, options, collections=names)
        except NotFoundError:  # deleted, or closed to him, since it was listed
            continue
        return replace(found, collection=EVERYWHERE)
    raise StoreError("Collections are deleted, or closed to you, all the time: try again in a moment.")
