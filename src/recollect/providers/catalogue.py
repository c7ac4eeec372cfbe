"""The table of providers: what each can do, what it needs, what is known of its models, and which ones are here."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

from recollect.errors import ConfigurationError

Capability: TypeAlias = Literal["embedding", "reranking", "chat"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimensions:
    """The lengths of vector that an embedding model gives.

    Attributes:
        default: Unless another is asked for.
        allowed: Others that may be asked for; none: there is one length only.
    """

    default: int
    allowed: Collection[int] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A row of the table.

    Attributes:
        name: In settings, records and errors.
        title: For people.
        capabilities: What it can do.
        sdk: The package that is imported, and ``recollect-rag[extra]`` installs; None: nothing but recollect is needed.
        extra: The extra that brings the SDK.
        module: The file of this package that uses the SDK; None for local models.
        key_variables: Where the provider's own tools look for its key in the environment, in this order.
        needs_key: Whether its own address asks for one.
        base_url: Its own address, where it is a server that somebody runs.
        default_models: By capability; where there is none, a model must be named.
        dimensions: By embedding model. One that is not here must be given its dimensions.
        prefixes: What may stand before a known model's name without changing what it is.
    """

    name: str
    title: str
    capabilities: frozenset[Capability]
    sdk: str | None = None
    extra: str | None = None
    module: str | None = None
    key_variables: tuple[str, ...] = ()
    needs_key: bool = True
    base_url: str | None = None
    default_models: Mapping[Capability, str] = field(default_factory=dict)
    dimensions: Mapping[str, Dimensions] = field(default_factory=dict)
    prefixes: tuple[str, ...] = ()

    def model(self, capability: Capability, named: str | None) -> str:
        """The named model, or the provider's default.

        Raises:
            ConfigurationError: None is named, and there is no default.
        """
        model = (self.default_models.get(capability) or "") if named is None else named.strip()
        if not model:
            raise ConfigurationError(
                f"A model of {self.name} needs a name: set rag.{_SECTIONS[capability]}.model to one that it serves."
            )
        return model

    def dimension(self, model: str, wanted: int | None) -> int:
        """How long a model's vectors are.

        Args:
            model: As the provider names it.
            wanted: The configured length; None: the model's default.

        Raises:
            ConfigurationError: The model is unknown and no length is given, or it does not give that length.
        """
        known = self.dimensions.get(self.plain(model))
        if known is None:
            if wanted is None:
                raise ConfigurationError(
                    f"It is not known how many dimensions the vectors of {model!r} ({self.name}) have: set "
                    "rag.embedding.dimensions to their number, or give it with --dimensions where a command has that."
                )
            return wanted
        if wanted is None or wanted == known.default:
            return known.default
        if wanted not in known.allowed:
            raise ConfigurationError(
                f"The vectors of {model!r} ({self.name}) have {_ways(known)} dimensions, not {wanted}."
            )
        return wanted

    def known_dimension(self, model: str) -> int | None:
        """How long a model's vectors are unasked; None: unknown."""
        known = self.dimensions.get(self.plain(model))
        return None if known is None else known.default

    def can_be_cut(self, model: str) -> bool:
        """Whether the beginning of a model's vector is a vector of the same model (Matryoshka)."""
        known = self.dimensions.get(self.plain(model))
        return known is not None and bool(known.allowed)

    def plain(self, model: str) -> str:
        """A model's own name, without what only says where it is reached."""
        if model.startswith("arn:"):
            model = model.rpartition("/")[2]
        for prefix in self.prefixes:
            if model.startswith(prefix):
                return model.removeprefix(prefix)
        return model


def _ways(known: Dimensions) -> str:
    if not known.allowed:
        return str(known.default)
    if isinstance(known.allowed, range):
        return f"{known.allowed.start} to {known.allowed.stop - 1}"
    return ", ".join(str(one) for one in sorted({known.default, *known.allowed}))


_SECTIONS: Mapping[Capability, str] = {"embedding": "embedding", "reranking": "reranking", "chat": "answer"}

_COHERE_4 = Dimensions(default=1536, allowed=(256, 512, 1024, 1536))
_GEMINI = Dimensions(default=3072, allowed=range(128, 3073))
_VOYAGE_4 = Dimensions(default=1024, allowed=(256, 512, 1024, 2048))

