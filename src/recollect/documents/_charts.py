"""The numbers that a chart of an office file shows, as the file keeps them beside the drawing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.documents._number_formats import shown
from recollect.documents._parsed import one_line
from recollect.documents._xml import parse_tree

_MOST_SERIES, _MOST_POINTS = 60, 2_000

Element = Any  # of lxml, which has no types


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart as a table.

    Attributes:
        title: Above it; empty: it has none.
        rows: The names of its series behind an empty cell, then for each category its name and values.
    """

    title: str
    rows: Sequence[Sequence[str]]


def read_chart(part: bytes) -> Chart | None:
    """A chart of DrawingML; None where it keeps no numbers.

    Args:
        part: Such as ``ppt/charts/chart1.xml``.
    """
    root = parse_tree(part)
    series = [] if root is None else list(root.iter("{*}ser"))[:_MOST_SERIES]
    if not series:
        return None
    names = [one_line(" ".join(_points(one.find("{*}tx")).values())) for one in series]
    labels: dict[int, str] = {}
    for one in series:
        for at, label in _points(_first(one, "cat", "xVal")).items():
            labels.setdefault(at, label)
    values = [_points(_first(one, "val", "yVal")) for one in series]
    held = sorted({at for one in values for at in one})
    if not held:
        return None
    rows = [[labels.get(at, ""), *(one.get(at, "") for one in values)] for at in held]
    title = next(root.iter("{*}title"), None)
    own = title is not None and title.getparent().tag.endswith("}chart")
    return Chart(_words(title) if own else "", [["", *names], *rows])


def _first(series: Element, *names: str) -> Element:
    return next((found for name in names if (found := series.find(f"{{*}}{name}")) is not None), None)


def _points(part: Element) -> dict[int, str]:
    """The texts of a reference's points by their numbers; of names on several levels those of the lowest."""
    if part is None:
        return {}
    held = next(part.iter("{*}strCache", "{*}numCache", "{*}lvl", "{*}strLit", "{*}numLit"), None)
    if held is None:
        said = next(part.iter("{*}v"), None)
        return {} if said is None or not said.text else {0: said.text}
    code = held.findtext("{*}formatCode") or ""
    return dict(_values(held, code))


def _values(held: Element, code: str) -> Iterator[tuple[int, str]]:
    for one in list(held.iterchildren("{*}pt"))[:_MOST_POINTS]:
        number, text = one.get("idx") or "", one.findtext("{*}v") or ""
        if number.isascii() and number.isdigit() and len(number) < 10 and text.strip():
            yield int(number), _shown(one_line(text), one.get("formatCode") or code) if code else one_line(text)


def _shown(value: str, code: str) -> str:
    """A number as its axis shows it; without the digits that only a computer keeps."""
    text = shown(value, code)
    if text is not None:
        return text
    try:
        return f"{float(value):.12g}" if "e" not in value.lower() else value
    except ValueError:
        return value


def _words(title: Element) -> str:
    return one_line(
        " ".join(one.text or "" for one in title.iter("{*}t")) or " ".join(_points(title.find("{*}tx")).values())
    )
