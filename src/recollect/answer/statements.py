"""Cuts what a model writes into statements: sentences, list items and table rows with the markers behind them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from recollect.answer._units import trimmed
from recollect.chunking.blocks import LINE, TABLE_ROW
from recollect.chunking.sentences import sentence_spans

# Models write [1], [1, 2], [1-3], [Source 1], [Sources 1 and 2], [^1], 【1】, (Source 1), or repeat a block's whole
# header. Longer numbers are years.
_NUMBER = r"(?:(?:sources?|docs?|documents?|quellen?|fuentes?)\s*)?[#^]?\d{1,3}"
_NUMBERS = rf"{_NUMBER}(?:\s*(?:,|;|&|and|und|et|y|-|–)\s*{_NUMBER})*"
MARKER = re.compile(
    rf"[ \t]*(?:\[\s*(?P<numbers>{_NUMBERS})\s*(?:[:|†][^\[\]\n]*)?\]"
    rf"|[【［]\s*(?P<wide>{_NUMBERS})\s*(?:[:|†][^【】\n]*)?[】］]"
    r"|\(\s*(?P<round>(?:sources?|quellen?)\s*\d{1,3}(?:\s*(?:,|;|&|and|und)\s*(?:(?:sources?|quellen?)\s*)?\d{1,3})*)\s*\))",
    re.IGNORECASE,
)
_OPEN_MARKER = re.compile(r"\s*(?:\[[^\]\n]*|[【［][^】］\n]*|\([^)\n]{0,20})\Z")
_RANGE = re.compile(r"(\d{1,3})\s*[-–]\s*(\d{1,3})")
_DIGITS = re.compile(r"\d+")
_LONGEST_RANGE = 20

_BULLET = re.compile(r"\s*(?:>\s*)*(?:[-*+•‣◦▪–—]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)])\s+(?:\[[ xX]\]\s+)?")
_HEADING = re.compile(r"\s*#{1,6}\s|\s*(?:\*\*|__)[^*_]{1,80}(?:\*\*|__):?\s*\Z")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\((?:[^()\s]|\([^()]*\))*(?:\s+\"[^\"]*\")?\)")
_MARKUP = re.compile(r"(\*\*|__|~~|`+)|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)")
#: What must follow a sentence in a stream before its end is certain.
_LOOK_AHEAD = 24


@dataclass(frozen=True, slots=True)
class Segment:
    """What one marker, or markers side by side, stand behind.

    Attributes:
        text: Without markers and markup.
        cited: The numbers of the markers; empty where there is none.
    """

    text: str
    cited: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, a list item's sentence, a table's row or a heading.

    Attributes:
        raw: As the model wrote it, with the blanks before it.
        kind: What checks it calls for.
        segments: Its parts by the markers that they carry.
    """

    raw: str
    kind: str
    segments: tuple[Segment, ...]

    @property
    def text(self) -> str:
        """The whole statement without markers and markup."""
        return " ".join(segment.text for segment in self.segments)

    @property
    def cited(self) -> tuple[int, ...]:
        """The numbers of all of its markers, each once."""
        return tuple(dict.fromkeys(number for segment in self.segments for number in segment.cited))


class StatementStream:
    """Statements from pieces of text, each as soon as its end is certain.

    Args:
        language: ISO 639-1 code, for sentence boundaries.

    Attributes:
        pending: The text that belongs to no statement yet.
    """

    def __init__(self, language: str = "en") -> None:
        self._language = language
        self.pending = ""

    def feed(self, piece: str) -> list[Statement]:
        """The statements that a further piece completes."""
        self.pending += piece
        # An end is looked for where there can be one, not at each piece.
        if not any(sign in piece for sign in ".!?…:。！？؟।\n") and len(self.pending) < 4 * _LOOK_AHEAD:
            return []
        return self.flush(last=False)

    def flush(self, *, last: bool = True) -> list[Statement]:
        """What is left when nothing more comes; or of that only what is certain to be complete."""
        text = self.pending
        spans = statement_spans(text, self._language)
        if not last:
            settled = max(text.rfind("\n") + 1, len(text) - _LOOK_AHEAD)
            # One is certain when another has begun behind it, which is no marker that still goes on.
            spans = [span for span in spans[:-1] if span[1] <= settled and not _OPEN_MARKER.match(text, span[1])]
        elif spans:
            spans[-1] = (spans[-1][0], len(text), spans[-1][2])
        done, found = 0, []
        for _, end, kind in spans:
            found.append(statement(text[done:end], kind))
            done = end
        self.pending = "" if last else text[done:]
        return found


