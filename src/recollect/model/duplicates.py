"""Documents that say the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from recollect.model.record import Public, Record, public_as


@dataclass(frozen=True, slots=True)
class SameDocument(Record):
    """A document that says what another one says.

    Attributes:
        document_id: Of it.
        source: Where it came from.
        title: Of it.
        collection: Where it is.
        origin: Its folder, web domain or other source.
        likeness: The share of runs of five words that both have, of those that either has; 1: the same text.
    """

    document_id: Public[int]
    source: Public[str]
    title: Public[str]
    collection: Public[str]
    origin: Public[str]
    likeness: Public[float] = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicates(Record):
    """The documents that say what one document says.

    Attributes:
        same: The same text, by id.
        near: Nearly the same, the likest first.
    """

    same: Annotated[tuple[SameDocument, ...], public_as("same_content")] = ()
    near: Annotated[tuple[SameDocument, ...], public_as("nearly_the_same")] = ()
