"""The tree of settings, read once: defaults, then a TOML file, then the environment, then arguments."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from recollect.config._reading import CONFIG_FILE_VARIABLE, Place, explained, merged, read_environment, read_file
from recollect.config.access import AccessConfig, MultiTenantConfig, SessionDefaults
from recollect.config.models import AnswerConfig, EmbeddingConfig, RerankingConfig
from recollect.config.retrieval import ContextConfig, MemoryConfig, RemoteConfig, RetrievalConfig
from recollect.config.sections import Section
from recollect.config.server import JobsConfig, ServerConfig
from recollect.config.storage import (
    ChunkingConfig,
    IngestConfig,
    PrivacyConfig,
    SourcesConfig,
    StorageConfig,
    TemporalConfig,
)
from recollect.errors import ConfigurationError

# Settings of what is read of documents beside their text.


class DocumentsConfig(Section):
    """``[rag.documents]``: pictures in documents, and pages that are pictures."""

    ocr: Literal["auto", "off"] = Field(
        "auto",
        description="Whether the text of pages that are pictures is recognised: auto, where the extra ocr is "
        "installed; off: such pages are counted and named.",
    )
    ocr_seconds: float = Field(
        1800.0,
        gt=0,
        le=86_400,
        description="Seconds after which no further page of a document is recognised; the pages left are named.",
    )
    describe_images: str | None = Field(
        None,
        pattern=r"^[a-z]+/.+$",
        description="A language model that sees, as provider/model, which describes the pictures in documents: found "
        "and cited as written by it. By default none does.",
    )


#: The collection of those who never name one; it is empty, not missing, before the first document.
DEFAULT_COLLECTION = "default"
CONFIG_FILE_NAME = "recollect.toml"

#: Settings that people set often have short names in the environment, which win over the long ones.
SHORT_NAMES: dict[str, Place] = {
    "RECOLLECT_DATA_DIR": ("storage", "data_dir"),
    "RECOLLECT_DSN": ("storage", "dsn"),
    "RECOLLECT_MODEL_DIR": ("embedding", "model_dir"),
    "RAG_MIN_RELEVANCE": ("retrieval", "min_relevance"),
    "RAG_MIN_SIMILARITY": ("retrieval", "similarity_threshold"),
}


class RAGConfig(BaseModel):
    """Every setting of recollect.

    ``RAGConfig(…)`` takes the defaults, the environment, and what it is given, which wins; `RAGConfig.load` reads a
    TOML file too, between the defaults and the environment. In the environment a setting is
    ``RECOLLECT_<SECTION>__<KEY>``, for instance ``RECOLLECT_RETRIEVAL__TOP_K``; ``RECOLLECT_DATA_DIR``,
    ``RECOLLECT_DSN`` and ``RECOLLECT_MODEL_DIR`` are short for three of them. Give sections as mappings: a section that
    is made by itself (``RetrievalConfig(top_k=0)``) is a pydantic model and refused with pydantic's own error.

    Args:
        **given: Sections or settings that win over file and environment.

    Raises:
        ConfigurationError: A key does not exist, here, in the file or in the environment, or a value is not allowed.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    collection: str = Field(DEFAULT_COLLECTION, description="The collection that is used where none is named.")
    tenant: str | None = Field(
        None,
        min_length=1,
        description="Whose knowledge, where no tenant is named: by name or number; none: the store's own.",
    )
    language: str = Field(
        "auto",
        description="Language of new collections (ISO 639-1); auto: each document is analysed in its own.",
    )
    chunking: ChunkingConfig = ChunkingConfig()
    embedding: EmbeddingConfig = Field(default_factory=EmbeddingConfig)
    storage: StorageConfig = Field(default_factory=StorageConfig)
    ingest: IngestConfig = IngestConfig()
    documents: DocumentsConfig = DocumentsConfig()
    sources: SourcesConfig = SourcesConfig()
    retrieval: RetrievalConfig = RetrievalConfig()
    reranking: RerankingConfig = RerankingConfig()
    remotes: tuple[RemoteConfig, ...] = Field((), description="Servers that are searched together with the store.")
    context: ContextConfig = ContextConfig()
    answer: AnswerConfig = AnswerConfig()
    memory: MemoryConfig = MemoryConfig()
    temporal: TemporalConfig = TemporalConfig()
    jobs: JobsConfig = JobsConfig()
    session: SessionDefaults = SessionDefaults()
    access: AccessConfig = Field(default_factory=AccessConfig)
    multi_tenant: MultiTenantConfig = Field(default_factory=MultiTenantConfig)
    privacy: PrivacyConfig = PrivacyConfig()
    server: ServerConfig = Field(default_factory=ServerConfig)

    @property
    def top_k(self) -> int:
        """Passages that a search returns which does not say how many."""
        return self.retrieval.top_k if self.reranking.provider == "none" else self.reranking.top_k

    def __init__(self, *, _file: Path | None = None, **given: Any) -> None:  # noqa: ANN401 - each has its own type
        settings = {} if _file is None else read_file(_file, type(self))
        environment = read_environment(type(self), os.environ, short_names=SHORT_NAMES)
        problems = environment.problems
        try:
            super().__init__(**merged(merged(settings, environment.values), given))
        except ValidationError as exc:
            problems = [*problems, *explained(exc, type(self), environment.names, given)]
        if problems:
            where = f"Settings (with {_file})" if _file else "Settings"
            raise ConfigurationError(f"{where} are not valid:\n  " + "\n  ".join(problems))

    @classmethod
    def load(cls, path: Path | None = None, **overrides: Mapping[str, Any] | str) -> RAGConfig:
        """Read the settings.

        Args:
            path: A TOML file whose ``[rag]`` table holds settings. None: ``RECOLLECT_CONFIG``, then
                ``recollect.toml`` in the working directory, then none.
            **overrides: Sections or settings that win over file and environment.

        Raises:
            ConfigurationError: The file cannot be read, a key does not exist, or a value is not allowed.
        """
        return cls(_file=path or default_file(), **overrides)


def default_file() -> Path | None:
    """The file of settings that is read where none is named; None: there is none."""
    named = os.environ.get(CONFIG_FILE_VARIABLE)
    if named:
        return Path(named)
    here = Path(CONFIG_FILE_NAME)
    return here if here.is_file() else None
