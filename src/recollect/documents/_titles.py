"""Headings of texts without markup: ALL-CAPS, Title-Case and numbered lines.

A line is a heading only if its words look like one *and* it stands like one. The words: few, no full stop at the
end, no table, address, date or dot leaders, written in capitals or as a title, or numbered in the manner of ``3.2``.
The place: what stands before it has ended, body text or a deeper heading follows, and it is no entry of a list.
Scripts without case give headings only where they are numbered in the manner of ``3.2``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from recollect.documents._markup import lines_of
from recollect.model import Heading

_MAX_LENGTH = 90
_MAX_WORDS = 12
_NUMBER = re.compile(
    r"(?:(?P<word>section|chapter|part|article|appendix|annex|schedule|kapitel|abschnitt|teil|artikel|anhang|chapitre|"
    r"partie|annexe|capítulo|sección|parte|capitolo|sezione|hoofdstuk|bijlage)\s+)?"
    r"(?P<number>\d{1,3}(?:\.\d{1,3}){0,5}|[IVXLC]{1,7}|[A-Z])(?P<mark>[.):]|\s*[–—-](?=\s))?(?=\s|$)\s*",
    re.IGNORECASE,
)
# Articles, prepositions and conjunctions that titles leave small: English, German, French, Spanish, Italian,
# Portuguese, Dutch.
_SMALL_WORDS = """
a an and as at but by for from in into nor of off on onto or over per the to under upon via vs with without
am auf aus bei beim das dem den der des die ein eine für im mit nach oder ohne über um und unter vom von vor zu zum zur
au aux avec ce dans de du en et la le les ou par pour sur un une
al con del e el las los o para por sin su una y
da dei della delle di do dos em gli il lo na no nel een het met op te van voor
"""
_SMALL = frozenset(_SMALL_WORDS.split())
_TABULAR = re.compile(r"\t|\s{3,}|\.{3,}|(?:\. ){3,}|…|[|=<>{}@\\©]|https?:|www\.")
_BULLET = re.compile(r"[-–—*•·▪◦‣●○■□➢✓>#\"“„'‘(\[]")
_CLOSING = re.compile(
    r"(?:(?:best|kind|warm|with kind|yours|many)\s+)?(?:regards|wishes|sincerely|faithfully|truly|thanks|cheers|love)"
    r"\W*$|(?:mit\s+)?(?:freundlichen|besten|viele|liebe)\s+grüße?n?\W*$|cordialement\W*$|signed\W*$|thank you\W*$",
    re.IGNORECASE,
)
_MONTHS = (
    r"jan(?:uary|uar)?|feb(?:ruary|ruar)?|mar(?:ch)?|märz|apr(?:il)?|ma[iy]|june?|juni|july?|juli|aug(?:ust)?|"
    r"sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|mon|tue|wed|thu|fri|sat|sun"
)
_DATE = re.compile(rf"(?:(?:(?:{_MONTHS})\b|\d{{1,4}}(?:st|nd|rd|th|er)?\b)[\s.,/:-]*)+(?:am|pm|uhr)?$", re.IGNORECASE)
_FIELD = re.compile(r"[^:]{1,40}:\s+\S")
_IDENTIFIER = re.compile(r"(?=\S*\d)[\w./-]+$")
_NUMBER_END = re.compile(r"\s\d{1,5}$")
_THREE_LETTERS = re.compile(r"[^\W\d_]{3}")
_FOUR_LETTERS = re.compile(r"[^\W\d_]{4}")
# "Edition 2, Leeds", "New York, NY 10017".
_PLACE = re.compile(r"\d.*,|,.*\d")
_PLAIN_WORDS = re.compile(r"(?![a-z][.)])[\w\s,:&/()’'?–-]+")
_SECOND_NUMBER = re.compile(r"\d+\.\d")
_ENDINGS = (".", "!", "?", ":", ";", "。", "！", "？", "؟", "।", "…", "”", '"')


@dataclass(frozen=True, slots=True)
class _Candidate:
    level: int
    numbered: tuple[str, ...]
    capitals: bool
    title: str
    sentence: bool = False


def title_headings(text: str) -> list[Heading]:
    """The headings of a plain text whose paragraphs are separated by blank lines, or are one long line each."""
    placed = list(lines_of(text))
    lines = [line for _, line in placed]
    found = find_titles(lines)
    return [Heading(level, title, placed[at][0], placed[at][0] + len(lines[at])) for at, level, title in found]


def find_titles(
    lines: Sequence[str], *, wrapped: bool = False, shown_as_headings: Collection[str] = ()
) -> list[tuple[int, int, str]]:
    """Which lines are headings: index, level and title of each, in order.

    Args:
        lines: The text's lines, blank ones included.
        wrapped: Whether blank lines are missing, as in text from PDF pages, so that the length of lines must tell
            where a paragraph ends.
        shown_as_headings: Lines that are set in larger type, where type is known. They need not stand alone, and
            where any are given, a line that is neither among them nor in capitals nor numbered is no heading.
    """
    candidates = {
        at: found
        for at, line in enumerate(lines)
        if (found := _candidate(line, large=line.strip() in shown_as_headings)) is not None
    }
    repeated = Counter(found.title for found in candidates.values())
    full = _full_length(lines) if wrapped else 0
    return [
        (at, found.level, found.title)
        for at, found in candidates.items()
        if repeated[found.title] <= max(3, len(lines) // 100)
        and not _in_list(lines, at, candidates)
        and _placed_as_heading(lines, at, candidates, full, shown_as_headings)
    ]


def _candidate(line: str, *, large: bool) -> _Candidate | None:
    """What the words of a line alone say; in larger type, words in sentence case are enough."""
    stripped = line.strip()
    if not 2 <= len(stripped) <= _MAX_LENGTH or _BULLET.match(stripped) or _TABULAR.search(stripped):
        return None
    if stripped.endswith((".", ",", ";", "!", "…", "。", "-", "–", "—")) or _DATE.match(stripped):
        return None
    number = _numbering(stripped)
    rest = stripped[number.end() :] if number else stripped
    rest = rest.rstrip(":").strip()
    words = rest.split()
    if number and number["word"] and not words:
        return _Candidate(1, (), stripped.isupper(), stripped.rstrip(":"))
    if number and not number["mark"] and _SECOND_NUMBER.match(rest):
        return None
    if not words or len(words) > _MAX_WORDS or _FIELD.match(rest) or (not number and _NUMBER_END.search(rest)):
        return None
    return _judge(stripped, words, number, large=large)


def _numbering(stripped: str) -> re.Match[str] | None:
    match = _NUMBER.match(stripped)
    if match is None or match["word"] or match["mark"]:
        return match
    if match["number"][0].isdigit():
        # Three digits and no dot begin an address or an amount.
        return match if len(match["number"]) < 3 or "." in match["number"] else None
    # "A New Office" and "I Am Legend" begin with a word, not with a number.
    return None


def _judge(stripped: str, words: Sequence[str], number: re.Match[str] | None, *, large: bool) -> _Candidate | None:
    rest = " ".join(words)
    letters = [char for char in rest if char.isalpha()]
    cased = [char for char in letters if char.isupper() or char.islower()]
    parts = tuple(number["number"].split(".")) if number and number["number"][0].isdigit() else ()
    depth = 1 if number and number["word"] and len(parts) <= 1 else len(parts)
    title = stripped.rstrip(":").rstrip()
    if len(letters) < 0.6 * len(rest.replace(" ", "")) or not letters:
        return None
    uncased = len(cased) < 0.8 * len(letters)
    if len(parts) >= 2 and len(words) <= 10 and (uncased or rest[0].isupper()):
        return _Candidate(depth, parts, False, title)
    if uncased:
        return None
    if all(char.isupper() for char in cased) and len(cased) >= 4:
        alone = len(words) == 1 and _IDENTIFIER.match(rest)
        return None if alone else _Candidate(depth or 1, parts, True, title)
    long_word = _FOUR_LETTERS if not parts else _THREE_LETTERS
    if not long_word.search(rest) or (not number and _PLACE.search(rest)):
        return None
    if _is_title_case(words):
        return _Candidate(depth or 2, parts, False, title)
    if large and rest[0].isupper() and _PLAIN_WORDS.fullmatch(stripped):
        return _Candidate(depth or 2, parts, False, title, sentence=not parts)
    return None


def _is_title_case(words: Sequence[str]) -> bool:
    capitalised = 0
    for word in words:
        bare = word.strip("\"'“”‘’()[],:;&/–—-+")
        if not bare:
            continue
        if bare[0].isupper():
            capitalised += 1
        elif bare[0].isalpha() and bare.lower() not in _SMALL:
            return False
    first = words[0].strip("\"'“”‘’(")
    return bool(first) and first[0].isupper() and 2 * capitalised >= len(words) and len("".join(words)) >= 3


def _full_length(lines: Sequence[str]) -> int:
    lengths = sorted(len(line.strip()) for line in lines if len(line.strip()) > 20)
    return lengths[(len(lengths) * 3) // 4] if lengths else 0


def _in_list(lines: Sequence[str], at: int, candidates: dict[int, _Candidate]) -> bool:
    """Whether a line numbered ``1`` stands directly beside a line numbered ``2``, or a content list's entry does."""
    numbered = candidates[at].numbered
    if not numbered:
        return False
    for other in (at - 1, at + 1):
        alike = other in candidates and candidates[other].capitals
        if 0 <= other < len(lines) and (alike or not candidates[at].capitals):
            match = _NUMBER.match(lines[other].strip())
            parts = match["number"].split(".") if match and not match["word"] else []
            if len(parts) == len(numbered) and parts[-1].isdigit():
                return True
    return False


