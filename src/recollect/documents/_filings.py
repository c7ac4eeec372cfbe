"""Titles of reports to the United States' Securities and Exchange Commission, as their covers say them.

The largest type on such a cover names the commission, and titles in files hold the day of filing, a year too late. The
cover itself says what people call a report by, in an order that the commission prescribes: form, period, company.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# Within so many characters a cover names the commission, and has said what it is about.
_FIRST = 1_500
_COVER = 8_000
_COMMISSION = "SECURITIES AND EXCHANGE COMMISSION"
_FORM = re.compile(r"form (\d{1,2}-[a-z]{1,2}(?:/a)?)", re.IGNORECASE)
_PERIOD = re.compile(
    r"for the (fiscal year|year|quarterly period|quarter) ended:? ([a-z]+) (\d{1,2}), ?(\d{4})\b", re.IGNORECASE
)
_REGISTRANT = re.compile(r"\W?exact name of registrant", re.IGNORECASE)
_FILE_NUMBER = re.compile(r".{0,20}commission file (?:number|no)", re.IGNORECASE)
_COMMON = re.compile(r"\W?(?:class [a-z] )?(?:common|ordinary) (?:stock|shares)", re.IGNORECASE)
_EXCHANGE = re.compile(r"exchange|nasdaq", re.IGNORECASE)
_SYMBOL = re.compile(r"(?:  |\| ?)([A-Z]{1,5})(?=  | ?\|)")
_LONGEST_NAME = 100
_EDGES = " *|#"


def filing_title(content: str) -> str | None:
    """The title of a report whose cover begins a text; None where there is no such cover.

    Args:
        content: Of the document.

    Returns:
        As ``"CVS HEALTH CORPORATION (CVS), Form 10-K, fiscal year ended December 31, 2022"``; the symbol only where
        the cover has it. A fiscal year that ends in January is named too: it is that of the year before.
    """
    if _COMMISSION not in " ".join(content[:_FIRST].upper().split()):
        return None
    cover = [line for line in content[:_COVER].split("\n") if line.strip(_EDGES)]
    lines = [" ".join(line.split()).strip(_EDGES) for line in cover]
    form = next((match for line in lines if (match := _FORM.fullmatch(line))), None)
    period = _PERIOD.search(" ".join(lines))
    company = _company(lines)
    if form is None or period is None or company is None:
        return None
    symbol = _symbol(cover)
    return f"{company}{f' ({symbol})' if symbol else ''}, Form {form[1].upper()}, {_period(*period.groups())}"


def _company(lines: Sequence[str]) -> str | None:
    """What stands above "exact name of registrant", or where that is missing, below the commission's file number."""
    above = next((at - 1 for at, line in enumerate(lines) if at and _REGISTRANT.match(line)), None)
    below = next((at + 1 for at, line in enumerate(lines[:-1]) if _FILE_NUMBER.match(line)), None)
    at = below if above is None else above
    return lines[at] if at is not None and len(lines[at]) <= _LONGEST_NAME else None


def _symbol(cover: Sequence[str]) -> str | None:
    """What the company's shares are traded as: a column of its own, between their name and the exchange's."""
    for line in cover:
        if _COMMON.match(line) and _EXCHANGE.search(line):
            match = _SYMBOL.search(line)
            return match[1] if match else None
    return None


def _period(kind: str, month: str, day: str, year: str) -> str:
    ended = f"ended {month.capitalize()} {day}, {year}"
    yearly = kind.lower().endswith("year")
    return (
        f"fiscal year {int(year) - 1}, {ended}" if yearly and month.lower() == "january" else f"{kind.lower()} {ended}"
    )
