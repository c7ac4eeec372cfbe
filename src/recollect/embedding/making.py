"""Embedders of this machine by name; what a query from a cold process needs of them and no more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from recollect.embedding.hashing import HashingEmbedder
from recollect.embedding.models import DEFAULT_MODEL, ModelCache
from recollect.errors import UsageError

if TYPE_CHECKING:
    from typing import Literal

    from recollect.embedding._download import Progress
    from recollect.embedding.base import EmbeddingProvider
    from recollect.embedding.quantise import Precision


def is_of_this_machine(provider: str) -> TypeGuard[Literal["local", "hashing"]]:
    """Whether a provider's models run here, without an SDK."""
    return provider in {"local", "hashing"}


def make_machine_embedder(
    provider: Literal["local", "hashing"],
    model: str | None = None,
    *,
    dimensions: int | None = None,
    model_directory: Path | None = None,
    precision: Precision = "int8",
    threads: int | None = None,
    progress: Progress | None = None,
) -> EmbeddingProvider:
    """Make an embedder of this machine; the arguments are those of `recollect.providers.make_embedder`.

    Raises:
        UsageError: An argument is missing, or refused.
    """
    if provider == "hashing":
        return HashingEmbedder() if dimensions is None else HashingEmbedder(dimensions)
    from recollect.embedding.local import LocalEmbedder

    return LocalEmbedder(
        model or DEFAULT_MODEL,
        cache=model_cache(model_directory),
        precision=precision,
        threads=threads,
        progress=progress,
    )


def model_cache(model_directory: Path | None) -> ModelCache:
    """Where models of this machine are kept.

    Raises:
        UsageError: It is not said where.
    """
    if model_directory is None:
        raise UsageError("The provider 'local' requires model_directory, where models are kept.")
    return ModelCache(model_directory)