def statement(raw: str, kind: str) -> Statement:
    """A statement from its text."""
    return Statement(raw, kind, tuple(_segments(raw)))


def statement_spans(text: str, language: str = "en") -> list[tuple[int, int, str]]:
    """Where the statements of a text stand, in order, and the kind of each.

    It is ``sentence``, ``row``, ``heading`` or ``rule``. Markers behind a sentence's full stop belong to it.
    """
    masked = MARKER.sub(lambda match: " " * len(match.group()), text)
    spans: list[tuple[int, int, str]] = []
    for kind, start, end in _blocks(text):
        edges = [start]
        if kind == "sentence":
            for first, _ in sentence_spans(masked[start:end], language)[1:]:
                # What holds no word (a bullet's number, "*") belongs to what follows it.
                if any(map(str.isalpha, masked[edges[-1] : start + first])):
                    edges.append(start + first)
        for left, right in pairwise([*edges, end]):
            first, last = trimmed(text, left, right)
            if last > first:
                spans.append((first, last, kind))
    return spans


def _blocks(text: str) -> Iterator[tuple[str, int, int]]:
    kind, start, end = "rule", 0, 0
    fenced = False
    for match in LINE.finditer(text):
        line = match.group()
        line_kind = _line_kind(line)
        if line.lstrip().startswith(("```", "~~~")):
            fenced, line_kind = not fenced, "rule"
        elif fenced:
            line_kind = "row"
        if line_kind == kind == "sentence" and not _BULLET.match(line):
            end = match.end()
            continue
        yield kind, start, end
        kind, start, end = line_kind, match.start(), match.end()
    yield kind, start, end


def _line_kind(line: str) -> str:
    if not _says(line):
        return "rule"
    if _HEADING.match(line.rstrip("\n")) and not MARKER.search(line):
        return "heading"
    return "row" if TABLE_ROW.fullmatch(line.rstrip("\n")) else "sentence"


def _segments(body: str) -> Iterator[Segment]:
    """The statement's parts up to each group of markers; what follows the last one belongs to it."""
    parts: list[tuple[str, list[int]]] = [("", [])]
    done = 0
    for match in MARKER.finditer(body):
        before, (said, cited) = body[done : match.start()], parts[-1]
        if said and _says(before):
            parts.append((before, list(marker_numbers(match))))
        else:
            # A marker at the beginning stands for what follows it.
            parts[-1] = (said or before, [*cited, *marker_numbers(match)])
        done = match.end()
    if _says(body[done:]):
        parts[-1] = (f"{parts[-1][0]} {body[done:]}", parts[-1][1])
    for text, cited in parts:
        yield Segment(bare(text), tuple(dict.fromkeys(cited)))


def _says(text: str) -> bool:
    return any(map(str.isalnum, text))


def marker_numbers(match: re.Match[str]) -> Iterator[int]:
    """The numbers that a marker names, ranges spelled out."""
    written = match.group("numbers") or match.group("wide") or match.group("round") or ""
    for first, last in _RANGE.findall(written):
        if int(first) < int(last) <= int(first) + _LONGEST_RANGE:
            written += "".join(f" {number}" for number in range(int(first) + 1, int(last)))
    return (int(digits) for digits in _DIGITS.findall(written))


def bare(text: str) -> str:
    """A text without Markdown: bullets, emphasis, table bars, headings' signs; links by their words."""
    text = _BULLET.sub("", text, count=1) if _BULLET.match(text) else text
    text = _LINK.sub(lambda match: f"{match.group(1)} {match.group()[match.group().rindex('(') :].strip('()')}", text)
    text = re.sub(r"^\s*(?:#{1,6}\s+|(?:>\s*)+)", "", text)
    return " ".join(_MARKUP.sub("", text).split())
