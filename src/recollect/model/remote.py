"""What is searched together with a store's own collections: another server, or a retriever of a program's own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from recollect.errors import UsageError

#: How long a search waits for each.
REMOTE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Remote:
    """Something that is searched together with collections (`recollect.View.view`).

    Args:
        name: What passages and notes call it.
        retriever: A `recollect.Client`, a view of one, or anything with ``retrieve(query, options)``. A client finds
            what its key may read.
        timeout_seconds: How long a search waits for it.

    Raises:
        UsageError: One of them makes no sense.

    Example:
        >>> from recollect import Client, RAGPipeline
        >>> with RAGPipeline() as rag, Client("https://north.example.org", key="…") as north:  # doctest: +SKIP
        ...     rag.view(remotes=[Remote("north", north, timeout_seconds=2)]).ask("How long is annual leave?")
    """

    name: str
    retriever: Any
    timeout_seconds: float = REMOTE_SECONDS

    def __post_init__(self) -> None:
        name: object = self.name
        if not isinstance(name, str) or not name.strip():
            raise UsageError(f"The name of a remote is a text, not {name!r}.")
        if not callable(getattr(self.retriever, "retrieve", None)):
            raise UsageError(
                f"The remote {name!r} cannot be searched: {type(self.retriever).__name__} has no retrieve."
            )
        seconds: object = self.timeout_seconds
        valid = isinstance(seconds, int | float) and not isinstance(seconds, bool) and math.isfinite(seconds)
        if not valid or self.timeout_seconds <= 0:
            raise UsageError(f"timeout_seconds of the remote {name!r} is a number more than 0, not {seconds!r}.")
