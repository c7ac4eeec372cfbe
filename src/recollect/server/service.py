"""What every request of one application shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.pipeline import RAGPipeline
    from recollect.pipeline.threads import Threads
    from recollect.server.authentication import Authenticator
    from recollect.server.idempotency import Idempotency
    from recollect.server.kept_streams import KeptStreams
    from recollect.server.limits import Limits
    from recollect.server.metrics import Metrics
    from recollect.server.searches import Searches


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What every request of one application shares.

    Attributes:
        rag: The open store.
        authenticator: Tells who asks.
        limits: How much they may ask for.
        idempotency: Which writes were made.
        searches: Computes searches, so many at a time, of which callers have equal shares.
        streams: The threads that streamed answers are made in.
        metrics: What was done.
        kept: Answers that go on for a while after their connection broke.
    """

    rag: RAGPipeline
    authenticator: Authenticator
    limits: Limits
    idempotency: Idempotency
    searches: Searches
    streams: Threads
    metrics: Metrics
    kept: KeptStreams
