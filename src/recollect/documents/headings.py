"""The headings of a text that came without a file."""

from __future__ import annotations

from recollect.documents._markup import markdown_headings
from recollect.documents._titles import title_headings
from recollect.model import Heading


def headings_of_text(content: str, *, mime_type: str) -> tuple[Heading, ...]:
    """Headings of Markdown, in plain text as well; what only looks like a title is one in Markdown alone.

    Args:
        content: The text.
        mime_type: Of other types than plain text and Markdown there are none.
    """
    if mime_type not in {"text/plain", "text/markdown"}:
        return ()
    found = markdown_headings(content)
    return tuple(found or (title_headings(content) if mime_type == "text/markdown" else ()))
