"""One tree of settings, read once: defaults, then a TOML file, then the environment, then arguments."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import platformdirs
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError

from recollect._settings import CONFIG_FILE_VARIABLE, Place, explained, merged, read_environment, read_file
from recollect.errors import ConfigurationError

#: The collection of those who never name one; it is empty, not missing, before the first document.
DEFAULT_COLLECTION = "default"
CONFIG_FILE_NAME = "recollect.toml"

#: Settings that people set often have short names in the environment, which win over the long ones.
SHORT_NAMES: dict[str, Place] = {
    "RECOLLECT_DATA_DIR": ("storage", "data_dir"),
    "RECOLLECT_DSN": ("storage", "dsn"),
    "RECOLLECT_MODEL_DIR": ("embedding", "model_dir"),
    "RAG_MIN_RELEVANCE": ("retrieval", "min_relevance"),
}


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as exc:  # nobody has that name
        raise ValueError(str(exc)) from exc


def _unless_never(given: object) -> object:
    return None if given == "never" else given


_Folder = Annotated[Path, AfterValidator(_expanded)]
# TOML has no word for None.
_Lifetime = Annotated[str | float | None, BeforeValidator(_unless_never)]


def _default_data_dir() -> Path:
    # What root keeps below its home is out of reach for the account that its server runs under.
    if sys.platform == "linux" and os.geteuid() == 0:
        return Path("/var/lib/recollect")
    return platformdirs.user_data_path("recollect")


class _Section(BaseModel):
    # An error must not show a value, which may be a password.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class ChunkingConfig(BaseModel):
    """``[rag.chunking]``: how documents are cut. A strategy's own parameters stand beside its name."""

    # Parameters differ by strategy; the strategy itself rejects the ones it does not know.
    model_config = ConfigDict(extra="allow", frozen=True, hide_input_in_errors=True)

    strategy: str = Field("recursive", description="Name of the chunking strategy.")

    @property
    def parameters(self) -> dict[str, Any]:
        """The strategy's own parameters, as given."""
        return dict(self.model_extra or {})


class _ProviderSection(_Section):
    api_key: SecretStr | None = Field(
        None, description="The provider's key; by default that of its own variable in the environment."
    )
    base_url: str | None = Field(None, description="Another address than the provider's own.")
    region: str | None = Field(None, description="Of a cloud that has several.")
    timeout_seconds: float = Field(60.0, gt=0, description="The longest wait for one answer of the provider.")
    max_retries: int = Field(3, ge=0, le=20, description="How often a request that may succeed later is repeated.")
    input_price: float | None = Field(
        None, ge=0, description="Of a million tokens that are sent, for the log of requests; by default unknown."
    )


class EmbeddingConfig(_ProviderSection):
    """``[rag.embedding]``: which model turns text into vectors."""

    provider: Literal[
        "local", "hashing", "openai", "cohere", "bedrock", "voyage", "google", "huggingface", "ollama"
    ] = Field("local", description="Whose model; hashing is a fake without one.")
    model: str | None = Field(
        None,
        description="As the provider names it, for local a directory too; by default the provider's default, for "
        "local sentence-transformers/all-MiniLM-L6-v2.",
    )
    query_model: str | None = Field(
        None, description="Another model of the same space that embeds questions, where a provider has such."
    )
    dimensions: int | None = Field(
        None, ge=1, le=4000, description="The length of a vector; by default the model's, which must be known."
    )
    truncate: bool = Field(
        False, description="Whether longer vectors are cut to `dimensions`: for Matryoshka models that are not known."
    )
    parallel: int = Field(4, ge=1, le=64, description="Requests that are under way at once.")
    batch_size: int | None = Field(None, ge=1, description="Texts of a request at most; by default the provider's.")
    batch_tokens: int | None = Field(None, ge=1, description="Tokens of a request at most; by default the provider's.")
    precision: Literal["int8", "fp32"] = Field("int8", description="Numeric format of the local model.")
    threads: int | None = Field(None, ge=1, description="Threads of the local model; by default one a core.")
    model_dir: _Folder = Field(
        default_factory=lambda: platformdirs.user_cache_path("recollect") / "models",
        description="Where fetched and built models are kept.",
    )
    cache: bool = Field(True, description="Keep embeddings in the store, so that equal text is embedded once.")
    token_vectors: bool = Field(
        False, description="Whether new collections store token vectors, for late_interaction; at most 4 KB a chunk."
    )


