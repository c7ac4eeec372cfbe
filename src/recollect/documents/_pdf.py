"""PDF: the text of each page from kreuzberg (pdfium), put back into paragraphs.

A page arrives as lines in reading order, columns one after the other. kreuzberg's own tree of a PDF takes many
sentences, formulas and table rows for headings, because it goes by type size alone; so headings are judged here by the
same rule as in plain text, and type size only confirms them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from recollect.documents._kreuzberg import extract, fact
from recollect.documents._parsed import Parsed
from recollect.documents._text import clean
from recollect.documents._times import parse_time
from recollect.documents._titles import find_titles
from recollect.documents.formats import UnreadableError
from recollect.model import Heading, PageSpan

if TYPE_CHECKING:
    from recollect.documents.formats import Format

# pdfium's mark for a hyphen at the end of a line whose word goes on in the next.
_SPLIT_WORD = re.compile(r"(\w{1,40})[\x02\ufffe](?:\r?\n)?(\w{1,40})")
_LIGATURES = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st", "\xad": None}
)
_PAGE_NUMBER = re.compile(r"(?<=page )\d{1,6}|(?<=seite )\d{1,6}|^\d{1,6}(?=\s|$)|(?<=\s)\d{1,6}$")
_ENTRY = re.compile(r"(?:[-–•*·▪◦‣●○■□✓]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s")
_SENTENCE_END = (".", "!", "?", ":", "。", "！", "？", "؟", "।")
_EDGE_LINES = 2
_OFTEN = 3


def parse_pdf(data: bytes, file_format: Format, *, structure: bool = True) -> Parsed:
    """A PDF's pages, joined by blank lines, with exact page spans.

    A running header or footer is kept where it first stands and dropped from the other pages.

    Args:
        data: The whole file.
        file_format: What it is.
        structure: False: type size confirms no headings, which saves most of the time that some files take.

    Raises:
        UnreadableError: It is protected, damaged, or has no text (scanned pages).
    """
    result = extract(data, file_format, structure=structure, pages=True)
    shown_as_headings = _large_lines(result.document["nodes"] if result.document else ())
    raw = [(page["page_number"], page["content"]) for page in result.pages or () if page["content"].strip()]
    pages = [[line.strip() for line in clean(text.translate(_LIGATURES)).split("\n")] for text in _mend(raw)]
    if not any(any(lines) for lines in pages):
        raise UnreadableError("has no text in it; if its pages are scanned, run text recognition (OCR) on it first")
    furniture = _drop_furniture(pages, [number for number, _ in raw])
    builder = _PageWriter(shown_as_headings, furniture)
    for (number, _), lines in zip(raw, pages, strict=True):
        builder.page(number, lines)
    metadata = result.metadata
    author, page_count = fact(metadata, "authors"), metadata.get("page_count")
    return Parsed(
        content="".join(builder.parts),
        headings=builder.headings,
        pages=builder.pages,
        title=fact(metadata, "title"),
        event_time=parse_time(fact(metadata, "created_at")) or parse_time(fact(metadata, "modified_at")),
        metadata={
            **({"author": author} if author else {}),
            "page_count": page_count if isinstance(page_count, int) else len(raw),
        },
    )


def _mend(pages: Sequence[tuple[int, str]]) -> list[str]:
    """Joins words that were split at line ends.

    Whether the hyphen belongs to the word (``six-month``) or to the line (``adip-iscing``) is decided by which form
    the document has elsewhere, and else by whether it splits words often, as typesetting programs do.
    """
    texts = [text for _, text in pages]
    splits = sum(len(_SPLIT_WORD.findall(text)) for text in texts)
    if not splits:
        return texts
    words = Counter(re.findall(r"\w+(?:-\w+)*", "\n".join(texts).lower()))
    typeset = splits > 0.03 * sum(text.count("\n") + 1 for text in texts)

    def join(match: re.Match[str]) -> str:
        solid, hyphenated = match[1] + match[2], f"{match[1]}-{match[2]}"
        as_solid, as_hyphenated = words[solid.lower()], words[hyphenated.lower()]
        if not match[2][0].islower() or as_hyphenated > as_solid:
            return hyphenated
        return solid if as_solid > as_hyphenated or typeset else hyphenated

    return [_SPLIT_WORD.sub(join, text) for text in texts]


def _large_lines(nodes: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """The lines that kreuzberg holds for headings because of their type size."""
    texts = (node["content"].get("text") or "" for node in nodes if node["content"].get("node_type") == "heading")
    return frozenset(clean(text.translate(_LIGATURES)).strip() for text in texts if "\n" not in text.strip())


def _drop_furniture(pages: list[list[str]], numbers: Sequence[int]) -> frozenset[str]:
    """Blanks running headers, footers and page numbers but for their first occurrence.

    Such a line stands at the edge of at least three pages and differs between them only in a number that grows with
    the page. The lines left standing are returned: they are no headings.
    """
    places = [
        (lines, index, _shape(lines[index], number))
        for lines, number in zip(pages, numbers, strict=True)
        for index in _edges(lines)
    ]
    often = Counter(shape for _, _, shape in places)
    kept: dict[str, str] = {}
    for lines, index, shape in places:
        if often[shape] < _OFTEN:
            continue
        if shape in kept or not any(map(str.isalpha, lines[index])):
            lines[index] = ""
        else:
            kept[shape] = lines[index]
    return frozenset(kept.values())


def _edges(lines: Sequence[str]) -> list[int]:
    filled = [index for index, line in enumerate(lines) if line]
    return sorted({*filled[:_EDGE_LINES], *filled[-_EDGE_LINES:]})


def _shape(line: str, page: int) -> str:
    """A line with its page number replaced by the distance to ``page``, the same on every page."""
    return _PAGE_NUMBER.sub(lambda match: f"#{int(match[0]) - page}", line.casefold(), count=1)


class _PageWriter:
    """Joins pages to one text and notes where pages and headings stand."""

    def __init__(self, shown_as_headings: frozenset[str], furniture: frozenset[str]) -> None:
        self._shown = shown_as_headings
        self._furniture = furniture
        self.parts: list[str] = []
        self.pages: list[PageSpan] = []
        self.headings: list[Heading] = []
        self._length = 0

    def page(self, number: int, lines: Sequence[str]) -> None:
        """Adds a page; one without text adds nothing."""
        filled = [line for line in lines if line]
        if not filled:
            return
        if self.parts:
            self._add("\n\n")
        start = self._length
        found = find_titles(filled, wrapped=True, shown_as_headings=self._shown)
        titles = {at: (level, title) for at, level, title in found if filled[at] not in self._furniture}
        joints = _joints(filled, set(titles))
        for index, line in enumerate(filled):
            if index in titles:
                level, title = titles[index]
                self.headings.append(Heading(level, title, self._length, self._length + len(line)))
            self._add(line + joints[index])
        self.pages.append(PageSpan(number, start, self._length))

    def _add(self, text: str) -> None:
        self.parts.append(text)
        self._length += len(text)


def _joints(lines: Sequence[str], titles: set[int]) -> list[str]:
    """What follows each line: a space inside a paragraph, a blank line behind one, a line end between short lines."""
    lengths = sorted(map(len, lines))
    full = lengths[(len(lengths) * 3) // 4]
    joints = []
    for index, (line, following) in enumerate(pairwise(lines)):
        ended = line.endswith(_SENTENCE_END)
        if index in titles or index + 1 in titles:
            joints.append("\n\n")
        elif _ENTRY.match(following):
            joints.append("\n")
        elif len(line) >= 0.75 * full and len(line) > 30 and not (ended and len(line) < 0.9 * full):
            joints.append(" ")
        else:
            joints.append("\n\n" if ended and len(line) < 0.9 * full and full > 30 else "\n")
    return [*joints, ""]
