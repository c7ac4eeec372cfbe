"""Embedders by name; each provider's module is imported only when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from recollect.embedding.base import EmbeddingProvider
from recollect.errors import UsageError

if TYPE_CHECKING:
    from recollect.embedding._download import Progress
    from recollect.embedding.quantise import Precision


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    model: str | None
    model_directory: Path | None
    precision: Precision
    threads: int | None
    dimension: int | None
    progress: Progress | None


def make_embedder(
    provider: str,
    model: str | None = None,
    *,
    model_directory: Path | None = None,
    precision: Precision = "int8",
    threads: int | None = None,
    dimension: int | None = None,
    progress: Progress | None = None,
) -> EmbeddingProvider:
    """Make the embedder that a configuration names.

    Args:
        provider: ``"local"`` or ``"hashing"``.
        model: As the provider names it; by default the provider's own default. ``hashing`` has none.
        model_directory: Where ``local`` keeps models; required there.
        precision: For ``local``, ``"int8"`` or ``"fp32"``.
        threads: For ``local``, how many texts are computed at once; by default one for each usable processor.
        dimension: For ``hashing``, the length of a vector, by default 64.
        progress: For ``local``, told how a download advances.

    Raises:
        UsageError: The provider is unknown, or lacks an argument it requires, or refuses one.

    Example:
        >>> make_embedder("hashing", dimension=32).model_name
        'hashing:32'
    """
    make = _PROVIDERS.get(provider)
    if make is None:
        raise UsageError(f"Unknown embedding provider {provider!r}; known are {', '.join(sorted(_PROVIDERS))}.")
    return make(
        _Request(
            model=model,
            model_directory=model_directory,
            precision=precision,
            threads=threads,
            dimension=dimension,
            progress=progress,
        )
    )


def _local(request: _Request) -> EmbeddingProvider:
    from recollect.embedding.local import LocalEmbedder
    from recollect.embedding.models import DEFAULT_MODEL, ModelCache

    if request.model_directory is None:
        raise UsageError("The embedding provider 'local' requires model_directory, where models are kept.")
    return LocalEmbedder(
        request.model or DEFAULT_MODEL,
        cache=ModelCache(request.model_directory),
        precision=request.precision,
        threads=request.threads,
        progress=request.progress,
    )


def _hashing(request: _Request) -> EmbeddingProvider:
    from recollect.embedding.hashing import HashingEmbedder

    return HashingEmbedder() if request.dimension is None else HashingEmbedder(request.dimension)


_PROVIDERS: Mapping[str, Callable[[_Request], EmbeddingProvider]] = MappingProxyType(
    {
        "hashing": _hashing,
        "local": _local,
    }
)
