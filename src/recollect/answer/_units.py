"""Cuts a text into what can be quoted: sentences, list items and table rows. Headings are not quoted alone."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from recollect.answer._layout import Block, blocks
from recollect.chunking.sentences import sentence_spans

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

MAX_UNIT_CHARS = 600
_BULLET = re.compile(r"\s*(?:[-*+•‣◦▪–—]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)])\s+(?:\[[ xX]\]\s+)?")
_QUOTE_MARK = re.compile(r"\s*(?:>\s*)+")
# A line of a table of contents: where something is told, and nothing of it.
_ONLY_LINKS = re.compile(r"(?:\[[^\[\]]*\]\(#[^()\s]*\)[\s·|,;:–—-]*)+")
_COLUMN_GAP = re.compile(r"(?<=\S) {3,}(?=\S)")
_ENDS_IN_ORDINAL = re.compile(r"(?<![\w.,])\d{1,2}\.\Z")
_GOES_ON = re.compile(
    r"[^\W\d_A-Z]|(?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember)\b"
)
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
        quote_start: Where a quote of it begins: at ``start``, or at the sentence before where it begins with a word
            that points back ("It must …").
        lead: What it needs to be understood: a table's header, a list's opening line.
        heading: The heading that it stands under, if that is in the text.
        lead_start: Where ``lead`` begins; equal to ``lead_end`` where there is none.
        lead_end: Just behind its last character.
        kind: A sentence, a list's item or a table's row.
    """

    start: int
    end: int
    quote_start: int
    lead: str = ""
    heading: str = ""
    lead_start: int = 0
    lead_end: int = 0
    kind: Literal["sentence", "item", "row"] = "sentence"


def quotable_units(
    text: str, *, language: str = "en", headings: Collection[str] = (), table_header: str = ""
) -> list[Unit]:
    """The quotable pieces of a text, in order and without overlap; edges hold neither whitespace nor bullets.

    Args:
        text: A passage, or several that were joined.
        language: ISO 639-1 code, for sentence boundaries.
        headings: Titles known to be headings; such lines, lines of Markdown ``#`` and lines in capitals alone
            are left out.
        table_header: The head of the table that the text begins in, where that is cut off; it leads the rows up to
            where the table ends, and stands nowhere in the text.
    """
    units: list[Unit] = []
    heading, lead, header = "", (0, 0), (0, 0)
    found = list(blocks(text, frozenset(title.strip().casefold() for title in headings)))
    for index, block in enumerate(found):
        if block.kind == "heading":
            heading, lead = text[block.start : block.end].strip().strip("#*_ "), (0, 0)
        elif block.kind == "row":
            before = found[index - 1] if index else None
            if before is None or before.kind not in {"row", "rule"} or before.end < block.start:
                header = _header(text, found, index)
            if table_header and _begins(found, index):
                header = (0, 0)
            followed_by_rule = index + 1 < len(found) and found[index + 1].kind == "rule"
            if not followed_by_rule:
                own_rows = _row(text, block, lead=header, heading=heading)
                cut_off = table_header if header == (0, 0) and _begins(found, index) else ""
                units.extend(replace(unit, lead=cut_off) if cut_off else unit for unit in own_rows)
        elif block.kind in {"item", "prose"}:
            is_item = block.kind == "item"
            own = list(_sentences(text, block, language=language, whole=is_item))
            for unit in own:
                led = _led(unit, text, lead) if is_item else unit
                units.append(replace(led, heading=heading, kind="item" if is_item else "sentence"))
            if not is_item:
                introduces = own and text[block.start : block.end].rstrip().rstrip("*_").endswith((":", "："))
                lead = (own[-1].quote_start, own[-1].end) if introduces else (0, 0)
    return units


def _begins(found: Sequence[Block], index: int) -> bool:
    """Whether a row is of the table that the text begins with."""
    before = found[: index + 1]
    joined = all(one.end >= two.start for one, two in pairwise(before))
    return joined and all(block.kind == "row" for block in before)


def _header(text: str, found: Sequence[Block], index: int) -> tuple[int, int]:
    """The head of the table that begins with this row: above a rule; or without figures, where most rows have some.

    Two columns without a rule are names and what they stand for: they have no head.
    """
    own = _trimmed(text, found[index].start, found[index].end, edge="|")
    if index + 1 < len(found) and found[index + 1].kind == "rule":
        return own
    rows = []
    for before, block in pairwise(found[index:]):
        if block.kind != "row" or before.end < block.start:
            break
        rows.append(text[block.start : block.end])
    with_figures = sum(any(character.isdigit() for character in row) for row in rows)
    head = text[slice(*own)]
    plain = not any(character.isdigit() for character in head) and len(_COLUMN_GAP.findall(head)) != 1
    return own if plain and len(rows) > 1 and 2 * with_figures >= len(rows) else (0, 0)


def _led(unit: Unit, text: str, lead: tuple[int, int]) -> Unit:
    return replace(unit, lead=text[slice(*lead)], lead_start=lead[0], lead_end=lead[1])


def _row(text: str, block: Block, *, lead: tuple[int, int], heading: str) -> Iterator[Unit]:
    start, end = _trimmed(text, block.start, block.end, edge="|")
    for first, last in _bounded(text, start, end):
        unit = Unit(first, last, first, heading=heading, kind="row")
        yield unit if lead[0] <= first < lead[1] else _led(unit, text, lead)


def _sentences(text: str, block: Block, *, language: str, whole: bool) -> Iterator[Unit]:
    """The block's sentences; a block that must stay whole is cut only where it is too long to quote."""
    marker = _BULLET.match(text, block.start, block.end) if whole else _QUOTE_MARK.match(text, block.start, block.end)
    begin = marker.end() if marker else block.start
    start, end = _trimmed(text, begin, block.end)
    if whole and end - start <= MAX_UNIT_CHARS:
        spans = [(start, end)]
    else:
        spans = [(begin + a, begin + b) for a, b in sentence_spans(text[begin : block.end], language)]
    before: int | None = None
    for span in _with_ordinals(text, spans):
        for start, end in _bounded(text, *_trimmed(text, *span)):
            if _ONLY_LINKS.fullmatch(text, start, end):
                continue
            leans_back = before is not None and _LEANS_BACK.match(text, start, end)
            yield Unit(start, end, before if before is not None and leans_back else start)
            before = start


def _with_ordinals(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The spans, where "bis zum 10. des Monats" was cut behind the ordinal joined again."""
    joined: tuple[int, int] | None = None
    for start, end in spans:
        if joined and _ENDS_IN_ORDINAL.search(text, joined[0], joined[1]) and _GOES_ON.match(text, start, end):
            joined = (joined[0], end)
            continue
        if joined:
            yield joined
        joined = (start, end)
    if joined:
        yield joined


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
