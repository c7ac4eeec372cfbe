"""Where passages stand in their documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NotRequired, TypeVar, cast

from recollect.model.outline import PassagePart
from recollect.model.record import json_of
from recollect.replies._shape import Shape

if TYPE_CHECKING:
    from recollect.model import RetrievedContext

T = TypeVar("T")


class PassagePlaceJson(Shape):
    """The document of a passage, and the place in it."""

    document_id: int
    title: str
    source: str
    """The document's URI within its origin: a path, an address."""
    department: str | None
    section: str | None
    """Titles of the headings that the passage stands under, joined by ` > `; null outside any section."""
    page: int | None
    """That the passage begins on, from 1; null where the format has no pages."""
    start_offset: int
    """Where the passage begins in the document's content, in characters."""
    end_offset: int
    """Just behind its last character."""
    parts: list[PassagePart]
    """The passage, cut where another section or page begins."""
    id: NotRequired[str]
    """That the document was given; left out: its source identifies it."""


def passage_json(passage: RetrievedContext, shape: type[T]) -> T:
    """The keys of a passage that a shape has, one of `PassagePlaceJson` for instance."""
    told: Mapping[str, Any] = json_of(passage)
    return cast("T", {key: told[key] for key in shape.__annotations__ if key in told})
