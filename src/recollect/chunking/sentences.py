"""Sentence boundaries with exact character offsets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from recollect.chunking._sentence_ends import LONGEST_WORD, goes_on, thai_starts
from recollect.languages import AUTO, language_of_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recollect.chunking.base import Span

# sentencex skips the line breaks between paragraphs of long texts, and its time grows with the square of a
# paragraph's length in some scripts: it gets one bounded paragraph at a time.
_LONGEST_PIECE = 4000
_PARAGRAPH_BREAK = re.compile(r"(?:\r\n?|[\n\x0b\x0c\x85\u2028\u2029])\s*")
_LINE_BREAK = re.compile(r"\r\n?|[\n\x0b\x0c\x85\u2028\u2029]")
# sentencex panics on some whitespace of two or more bytes; a space of the same length keeps the offsets.
_UNUSUAL_SPACE = re.compile(r"[^\S\n ]")
# Half a surrogate pair cannot cross into Rust; any other character of the same length can.
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN_END = re.compile(r"[.!?…][\"'”’»)\]]*\s+|[。！？]+\s*|[؟।॥]\s*")


def sentence_spans(text: str, language: str = "en") -> list[Span]:
    """The sentences of a text.

    Every character that is not whitespace lies in exactly one sentence; a sentence neither begins nor ends with
    whitespace, and never reaches over a blank line. Uses sentencex (rules for over 40 languages, with fallbacks), and
    more abbreviations for some of them; in Thai, which has no sign for the end of a sentence, a part between spaces
    that is long enough counts as one.

    Args:
        text: Any text of any length; the time is linear in it.
        language: ISO 639-1 code; an unknown one is treated by the rules that most languages share; ``auto``: the
            text's own.

    Returns:
        Character spans, in order.

    Example:
        >>> sentence_spans("Dr. Wu left. Nobody saw it.")
        [(0, 12), (13, 27)]
    """
    if language == AUTO:
        language = language_of_text(text)
    spans: list[Span] = []
    for start, end in _pieces(text):
        _segment(text, start, end, language, spans)
    return spans


def _pieces(text: str) -> Iterator[Span]:
    start = 0
    for gap in _PARAGRAPH_BREAK.finditer(text):
        if gap.end() < len(text) and len(_LINE_BREAK.findall(gap.group())) > 1:
            yield from _bounded(text, start, gap.end())
            start = gap.end()
    yield from _bounded(text, start, len(text))


def _bounded(text: str, start: int, end: int) -> Iterator[Span]:
    while end - start > _LONGEST_PIECE:
        window = text[start : start + _LONGEST_PIECE]
        # The last sentence end or line break in the window keeps sentences whole where there is one.
        cut = max(window.rfind(mark) for mark in (". ", "? ", "! ", "\n", "。", "؟ ", "। ")) + 1
        if cut < _LONGEST_PIECE // 4:
            cut = len(window.rsplit(None, 1)[0]) if " " in window.strip() else 0
        step = cut or _LONGEST_PIECE
        yield start, start + step
        start += step
    yield start, end


def _segment(text: str, start: int, end: int, language: str, spans: list[Span]) -> None:
    piece = text[start:end]
    starts = [position for position in _starts(piece, language) if 0 < position < len(piece)]
    for first, last in zip([0, *starts], [*starts, len(piece)], strict=True):
        sentence = piece[first:last]
        left = len(sentence) - len(sentence.lstrip())
        length = len(sentence.strip())
        if length:
            spans.append((start + first + left, start + first + left + length))


def _starts(piece: str, language: str) -> list[int]:
    """Offsets at which sentences begin, ascending."""
    import sentencex

    if language == "th":
        return thai_starts(piece)
    try:
        plain = _SURROGATE.sub("\ufffd", _UNUSUAL_SPACE.sub(" ", piece))
        found: list[dict[str, Any]] = sentencex.get_sentence_boundaries(language, plain)
    except BaseException as error:
        # A panic in Rust is no Exception, and its class cannot be imported.
        if type(error).__name__ != "PanicException":
            raise
        return [match.end() for match in _PLAIN_END.finditer(piece)]
    starts = sorted({int(sentence["start_index"]) for sentence in found})
    return [
        start
        for start in starts
        if not goes_on(piece[max(0, start - LONGEST_WORD) : start], piece[start : start + 1], language)
    ]