class RerankingConfig(_ProviderSection):
    """``[rag.reranking]``: a provider's model that orders what was found; `retrieval.rerank` names what else can."""

    provider: Literal["none", "local", "cohere", "bedrock", "voyage", "huggingface"] = Field(
        "none", description="Whose model orders results; none: `retrieval.rerank` says what does."
    )
    model: str | None = Field(
        None, description="As the provider names it, for local a cross-encoder's directory; by default its default."
    )
    timeout_seconds: float = Field(8.0, gt=0, description="The longest wait for one answer of the provider.")
    max_retries: int = Field(1, ge=0, le=20, description="How often a request that may succeed later is repeated.")
    candidates: int = Field(50, ge=1, le=1_000, description="Passages that the model sees.")
    top_k: int = Field(5, ge=1, le=1_000, description="Passages returned where a search does not say how many.")


class StorageConfig(_Section):
    """``[rag.storage]``: the embedded PostgreSQL by default, any other by DSN."""

    data_dir: _Folder = Field(
        default_factory=_default_data_dir,
        description="Where the embedded server keeps its data.",
    )
    dsn: SecretStr | None = Field(None, description="libpq connection string of a PostgreSQL with pgvector.")
    application_dsn: SecretStr | None = Field(
        None, description="With dsn: the same for a role that owns nothing, which searches and writes are done as."
    )
    max_connections: int = Field(10, ge=2, le=1000, description="Connections that one process opens at most.")
    index_threshold: int = Field(
        10_000, ge=1, description="Chunks from which on a collection's vectors get an approximate index."
    )


class IngestConfig(_Section):
    """``[rag.ingest]``: which files are read."""

    max_file_bytes: int = Field(50 * 1024 * 1024, ge=1, description="Larger files are skipped.")
    readers: int = Field(2, ge=1, le=64, description="Files that are parsed at the same time.")
    follow_links: bool = Field(
        False, description="Whether links below a folder are followed, wherever they lead; otherwise they are skipped."
    )
    parse_seconds: float = Field(
        50.0, gt=0, le=86_400, description="Seconds after which the parser of a file is ended and the file refused."
    )
    parse_memory_bytes: int = Field(
        384 * 1024 * 1024,
        ge=32 * 1024 * 1024,
        description="Bytes of memory that the parser of a file may take, and 8 more for each byte of the file.",
    )
    max_characters: int = Field(
        5_000_000,
        ge=1,
        description="Characters that a file may give when it is parsed; as many as it has bytes are always allowed.",
    )


class EnhanceConfig(_Section):
    """``[rag.retrieval.enhance]``: what is added to a query before it is searched."""

    synonyms: dict[str, _Folder] = Field(
        default_factory=dict, description="A file of synonyms by collection name; see the how-to on query enhancement."
    )
    acronyms: bool = Field(True, description="Whether an acronym that documents explain finds its long form as well.")
    multi_query: int = Field(0, ge=0, le=10, description="Other wordings that the language model is asked for.")
    hyde: bool = Field(False, description="Whether the language model drafts an answer to search by.")
    timeout_seconds: float = Field(10.0, gt=0, description="How long a search waits for the language model.")


class RetrievalConfig(_Section):
    """``[rag.retrieval]``: how the retrievers search and how their results are joined."""

    top_k: int = Field(10, ge=1, le=1000, description="Passages returned.")
    mode: Literal["hybrid", "dense", "lexical"] = Field(
        "hybrid", description="Words and meaning, meaning only, or words only."
    )
    fusion: Literal["weighted", "rrf"] = Field("weighted", description="How the retrievers' results become one list.")
    dense_weight: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Share of the dense retriever; by default 0.55 in weighted fusion and half in rrf.",
    )
    rrf_k: int = Field(60, ge=1, description="The constant k of reciprocal rank fusion.")
    candidates: int = Field(50, ge=1, le=10_000, description="Results that each retriever contributes at least.")
    similarity_threshold: float | None = Field(
        None, ge=-1, le=1, description="Passages whose cosine similarity is lower are dropped."
    )
    min_relevance: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Passages whose relevance is lower are dropped; by default none, but where not even the best "
        "passage has any, nothing is found. 0: none ever.",
    )
    min_score: float | None = Field(None, description="Passages whose score is lower are dropped.")
    notes: bool = Field(
        True, description="Whether passages say that they are superseded, or a newer document covers them."
    )
    lexical_budget: int = Field(
        2_000, ge=1, description="Document frequency that the first round of lexical candidates may add up to."
    )
    rerank: Literal["none", "consensus", "bm25", "best_sentence", "late_interaction", "cross_encoder"] = Field(
        "consensus", description="The reranker of hybrid searches."
    )
    rerank_weight: float | None = Field(None, ge=0, le=1, description="Its share of the score; by default its own.")
    rerank_model: str | None = Field(None, description="For cross_encoder: a model's directory.")
    rerank_timeout_seconds: float = Field(10.0, gt=0, description="After that, results come in their first order.")
    pseudo_relevance: bool = Field(
        False, description="Whether the first results move the query (pseudo-relevance feedback)."
    )
    collapse_duplicates: bool = Field(True, description="Show of passages that say the same only the best.")
    cache_entries: int = Field(1_000, ge=0, description="Replies that are kept for equal searches; 0 keeps none.")
    cache_seconds: float = Field(3_600, gt=0, description="How long a reply is kept.")
    query_cache_entries: int = Field(
        1_000, ge=0, description="Questions whose embeddings a process keeps; 0 keeps none."
    )
    probe_rate: float = Field(
        0.01, ge=0, le=1, description="Share of approximate searches that are measured in the background; 0: none."
    )
    enhance: EnhanceConfig = Field(default_factory=EnhanceConfig)


