"""Names and identifiers in a sentence, and whether its evidence holds them. Pure."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from recollect.answer._quantities import LETTERS, SCALES, UNITS, WEEKDAYS, listed
from recollect.languages.stopwords import stopwords

# Addresses of pages and people, telephone numbers, versions, and words that may be codes. No part can be read in two
# ways, so that no text takes long.
_IDENTIFIERS = re.compile(
    rf"""(?:https?://|www\.)[^\s<>()\[\]"']+
      | (?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)+
      | \+\d[\d\ ()/-]{{5,}}\d
      | (?<![\w.])\d++(?:\.\d{{1,2}}){{2,}}(?!\w)
      | (?<!\w)(?P<word>[{LETTERS}]\w*+(?:[-./]\w++)*+)
    """,
    re.VERBOSE,
)
# Of such words those with a digit or "_", names of files, and capitals with hyphens; "EUR400" is an amount.
_CODE = re.compile(
    r"(?!(?:EUR|USD|GBP|CHF)\d+$)(?:.*[\d_].*|.*\.(?:pdf|docx?|xlsx?|pptx?|md|txt|html?|csv|json|ya?ml|toml|xml|py|sh|exe|zip)"
    r"|[A-Z]{2,}(?:-[A-Z]{2,})+)"
)
_WORD = re.compile(r"(?<!\w)[^\W\d_](?:[^\W_]|['’.&-](?=[^\W_]))*")
_BEGINS = re.compile(
    r"(?:^|(?<!\bDr)(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bSt)(?<!\bProf)[.!?…:;]\s|[\"“„«»(\[|]|\n|[-*•–—]\s|>\s)[\s\"“„«*_(\[]*$"
)
# Before what is a name even where every noun is written in capitals.
_NAMING = listed("in aus nach bei von frau herr herrn dr prof firma stadt mit für via durch gegen zwischen und oder")
_POSSESSIVE = re.compile(r"['’]s?$")
_SEPARATORS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Name:
    """A word that seems to be a proper name; or a code, an address, a file or a version.

    Attributes:
        start: Where it begins.
        end: Just behind its last character.
        text: As written, without a possessive ending.
        folded: For comparison.
    """

    start: int
    end: int
    text: str
    folded: str


def identifiers(text: str) -> list[Name]:
    """The codes (``ERR-4012``), addresses, telephone numbers, files and versions of a text, in order."""
    found = []
    for match in _IDENTIFIERS.finditer(text):
        written = match.group().rstrip(".,;:!?)-/'’")
        if not match.group("word") or _CODE.fullmatch(written):
            # "FRM-16" and "frm_16" are one.
            folded = _SEPARATORS.sub("", unicodedata.normalize("NFKC", written).casefold())
            found.append(Name(match.start(), match.start() + len(written), written, folded))
    return found


def names(text: str, *, language: str = "en") -> list[Name]:
    """The words that seem to be proper names, by their capital letters.

    Where a language writes all nouns in capitals, only words behind one that names introduce ("in", "Frau") count.

    Args:
        text: A sentence without markup, numbers and identifiers.
        language: ISO 639-1 code of the sentence.
    """
    common = stopwords(language) | stopwords("en")
    found: list[Name] = []
    before = ""
    for match in _WORD.finditer(text):
        word = _POSSESSIVE.sub("", match.group())
        preceding, before = before, match.group()
        if len(word) < 2 or not any(map(str.isupper, word)):
            continue
        folded = word.casefold()
        acronym = word.isupper()
        if UNITS.get(folded, "").isupper() or folded in SCALES or (folded in common and not acronym):
            continue
        # At the beginning of a sentence a capital letter means nothing.
        certain = (acronym and len(word) <= 6) or folded in WEEKDAYS
        if _BEGINS.search(text, 0, match.start()) and not certain:
            continue
        follows_noun = preceding[:1].isupper() and not _BEGINS.search(text, 0, match.start() - len(preceding) - 1)
        if language == "de" and not acronym and preceding.casefold() not in _NAMING and not follows_noun:
            continue
        found.append(Name(match.start(), match.start() + len(word), word, folded))
    return found


def abbreviates(short: str, text: str) -> bool:
    """Whether capitals are the initials of neighbouring words of a text that begin so ("UK", "United Kingdom")."""
    words = re.findall(r"[^\W\d_]+", text) if short.isupper() else []
    return 2 <= len(short) <= 6 and short in "".join(word[0] for word in words if word[0].isupper())
