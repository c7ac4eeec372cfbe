"""The characters of a page, put together to segments: runs of words on one baseline without a wide gap.

pdfium says where each character stands. Asking for the first and the last character of each word is enough, and a
third of the work.
"""

from __future__ import annotations

import ctypes
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from recollect.documents._text import clean

if TYPE_CHECKING:
    from collections.abc import Iterator


Turn = Literal[0, 90, 180, 270]
# pdfium's mark for a hyphen at the end of a line whose word goes on in the next; it then leaves out the line end.
HYPHEN = "\x02"
#: A gap that is a space in some lines, and only wide setting in others.
DOUBTFUL = "\x1f"
#: The `Segment.order` of what no file has put in order: a page that was recognised.
UNORDERED = -1
_WORD = re.compile(r"[^\s\x02\ufffe\u200b]+[\x02\ufffe]?")
_LIGATURES = str.maketrans(
    {
        "ﬀ": "ff",
        "ﬁ": "fi",
        "ﬂ": "fl",
        "ﬃ": "ffi",
        "ﬄ": "ffl",
        "ﬅ": "st",
        "ﬆ": "st",
        "\xad": None,
        "\u200b": None,
        "\ufffe": HYPHEN,
    }
)
#: Hebrew, Arabic and their neighbours, presentation forms among them.
RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_IDEOGRAPH = re.compile("[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")
#: Scripts that are written without spaces: Thai, Lao, Burmese, Khmer, Japanese, Chinese, with their signs.
UNSPACED = re.compile("[\u0e01-\u0edf\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")
#: In heights of the line: a wider gap is a column's, a narrower one is inside a word.
_WIDE, _NARROW, _DOUBT, _SURE = 0.9, 0.055, 0.2, 0.27
_RAISED = 0.8
# So much farther down than across are the characters of a word that does not run along the page.
_DOWN = 1.5
_SHORT_END = 2
# What stands for a character that a font does not name; pages with fewer characters have no text worth the question.
_UNKNOWN = ("\ufffd", "•")
_LEAST_UNREADABLE, _LEAST_READ = 100, 0.4
_SIGNS = frozenset({"$", "€", "£", "¥"})
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_NOTE = re.compile(r"\d{1,3}[„“\"'«‘]?[^\W\d_]")
_BOLD_WEIGHT = 600
_BOLD_NAME = re.compile(rb"bold|black|heavy|semibold|[-,]bd\b", re.IGNORECASE)


@dataclass(slots=True, eq=False)
class Segment:
    """Words on one baseline, in the page's reading direction: boxes are turned so that text runs to the right.

    Attributes:
        text: The words, in logical order.
        x0: The left edge, in points.
        x1: The right edge.
        y0: The lower edge; heights grow upwards.
        y1: The upper edge.
        bold: Whether the first and the last word are.
        order: The place in the file's own order; `UNORDERED` where there is none.
        rtl: Whether it is written from right to left.
    """

    text: str
    x0: float
    x1: float
    y0: float
    y1: float
    bold: bool
    order: int
    rtl: bool = False

    @property
    def size(self) -> float:
        """The height of the line, which stands for the size of the type."""
        return self.y1 - self.y0


_Word = tuple[str, float, float, float, float, int]
#: Of each word the left, upper, right and lower edge of its first character, then of its last one: eight columns.
Boxes = list[list[float]]


def segments_of(text_page: Any) -> list[tuple[Turn, list[Segment]]]:  # noqa: ANN401 - a handle of pdfium
    """The segments of a page, apart for each direction that text runs in, the commonest direction first."""
    text, boxes, starts = _words(text_page)
    if not text:
        return []
    turns = _turns(text_page, text, boxes, starts)
    grouped: dict[Turn, list[_Word]] = {}
    for turn, word in _placed(text, boxes, starts, turns):
        grouped.setdefault(turn, []).append(word)
    bold = _Boldness(text_page)
    order = sorted(grouped, key=lambda turn: -len(grouped[turn]))
    return [(turn, _joined(grouped[turn], bold)) for turn in order]


