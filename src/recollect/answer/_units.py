"""Cuts a text into what can be quoted: sentences, list items and table rows. Headings are not quoted alone."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recollect.chunking.sentences import sentence_spans

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

MAX_UNIT_CHARS = 600
_LINE = re.compile(r"[^\n]*(?:\n|\Z)")
_BULLET = re.compile(r"\s*(?:[-*+•‣◦▪–—]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)])\s+(?:\[[ xX]\]\s+)?")
_QUOTE_MARK = re.compile(r"\s*(?:>\s*)+")
_TABLE_ROW = re.compile(r"\s*\|.*\S|[^|\n]*\S\s+\|\s+\S.*|[^\t\n]+\t[^\t\n]*\S.*")
# A table's row as the readers write it where the format has no other: "Country: Norway; Full rate: 75".
_RECORD = re.compile(r"\s*[^:;\n]{1,60}: [^;\n]+(?:; [^:;\n]{1,60}: [^;\n]+)+")
_ENDS_SENTENCE = re.compile(r"[.!?:;,。！？؟।…][\"'”’)\]*_]*\s*\Z")
_LEANS_BACK = re.compile(
    r"[\"'“‘(*_]*(?:it|its|they|them|their|this|these|those|that|such|he|she|his|her|both|either|neither|"
    r"however|also|therefore|thus|otherwise|instead|in addition|in that case|if so|then)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of text that can be quoted.

    Attributes:
        start: Offset of its first character in the text it was cut from.
        end: Offset just behind its last character.
        lead: What it needs to be understood, for scoring only: a table's header, a list's opening line.
        heading: The heading that it stands under, if that is in the text.
        quote_start: Where a quote of it begins: at ``start``, or at the sentence before where it begins with a word
            that points back ("It must …").
    """

    start: int
    end: int
    quote_start: int
    lead: str = ""
    heading: str = ""


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines that belong together."""

    kind: str
    start: int
    end: int


def quotable_units(text: str, *, language: str = "en", headings: Collection[str] = ()) -> list[Unit]:
    """The quotable pieces of a text, in order and without overlap; edges hold neither whitespace nor bullets.

    Args:
        text: A passage, or several that were joined.
        language: ISO 639-1 code, for sentence boundaries.
        headings: Titles known to be headings; such lines, lines of Markdown ``#`` and lines in capitals alone
            are left out.
    """
    units: list[Unit] = []
    heading, lead, header = "", "", ""
    blocks = list(_blocks(text, frozenset(title.strip().casefold() for title in headings)))
    for index, block in enumerate(blocks):
        piece = text[block.start : block.end].strip()
        if block.kind == "heading":
            heading, lead = piece.strip("#*_ "), ""
        elif block.kind == "row":
            header = header if index and blocks[index - 1].kind in {"row", "rule"} else piece
            followed_by_rule = index + 1 < len(blocks) and blocks[index + 1].kind == "rule"
            if not followed_by_rule:
                units.extend(_whole(text, block, lead="" if header == piece else header, heading=heading))
        elif block.kind in {"item", "prose"}:
            is_item = block.kind == "item"
            found = _sentences(text, block, language=language, whole=is_item)
            units.extend(replace(unit, heading=heading, lead=lead if is_item else "") for unit in found)
            if not is_item:
                lead = text[units[-1].start : units[-1].end] if units and piece.endswith(":") else ""
    return units


def _blocks(text: str, headings: frozenset[str]) -> Iterator[_Block]:
    """Lines grouped: table rows and headings stand alone, an item or a paragraph takes its continuation lines."""
    kind, start, end = "", 0, 0
    for match in _LINE.finditer(text):
        line_kind = _line_kind(match.group(), headings)
        continues = line_kind == "prose" and kind in {"prose", "item"}
        if continues:
            end = match.end()
            continue
        if kind and kind != "blank":
            yield _Block(kind, start, end)
        kind, start, end = line_kind, match.start(), match.end()
    if kind and kind != "blank":
        yield _Block(kind, start, end)


def _line_kind(line: str, headings: frozenset[str]) -> str:
    bare = line.strip()
    if not bare:
        return "blank"
    if not any(character.isalnum() for character in bare):
        return "rule"
    if bare.startswith("#") or bare.strip("*_# ").casefold() in headings or _is_capitals(bare):
        return "heading"
    if _TABLE_ROW.fullmatch(line.rstrip("\n")):
        return "row"
    if _BULLET.match(line) or _RECORD.fullmatch(line.rstrip()):
        return "item"
    return "prose"


def _is_capitals(line: str) -> bool:
    """A short line all in capitals that does not end as a sentence does."""
    letters = [character for character in line if character.isalpha()]
    return (
        len(line) <= 80
        and len(letters) > 3
        and all(letter.isupper() for letter in letters)
        and not _ENDS_SENTENCE.search(line)
    )


def _whole(text: str, block: _Block, *, lead: str, heading: str) -> Iterator[Unit]:
    start, end = _trimmed(text, block.start, block.end, edge="|")
    if end > start:
        yield Unit(start, end, start, lead=lead, heading=heading)


def _sentences(text: str, block: _Block, *, language: str, whole: bool) -> Iterator[Unit]:
    """The block's sentences; a block that must stay whole is cut only where it is too long to quote."""
    marker = _BULLET.match(text, block.start, block.end) if whole else _QUOTE_MARK.match(text, block.start, block.end)
    begin = marker.end() if marker else block.start
    start, end = _trimmed(text, begin, block.end)
    if whole and end - start <= MAX_UNIT_CHARS:
        spans = [(start, end)]
    else:
        spans = [(begin + a, begin + b) for a, b in sentence_spans(text[begin : block.end], language)]
    before: int | None = None
    for span in spans:
        for start, end in _bounded(text, *_trimmed(text, *span)):
            leans_back = before is not None and _LEANS_BACK.match(text, start, end)
            yield Unit(start, end, before if before is not None and leans_back else start)
            before = start


def _trimmed(text: str, start: int, end: int, *, edge: str = "") -> tuple[int, int]:
    """The span without whitespace (and the characters of ``edge``) at its ends."""
    while start < end and (text[start].isspace() or text[start] in edge):
        start += 1
    while end > start and (text[end - 1].isspace() or text[end - 1] in edge):
        end -= 1
    return start, end


def _bounded(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The span, cut at spaces (or anywhere, where there are none) into pieces that are short enough to quote."""
    while end - start > MAX_UNIT_CHARS:
        cut = text.rfind(" ", start + MAX_UNIT_CHARS // 2, start + MAX_UNIT_CHARS)
        cut = start + MAX_UNIT_CHARS if cut < 0 else cut
        left, right = _trimmed(text, start, cut)
        if right > left:
            yield left, right
        start, _ = _trimmed(text, cut, end)
    if end > start:
        yield start, end
