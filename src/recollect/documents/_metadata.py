"""What documents say of themselves beside their text: their titles and dates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from recollect.documents._parsed import Parsed, one_line

# A document's title: what its author called it, not what a program did.


_PROGRAM = re.compile(r"^microsoft (?:office )?(?:word|excel|powerpoint)\s*-\s*", re.IGNORECASE)
_EXTENSION = re.compile(
    r"\.(?:pdf|docx?|docm|dotx?|pptx?|xlsx?|odt|ods|odp|rtf|txt|html?|tex|dvi|md|indd|qxd|pages|wpd|ps|tmp)$",
    re.IGNORECASE,
)
_MEANINGLESS = re.compile(
    r"(?:untitled|document|dokument|doc|unbenannt|sans titre|sin título|no title|title|titel|new|presentation|"
    r"powerpoint[ -]?\w*|slide|folie|book|mappe|workbook|sheet|home|index|microsoft word|print|layout)[\s\W\d]*$"
    r"|[\W\d_]*$|[0-9a-f-]{16,}$",
    re.IGNORECASE,
)
_LONGEST = 200
# A line alone at the top of a text with headings: a title whose style the format has lost.
_OPENING = re.compile(r"(?=.{5,100}$)[^\W\d_][^\n|]*\s[^\n|]*[^\W_)]\)?")


def choose_title(parsed: Parsed, stem: str) -> str:
    """The title from the file's metadata where it is sensible, else the first heading, else the file's name.

    Args:
        parsed: The parsed file.
        stem: The file's name without its extension.
    """
    stated = sensible_title(parsed.title)
    if stated is not None:
        return stated
    if parsed.pages:
        return readable(stem)
    opening = parsed.content.lstrip()[:1000].split("\n\n", 1)[0].strip()
    if parsed.headings and _OPENING.fullmatch(opening):
        return opening
    first = next((one_line(heading.title) for heading in parsed.headings), "")
    if first and not _MEANINGLESS.fullmatch(first):
        return first[:_LONGEST]
    return readable(stem)


def sensible_title(stated: str | None) -> str | None:
    """A title without the name of the program that made it; None where it is a file's name or says nothing."""
    title = _PROGRAM.sub("", one_line(stated or ""))
    if not title or len(title) > _LONGEST or _EXTENSION.search(title) or _MEANINGLESS.fullmatch(title):
        return None
    return title


def readable(stem: str) -> str:
    """``leave_policy-2024`` as ``Leave policy 2024``."""
    words = one_line(re.sub(r"[_\-+.]+|%20", " ", stem))
    if not words:
        return one_line(stem) or "Untitled"
    return words[0].upper() + words[1:]


# Titles of reports to the United States' Securities and Exchange Commission, as their covers say them.
#
# The largest type on such a cover names the commission, and titles in files hold the day of filing, a year too late.
# The
# cover itself says what people call a report by, in an order that the commission prescribes: form, period, company.


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


# Dates as documents write them.


_EARLIEST = datetime(1980, 1, 1, tzinfo=UTC)


def parse_time(text: str | None) -> datetime | None:
    """A time-zone aware time from ISO 8601 text, or None.

    A date without a time is taken as its midnight in UTC. A time without a zone, a date before 1980 (the clocks of
    ZIP archives begin there) or in the future says nothing reliable and gives None.
    """
    if not text:
        return None
    text = text.strip()
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    if len(text) <= 10:
        time = time.replace(tzinfo=UTC)
    return plausible(time)


def plausible(time: datetime | None) -> datetime | None:
    """``time`` where it has a zone and can be when a document was written."""
    if time is None or time.tzinfo is None:
        return None
    try:
        return time if _EARLIEST < time < datetime.now(UTC) + timedelta(days=1) else None
    except OverflowError:
        return None
