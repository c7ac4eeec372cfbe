"""Small charts as inline SVG, without any library. Pure: figures in, markup out.

Colours are left to the page: series ``n`` has the class ``s<n>``, which the page colours for light and for dark.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

#: How many series a page has colours for; further ones begin anew.
COLOURS = 6

_WIDTH = 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 12, 26, 40
_PLOT_HEIGHT = 220
_BAR = 15
_LETTER = 6.4


@dataclass(frozen=True, slots=True)
class Series:
    """A line: its name, and points with ascending x."""

    name: str
    points: tuple[tuple[float, float], ...]


def bar_chart(groups: Sequence[tuple[str, Sequence[tuple[str, float]]]], *, title: str) -> str:
    """Horizontal bars in groups, all on one scale from 0 to 1, or to the largest value where that is more.

    Args:
        groups: A label, and bars with names and values, in the same order in every group.
        title: For those who do not see the picture.
    """
    left = min(150.0, 12 + _LETTER * max((len(label) for label, _ in groups), default=0))
    top = max([1.0, *(value for _, bars in groups for _, value in bars)])
    room = _WIDTH - left - 52
    parts, y = [], 4.0
    for label, bars in groups:
        middle = y + len(bars) * _BAR / 2 + 4
        parts.append(f'<text x="{left - 8:.1f}" y="{middle:.1f}" text-anchor="end">{_clipped(label, 21)}</text>')
        for index, (name, value) in enumerate(bars):
            width = max(0.0, value) / top * room
            parts.append(
                f"<g><title>{escape(name)}: {escape(label)} {value:.4f}</title>"
                f'<rect class="s{index % COLOURS}" x="{left:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" '
                f'height="{_BAR - 3}" rx="2"/>'
                f'<text class="value" x="{left + width + 5:.1f}" y="{y + _BAR - 5:.1f}">{value:.3f}</text></g>'
            )
            y += _BAR
        y += 12
    return _svg(parts, height=y, title=title)


def line_chart(lines: Sequence[Series], *, title: str, x_label: str, y_label: str) -> str:
    """Lines over a shared x axis, on which equal distances are equal factors; y runs from 0 to 1.

    Points at 0 and below are left out.

    Args:
        lines: In the order of their colours.
        title: For those who do not see the picture.
        x_label: Below the x axis.
        y_label: Above the y axis.
    """
    lines = [Series(line.name, tuple(point for point in line.points if point[0] > 0)) for line in lines]
    xs = [x for line in lines for x, _ in line.points]
    if not xs:
        return _svg([f'<text x="{_LEFT}" y="30">no figures</text>'], height=60, title=title)
    scale = _Scale(min(xs), max(xs))
    parts = _grid(scale, x_label, y_label)
    for index, line in enumerate(lines):
        places = [(scale.x(x), _y(y)) for x, y in line.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        dots = places if len(places) <= 12 else []
        parts.append(f'<g class="s{index % COLOURS}"><title>{escape(line.name)}</title><polyline points="{path}"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in dots]
        parts.append("</g>")
    return _svg(parts, height=_TOP + _PLOT_HEIGHT + _BOTTOM, title=title)


def legend(names: Sequence[str]) -> str:
    """Names with the colours of their series, as HTML."""
    items = "".join(
        f'<li><span class="swatch s{index % COLOURS}"></span>{escape(name)}</li>' for index, name in enumerate(names)
    )
    return f'<ul class="legend">{items}</ul>'


def shares(values: Sequence[float], *, points: int = 100) -> tuple[tuple[float, float], ...]:
    """The distribution of values as points of a line: the share of the values that is at most x.

    Args:
        values: In any order.
        points: So many at most; the last is always the largest value.
    """
    ordered = sorted(values)
    count = len(ordered)
    places = sorted({max(1, math.ceil(count * step / points)) for step in range(1, points + 1)}) if count else []
    return tuple((ordered[place - 1], place / count) for place in places)


def ticks(low: float, high: float) -> list[float]:
    """Round numbers to write on an axis: two to eight of them, all from ``low`` to ``high``.

    Args:
        low: The axis's smaller end, above 0.
        high: Its larger end.
    """
    # Closer than this, the numbers between them are all the same when written.
    if not low < high or math.isclose(low, high, rel_tol=1e-9):
        return [low]
    candidates = _logarithmic_ticks(low, high)
    if len(candidates) < 2:
        step = 10.0 ** math.floor(math.log10(high - low))
        step *= next(factor for factor in (0.2, 0.5, 1.0, 2.0) if (high - low) / (step * factor) <= 6)
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        candidates = [number * step for number in range(first, last + 1)]
    return candidates


def _logarithmic_ticks(low: float, high: float) -> list[float]:
    for digits in ((1, 2, 5), (1, 3), (1,)):
        powers = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
        found = [digit * 10.0**power for power in powers for digit in digits]
        inside = [value for value in found if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
        if len(inside) <= 8:
            return inside
    return inside[:: math.ceil(len(inside) / 8)]


class _Scale:
    """From figures to places on the x axis."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = (low, high) if low < high else (low * 0.9, high * 1.1)

    def x(self, value: float) -> float:
        low, high, at = math.log(self.low), math.log(self.high), math.log(value)
        return _LEFT + (at - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)


def _grid(scale: _Scale, x_label: str, y_label: str) -> list[str]:
    bottom = _TOP + _PLOT_HEIGHT
    parts = []
    for level in (0, 0.25, 0.5, 0.75, 1):
        y = _y(level)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{level:g}</text>')
    for tick in ticks(scale.low, scale.high):
        x = scale.x(tick)
        parts.append(f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 4}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{_number(tick)}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(
        f'<text class="label" x="{middle:.1f}" y="{bottom + 35}" text-anchor="middle">{escape(x_label)}</text>'
    )
    parts.append(f'<text class="label" x="4" y="12">{escape(y_label)}</text>')
    return parts


def _y(value: float) -> float:
    return _TOP + (1 - min(1.0, max(0.0, value))) * _PLOT_HEIGHT


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.3g}"


def _clipped(text: str, length: int) -> str:
    return escape(text if len(text) <= length else text[: length - 1] + "…")


def _svg(parts: Sequence[str], *, height: float, title: str) -> str:
    body = "".join(parts)
    return f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}">{body}</svg>'
