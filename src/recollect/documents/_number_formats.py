"""Numbers as a spreadsheet shows them (ECMA-376, 18.8.31): percentages, currencies, thousands, months, hours."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import lru_cache

#: The formats that have a number and no text in a file.
BUILT_IN = {
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    5: '"$"#,##0;-"$"#,##0',
    6: '"$"#,##0;-"$"#,##0',
    7: '"$"#,##0.00;-"$"#,##0.00',
    8: '"$"#,##0.00;-"$"#,##0.00',
    9: "0%",
    10: "0.00%",
    11: "0.00E+00",
    17: "mmm-yy",
    18: "h:mm AM/PM",
    19: "h:mm:ss AM/PM",
    20: "h:mm",
    21: "h:mm:ss",
    37: "#,##0;(#,##0)",
    38: "#,##0;(#,##0)",
    39: "#,##0.00;(#,##0.00)",
    40: "#,##0.00;(#,##0.00)",
    41: "#,##0;(#,##0);-",
    42: '"$"#,##0;("$"#,##0);-',
    43: "#,##0.00;(#,##0.00);-",
    44: '"$"#,##0.00;("$"#,##0.00);-',
}
_LONGEST_FORMAT = 200
_MOST_DIGITS = 30
_TOKEN = re.compile(r'"[^"]*"|\\.|_.|\*.|\[[^\]]*\]|E[+-]|AM/PM|A/P|General|.', re.IGNORECASE | re.DOTALL)
_PLACES = frozenset("0#?")
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


def shown(value: str, code: str, *, since_1904: bool = False) -> str | None:
    """A number as a cell of that format shows it, or None where it is better left as it is stored.

    A date with a day stays what readers of the file make of it (``2024-03-05``): how it is shown says in what country
    the sheet was made, and not which day it is.

    Args:
        value: As the file has it.
        code: The format.
        since_1904: Whether days are counted from 1904 on.
    """
    try:
        number = Decimal(value)
    except InvalidOperation:
        return None
    if not number.is_finite() or abs(number.adjusted()) > _MOST_DIGITS or len(code) > _LONGEST_FORMAT:
        return None
    sections = _sections(code)
    negative = number < 0
    if len(sections) == 1 or (number == 0 and len(sections) < 3):
        section, sign = sections[0], "-" if negative else ""
    else:
        section, sign = sections[2 if number == 0 else 1 if negative else 0], ""
    if _is_time(section):
        return _moment(number, section, since_1904=since_1904)
    text = _written(abs(number), section)
    if text is None:
        return None
    # What rounds to nothing has no sign either.
    return text if not any(map(str.isdigit, text)) or not text.strip("0.,% ") else sign + text


@lru_cache(maxsize=500)
def _sections(code: str) -> tuple[tuple[str, ...], ...]:
    sections: list[list[str]] = [[]]
    for token in _TOKEN.findall(code):
        if token == ";":
            sections.append([])
        else:
            sections[-1].append(token)
    return tuple(map(tuple, sections[:4]))


def _is_time(section: tuple[str, ...]) -> bool:
    return any(token in set("ymdhsYMDHS") or re.fullmatch(r"\[[hms]+\]", token, re.IGNORECASE) for token in section)


def _literal(token: str) -> str:
    """What a token writes that stands for no digit."""
    if token.startswith('"'):
        return token[1:-1]
    if token.startswith("\\"):
        return token[1:]
    if token.startswith("[$"):
        return token[2:-1].partition("-")[0]
    # Spaces as wide as another character, and what fills the cell.
    return "" if token.startswith(("_", "*", "[")) else token


def _written(number: Decimal, section: tuple[str, ...]) -> str | None:
    if any(
        token.lower() == "general" or token.startswith(("E", "e", "[<", "[>", "[=")) or token in "/@"
        for token in section
    ):
        return None
    at = [index for index, token in enumerate(section) if token in _PLACES]
    if not at:
        text = "".join(map(_literal, section)).strip()
        return text or None
    head, tail = section[: at[0]], section[at[-1] + 1 :]
    body = section[at[0] : at[-1] + 1]
    scaled = number * Decimal(100) ** sum(token == "%" for token in section)
    while tail[:1] == (",",):
        tail, scaled = tail[1:], scaled / 1000
    point = body.index(".") if "." in body else len(body)
    whole, fraction = body[:point], body[point + 1 :]
    between = [token for token in (*whole, *fraction) if token not in _PLACES and token != ","]
    places = sum(token in _PLACES for token in fraction)
    rounded = scaled.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)
    digits, _, decimals = f"{rounded:f}".partition(".")
    digits = digits.lstrip("0").rjust(whole.count("0"), "0")
    if between:
        return _filled(digits, whole) if not fraction else None
    if "," in whole:
        digits = f"{int(digits or '0'):,}".rjust(len(digits), "0") if digits else ""
    least = sum(token == "0" for token in fraction)
    decimals = decimals[:least] + decimals[least:].rstrip("0")
    text = f"{digits}.{decimals}" if decimals else digits
    return ("".join(map(_literal, head)) + text + "".join(map(_literal, tail))).strip() or None


def _filled(digits: str, whole: tuple[str, ...]) -> str:
    """Digits from the right into places with other characters between them, as telephone numbers have."""
    left = list(digits)
    parts: list[str] = []
    first = True
    for index in range(len(whole) - 1, -1, -1):
        token = whole[index]
        if token in _PLACES:
            parts.append(left.pop() if left else "0" if token == "0" else "")
        elif token != ",":
            parts.append(_literal(token))
        first = first and token in _PLACES
    return "".join(left) + "".join(reversed(parts))


def _moment(number: Decimal, section: tuple[str, ...], *, since_1904: bool) -> str | None:
    """A month without a day, or a time of day or a span of hours without a date; None for everything else."""
    letters = "".join(token.lower() for token in section if re.fullmatch(r"[ymdhs]|\[[hms]+\]", token, re.IGNORECASE))
    if "d" in letters or number < 0 or number > 2_958_465:
        return None
    if "y" in letters and "h" not in letters and "s" not in letters:
        begins = datetime(1904, 1, 1) if since_1904 else datetime(1899, 12, 30)
        moment = begins + timedelta(days=int(number))
        if "m" not in letters:
            return str(moment.year)
        return f"{_MONTHS[moment.month - 1]} {moment.year}" if "mmm" in letters else f"{moment.year}-{moment.month:02}"
    if "y" in letters or not ("h" in letters or "s" in letters):
        return None
    seconds = int((number * 86_400).to_integral_value(rounding=ROUND_HALF_UP))
    if "[" not in letters and seconds >= 86_400:
        return None
    text = f"{seconds // 3600}:{seconds // 60 % 60:02}"
    return f"{text}:{seconds % 60:02}" if "s" in letters else text
