"""Finding personal data in texts, by patterns and check digits alone."""

from __future__ import annotations

import ipaddress
import logging
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from recollect.errors import UsageError
from recollect.installation import install_command

if TYPE_CHECKING:
    from presidio_analyzer import Pattern, PatternRecognizer


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


# A text as patterns read it: digits, dashes and blanks of every script as ASCII has them.

_DASHES = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2212\ufe58\ufe63\uff0d"), "-")
_BLANKS = dict.fromkeys(
    map(ord, "\t\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u3000"), " "
)

# They stand within words and numbers and are not seen.
_UNSEEN = frozenset("\u00ad\u200b\u200c\u200d\u2060\ufeff")


class Folded:
    """A folded text, and where its characters stand in the text that it was made of.

    Attributes:
        text: One character for each of the original's that is seen.
    """

    def __init__(self, original: str) -> None:
        self._ends: Sequence[int] = ()
        self._skipped: Sequence[int] = ()
        if original.isascii():
            self.text = original.replace("\t", " ")
            return
        plain = original.translate(_DASHES | _BLANKS)
        if any(mark in plain for mark in _UNSEEN):
            plain = self._without_unseen(plain)
        self.text = plain.translate({ord(one): _folded(one) for one in set(plain) if not one.isascii()})

    def _without_unseen(self, text: str) -> str:
        ends: list[int] = []
        skipped: list[int] = []
        kept: list[str] = []
        for at, character in enumerate(text):
            if character in _UNSEEN:
                # From this place of the folded text on, so many more of the original's went before.
                ends.append(len(kept))
                skipped.append(at + 1 - len(kept))
            else:
                kept.append(character)
        self._ends, self._skipped = ends, skipped
        return "".join(kept)

    def start(self, offset: int) -> int:
        """Where the character at an offset of the folded text stands in the original."""
        rank = bisect_right(self._ends, offset)
        return offset + (self._skipped[rank - 1] if rank else 0)

    def end(self, offset: int) -> int:
        """Where the stretch that ends at an offset of the folded text ends in the original."""
        return self.start(offset - 1) + 1


def _folded(character: str) -> str:
    if character.isascii():
        return character
    digit = unicodedata.decimal(character, None)
    if digit is not None:
        return str(digit)
    compatible = unicodedata.normalize("NFKC", character)
    return compatible if len(compatible) == 1 and compatible.isascii() else character


# Which of presidio's pattern recognisers are asked, and what counts as found: no language model, no download.
#
# A pattern alone takes order numbers and table columns for somebody's. So a recogniser is believed by itself where
# its pattern or its check digits are rarely met by chance; the others need one of their own context words nearby.

#: Characters before and behind a number in which a context word may stand.
CONTEXT_BEFORE = 60
CONTEXT_BEHIND = 20
_PACKAGE = "presidio_analyzer.predefined_recognizers"
_PATTERN_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class _Source:
    name: str
    kind: Kind
    alone: bool = False
    least_score: float = 0.0


_SOURCES = (
    _Source("IbanRecognizer", "iban", alone=True),
    _Source("CreditCardRecognizer", "payment_card"),
    _Source("IpRecognizer", "ip_address", alone=True, least_score=0.5),
    _Source("ItFiscalCodeRecognizer", "national_id", alone=True),
    _Source("UkNinoRecognizer", "national_id"),
    _Source("FiPersonalIdentityCodeRecognizer", "national_id", alone=True, least_score=0.5),
    _Source("DeSocialSecurityRecognizer", "national_id", alone=True),
    _Source("UsSsnRecognizer", "national_id"),
    _Source("UsItinRecognizer", "national_id"),
    _Source("NhsRecognizer", "national_id"),
    _Source("EsNifRecognizer", "national_id"),
    _Source("EsNieRecognizer", "national_id"),
    _Source("DeTaxIdRecognizer", "national_id"),
    _Source("PlPeselRecognizer", "national_id"),
    _Source("SePersonnummerRecognizer", "national_id", least_score=0.5),
    _Source("InAadhaarRecognizer", "national_id"),
    _Source("InPanRecognizer", "national_id", least_score=0.1),
    _Source("CaSinRecognizer", "national_id"),
    _Source("AuTfnRecognizer", "national_id"),
    _Source("KrRrnRecognizer", "national_id"),
    _Source("SgFinRecognizer", "national_id"),
    _Source("TrNationalIdRecognizer", "national_id"),
    _Source("ThTninRecognizer", "national_id"),
)

