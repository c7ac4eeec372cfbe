"""Retrievers that are not recollect's own: a program's, another package's, or another server."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from recollect.errors import PluginError, UsageError
from recollect.model import RetrievalOptions, RetrievedContext, Scope
from recollect.plugins import Plugins, told

#: How recollect itself searches.
MODES = ("hybrid", "dense", "lexical")

#: Other packages add retrievers by entry points of its group: a name, and a class that is made without arguments.
RETRIEVERS = Plugins(
    kind="retriever", group="recollect.retrievers", own=dict.fromkeys(MODES, True), methods=("retrieve",)
)


class Retriever(Protocol):
    """Finds passages. Safe to share between threads; `recollect.View` and `recollect.Client` are ones.

    One whose `retrieve` takes a keyword ``scope`` is told whose knowledge is asked for, by whom and as of when
    (`recollect.model.Scope`), and answers for what it shows. One that does not is asked for the owner of the store's
    default tenant alone, and of the present.
    """

    def retrieve(self, query: str, options: RetrievalOptions, /) -> Sequence[RetrievedContext]:
        """The passages that answer a query, best first.

        Args:
            query: In plain words.
            options: How to search; ``top_k`` is always given.
        """
        ...


def retrieved(
    name: str,
    retriever: Any,  # noqa: ANN401 - whoever's it is
    query: str,
    options: RetrievalOptions,
    scope: Scope,
    *,
    tenant_id: int,
) -> list[RetrievedContext]:
    """What a retriever finds, checked, ``top_k`` passages at most.

    Args:
        name: Of it, for messages.
        retriever: Finds passages.
        query: In plain words.
        options: How to search.
        scope: Whose knowledge is asked for, by whom and as of when.
        tenant_id: Whose it is asked for where it takes no scope.

    Raises:
        UsageError: It takes no scope, and is asked for somebody in particular or of the past.
        PluginError: It failed, or gave what are no passages.
    """
    try:
        if "scope" in inspect.signature(retriever.retrieve).parameters:
            found = retriever.retrieve(query, options, scope=scope)
        elif scope.tenant_id == tenant_id and scope.principal is None and scope.as_of is None:
            found = retriever.retrieve(query, options)
        else:
            raise UsageError(
                f"The retriever {name!r} knows neither who asks nor other tenants nor the past: its retrieve takes no "
                "scope. Search in another mode, or as the owner of the store."
            )
    except UsageError:
        raise
    except Exception as exc:
        raise PluginError(f"The retriever {name!r} failed: {told(exc)}.") from exc
    return checked_passages(name, found, top_k=options.top_k)


def checked_passages(name: str, found: object, *, top_k: int | None) -> list[RetrievedContext]:
    """Passages of a retriever, numbered by their order.

    Raises:
        PluginError: They are none.
    """
    if not isinstance(found, Sequence) or isinstance(found, str):
        raise PluginError(f"The retriever {name!r} gave no list of passages, but {type(found).__name__}.")
    passages = list(found[:top_k])
    for place, passage in enumerate(passages, start=1):
        wrong = _wrong_with(passage)
        if wrong:
            raise PluginError(f"The retriever {name!r} gave a wrong passage (number {place}): {wrong}.")
    return [replace(passage, rank=rank) for rank, passage in enumerate(passages, start=1)]


def _wrong_with(passage: object) -> str:
    """What keeps something from being a passage; empty: nothing."""
    if not isinstance(passage, RetrievedContext):
        return f"it is no RetrievedContext, but {type(passage).__name__}"
    for names, kind in ((("content", "source", "title"), str), (_WHOLE, int), (("metadata",), Mapping)):
        for name in names:
            if not isinstance(getattr(passage, name), kind):
                return f"{name} is no {kind.__name__}: {getattr(passage, name)!r:.100}"
    start, end, length = passage.start_offset, passage.end_offset, len(passage.content)
    if start < 0 or end - start != length:
        return f"its offsets, {start} to {end}, are not those of its {length} characters"
    if not _measure(passage.score):
        return f"score is no finite number: {passage.score!r:.100}"
    if passage.relevance is not None and not (_measure(passage.relevance) and 0 <= passage.relevance <= 1):
        return f"relevance does not lie between 0 and 1: {passage.relevance!r:.100}"
    return ""


_WHOLE = ("chunk_id", "document_id", "start_offset", "end_offset")


def _measure(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