def says_nothing(text_page: Any, words: Iterable[str]) -> bool:  # noqa: ANN401 - a handle of pdfium
    """Whether a page has characters, and fonts that do not say which: what is left of its words is no text.

    Args:
        text_page: The page.
        words: What was made of its characters.
    """
    import pypdfium2.raw as pdfium

    count: int = pdfium.FPDFText_CountChars(text_page)
    if count < _LEAST_UNREADABLE:
        return False
    told = sum(len(word) - sum(map(word.count, _UNKNOWN)) for word in words)
    if told >= _LEAST_READ * count:
        return False
    blank = sum(map(_characters(text_page, count).count, " \r\n\t\xa0"))
    return told < _LEAST_READ * (count - blank)


def _words(text_page: Any) -> tuple[list[str], Boxes, list[int]]:  # noqa: ANN401
    """Each word, their boxes, and where the first character of each stands."""
    import pypdfium2.raw as pdfium

    count = pdfium.FPDFText_CountChars(text_page)
    if count <= 0:
        return [], [], []
    text = _characters(text_page, count)
    words = [(match[0], match.start(), match.end() - 1) for match in _WORD.finditer(text)]
    read = (ctypes.c_float * (8 * len(words)))()
    box_at = _box_function()
    handle = ctypes.cast(text_page, ctypes.c_void_p).value
    address = ctypes.addressof(read)
    for _, first, last in words:
        box_at(handle, first, address)
        box_at(handle, last, address + 16)
        address += 32
    numbers: list[float] = list(read)
    boxes = [numbers[column::8] for column in range(8)]
    cleaned = [clean_word(word) for word, _, _ in words]
    heights = [(abs(y1 - y0), abs(top - bottom)) for y1, y0, top, bottom in zip(*boxes[1::2], strict=True)]
    for at, (before, behind) in enumerate(heights):
        if (before >= _RAISED * behind and behind >= _RAISED * before) or _runs_down(boxes, at):
            continue
        word, _, last = words[at]
        if behind > before:
            if _NOTE.match(word):  # the mark of a footnote tells nothing of the height of its line
                boxes[1][at], boxes[3][at] = boxes[5][at], boxes[7][at]
        # A raised mark behind a number is not the number's last digit.
        elif word[-1].isdigit() and len(word) > 1:
            cleaned[at] = _with_raised(handle, word, last, abs(boxes[1][at] - boxes[3][at]))
            boxes[5][at], boxes[7][at] = boxes[1][at], boxes[3][at]
    return cleaned, boxes, [first for _, first, _ in words]


def _runs_down(boxes: Boxes, at: int) -> bool:
    """Whether a word's characters stand below one another rather than beside."""
    left, top, right, bottom, left2, top2, right2, bottom2 = (column[at] for column in boxes)
    return abs(top + bottom - top2 - bottom2) > _DOWN * abs(left + right - left2 - right2)


def _with_raised(handle: int | None, word: str, last: int, height: float) -> str:
    """A word whose last digits are a raised mark, written as such where the character before them is a digit too."""
    box = (ctypes.c_float * 4)()
    count = 0
    while count < min(3, len(word) - 1) and word[-1 - count].isdigit():
        _box_function()(handle, last - count, ctypes.addressof(box))
        if abs(box[1] - box[3]) >= _RAISED * height:
            break
        count += 1
    body, mark = word[: len(word) - count], word[len(word) - count :]
    return clean_word(body) + (mark.translate(_SUPERSCRIPTS) if body[-1] in "0123456789)%" else mark)


def clean_word(word: str) -> str:
    """A word without ligatures, private characters and what a store refuses; the mark of a hyphen stays."""
    if word.isascii() and word.isprintable():
        return word
    word = word.translate(_LIGATURES)
    split = word.endswith(HYPHEN)
    word = clean(word)
    if any("\ue000" <= char <= "\uf8ff" for char in word):
        # Symbol fonts put bullets there.
        word = "•" if len(word) == 1 else "".join(char for char in word if not "\ue000" <= char <= "\uf8ff")
    if RIGHT_TO_LEFT.search(word):
        word = unicodedata.normalize("NFKC", word)
    return word + HYPHEN if split else word