# Those of these that are written in a way which little else has.
_DISTINCT = {
    "UkNinoRecognizer": r"[A-Z]{2} \d{2} \d{2} \d{2} [A-D]",
    "UsSsnRecognizer": r"\d{3}-\d{2}-\d{4}",
    "UsItinRecognizer": r"9\d{2}-\d{2}-\d{4}",
    "SePersonnummerRecognizer": r"\d{6}[-+]\d{4}",
    "KrRrnRecognizer": r"\d{6}-\d{7}",
    "SgFinRecognizer": r"[STFGM]\d{7}[A-Z]",
    "EsNifRecognizer": r"\d{8}-?[A-Z]",
    "EsNieRecognizer": r"[XYZ]\d{7}-?[A-Z]",
    # Of Visa, Mastercard, American Express, Discover, Diners and JCB, by their lengths.
    "CreditCardRecognizer": r"(?:4(?:[ -]?\d){15}|5[1-5](?:[ -]?\d){14}|3[47](?:[ -]?\d){13}"
    r"|6(?:011|5\d\d|4[4-9]\d)(?:[ -]?\d){12}"
    r"|3(?:0[0-5]|[68]\d)(?:[ -]?\d){11}|35(?:2[89]|[3-8]\d)(?:[ -]?\d){12})",
}


class Identifiers:
    """Finds account, card and identity numbers, and addresses of computers.

    Raises:
        UsageError: presidio is not installed.
    """

    def __init__(self) -> None:
        self._recognisers = [_Recogniser(source, _made(source.name)) for source in _SOURCES]

    def find(self, text: str, lowered: str, regions: Sequence[tuple[int, int]]) -> Iterator[Finding]:
        """What is found in some regions of a folded text; ``lowered`` is it in lower case, character by character."""
        for recogniser in self._recognisers:
            yield from recogniser.find(text, lowered, regions)


class _Recogniser:
    def __init__(self, source: _Source, made: PatternRecognizer) -> None:
        import regex  # type: ignore[import-untyped]

        self._source, self._made = source, made
        self._upper = source.name == "IbanRecognizer"
        own: list[Pattern] = vars(made)["patterns"]
        patterns = [pattern for pattern in own if pattern.score >= source.least_score]
        self._patterns = [regex.compile(one.regex, made.global_regex_flags) for one in patterns]
        distinct = _DISTINCT.get(source.name)
        self._distinct = None if distinct is None else regex.compile(distinct)
        words = "|".join(
            sorted((regex.escape(word.strip().lower()) for word in made.context or ()), key=len, reverse=True)
        )
        self._words = regex.compile(rf"(?<!\w)(?:{words})(?!\w)")

    def find(self, text: str, lowered: str, regions: Sequence[tuple[int, int]]) -> Iterator[Finding]:
        in_context = not self._source.alone and self._words.search(lowered) is not None
        if not in_context and not self._source.alone and self._distinct is None:
            return
        read = text.upper() if self._upper and text.isascii() else text
        for pattern in self._patterns:
            for first, last in regions:
                # A pattern that takes too long is an error: what it would have found must not pass for not there.
                for match in pattern.finditer(read, first, last, timeout=_PATTERN_SECONDS):
                    span = self._valid(read, match)
                    found = None if span is None else self._judged(read, lowered, span, in_context=in_context)
                    if found is not None:
                        yield found

    def _judged(self, text: str, lowered: str, span: tuple[int, int], *, in_context: bool) -> Finding | None:
        start, end = span
        if self._source.alone or (self._distinct is not None and self._distinct.fullmatch(text, start, end)):
            return Finding(self._source.kind, start, end)
        if in_context and self._beside(lowered, start, end):
            return Finding(self._source.kind, start, end, by_context=True)
        return None

    def _valid(self, text: str, match: Any) -> tuple[int, int] | None:  # noqa: ANN401 - of the module regex
        """The stretch that is valid: the match, or for IBANs the longest of the beginnings that its groups end."""
        start = match.start()
        for end in dict.fromkeys([match.end(), *(match.end(group) for group in range(match.re.groups, 0, -1))]):
            if end <= start:
                continue
            value = text[start:end]
            if self._made.validate_result(value) is not False and not self._made.invalidate_result(value):
                return (start, end) if self._source.kind != "ip_address" or _is_address(value) else None
            if not self._upper:
                return None
        return None

    def _beside(self, lowered: str, start: int, end: int) -> bool:
        window = lowered[max(0, start - CONTEXT_BEFORE) : start], lowered[end : end + CONTEXT_BEHIND]
        return any(self._words.search(part) for part in window)


