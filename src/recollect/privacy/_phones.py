"""Telephone numbers, checked by the numbering plans of their countries (phonenumbers, as presidio does)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from recollect.errors import UsageError
from recollect.privacy.findings import Finding, not_installed

# Digits that stand together; up to three signs between two of these belong to a number.
_GROUP = re.compile(r"(?:\+|\(\+?)?\d+\)?")
_BEGINNING = re.compile(r"\(?\+|\(?0[1-9]|\(?[2-9]\d{2}[-.) ]|1[ -]")
_DIGIT_BEFORE = re.compile(r"\d[ -]")
_BETWEEN = re.compile(r"[ ().\-/]{1,3}|")
_MOST_GROUPS = 7
_FEWEST_DIGITS, _MOST_DIGITS = 7, 15

# Written as little else is: (415) 555-2671, 415-555-2671; 020 7946 0958, 030/1234567.
_AMERICAN = re.compile(r"(?:1[ -])?(?:\([2-9]\d{2}\) ?|[2-9]\d{2}[-.])[2-9]\d{2}[-.]\d{4}")
_WITH_TRUNK = re.compile(r"\(?0[1-9]\d{1,4}\)?[ /-]\d{3,8}(?:[ -]\d{2,5}){0,2}")
_WORDS = re.compile(
    r"(?<!\w)(?:phone|telephone|tel|mobile|mob|cellphone|call|calls|fax|hotline|helpline|dial|sms|text|whatsapp"
    r"|telefon|telefonnummer|tel\.|mobil|handy|rufnummer|durchwahl|téléphone|portable|appelez|teléfono|móvil|llame"
    r"|telefono|cellulare|telefone|celular|telefoon|puhelin|tlf|电话|手机|هاتف)(?!\w)",
    re.IGNORECASE,
)
_BEFORE = 40


class Phones:
    """Finds telephone numbers.

    Args:
        regions: Where numbers without a country's code may be from, as ISO 3166-1 codes.

    Raises:
        UsageError: phonenumbers is not installed.
    """

    def __init__(self, regions: Sequence[str]) -> None:
        try:
            import phonenumbers
        except ImportError as exc:
            raise UsageError(not_installed()) from exc
        self._phonenumbers = phonenumbers
        self._regions = tuple(regions)

    def find(self, text: str, regions: Sequence[tuple[int, int]]) -> Iterator[Finding]:
        """What is found in some regions of a folded text: of what begins at a place, the longest that is a number."""
        for first, last in regions:
            words = [match.start() for match in _WORDS.finditer(text, max(0, first - _BEFORE), last)]
            yield from self._in(text, [match.span() for match in _GROUP.finditer(text, first, last)], words)

    def _in(self, text: str, groups: Sequence[tuple[int, int]], words: Sequence[int]) -> Iterator[Finding]:
        behind = 0
        for rank, (start, _) in enumerate(groups):
            if start < behind or (start and (text[start - 1].isalnum() or text[start - 1] in "_.,/+-")):
                continue
            rank_of_word = bisect_left(words, start)
            by_words = bool(rank_of_word) and words[rank_of_word - 1] >= start - _BEFORE
            if not by_words and not _BEGINNING.match(text, start):
                continue
            if not by_words and text[start] == "0" and _DIGIT_BEFORE.fullmatch(text, max(0, start - 2), start):
                continue  # the end of a longer number
            for end in reversed(_ends(text, groups[rank : rank + _MOST_GROUPS])):
                found = self._number(text[start:end], by_words=by_words)
                if found is not None:
                    yield Finding("phone", start, end, by_context=found)
                    behind = end
                    break

    def _number(self, value: str, *, by_words: bool) -> bool | None:
        """Whether a stretch is a number by the words before it; None: it is none."""
        international = value.startswith(("+", "(+"))
        distinct = international or _AMERICAN.fullmatch(value) or _WITH_TRUNK.fullmatch(value)
        by_words = by_words and sum(character.isdigit() for character in value) > _FEWEST_DIGITS
        if (distinct or by_words) and self._is_valid(value, international=international):
            return not distinct
        return None

    def _is_valid(self, value: str, *, international: bool) -> bool:
        phonenumbers = self._phonenumbers
        for region in (None,) if international else self._regions:
            try:
                parsed = phonenumbers.parse(value, region)
            except phonenumbers.NumberParseException:
                continue
            if phonenumbers.is_valid_number(parsed):
                return True
        return False


def _ends(text: str, groups: Sequence[tuple[int, int]]) -> list[int]:
    """Where a number that begins with the first of some groups may end."""
    ends: list[int] = []
    digits, last = 0, groups[0][0]
    for start, end in groups:
        if start > last and (digits == 0 or not _BETWEEN.fullmatch(text, last, start)):
            break
        digits += sum(character.isdigit() for character in text[start:end])
        if digits > _MOST_DIGITS:
            break
        # What a letter, or the rest of a decimal number, stands behind is something else.
        follows = text[end : end + 2]
        glued = follows[:1].isalnum() or follows[:1] == "_" or (follows[:1] in set(".,/-") and follows[1:].isdigit())
        if digits >= _FEWEST_DIGITS and not glued:
            ends.append(end)
        last = end
    return ends