_ROWS = (
    Provider(
        name="local",
        title="models on this machine",
        capabilities=frozenset({"embedding", "reranking"}),
        needs_key=False,
    ),
    Provider(
        name="hashing",
        title="a fake without a model, for tests",
        capabilities=frozenset({"embedding"}),
        needs_key=False,
    ),
    Provider(
        name="openai",
        title="OpenAI, and every server that speaks its API",
        capabilities=frozenset({"embedding", "chat"}),
        sdk="openai",
        extra="openai",
        module="openai",
        key_variables=("OPENAI_API_KEY",),
        default_models={"embedding": "text-embedding-3-small", "chat": "gpt-5.4-mini"},
        dimensions={
            "text-embedding-3-small": Dimensions(default=1536, allowed=range(1, 1537)),
            "text-embedding-3-large": Dimensions(default=3072, allowed=range(1, 3073)),
            "text-embedding-ada-002": Dimensions(default=1536),
        },
    ),
    Provider(
        name="cohere",
        title="Cohere",
        capabilities=frozenset({"embedding", "reranking"}),
        sdk="cohere",
        extra="cohere",
        module="cohere",
        key_variables=("CO_API_KEY", "COHERE_API_KEY"),
        default_models={"embedding": "embed-v4.0", "reranking": "rerank-v4.0-pro"},
        dimensions={
            "embed-v4.0": _COHERE_4,
            "embed-english-v3.0": Dimensions(default=1024),
            "embed-english-light-v3.0": Dimensions(default=384),
            "embed-multilingual-v3.0": Dimensions(default=1024),
            "embed-multilingual-light-v3.0": Dimensions(default=384),
        },
    ),
    Provider(
        name="bedrock",
        title="AWS Bedrock",
        capabilities=frozenset({"embedding", "reranking", "chat"}),
        sdk="boto3",
        extra="bedrock",
        module="bedrock",
        # Profiles, instance roles and containers give credentials too: boto3 looks for them by itself.
        key_variables=("AWS_BEARER_TOKEN_BEDROCK",),
        needs_key=False,
        default_models={"embedding": "cohere.embed-v4:0", "reranking": "cohere.rerank-v3-5:0"},
        dimensions={
            "cohere.embed-v4:0": _COHERE_4,
            "cohere.embed-english-v3": Dimensions(default=1024),
            "cohere.embed-multilingual-v3": Dimensions(default=1024),
            "amazon.titan-embed-text-v2:0": Dimensions(default=1024, allowed=(256, 512, 1024)),
            "amazon.titan-embed-text-v1": Dimensions(default=1536),
        },
        # Inference profiles, which answer from several regions.
        prefixes=("us.", "us-gov.", "eu.", "apac.", "jp.", "au.", "ca.", "global."),
    ),
    Provider(
        name="voyage",
        title="Voyage AI",
        capabilities=frozenset({"embedding", "reranking"}),
        sdk="voyageai",
        extra="voyage",
        module="voyage",
        key_variables=("VOYAGE_API_KEY",),
        default_models={"embedding": "voyage-4-large", "reranking": "rerank-2.5"},
        dimensions={
            "voyage-4-large": _VOYAGE_4,
            "voyage-4": _VOYAGE_4,
            "voyage-4-lite": _VOYAGE_4,
        },
    ),
    Provider(
        name="google",
        title="Google Gemini",
        capabilities=frozenset({"embedding", "chat"}),
        sdk="google.genai",
        extra="google",
        module="google",
        key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        default_models={"embedding": "gemini-embedding-2", "chat": "gemini-3.8-flash"},
        dimensions={"gemini-embedding-2": _GEMINI, "gemini-embedding-001": _GEMINI},
    ),
    Provider(
        name="huggingface",
        title="Hugging Face: Inference API, Text Embeddings Inference",
        capabilities=frozenset({"embedding", "reranking"}),
        sdk="huggingface_hub",
        extra="huggingface",
        module="huggingface",
        key_variables=("HF_TOKEN",),
    ),
    Provider(
        name="ollama",
        title="Ollama",
        capabilities=frozenset({"embedding", "chat"}),
        sdk="ollama",
        extra="ollama",
        module="ollama",
        needs_key=False,
        base_url="http://localhost:11434",
        default_models={"embedding": "nomic-embed-text", "chat": "llama3.2"},
        dimensions={
            "all-minilm": Dimensions(default=384),
            "mxbai-embed-large": Dimensions(default=1024),
            "nomic-embed-text": Dimensions(default=768),
        },
    ),
    Provider(
        name="anthropic",
        title="Anthropic Claude",
        capabilities=frozenset({"chat"}),
        sdk="anthropic",
        extra="anthropic",
        module="anthropic",
        key_variables=("ANTHROPIC_API_KEY",),
        default_models={"chat": "claude-sonnet-5-5"},
    ),
)

