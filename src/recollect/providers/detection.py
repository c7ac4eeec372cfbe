"""What models there are to use: servers that listen on this machine, and keys in the environment."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from recollect.providers.catalogue import PROVIDERS

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
    address = f"http://127.0.0.1:{known.port}"
    try:
        # Without the proxies of the environment, which would be asked for an address of their own machine.
        with build_opener(ProxyHandler({})).open(address + known.path, timeout=TIMEOUT_SECONDS) as reply:
            answered = json.loads(reply.read(_MOST_BYTES))
    except (OSError, URLError, ValueError):
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
