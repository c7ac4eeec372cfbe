"""What every request of one application shares."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.embedding.making import is_of_this_machine
from recollect.pipeline.threads import Threads

if TYPE_CHECKING:
    from recollect.config import RAGConfig
    from recollect.pipeline import RAGPipeline
    from recollect.server.authentication import Authenticator
    from recollect.server.idempotency import Idempotency
    from recollect.server.kept_streams import KeptStreams
    from recollect.server.limits import Limits
    from recollect.server.metrics import Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What every request of one application shares.

    Attributes:
        rag: The open store.
        authenticator: Tells who asks.
        limits: How much they may ask for.
        idempotency: Which writes were made.
        searches: The threads that searches are computed in, so many at a time, first come, first served.
        streams: The threads that streamed answers are made in.
        metrics: What was done.
        kept: Answers that go on for a while after their connection broke.
    """

    rag: RAGPipeline
    authenticator: Authenticator
    limits: Limits
    idempotency: Idempotency
    searches: Threads
    streams: Threads
    metrics: Metrics
    kept: KeptStreams


# A search waits for a provider's model most of its time, and computes little meanwhile.
_WAITING_SEARCHES = 40
_FEWEST_SEARCHES = 4


def search_threads(config: RAGConfig) -> Threads:
    """The threads that searches are computed in.

    More at once than the processors can compute make each slower and none sooner: they take the interpreter's lock and
    the caches from each other, and who came first is no longer served first.
    """
    most = config.server.concurrent_searches
    if most is None:
        enhance = config.retrieval.enhance
        waits = enhance.multi_query > 0 or enhance.hyde or not is_of_this_machine(config.embedding.provider)
        waits = waits or config.reranking.provider not in {"none", "local"}
        most = _WAITING_SEARCHES if waits else max(_FEWEST_SEARCHES, 2 * (os.cpu_count() or 1))
    return Threads(most, name="recollect-search")
