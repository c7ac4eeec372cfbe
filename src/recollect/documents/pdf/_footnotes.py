"""Footnotes: smaller lines at the foot of a page or column that begin with a mark, and the lines that refer to them.

A mark is raised, so that nothing is between it and what it belongs to: ``policy1`` in the text, ``1See chapter 2.``
at the foot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from recollect.documents.pdf._grid import Table
from recollect.documents.pdf._headings import Block
from recollect.documents.pdf._lines import Line

_MARK = re.compile(r"(\d{1,3}|[*†‡§]{1,3})(\s{0,2})(?=[^\W\d_]|[„“\"'(«»‘])")
_SMALLER = 0.95
_SAME = 1.08
_MOST_LINES = 40


@dataclass(slots=True)
class Footnotes:
    """The footnotes of a page.

    Attributes:
        body: Everything else.
        behind: The notes that a line refers to, each with its lines, by the line's ``id``.
    """

    body: Sequence[Block]
    behind: Mapping[int, list[list[Line]]] = field(default_factory=dict)


def take_footnotes(blocks: Sequence[Block], known: Mapping[int, object]) -> Footnotes:
    """Takes the notes out of a page that one of its lines refers to; all others stay where they are.

    Args:
        blocks: Of the page, in reading order.
        known: Lines that are headings, by ``id``: they begin no note.
    """
    behind: dict[int, list[list[Line]]] = {}
    taken: set[int] = set()
    for start, end in _feet(blocks):
        lines = [block for block in blocks[start:end] if isinstance(block, Line)]
        for mark, note in _notes(lines, known):
            line = _reference(mark, note[0], blocks[:start])
            if line is not None:
                behind.setdefault(id(line), []).append(note)
                taken.update(id(one) for one in note)
    if not taken:
        return Footnotes(blocks)
    return Footnotes([block for block in blocks if id(block) not in taken], behind)


def _feet(blocks: Sequence[Block]) -> Iterator[tuple[int, int]]:
    """Where the last lines of each column begin and end that are set as its last one."""
    for end in range(1, len(blocks) + 1):
        last = blocks[end - 1]
        following = blocks[end] if end < len(blocks) else None
        if not isinstance(last, Line) or (isinstance(following, Line) and following.region == last.region):
            continue
        start = end - 1
        while start > 0 and end - start < _MOST_LINES:
            above = blocks[start - 1]
            if not isinstance(above, Line) or above.region != last.region or not _is_set_as(above, last):
                break
            start -= 1
        yield start, end


def _is_set_as(line: Line, other: Line) -> bool:
    return line.size < _SAME * other.size and other.size < _SAME * line.size


def _notes(lines: Sequence[Line], known: Mapping[int, object]) -> list[tuple[re.Match[str], list[Line]]]:
    """The notes among lines, each from the line of its mark to the next mark."""
    found: list[tuple[re.Match[str], list[Line]]] = []
    for line in lines:
        mark = None if id(line) in known or len(line.cells) > 2 else _MARK.match(line.text)
        if mark is not None and (not found or _follows(mark[1], found[-1][0][1])):
            found.append((mark, [line]))
        elif found:
            found[-1][1].append(line)
    return found


def _follows(mark: str, before: str) -> bool:
    if mark.isdecimal() and before.isdecimal():
        return int(mark) == int(before) + 1
    return not mark.isdecimal() and mark != before


def _reference(mark: re.Match[str], note: Line, above: Sequence[Block]) -> Line | None:
    """The line that refers to a note: the last word before its mark is set larger than the note."""
    sign = re.escape(mark[1])
    refers = re.compile(rf"[^\W\d_]{{2}}[.,;:!?)”“’\"»]{{0,2}}{sign}(?![\w%*†‡§])")
    for block in above:
        if isinstance(block, Table) or note.size > _SMALLER * block.size:
            continue
        if refers.search(block.text):
            return block
    return None