def _placed_as_heading(
    lines: Sequence[str], at: int, candidates: dict[int, _Candidate], full: int, shown: Collection[str]
) -> bool:
    found = candidates[at]
    if lines[at].strip() not in shown:
        # A word in capitals may be a cell of a table, and a numbered line that ends in a number a table of contents.
        lone = found.capitals and not found.numbered and " " not in found.title
        marked = (found.capitals and not lone) or bool(found.numbered)
        if full and found.numbered and _NUMBER_END.search(found.title):
            return False
        return (marked or not shown) and _stands_alone(lines, at, found, candidates, full)
    after = _neighbour(lines, at, 1)
    if after is None or found.capitals or found.numbered:
        return True
    # The header of a table is often bold or large too, but short rows follow it and no paragraph.
    before = _neighbour(lines, at, -1)
    if found.sentence and before is not None and before not in candidates and not lines[before].endswith(_ENDINGS):
        return False
    if " " not in found.title:
        return True
    following = lines[after].strip()
    deeper = candidates.get(after)
    if following in shown or (deeper is not None and (deeper.capitals or deeper.numbered)):
        return True
    return _opens_paragraph(following, full)


def _opens_paragraph(line: str, full: int) -> bool:
    return len(line) >= 0.75 * full or line.endswith(_ENDINGS) or bool(_BULLET.match(line) or _NUMBER.match(line))


