"""Cursors: where a page of a list begins, as the server gives them and reads them again."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence


def cursor_at(position: int | str | Sequence[object]) -> str:
    """The cursor of a page that begins behind a position."""
    return base64.urlsafe_b64encode(json.dumps(position).encode()).rstrip(b"=").decode()


def position_of(cursor: str) -> int | str | list[object] | None:
    """Where a page begins; None: this is no cursor."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        position = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, RecursionError, binascii.Error):
        return None
    return None if isinstance(position, bool) or not isinstance(position, int | str | list) else position
