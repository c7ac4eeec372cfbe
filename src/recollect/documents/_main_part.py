"""Where the main content of a web page begins and ends, among menus, banners and footers.

trafilatura decides; the text stays the reader's own. What it writes itself loses definition lists, the layout of
tables and bare text, so its output serves to recognise blocks of the page: all from the first to the last of them stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from recollect.model import Heading

# Too little to be sure of: the page is kept whole.
_LEAST_CHARACTERS = 200
# Above this a page is no article, and its tree takes memory for nothing.
_MOST_CHARACTERS = 2_000_000
_WORDS = re.compile(r"\w+")
_RUN = 4
# A line about the author, a date, a line that sums up.
_BETWEEN = 3
_TABLE_LINE = re.compile(r"; | \| ")


def main_part(markup: str, content: str, headings: Sequence[Heading]) -> tuple[str, list[Heading]]:
    """The main content of a page.

    Args:
        markup: The page as it was sent.
        content: Its text as it was read, in blocks with blank lines between them.
        headings: Those in it.

    Returns:
        A part of ``content``, with its headings; all of it where no main content can be told.
    """
    everything = content, list(headings)
    if not _LEAST_CHARACTERS < len(content) <= _MOST_CHARACTERS:
        return everything
    found = _extracted(markup)
    if len(found) < _LEAST_CHARACTERS:
        return everything
    recognised = _Recognised(found)
    blocks = list(_blocks(content))
    main = [number for number, (start, end) in enumerate(blocks) if recognised.holds(content[start:end])]
    if not main:
        return everything
    first, last = main[0], main[-1]
    first = _title_above(blocks, first, headings)
    start, end = blocks[first][0], blocks[last][1]
    kept = [one for one in headings if start <= one.start_offset and one.end_offset <= end]
    moved = [replace(one, start_offset=one.start_offset - start, end_offset=one.end_offset - start) for one in kept]
    return content[start:end], moved


def _title_above(blocks: Sequence[tuple[int, int]], first: int, headings: Sequence[Heading]) -> int:
    """The block of the heading that a text begins below: extractors leave out titles, and what stands under them."""
    starts = {heading.start_offset for heading in headings}
    near = range(first - 1, max(first - 1 - _BETWEEN, -1), -1)
    above = next((number for number in near if blocks[number][0] in starts), first)
    while above and blocks[above - 1][0] in starts:
        above -= 1
    return above


def _extracted(markup: str) -> str:
    import logging

    from trafilatura import extract

    # It tells of every page that it finds odd, to whoever has logging on.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    try:
        return extract(markup, fast=True, include_comments=False, include_tables=True) or ""
    except Exception:  # noqa: BLE001 - whatever a contrived page provokes: it is read whole
        return ""


class _Recognised:
    """What was extracted, as something to compare blocks with: words and runs of words."""

    def __init__(self, text: str) -> None:
        words = _WORDS.findall(text.lower())
        self._words = set(words)
        self._runs = set(_runs(words))
        self._lines = {" ".join(_WORDS.findall(line)) for line in text.lower().split("\n")}

    def holds(self, block: str) -> bool:
        words = _WORDS.findall(block.lower())
        if " ".join(words) in self._lines:
            return bool(words)
        runs = list(_runs(words))
        if len(runs) >= 2 and 2 * sum(run in self._runs for run in runs) >= len(runs):
            return True
        # A table's rows have pipes or names of columns between their words: other runs than in what was extracted.
        different = set(words)
        return (
            len(different) >= 6
            and _TABLE_LINE.search(block) is not None
            and len(different & self._words) >= 0.9 * len(different)
        )


def _runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(_RUN)), strict=False)


def _blocks(content: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(content):
        end = content.find("\n\n", start)
        end = len(content) if end < 0 else end
        if end > start:
            yield start, end
        start = end + 2
