"""Every setting: the tree of them (`tree.py`), its sections by subject, and how they are read (`_reading.py`)."""

from recollect.config.access import AccessConfig, MultiTenantConfig, RolePreferenceConfig, SessionDefaults
from recollect.config.models import ANSWER_PROVIDERS, AnswerConfig, EmbeddingConfig, RerankingConfig
from recollect.config.retrieval import ContextConfig, EnhanceConfig, MemoryConfig, RetrievalConfig
from recollect.config.server import JobsConfig, ServerConfig
from recollect.config.storage import (
    ChunkingConfig,
    IngestConfig,
    PrivacyConfig,
    SourcesConfig,
    StorageConfig,
    TemporalConfig,
    TemporalIndexingConfig,
)
from recollect.config.tree import CONFIG_FILE_NAME, DEFAULT_COLLECTION, SHORT_NAMES, RAGConfig

__all__ = [
    "ANSWER_PROVIDERS",
    "CONFIG_FILE_NAME",
    "DEFAULT_COLLECTION",
    "SHORT_NAMES",
    "AccessConfig",
    "AnswerConfig",
    "ChunkingConfig",
    "ContextConfig",
    "EmbeddingConfig",
    "EnhanceConfig",
    "IngestConfig",
    "JobsConfig",
    "MemoryConfig",
    "MultiTenantConfig",
    "PrivacyConfig",
    "RAGConfig",
    "RerankingConfig",
    "RetrievalConfig",
    "RolePreferenceConfig",
    "ServerConfig",
    "SessionDefaults",
    "SourcesConfig",
    "StorageConfig",
    "TemporalConfig",
    "TemporalIndexingConfig",
]
