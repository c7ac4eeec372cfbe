"""Lists as OpenAI's API has them: pages whose first and last entries are named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from typing_extensions import TypedDict


class PageEnds(TypedDict):
    """What a page says of itself beside its entries."""

    object: Literal["list"]
    first_id: str | None
    last_id: str | None
    has_more: bool


def page_ends(data: Sequence[Any], *, more: bool) -> PageEnds:
    """The same of some entries, which have an ``id``.

    Args:
        data: Of the page.
        more: Whether others follow.
    """
    return {
        "object": "list",
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": more,
    }
