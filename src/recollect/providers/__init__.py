"""Models by provider: embeddings, reranking and chat behind official SDKs, and the local ones, from one table.

Each provider is a row of `PROVIDERS` and a file of this package; an SDK is imported only when one of its models is
used. What all have in common is written once: `HostedEmbedder`, `HostedScorer` and `HostedChatModel` wrap what a
provider's file adds with batches, retries, a circuit breaker, time-outs, checks of what comes back, and records.
"""

from recollect.model.requests import RequestRecord
from recollect.providers.catalogue import PROVIDERS, Provider
from recollect.providers.connection import Connection
from recollect.providers.registry import make_chat_model, make_embedder, make_scorer
from recollect.providers.requesting import Recorder

__all__ = [
    "PROVIDERS",
    "Connection",
    "Provider",
    "Recorder",
    "RequestRecord",
    "make_chat_model",
    "make_embedder",
    "make_scorer",
]