def _stands_alone(
    lines: Sequence[str], at: int, found: _Candidate, candidates: dict[int, _Candidate], full: int
) -> bool:
    before, after = _neighbour(lines, at, -1), _neighbour(lines, at, 1)
    if after is None or (before is not None and _CLOSING.match(lines[before].strip())):
        return False
    touching_before = before is not None and before == at - 1
    touching_after = after == at + 1
    if touching_before and before not in candidates and not _ended(lines[before or 0], full):
        return False
    if full and len(lines[at].strip()) > 0.9 * full and not (found.capitals or found.numbered):
        return False
    if not (found.capitals or found.numbered) and touching_before and not full:
        return False
    return _body_follows(lines[after], found, candidates.get(after), touching=touching_after, full=full)


def _neighbour(lines: Sequence[str], at: int, step: int) -> int | None:
    at += step
    while 0 <= at < len(lines):
        if lines[at].strip():
            return at
        at += step
    return None


def _ended(line: str, full: int) -> bool:
    line = line.strip()
    return line.endswith(_ENDINGS) or (full > 0 and len(line) < 0.6 * full) or (full == 0 and len(line) < 40)


def _body_follows(line: str, found: _Candidate, after: _Candidate | None, *, touching: bool, full: int) -> bool:
    """Whether the next line that is not blank is text that a heading can stand above."""
    line = line.strip()
    if after is not None:
        # Two lines of title case in one block are an address, a signature or a table; a heading above a deeper or
        # numbered one is a heading.
        return found.capitals or bool(found.numbered) or bool(after.numbered) or after.capitals or not touching
    if _BULLET.match(line) or _NUMBER.match(line):
        return True
    long_enough = len(line) >= (40 if touching and not (found.capitals or found.numbered) else 12)
    return long_enough or line.endswith(_ENDINGS) or (full > 0 and len(line) >= 0.6 * full)
