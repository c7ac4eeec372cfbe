"""Which of presidio's pattern recognisers are asked, and what counts as found: no language model, no download.

A pattern alone takes order numbers and table columns for somebody's. So a recogniser is believed by itself where its
pattern or its check digits are rarely met by chance; the others need one of their own context words nearby.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from recollect.errors import UsageError
from recollect.privacy.findings import Finding, Kind, not_installed

if TYPE_CHECKING:
    from presidio_analyzer import Pattern, PatternRecognizer

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
    import ipaddress

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