#: Every provider by name.
PROVIDERS: Mapping[str, Provider] = MappingProxyType({row.name: row for row in _ROWS})


def provider_named(name: str, capability: Capability) -> Provider:
    """A provider that can do something.

    Raises:
        ConfigurationError: There is none of that name, or it cannot.
    """
    able = [row.name for row in _ROWS if capability in row.capabilities]
    if name not in able:
        what = f"{name} offers no {capability} models" if name in PROVIDERS else f"Unknown provider {name!r}"
        raise ConfigurationError(f"{what}; for {capability} there are {', '.join(able)}.")
    return PROVIDERS[name]


# What models there are to use: servers that listen on this machine, and keys in the environment.


TIMEOUT_SECONDS = 0.5
_MOST_BYTES = 1 << 20
_MOST_MODELS = 50
_EMBEDDING_WORDS = ("embed", "bge-", "e5-", "gte-", "minilm", "arctic")


@dataclass(frozen=True, slots=True)
class KnownServer:
    """A model server that people run on their machine, and where it listens unless told otherwise."""

    name: str
    port: int
    provider: str
    path: str


#: Looked for in this order.
KNOWN_SERVERS = (
    KnownServer("Ollama", 11434, "ollama", "/api/tags"),
    KnownServer("LM Studio", 1234, "openai", "/v1/models"),
    KnownServer("llama.cpp", 8080, "openai", "/v1/models"),
    KnownServer("vLLM", 8000, "openai", "/v1/models"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundServer:
    """A model server that answered.

    Attributes:
        name: Which it is, as its port says.
        provider: What it is in settings.
        base_url: Its address, as settings take it.
        models: What it serves, by name.
    """

    name: str
    provider: str
    base_url: str
    models: tuple[str, ...]

    @property
    def language_model(self) -> str | None:
        """The first of its models whose name is not that of an embedding model."""
        return next((model for model in self.models if not _embeds(model)), None)

    @property
    def embedding_model(self) -> str | None:
        """The first of its models whose name is that of an embedding model."""
        return next((model for model in self.models if _embeds(model)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundKey:
    """A provider's key in the environment; the key itself is not read.

    Attributes:
        provider: Whose.
        variable: What holds it.
    """

    provider: str
    variable: str


def detect_servers() -> list[FoundServer]:
    """The model servers that answer on loopback; nothing beyond this machine is asked."""
    with ThreadPoolExecutor(len(KNOWN_SERVERS)) as pool:
        return [found for found in pool.map(_asked, KNOWN_SERVERS) if found is not None]


def detect_keys() -> list[FoundKey]:
    """The providers whose keys are in the environment."""
    return [
        FoundKey(provider=row.name, variable=variable)
        for row in PROVIDERS.values()
        for variable in row.key_variables
        if os.environ.get(variable, "").strip()
    ]


def _asked(known: KnownServer) -> FoundServer | None:
    from urllib.request import ProxyHandler, build_opener

    address = f"http://127.0.0.1:{known.port}"
    try:
        # Without the proxies of the environment, which would be asked for an address of their own machine.
        with build_opener(ProxyHandler({})).open(address + known.path, timeout=TIMEOUT_SECONDS) as reply:
            answered = json.loads(reply.read(_MOST_BYTES))
    except (OSError, ValueError):
        return None
    models = _names(answered)
    if models is None:
        return None
    base_url = address if known.provider == "ollama" else f"{address}/v1"
    return FoundServer(name=known.name, provider=known.provider, base_url=base_url, models=models)


def _names(answered: object) -> tuple[str, ...] | None:
    """The models of a reply, Ollama's or OpenAI's; None: something else listens there."""
    if not isinstance(answered, Mapping):
        return None
    rows = answered.get("models", answered.get("data"))
    if not isinstance(rows, list):
        return None
    names = [row.get("name", row.get("id")) for row in rows[:_MOST_MODELS] if isinstance(row, Mapping)]
    return tuple(name for name in names if isinstance(name, str) and name.isprintable())


def _embeds(model: str) -> bool:
    return any(word in model.lower() for word in _EMBEDDING_WORDS)
