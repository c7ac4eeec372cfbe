"""How much a result may hold, in characters of the JSON that a model reads."""

from __future__ import annotations

import json
from typing import Any

# For what stands around the items: their names, where to go on.
_FRAME = 500


class Room:
    """The characters that a result may still take.

    Args:
        characters: Of the whole result.
    """

    def __init__(self, characters: int) -> None:
        self._left = characters - _FRAME

    def take(self, item: object) -> bool:
        """Whether an item fits; then its characters are taken."""
        size = len(_json(item)) + 2
        if size > self._left:
            return False
        self._left -= size
        return True

    def cut(self, text: str, item: dict[str, Any]) -> str:
        """As much of a text as fits beside the rest of its item; what it takes, `take` of the item will tell.

        Args:
            text: From its beginning.
            item: All that stands beside it.
        """
        room = self._left - len(_json(item)) - 20
        # A character takes one in JSON at least, and six at most.
        low, high = 0, max(0, min(len(text), room))
        while low < high:
            middle = (low + high + 1) // 2
            if len(_json(text[:middle])) <= room:
                low = middle
            else:
                high = middle - 1
        return text[:low]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
