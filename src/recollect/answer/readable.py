"""How people read a passage: its paragraphs on one line each, and what is highlighted apart. Pure."""

from __future__ import annotations

import re
from itertools import pairwise

from recollect.chunking.blocks import blocks
from recollect.model.answer import ShownPassage

_LINE = re.compile(r"[^\n]*\n?")
_NEWLINE = re.compile(r"[ \t]*\n[ \t]*")
#: Between a table's head and its rows.
RULE = re.compile(r"^[ \t]*\|?(?:[ \t]*:?-+:?[ \t]*\|)+[-: \t]*\n?", re.MULTILINE)
# A line that is shorter ends where its author wanted it to; one that begins so far to the right is code.
_WRAPPED_CHARS = 40
_INDENTED = 4


def pieces_of(passage: ShownPassage) -> list[tuple[str, bool]]:
    """What to show of a passage where nothing is formatted, piece by piece, each with whether it is highlighted.

    The pieces are the passage's text with the lines of each paragraph joined; rows, items and commands keep theirs. The
    headings that it begins with are left out where its section names them, and so are the rules of tables.
    """
    text = passage.text
    shown = readable(text)
    for rule in RULE.finditer(text):
        shown[rule.start() : rule.end()] = [""] * len(rule.group())
    found, done = list[tuple[str, bool]](), beginning(passage)
    for one in passage.highlights:
        start, end = one.start_offset - passage.start_offset, one.end_offset - passage.start_offset
        found += [("".join(shown[done:start]), False), ("".join(shown[start:end]), True)]
        done = end
    found.append(("".join(shown[done:]).rstrip(), False))
    return [piece for piece in found if piece[0]]


def beginning(passage: ShownPassage) -> int:
    """The first character behind the headings that a passage begins with and its section names."""
    titles = {title.strip().casefold() for title in (passage.section or "").split(" > ")} | {""}
    start = 0
    for line in _LINE.finditer(passage.text):
        highlighted = any(one.start_offset - passage.start_offset < line.end() for one in passage.highlights)
        if not line.group() or highlighted:
            break
        if line.group().strip("#*_ \t\n").casefold() not in titles:
            return start
        start = line.end()
    return start if passage.highlights else 0


def readable(text: str) -> list[str]:
    """The characters of a text, with the lines of each paragraph joined.

    Rows, items, short lines, and what is fenced or indented as code keep their lines.

    Returns:
        What to show for each character, so that offsets still hold: nothing for indentation that is left out.
    """
    shown = list(text)
    for block in blocks(text, frozenset()):
        if block.kind not in {"prose", "item"}:
            continue
        breaks = [match.span() for match in _NEWLINE.finditer(text, block.start, block.end)]
        lines = [block.start, *(end for _, end in breaks)]
        for (line, following), (start, end) in zip(pairwise(lines), breaks, strict=True):
            indented = block.kind == "prose" and end - text.rfind("\n", 0, end) > _INDENTED
            if start - line >= _WRAPPED_CHARS and following < block.end and not indented:
                shown[start:end] = [" ", *[""] * (end - start - 1)]
    return shown