class ContextConfig(_Section):
    """``[rag.context]``: how much of what was found a language model is shown, in `ask` and in `context` alike."""

    token_budget: int = Field(
        3_000, ge=1, description="Tokens of a context at most, its headers included, by the model's own tokenizer."
    )
    max_context_length: int = Field(12_000, ge=500, description="Characters of a context at most, headers included.")


_AnswerProvider = Literal["extractive", "openai", "ollama", "bedrock", "google", "anthropic"]
#: What can answer.
ANSWER_PROVIDERS: tuple[str, ...] = get_args(_AnswerProvider)


class AnswerConfig(_ProviderSection):
    """``[rag.answer]``: extraction by default, a language model where one is configured."""

    provider: _AnswerProvider = Field(
        "extractive", description="extractive quotes sentences; the others ask a language model."
    )
    model: str | None = Field(None, description="As the provider names it; by default its default, where it has one.")
    api: Literal["responses", "chat"] | None = Field(
        None, description="For openai: its Responses API or chat completions; by default what the address speaks."
    )
    temperature: float | None = Field(
        None, ge=0, le=2, description="0 for the most repeatable answers; by default the model's own."
    )
    output_price: float | None = Field(
        None, ge=0, description="Of a million tokens that are written, for the log of requests; by default unknown."
    )
    passages: int = Field(10, ge=1, le=100, description="Passages that an answer may rest on.")
    top_k: int | None = Field(
        None, ge=1, le=100, description="Passages that a language model is shown at most; by default `passages`."
    )
    max_context_tokens: int | None = Field(
        None, ge=100, description="Tokens that it is shown at most; by default `context.token_budget`."
    )
    prompt: _Folder | None = Field(
        None, description="A file that holds the prompt; by default the packaged one. See the how-to on answers."
    )
    prompts: dict[str, _Folder] = Field(
        default_factory=dict, description="Such files by the name of the collection that is asked."
    )
    unsupported: Literal["mark", "remove", "retry", "refuse"] = Field(
        "mark",
        description="What becomes of sentences of a language model that the sources do not support: mark: they are "
        "shown as such; remove; retry: it is asked once more, then mark; refuse: one makes the answer a refusal.",
    )


class MemoryConfig(_Section):
    """``[rag.memory]``: how conversations become facts, and what of them a context shows."""

    facts: bool = Field(True, description="Whether contexts show facts beside documents and conversations.")

    min_retrievals: int = Field(3, ge=1, description="How often searches find a turn before facts are drawn from it.")
    facts_by_model: bool = Field(
        True, description="Whether the language model writes facts, where one is configured; else sentences are taken."
    )
    timeout_seconds: float = Field(60.0, gt=0, description="How long consolidation waits for the language model.")
    adaptive_weights: bool = Field(
        False, description="Whether feedback moves the weights of documents and memory in contexts."
    )
    max_weight_shift: float = Field(0.2, gt=0, le=0.5, description="How far feedback may move them.")


class TemporalIndexingConfig(_Section):
    """``[rag.temporal.indexing]``: what grows without end is kept in partitions by time."""

    time_partitions: Literal["hourly", "daily", "weekly", "monthly"] = Field(
        "monthly", description="How long a partition of the audit, and of the log of requests, is."
    )
    partition_retention_days: int | None = Field(
        None, ge=1, description="Days after whose end a partition is dropped whole; by default none is."
    )
    request_retention_days: int | None = Field(90, ge=1, description="The same for the log of requests to providers.")


class TemporalConfig(_Section):
    """``[rag.temporal]``: how long documents are kept."""

    default_ttl: _Lifetime = Field(
        None, description="How long documents are found that say nothing else: 30d, 12h, or seconds; never: for ever."
    )
    preserve_tags: tuple[str, ...] = Field(
        ("critical", "compliance", "legal"), description="Documents with one of these tags never expire."
    )
    auto_expire: bool = Field(True, description="Whether searches leave out what has expired; otherwise cleanup does.")
    cleanup_interval_hours: float = Field(
        24.0,
        ge=0,
        description="Hours between two clean-ups by whichever process is open for a minute or more; 0: none.",
    )
    scrub_after_erased: int = Field(
        0,
        ge=0,
        description="After how many erased documents and turns a clean-up takes them out of the files too; 0: never.",
    )
    indexing: TemporalIndexingConfig = TemporalIndexingConfig()


