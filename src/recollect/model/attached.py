"""How what is attached to a message is named: by the part of the message that it is, and by its own name."""

from __future__ import annotations

import mimetypes
import re

_NAME_LETTERS = 120
_UNSAFE = re.compile(r"[\x00-\x1f\x7f/\\]+")
_MESSAGE = "message/rfc822"


def stored_name(text: str) -> str:
    """A part of a path as it can be stored."""
    return _UNSAFE.sub("_", text).encode("utf-8", "replace").decode("utf-8")


def attached_name(name: str | None, mime_type: str) -> str:
    """A name as a part of a path, with the ending that its kind has where it has none.

    Args:
        name: As the sender wrote it; None: it has none.
        mime_type: As the sender declared it.
    """
    plain = stored_name(name or "").strip(" .")[-_NAME_LETTERS:] or "attached"
    if "." not in plain:
        plain += ".eml" if mime_type == _MESSAGE else mimetypes.guess_extension(mime_type) or ""
    return plain
