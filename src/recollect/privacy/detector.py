"""Finding personal data in texts, by patterns and check digits alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from recollect.privacy._folding import Folded
from recollect.privacy._identifiers import Identifiers
from recollect.privacy._phones import Phones
from recollect.privacy.findings import Finding, without_overlaps

#: Where telephone numbers without a country's code may be from: presidio's choice.
PHONE_REGIONS = ("US", "GB", "DE", "FR", "IL", "IN", "CA", "BR")

_LONGEST_LOCAL_PART, _LONGEST_DOMAIN = 320, 255
_LOCAL = frozenset("!#$%&'*+-/=?^_`{|}~.")
# As presidio has it; a name without a dot is nobody's, and neither is one that ends in a number.
_DOMAIN = re.compile(r"\w+(?:-+\w+)*(?:\.\w+(?:-+\w+)*)*\.\w*[^\W\d]\w*(?:-+\w+)*")
_CHARACTERS = 60_000
_OVERLAP = 400
_DIGITS = re.compile(r"[0-9]+")
_FEWEST_DIGITS = 6
# Letters that may stand between the digits of a number, and before and behind them.
_REACH = 24


class Detector:
    """Finds e-mail addresses, telephone, card, account and identity numbers, and addresses of computers.

    Safe to share between threads; the time that a text takes grows with its length, whatever it says.

    Args:
        phone_regions: Where telephone numbers without a country's code may be from, as ISO 3166-1 codes.

    Raises:
        UsageError: The extra ``pii`` is not installed.
    """

    def __init__(self, *, phone_regions: Sequence[str] = PHONE_REGIONS) -> None:
        self._identifiers = Identifiers()
        self._phones = Phones(phone_regions)

    def find(self, text: str) -> list[Finding]:
        """What a text holds, in order; no two overlap.

        What was found by the words beside it is found where it stands again without them.
        """
        folded = Folded(text)
        found = without_overlaps(self._in(folded.text))
        again = repeated([folded.text[one.start : one.end] for one in found if one.by_context])
        if again is not None:
            repeats = [Finding("national_id", *match.span(), by_context=True) for match in again.finditer(folded.text)]
            kinds = {folded.text[one.start : one.end]: one.kind for one in found if one.by_context}
            repeats = [
                Finding(kinds[folded.text[one.start : one.end]], one.start, one.end, by_context=True) for one in repeats
            ]
            found = without_overlaps([*found, *repeats])
        return [Finding(one.kind, folded.start(one.start), folded.end(one.end), one.by_context) for one in found]

    def _in(self, text: str) -> Iterator[Finding]:
        yield from _addresses(text)
        for start in range(0, max(len(text), 1), _CHARACTERS):
            # In pieces, so that no pattern's cost grows faster than the text; they overlap by more than a number.
            first = max(0, start - _OVERLAP)
            part = text[first : start + _CHARACTERS + _OVERLAP]
            regions = _regions(part)
            if not regions:
                continue
            lowered = part.lower()
            if len(lowered) != len(part):
                lowered = "".join(map(_lower, part))
            for one in (*self._identifiers.find(part, lowered, regions), *self._phones.find(part, regions)):
                yield Finding(one.kind, one.start + first, one.end + first, one.by_context)


def _regions(text: str) -> list[tuple[int, int]]:
    """Where so many digits, or groups of hexadecimal ones, stand together that they may be a number of somebody's."""
    regions: list[tuple[int, int]] = []
    start = end = digits = 0
    for match in _DIGITS.finditer(text):
        if match.start() > end + _REACH and digits:
            if digits >= _FEWEST_DIGITS or text.count(":", start, end + _REACH) > 1:
                regions.append((max(0, start - _REACH), end + _REACH))
            digits = 0
        if not digits:
            start = match.start()
        end = match.end()
        digits += end - match.start()
    if digits >= _FEWEST_DIGITS or (digits and text.count(":", max(0, start - _REACH), end + _REACH) > 1):
        regions.append((max(0, start - _REACH), end + _REACH))
    return regions


def repeated(values: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern for values where they stand as words of their own; None: there are no values."""
    distinct = sorted(set(values), key=len, reverse=True)
    if not distinct:
        return None
    return re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, distinct)) + r")(?!\w)")


def _lower(character: str) -> str:
    lowered = character.lower()
    return lowered if len(lowered) == 1 else character


def _addresses(text: str) -> Iterator[Finding]:
    """E-mail addresses, found from their signs: every character is looked at a fixed number of times."""
    behind = 0
    at = text.find("@")
    while at >= 0:
        start = at
        while start > max(behind, at - _LONGEST_LOCAL_PART) and (
            text[start - 1].isalnum() or text[start - 1] in _LOCAL
        ):
            start -= 1
        while start < at and not (text[start].isalnum() or text[start] in "_+"):
            start += 1
        domain = _DOMAIN.match(text, at + 1, at + 1 + _LONGEST_DOMAIN)
        if start < at and domain is not None:
            yield Finding("email", start, domain.end())
        behind = at + 1
        at = text.find("@", at + 1)
