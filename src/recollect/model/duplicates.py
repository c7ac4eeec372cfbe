"""Documents that say the same."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SameDocument:
    """A document that says what another one says.

    Attributes:
        document_id: Of it.
        source: Where it came from.
        title: Of it.
        collection: Where it is.
        origin: Its folder, web domain or other source.
        likeness: The share of runs of five words that both have, of those that either has; 1: the same text.
    """

    document_id: int
    source: str
    title: str
    collection: str
    origin: str
    likeness: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicates:
    """The documents that say what one document says.

    Attributes:
        same: The same text, by id.
        near: Nearly the same, the likest first.
    """

    same: tuple[SameDocument, ...] = ()
    near: tuple[SameDocument, ...] = ()