class RolePreferenceConfig(_Section):
    """What a role prefers: scores of ``departments`` are multiplied by ``factor``."""

    departments: tuple[str, ...] = Field(..., description="Whose documents the role prefers.")
    factor: float = Field(1.15, gt=0, le=100, description="What their scores are multiplied by.")


_GRANT = r"!?(\*|(user|role|department|group):.*\S.*)"


class AccessConfig(_Section):
    """``[rag.access]``: what it means that somebody asks, rather than the owner of the store."""

    mode: Literal["off", "preference", "enforce"] = Field(
        "enforce",
        description="enforce: nobody finds what they may not read; preference: who asks moves the order; off: neither.",
    )
    default_permissions: (
        Literal["everyone", "department"]
        | Annotated[tuple[Annotated[str, Field(pattern=f"^{_GRANT}$")], ...], Field(min_length=1)]
    ) = Field(
        "everyone",
        description="Who may read documents that nobody has given permissions: everyone: whoever the collection's own "
        "default names, at first everybody; department: the document's department; or grants such as role:staff.",
    )
    role_departments: dict[str, tuple[Annotated[str, Field(pattern=r"\S")], ...]] = Field(
        default_factory=dict,
        description='By role, the departments whose documents it reads as if it belonged there; "*": every one.',
    )
    department_boost: float = Field(
        1.2, gt=0, le=100, description="In preference mode, for documents of the asker's department."
    )
    other_departments: float = Field(
        0.9, gt=0, le=100, description="In preference mode, for those of other departments."
    )
    role_preferences: dict[str, RolePreferenceConfig] = Field(
        default_factory=lambda: {
            "SecurityAnalyst": RolePreferenceConfig(departments=("security", "it", "general"), factor=1.15)
        },
        description="In preference mode, by role.",
    )
    privileged_roles: tuple[str, ...] = Field(
        ("Manager", "Executive", "Admin", "SysAdmin", "Auditor"),
        description="In preference mode, roles for which nothing is moved.",
    )


class SessionDefaults(_Section):
    """``[rag.session]``: how long the documents of a session stay, and how many there may be."""

    ttl: _Lifetime = Field(
        3_600.0, description="How long a session lives: seconds, or 12h, 2d; never: until it is ended."
    )
    max_documents: int = Field(100, ge=1, le=1_000_000, description="Documents of a session at most.")
    auto_cleanup: bool = Field(True, description="Whether whoever comes across an expired session removes it.")
    when_full: Literal["error", "oldest"] = Field(
        "error", description="What one document too many does: it is refused, or the oldest one goes."
    )


class MultiTenantConfig(_Section):
    """``[rag.multi_tenant]``: what `MultiTenantRAG` keeps apart, and how."""

    isolation_level: Literal["strict", "shared"] = Field(
        "strict",
        description="strict: the database must keep tenants apart, and nothing is shared; shared: a tenant also reads "
        "the collections that others share with it.",
    )
    per_tenant_collections: bool = Field(
        True, description="Whether a tenant's collection is named after it; otherwise all have the configured name."
    )
    collection_prefix: str = Field(
        "tenant_", max_length=50, description="What the name of a tenant's collection begins with."
    )


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
    language: str = Field("en", description="Language of new collections (ISO 639-1).")
    chunking: ChunkingConfig = ChunkingConfig()
    embedding: EmbeddingConfig = Field(default_factory=EmbeddingConfig)
    storage: StorageConfig = Field(default_factory=StorageConfig)
    ingest: IngestConfig = IngestConfig()
    retrieval: RetrievalConfig = RetrievalConfig()
    reranking: RerankingConfig = RerankingConfig()
    context: ContextConfig = ContextConfig()
    answer: AnswerConfig = AnswerConfig()
    memory: MemoryConfig = MemoryConfig()
    temporal: TemporalConfig = TemporalConfig()
    session: SessionDefaults = SessionDefaults()
    access: AccessConfig = Field(default_factory=AccessConfig)
    multi_tenant: MultiTenantConfig = Field(default_factory=MultiTenantConfig)

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
        return cls(_file=path or _default_file(), **overrides)


def _default_file() -> Path | None:
    named = os.environ.get(CONFIG_FILE_VARIABLE)
    if named:
        return Path(named)
    here = Path(CONFIG_FILE_NAME)
    return here if here.is_file() else None
