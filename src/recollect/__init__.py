"""Retrieval-augmented generation that cites exact characters.

``RAGPipeline`` is the way in; ``RAGConfig`` holds its settings, ``Document`` is what it ingests and
``RetrievalOptions`` how it searches. A name's module is imported when the name is used.
"""

from typing import TYPE_CHECKING

from recollect._names import imported_on_use as _imported_on_use
from recollect_command import refuse_another_project as _refuse_another_project

if TYPE_CHECKING:
    from recollect.chunking.base import ChunkingStrategy
    from recollect.client import AsyncClient, Client
    from recollect.config import RAGConfig
    from recollect.embedding.base import EmbeddingProvider
    from recollect.errors import (
        AddressRefusedError,
        AuthenticationError,
        ConfigurationError,
        ConflictError,
        FetchError,
        IdempotencyKeyReusedError,
        IsolationError,
        IssuerError,
        IssuerUnavailableError,
        ModelChangedError,
        ModelUnavailableError,
        NotFoundError,
        OutOfBoundsError,
        ParseError,
        PermissionDeniedError,
        PersonalDataError,
        PluginError,
        ProviderError,
        QuotaExceededError,
        RateLimitedError,
        RecollectError,
        RequestUnderWayError,
        SchemaVersionError,
        ServerError,
        ServerUnavailableError,
        SessionExpiredError,
        SessionFullError,
        SourceError,
        StoreCorruptError,
        StoreError,
        StoreFullError,
        StoreUnavailableError,
        StreamBrokenError,
        TenantSuspendedError,
        UsageError,
        VersionChangedError,
    )
    from recollect.fetching.crawl import CrawlPlan
    from recollect.memory import QueryPatternTracker
    from recollect.model import (
        Answer,
        Citation,
        Document,
        IngestResult,
        Principal,
        RetrievalOptions,
        RetrievedContext,
        SearchReply,
        ShownPassage,
    )
    from recollect.model.memory import RecallOptions, Turn
    from recollect.model.remote import Remote
    from recollect.pipeline import RAGPipeline, View
    from recollect.pipeline.asynchronous import AsyncRAGPipeline, AsyncView
    from recollect.pipeline.facades import MultiTenantRAG, SessionRAG, TemporalRAG
    from recollect.pipeline.hybrid import ContextAssembler, HybridRetriever
    from recollect.tools import RAGTool

__all__ = [
    "AddressRefusedError",
    "Answer",
    "AsyncClient",
    "AsyncRAGPipeline",
    "AsyncView",
    "AuthenticationError",
    "ChunkingStrategy",
    "Citation",
    "Client",
    "ConfigurationError",
    "ConflictError",
    "ContextAssembler",
    "CrawlPlan",
    "Document",
    "EmbeddingProvider",
    "FetchError",
    "HybridRetriever",
    "IdempotencyKeyReusedError",
    "IngestResult",
    "IsolationError",
    "IssuerError",
    "IssuerUnavailableError",
    "ModelChangedError",
    "ModelUnavailableError",
    "MultiTenantRAG",
    "NotFoundError",
    "OutOfBoundsError",
    "ParseError",
    "PermissionDeniedError",
    "PersonalDataError",
    "PluginError",
    "Principal",
    "ProviderError",
    "QueryPatternTracker",
    "QuotaExceededError",
    "RAGConfig",
    "RAGPipeline",
    "RAGTool",
    "RateLimitedError",
    "RecallOptions",
    "RecollectError",
    "Remote",
    "RequestUnderWayError",
    "RetrievalOptions",
    "RetrievedContext",
    "SchemaVersionError",
    "SearchReply",
    "ServerError",
    "ServerUnavailableError",
    "SessionExpiredError",
    "SessionFullError",
    "SessionRAG",
    "ShownPassage",
    "SourceError",
    "StoreCorruptError",
    "StoreError",
    "StoreFullError",
    "StoreUnavailableError",
    "StreamBrokenError",
    "TemporalRAG",
    "TenantSuspendedError",
    "Turn",
    "UsageError",
    "VersionChangedError",
    "View",
]

_refuse_another_project(__file__)

__getattr__, __dir__ = _imported_on_use(
    __name__,
    {
        "recollect.chunking.base": ("ChunkingStrategy",),
        "recollect.client": ("AsyncClient", "Client"),
        "recollect.config": ("RAGConfig",),
        "recollect.embedding.base": ("EmbeddingProvider",),
        "recollect.errors": tuple(name for name in __all__ if name.endswith("Error")),
        "recollect.fetching.crawl": ("CrawlPlan",),
        "recollect.memory": ("QueryPatternTracker",),
        "recollect.model": (
            "Answer",
            "Citation",
            "Document",
            "IngestResult",
            "Principal",
            "RetrievalOptions",
            "RetrievedContext",
            "SearchReply",
            "ShownPassage",
        ),
        "recollect.model.memory": ("RecallOptions", "Turn"),
        "recollect.model.remote": ("Remote",),
        "recollect.pipeline": ("RAGPipeline", "View"),
        "recollect.pipeline.asynchronous": ("AsyncRAGPipeline", "AsyncView"),
        "recollect.pipeline.facades": ("MultiTenantRAG", "SessionRAG", "TemporalRAG"),
        "recollect.pipeline.hybrid": ("ContextAssembler", "HybridRetriever"),
        "recollect.tools": ("RAGTool",),
    },
)
