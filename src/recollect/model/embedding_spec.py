"""How an embedding model is made again: what a collection remembers of the model that made its vectors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

_OF_THIS_MACHINE = re.compile(r"(?P<model>.+):(?P<precision>int8|fp32)")
_HOSTED = re.compile(r"(?P<provider>[a-z]+)/(?P<model>.+):(?P<dimensions>[0-9]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSpec:
    """A provider's model, and what its vectors depend on; keys and addresses of providers themselves are settings.

    The stored mapping also has ``similarities`` once a search has found where the model's similarities lie.

    Attributes:
        provider: As ``[rag.embedding]`` names it.
        model: As the provider names it; None: it has no name.
        dimensions: The length of a vector; None: the model's own.
        precision: Of a model of this machine.
        query_model: Embeds questions; None: the same model.
        truncate: Whether longer vectors are cut to ``dimensions``.
        base_url: The server, where it is another than the provider's own; without a user or a password.
    """

    provider: str
    model: str | None = None
    dimensions: int | None = None
    precision: str | None = None
    query_model: str | None = None
    truncate: bool = False
    base_url: str | None = None

    def as_mapping(self) -> dict[str, Any]:
        """What is stored; what says nothing is left out."""
        return {name: value for name, value in asdict(self).items() if value}

    @classmethod
    def from_mapping(cls, stored: Mapping[str, Any]) -> EmbeddingSpec:
        """What was stored; what a later version added means nothing here."""
        known = {one.name for one in fields(cls)}
        return cls(**{name: value for name, value in stored.items() if name in known})

    @classmethod
    def from_name(cls, name: str) -> EmbeddingSpec | None:
        """What an embedder's ``model_name`` tells of it; None: nothing that it could be made from.

        Example:
            >>> EmbeddingSpec.from_name("openai/text-embedding-3-small:512").dimensions
            512
        """
        if found := _OF_THIS_MACHINE.fullmatch(name):
            return cls(provider="local", model=found["model"], precision=found["precision"])
        if (length := name.removeprefix("hashing:")) != name and length.isdecimal():
            return cls(provider="hashing", dimensions=int(length))
        if found := _HOSTED.fullmatch(name):
            return cls(provider=found["provider"], model=found["model"], dimensions=int(found["dimensions"]))
        return None