def _characters(text_page: Any, count: int) -> str:  # noqa: ANN401
    """One character for each of pdfium's."""
    import pypdfium2.raw as pdfium

    buffer = (ctypes.c_ushort * (count * 2 + 2))()
    units = pdfium.FPDFText_GetText(text_page, 0, count, buffer)
    text = bytes(buffer)[: 2 * max(0, units - 1)].decode("utf-16-le", "replace")
    if len(text) == count:
        return text
    codes = (pdfium.FPDFText_GetUnicode(text_page, index) for index in range(count))
    return "".join(chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else " " for code in codes)


@cache
def _box_function() -> Any:  # noqa: ANN401
    """`FPDFText_GetLooseCharBox` with plain addresses, which takes a third of the time of its checked wrapper."""
    import pypdfium2.raw as pdfium

    # Not CFUNCTYPE, which lets go of the interpreter's lock for each of the two calls a word.
    kind = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    return kind(ctypes.cast(pdfium.FPDFText_GetLooseCharBox, ctypes.c_void_p).value or 0)


def _turns(text_page: Any, words: list[str], boxes: Boxes, starts: list[int]) -> list[Turn]:  # noqa: ANN401
    """Which way each word runs; one of a single character runs as the one before it."""
    import pypdfium2.raw as pdfium

    middle = len(starts) // 2
    sample = [starts[at] for at in {0, middle // 2, middle, middle + middle // 2} if at < len(starts)]
    angles = [pdfium.FPDFText_GetCharAngle(text_page, index) for index in sample]
    backwards = bool(angles) and all(abs(angle - math.pi) < 0.3 for angle in angles)
    level: Turn = 180 if backwards else 0
    # FS_RECTF: left, top, right, bottom.
    steps = [
        (abs(left + right - left2 - right2), top + bottom - top2 - bottom2)
        for left, top, right, bottom, left2, top2, right2, bottom2 in zip(*boxes, strict=True)
    ]
    if not any(abs(down) > _DOWN * across for across, down in steps):
        return [level] * len(words)
    turns: list[Turn] = []
    turn = level
    for word, (across, down) in zip(words, steps, strict=True):
        if len(word) > 1 and (across or down):
            turn = (270 if down > 0 else 90) if abs(down) > _DOWN * across else level
        turns.append(turn)
    return turns


def _placed(words: list[str], boxes: Boxes, starts: list[int], turns: list[Turn]) -> Iterator[tuple[Turn, _Word]]:
    """Each word with its box, turned so that the text runs to the right."""
    for word, turn, start, left, top, right, bottom, left2, top2, right2, bottom2 in zip(
        words, turns, starts, *boxes, strict=True
    ):
        if not word or word == HYPHEN:
            continue
        forward = left <= left2
        x0, x1 = (left, right2) if forward else (left2, right)
        y0, y1 = (min(bottom2, bottom)), (max(top2, top))
        if turn:
            x0, x1, y0, y1 = _turned(turn, (x0, x1, y0, y1), (min(left, left2), max(right, right2)))
        if forward and not word.isascii() and len(word) > 1 and RIGHT_TO_LEFT.search(word):
            # In the order in which it is drawn, not in which it is read.
            yield turn, (word[::-1], x0, x1, y0, y1, start)
        else:
            yield turn, (word, x0, x1, y0, y1, start)


def _turned(
    turn: Turn, box: tuple[float, float, float, float], sides: tuple[float, float]
) -> tuple[float, float, float, float]:
    _, _, y0, y1 = box
    match turn:
        case 90:
            return y0, y1, -sides[1], -sides[0]
        case 180:
            return -sides[1], -sides[0], -y1, -y0
        case 270:
            return -y1, -y0, sides[0], sides[1]
        case _:
            return box


def _joined(words: list[_Word], bold: _Boldness) -> list[Segment]:
    segments: list[Segment] = []
    parts: list[str] = []
    current: Segment | None = None
    last = 0
    for word, x0, x1, y0, y1, start in words:
        rtl = not word.isascii() and RIGHT_TO_LEFT.search(word) is not None
        if current is not None:
            joint = _joint(current, parts[-1], word, (x0, x1, y0, y1), rtl=rtl)
            if joint is not None:
                if rtl and x0 >= current.x1:
                    parts[:0] = [word, joint]
                else:
                    parts += [joint, word]
                current.x0, current.x1 = min(current.x0, x0), max(current.x1, x1)
                current.y0, current.y1 = min(current.y0, y0), max(current.y1, y1)
                current.rtl = current.rtl or rtl
                last = start
                continue
            _close(current, parts, last, bold)
        current, parts, last = Segment("", x0, x1, y0, y1, False, start, rtl), [word], start
        segments.append(current)
    if current is not None:
        _close(current, parts, last, bold)
    return segments


def _joint(
    current: Segment, before: str, word: str, box: tuple[float, float, float, float], *, rtl: bool
) -> str | None:
    """What stands between a word and the segment before it: a space, nothing, or None: it begins another."""
    x0, x1, y0, y1 = box
    height = y1 - y0 or 1
    if not (
        (abs(y0 - current.y0) < 0.4 * height and 0.6 < height / (current.y1 - current.y0 or 1) < 1.7)
        or (y0 >= current.y0 - 0.3 * height and y1 <= current.y1 + 0.3 * height)
    ):
        return None
    gap = current.x0 - x1 if (rtl or current.rtl) and x1 < current.x1 else x0 - current.x1
    if gap > _WIDE * height or gap < -1.5 * height or before.endswith(HYPHEN):
        return None
    if word in _SIGNS and before[-1] in "0123456789%)—–":
        return None  # the sign of the next column's value
    if gap < _NARROW * height and not rtl and not current.rtl:
        if before[-1].isalnum() and word[0].isalnum():
            return ""
        if gap > -_NARROW * height and _of_number(before[-1], word[0]):
            return ""  # the characters of a number that was set one by one
    if gap < 0.4 * height and beside_ideograph(before[-1], word[0]):
        return ""
    if rtl or gap >= _SURE * height or not (before[-1].isalpha() and word[0].isalpha()):
        return " "
    return DOUBTFUL if gap < _DOUBT * height or len(before) == 1 or len(word) <= _SHORT_END else " "


def beside_ideograph(before: str, behind: str) -> bool:
    """Whether two characters, ideographs or their signs, or one and a digit, are written without a space."""
    ideographs = [_IDEOGRAPH.match(one) is not None for one in (before, behind)]
    return any(ideographs) and all(
        is_one or one.isdigit() for is_one, one in zip(ideographs, (before, behind), strict=True)
    )


def _of_number(before: str, behind: str) -> bool:
    return (before.isdigit() and behind in ",.)%") or (before in ",.($-–" and behind.isdigit())


def _close(segment: Segment, parts: list[str], last: int, bold: _Boldness) -> None:
    segment.text = "".join(parts)
    segment.bold = bold.at(segment.order) and (last == segment.order or bold.at(last))


class _Boldness:
    """Whether a character of a page is set in bold type, asked once a font."""

    def __init__(self, text_page: Any) -> None:  # noqa: ANN401
        import pypdfium2.raw as pdfium

        self._pdfium = pdfium
        self._page = text_page
        self._fonts: dict[int, bool] = {}

    def at(self, index: int) -> bool:
        pdfium = self._pdfium
        thing = pdfium.FPDFText_GetTextObject(self._page, index)
        font = pdfium.FPDFTextObj_GetFont(thing) if thing else None
        if not font:
            return False
        address = ctypes.cast(font, ctypes.c_void_p).value or 0
        if address not in self._fonts:
            name = ctypes.create_string_buffer(128)
            pdfium.FPDFFont_GetBaseFontName(font, name, len(name))
            heavy = pdfium.FPDFFont_GetWeight(font) >= _BOLD_WEIGHT
            self._fonts[address] = heavy or _BOLD_NAME.search(name.value) is not None
        return self._fonts[address]


# Stray spaces inside words: gaps that may be a letter's or a word's are judged by the words of the document.


_LETTERS = re.compile(r"[^\W\d_]+")
_AROUND = re.compile(rf"([^\W_]*){DOUBTFUL}([^\W_]*)")
_SHORT_WORDS = frozenset("aAIiyYeEoOàuUwz")


def mend_spaces(segments: Iterable[Segment]) -> None:
    """Settles the doubtful spaces of a document's segments: out where both sides are one word of the document.

    They are where the whole is written elsewhere without a gap, and more often than the rarer of its sides.
    """
    words: Counter[str] = Counter()
    doubtful: list[Segment] = []
    for segment in segments:
        text = segment.text
        if DOUBTFUL in text:
            doubtful.append(segment)
            text = _AROUND.sub(" ", text)
        words.update(_LETTERS.findall(text.casefold()))
    if not doubtful:
        return

    def settled(before: str, after: str) -> str:
        if not before or not after:
            return f"{before} {after}"
        whole = words[(before + after).casefold()]
        sides = min(words[one.casefold()] if len(one) > 1 or one in _SHORT_WORDS else 0 for one in (before, after))
        # Of two letters that overlap, as in slanted type, pdfium leaves out one.
        if before.endswith("f") and words[(before + "f" + after).casefold()] > max(whole, sides):
            return f"{before}f{after}"
        return before + after if whole > sides else f"{before} {after}"

    for segment in doubtful:
        done, *rest = segment.text.split(DOUBTFUL)
        for part in rest:
            start, end = _last_word(done), _first_word(part)
            done = done[:start] + settled(done[start:], part[:end]) + part[end:]
        segment.text = done


def _last_word(text: str) -> int:
    """Where the letters and digits at the end of a text begin."""
    at = len(text)
    while at and text[at - 1].isalnum():
        at -= 1
    return at


def _first_word(text: str) -> int:
    """Where the letters and digits at the beginning of a text end."""
    at = 0
    while at < len(text) and text[at].isalnum():
        at += 1
    return at


# Words that were split at the ends of lines.


_WORDS = re.compile(r"\w+(?:-\w+)*")
_LAST = re.compile(r"(\w{1,40})[\x02-]$")
_FIRST = re.compile(r"\w{1,40}")
_SPLIT_LINE = re.compile(r"\w[\x02]$")


class Hyphens:
    """Decides whether the hyphen at a line's end belongs to the word (``six-month``) or to the line (``adip-iscing``).

    The form that the document has elsewhere decides, and else whether it splits words often, as typesetting programs
    do.

    Args:
        lines: All lines of the document.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        texts = list(lines)
        splits = sum(1 for text in texts if _SPLIT_LINE.search(text))
        self._typeset = splits > 0.03 * len(texts)
        self._words = Counter(_WORDS.findall("\n".join(texts).lower())) if splits or _any_hyphen(texts) else Counter()

    def joined(self, line: str, following: str) -> str | None:
        """What ``line`` becomes before ``following`` is set right behind it; None: they are two words."""
        end, start = _LAST.search(line), _FIRST.match(following)
        if end is None or start is None:
            return line[:-1] + "-" if line.endswith(HYPHEN) else None
        solid, hyphenated = (end[1] + start[0]).lower(), f"{end[1]}-{start[0]}".lower()
        as_solid, as_hyphenated = self._words[solid], self._words[hyphenated]
        keeps = line[:-1] + "-"
        if not start[0][0].islower() or as_hyphenated > as_solid:
            return keeps
        marked = line.endswith(HYPHEN)
        return line[:-1] if as_solid > as_hyphenated or (self._typeset and marked) else keeps


def _any_hyphen(texts: Iterable[str]) -> bool:
    return any(text.endswith("-") for text in texts)
