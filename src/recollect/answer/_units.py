"""Cuts a text into what can be quoted: sentences, list items and table rows. Headings are not quoted alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from typing import Literal

from recollect.chunking.blocks import BULLET, Block, blocks
from recollect.chunking.sentences import sentence_spans

MAX_UNIT_CHARS = 600
# An item that is longer is quoted by sentences, code by lines.
_LONGEST_ITEM = 240
# A line of code with the comments above it and the lines that it goes on in.
_COMMAND = re.compile(r"(?:[ \t]*(?:#|//)[^\n]*\n)*(?:[^\n]*\\\n)*[^\n]+")
_QUOTE_MARK = re.compile(r"\s*(?:>\s*)+")
# A block of code, or the paragraph, list or table below a label.
_LABELLED = re.compile(
    r"[*_`]*\s*(?:(```|~~~).*?\1|\.\. [\w-]+::[^\n]*\n(?:[ \t]*\n|[ \t]+\S[^\n]*(?:\n|\Z))+"
    r"|(?:(?!\s*\n\s*\n\s*[^\s*+\d•-]).)+)",
    re.DOTALL,
)
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
        kind: A sentence, a list's item, a table's row, or code.
    """

    start: int
    end: int
    quote_start: int
    lead: str = ""
    heading: str = ""
    lead_start: int = 0
    lead_end: int = 0
    kind: Literal["sentence", "item", "row", "code"] = "sentence"


def quotable_units(text: str, *, language: str = "en", headings: Collection[str] = ()) -> list[Unit]:
    """The quotable pieces of a text, in order and without overlap; edges hold neither whitespace nor bullets.

    Args:
        text: A passage, or several that were joined.
        language: ISO 639-1 code, for sentence boundaries.
        headings: Titles known to be headings; such lines, lines of Markdown ``#`` and lines in capitals alone
            are left out.
    """
    units: list[Unit] = []
    heading, lead, header = "", (0, 0), (0, 0)
    found = list(blocks(text, frozenset(title.strip().casefold() for title in headings)))
    for index, block in enumerate(found):
        own: list[Unit] = []
        if block.kind == "heading":
            heading, lead = text[block.start : block.end].strip().strip("#*_ "), (0, 0)
        elif block.kind == "row":
            before = found[index - 1] if index else None
            if before is None or before.kind not in {"row", "rule"} or before.end < block.start:
                header = _header(text, found, index)
            if not _stands_above_rule(found, index):
                own = list(_row(text, block, header))
        elif block.kind == "item":
            own = [_led(unit, text, lead) for unit in _sentences(text, block, language)]
        elif block.kind == "code":
            explained = units and index > 1 and found[index - 2].kind in {"prose", "item"}
            lead = (units[-1].quote_start, units[-1].end) if explained else (0, 0)
            own = [_led(unit, text, lead) for unit in _code(text, block)]
        elif block.kind == "prose":
            own = list(_sentences(text, block, language))
            introduces = own and text[block.start : block.end].rstrip().rstrip("*_").endswith((":", "："))
            lead = (own[-1].quote_start, own[-1].end) if introduces else (0, 0)
        units += [replace(unit, heading=heading) for unit in own]
    return units


def is_label(text: str, unit: Unit) -> bool:
    """Whether a unit only says what comes."""
    return unit.kind != "code" and text[unit.start : unit.end].rstrip("*_`").endswith((":", "："))


def following(text: str, unit: Unit) -> int:
    """Where a unit ends together with what it labels: of "To install:" the command, list or table below it.

    Args:
        text: That the unit was cut from.
        unit: One of its quotable pieces.

    Returns:
        The unit's own end, where it is no label, or where what follows is too long to quote.
    """
    behind = text[unit.end : unit.end + MAX_UNIT_CHARS]
    match = _LABELLED.match(behind) if is_label(text, unit) else None
    if match is None or (match.end() == len(behind) and unit.end + MAX_UNIT_CHARS < len(text)):
        return unit.end
    return unit.end + len(match.group().rstrip())


def _header(text: str, found: Sequence[Block], index: int) -> tuple[int, int]:
    """The head of the table that begins with this row: above a rule; or without figures, where most rows have some.

    Two columns without a rule are names and what they stand for: they have no head.
    """
    own = trimmed(text, found[index].start, found[index].end, edge="|")
    if _stands_above_rule(found, index):
        return own
    table = takewhile(lambda pair: pair[1].kind == "row" and pair[0].end >= pair[1].start, pairwise(found[index:]))
    rows = [text[block.start : block.end] for _, block in table]
    with_figures = sum(any(map(str.isdigit, row)) for row in rows)
    head = text[slice(*own)]
    plain = not any(map(str.isdigit, head)) and len(_COLUMN_GAP.findall(head)) != 1
    return own if plain and len(rows) > 1 and 2 * with_figures >= len(rows) else (0, 0)


def _stands_above_rule(found: Sequence[Block], index: int) -> bool:
    return index + 1 < len(found) and found[index + 1].kind == "rule"


def _led(unit: Unit, text: str, lead: tuple[int, int]) -> Unit:
    return replace(unit, lead=text[slice(*lead)], lead_start=lead[0], lead_end=lead[1])


def _row(text: str, block: Block, lead: tuple[int, int]) -> Iterator[Unit]:
    for start, end in _bounded(text, *trimmed(text, block.start, block.end, edge="|")):
        unit = Unit(start, end, start, kind="row")
        yield unit if lead[0] <= start < lead[1] else _led(unit, text, lead)


def _code(text: str, block: Block) -> Iterator[Unit]:
    start, end = trimmed(text, block.start, block.end)
    spans = [(start, end)]
    if end - start > _LONGEST_ITEM:
        spans = [trimmed(text, *line.span()) for line in _COMMAND.finditer(text, start, end)]
    return (Unit(start, end, start, kind="code") for span in spans for start, end in _bounded(text, *span))


def _sentences(text: str, block: Block, language: str) -> Iterator[Unit]:
    """The block's sentences; an item is cut only where it is long."""
    item = block.kind == "item"
    marker = (BULLET if item else _QUOTE_MARK).match(text, block.start, block.end)
    begin = marker.end() if marker else block.start
    start, end = trimmed(text, begin, block.end)
    if item and end - start <= _LONGEST_ITEM:
        spans = [(start, end)]
    else:
        spans = [(begin + a, begin + b) for a, b in sentence_spans(text[begin : block.end], language)]
    before: int | None = None
    for span in _with_ordinals(text, spans):
        for start, end in _bounded(text, *trimmed(text, *span)):
            if _ONLY_LINKS.fullmatch(text, start, end):
                continue
            quote_start = before if before is not None and _LEANS_BACK.match(text, start, end) else start
            yield Unit(start, end, quote_start, kind="item" if item else "sentence")
            before = start


def _with_ordinals(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans, where "bis zum 10. des Monats" was cut behind the ordinal joined again."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and _ENDS_IN_ORDINAL.search(text, *joined[-1]) and _GOES_ON.match(text, start, end):
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def trimmed(text: str, start: int, end: int, *, edge: str = "") -> tuple[int, int]:
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
        yield trimmed(text, start, cut)
        start, _ = trimmed(text, cut, end)
    if end > start:
        yield start, end