def _is_address(value: str) -> bool:
    """Whether it is somebody's: not a section's number, a mask, or the machine itself."""
    address = ipaddress.ip_interface(value).ip
    if address.is_unspecified or address.is_loopback:
        return False
    if address.version == 4:
        parts = value.partition("/")[0].split(".")
        return address.packed[0] != 255 and any(len(part) == 3 for part in parts)
    return value.count(":") > 2 and any(character.isdigit() for character in value)


@cache
def _made(name: str) -> PatternRecognizer:
    try:
        recognisers = import_module(_PACKAGE)
    except ImportError as exc:
        raise UsageError(not_installed()) from exc
    # It would write the values that it fails to check into its log, and every decision of its own.
    for logger in ("presidio-analyzer", "decision_process"):
        logging.getLogger(logger).setLevel(logging.CRITICAL + 1)
    made: PatternRecognizer = getattr(recognisers, name)()
    return made


# Telephone numbers, checked by the numbering plans of their countries (phonenumbers, as presidio does).


# Digits that stand together; up to three signs between two of these belong to a number.
_GROUP = re.compile(r"(?:\+|\(\+?)?\d+\)?")
_BEGINNING = re.compile(r"\(?\+|\(?0[1-9]|\(?[2-9]\d{2}[-.) ]|1[ -]")
_DIGIT_BEFORE = re.compile(r"\d[ -]")
_BETWEEN = re.compile(r"[ ().\-/]{1,3}|")
_MOST_GROUPS = 7
_FEWEST_PHONE_DIGITS, _MOST_PHONE_DIGITS = 7, 15

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
        by_words = by_words and sum(character.isdigit() for character in value) > _FEWEST_PHONE_DIGITS
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
        if digits > _MOST_PHONE_DIGITS:
            break
        # What a letter, or the rest of a decimal number, stands behind is something else.
        follows = text[end : end + 2]
        glued = follows[:1].isalnum() or follows[:1] == "_" or (follows[:1] in set(".,/-") and follows[1:].isdigit())
        if digits >= _FEWEST_PHONE_DIGITS and not glued:
            ends.append(end)
        last = end
    return ends


# What is found of personal data: kinds and positions, never values.


Kind: TypeAlias = Literal["email", "iban", "payment_card", "national_id", "phone", "ip_address"]

#: Every kind, the one first that a stretch of text is called where several fit.
KINDS: tuple[Kind, ...] = get_args(Kind)


def not_installed() -> str:
    """What an error says where nothing can be looked for."""
    return (
        f"Personal data is found by presidio and phonenumbers, which are not installed: {install_command('pii')} (no "
        "model is fetched), or set the policy to off ([rag.privacy] pii)."
    )


@dataclass(frozen=True, slots=True)
class Finding:
    """A stretch of text that is somebody's.

    Attributes:
        kind: What it is.
        start: Its first character.
        end: Behind its last one.
        by_context: Whether it was known by the words beside it, so that it is to be looked for where these are missing.
    """

    kind: Kind
    start: int
    end: int
    by_context: bool = False


def without_overlaps(found: Iterable[Finding]) -> list[Finding]:
    """Findings in order, those that overlap joined: what one kind calls the beginning of is hidden to its end."""
    joined: list[Finding] = []
    for one in sorted(found, key=lambda finding: (finding.start, -finding.end)):
        last = joined[-1] if joined else None
        if last is None or one.start >= last.end:
            joined.append(one)
            continue
        kind = min(last.kind, one.kind, key=KINDS.index)
        by_context = last.by_context and one.by_context
        joined[-1] = Finding(kind, last.start, max(last.end, one.end), by_context)
    return joined


def counted(found: Iterable[Finding]) -> dict[str, int]:
    """How many there are of each kind, in the order of `KINDS`."""
    counts = Counter(finding.kind for finding in found)
    return {kind: counts[kind] for kind in KINDS if counts[kind]}


def told(found: Sequence[Finding], *, shown: int = 10) -> str:
    """Kinds and positions in words, for an error; no value."""
    places = [f"{finding.kind} at {finding.start:,}-{finding.end:,}" for finding in found[:shown]]
    more = f" and {len(found) - shown:,} more" if len(found) > shown else ""
    return ", ".join(places) + more
