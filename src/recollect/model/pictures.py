"""How a document's metadata tells of the descriptions of its pictures, which stand behind its text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

#: In a document's metadata: of how many pictures it has a description, the last paragraphs of its content.
DESCRIBED = "pictures_described"
#: In a document's metadata: whose the descriptions are, as ``provider/model``.
DESCRIBED_BY = "pictures_described_by"
#: In a chunk's metadata: the model that has written it.
GENERATED_BY = "generated_by"
#: Of so many pictures of a document, a description is asked for at most.
MOST_PICTURES = 30

_BEGINS = re.compile(r"\[Picture(?: on page \d{1,9})?, described by [^\n\]]*\] ")


def description_spans(content: str, metadata: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Where the descriptions of pictures stand at the end of a content, in order; none where there are none.

    Args:
        content: Of a document.
        metadata: Of the same.
    """
    count = metadata.get(DESCRIBED)
    if not isinstance(count, int) or isinstance(count, bool) or not 0 < count <= MOST_PICTURES:
        return []
    spans: list[tuple[int, int]] = []
    end = len(content)
    for _ in range(count):
        at = content.rfind("\n\n", 0, end)
        start = at + 2 if at >= 0 else 0
        if not _BEGINS.match(content, start, end):
            return []
        spans.insert(0, (start, end))
        end = max(at, 0)
    return spans
