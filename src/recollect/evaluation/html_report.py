"""Evaluations as HTML files that need nothing else: no script, no font, no network."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template

from recollect.answer.readable import pieces_of
from recollect.evaluation.compare import Comparison, SystemRun
from recollect.evaluation.quality import METRICS, ModelQuality
from recollect.evaluation.rag_test import CaseResult
from recollect.evaluation.scoring import Outcome, place_of

_PRIMARY = ("nDCG@10", "recall")


def render_report(
    runs: Sequence[SystemRun],
    *,
    title: str,
    subtitle: str = "",
    curve_points: Sequence[float],
    curve_label: str,
    comparison: Comparison | None = None,
    worst: int = 20,
) -> str:
    """The page of searches: charts, averages, tests of the differences, and the worst queries.

    Args:
        runs: Systems on the same queries; the first is the one whose worst queries are shown.
        title: What was measured.
        subtitle: With what, and when.
        curve_points: Where the systems' recall curves were measured.
        curve_label: What those points count.
        comparison: Tests of the differences, shown where given.
        worst: So many queries at most.
    """
    queries = _worst(runs[0].outcomes, worst)
    note = (
        f"{runs[0].name}: the {len(queries):,} of {len(runs[0].outcomes):,} queries with the lowest "
        f"{_primary(runs[0])}. Open one to see what was expected and what was found."
        if queries
        else f"{runs[0].name} has found everything that was looked for."
    )
    return _page(
        title,
        subtitle,
        legend([run.name for run in runs]),
        f'<div class="charts">{_charts(runs, curve_points, curve_label)}</div>',
        f"<h2>Averages</h2>{_means_table(runs)}",
        _verdicts(comparison) if comparison else "",
        f'<h2>The worst queries</h2><p class="soft">{escape(note)}</p>',
        *(_query(outcome, runs) for outcome in queries),
    )


def render_quality(models: Sequence[ModelQuality], *, title: str, subtitle: str = "") -> str:
    """The page of answers: a table by model, and each model's cases, those that fail first.

    Args:
        models: At least one.
        title: What was measured.
        subtitle: With what, and when.
    """
    head = ["Model", "passed", *(name.replace("_", " ") for name in METRICS)]
    head += ["ms, median", "ms, 95 %", "tokens in", "out", "cost"]
    rows = []
    for model in models:
        cost, counts = model.cost(), model.counts()
        cells = [escape(model.model), f"{counts['passed']:,} of {counts['cases']:,}"]
        cells += [shown(model.mean(name)) for name in METRICS]
        cells += [f"{value:,.0f}" for value in (*model.latencies().values(), *model.tokens().values())]
        rows.append([*cells, "–" if cost is None else f"{cost:.4f}"])
    parts = [f"<h2>By model</h2>{_table(head, rows)}"]
    for model in models:
        ordered = sorted(model.results, key=lambda result: result.passed)
        parts += [f"<h2>{escape(model.model)}</h2>", *map(_case, ordered)]
    return _page(title, subtitle, *parts)


def shown(value: float | None) -> str:
    """A metric for people; a dash where it could not be measured."""
    return "–" if value is None else f"{value:.2f}"


def _page(title: str, subtitle: str, *body: str) -> str:
    template = (files("recollect.evaluation") / "report.html").read_text(encoding="utf-8")
    return Template(template).substitute(title=escape(title), subtitle=escape(subtitle), body="\n".join(body))


def _primary(run: SystemRun) -> str:
    names = list(run.means())
    return next((name for name in _PRIMARY if name in names), names[0])


def _worst(outcomes: Iterable[Outcome], count: int) -> list[Outcome]:
    """Return the outcomes with the lowest primary metric, then the lowest others, without perfect ones."""

    def badness(outcome: Outcome) -> tuple[float, float]:
        primary = next((outcome.metrics[name] for name in _PRIMARY if name in outcome.metrics), 0.0)
        return primary, sum(outcome.metrics.values())

    ordered = sorted(outcomes, key=badness)
    return [outcome for outcome in ordered if badness(outcome)[0] < 1][:count]


def _charts(runs: Sequence[SystemRun], points: Sequence[float], label: str) -> str:
    means = [(run.name, run.means()) for run in runs]
    groups = [(metric, [(name, values[metric]) for name, values in means]) for metric in means[0][1]]
    curves = [Series(run.name, tuple(zip(points, run.curve(), strict=True))) for run in runs]
    times = [Series(run.name, shares([outcome.milliseconds for outcome in run.outcomes])) for run in runs]
    what, shown_share = "Recall by how much is shown", "share of searches done"
    charts = {
        "Quality": bar_chart(groups, title="Quality by system"),
        what: line_chart(curves, title=what, x_label=label, y_label="recall"),
        "Time of a search": line_chart(times, title="Time of a search", x_label="milliseconds", y_label=shown_share),
    }
    return "".join(f"<figure><figcaption>{name}</figcaption>{chart}</figure>" for name, chart in charts.items())


def _means_table(runs: Sequence[SystemRun]) -> str:
    metrics = list(runs[0].means())
    rows = [
        [
            escape(run.name),
            *(f"{value:.4f}" for value in run.means().values()),
            *(f"{value:,.1f}" for value in run.times().values()),
        ]
        for run in runs
    ]
    return _table(["System", *map(escape, metrics), "ms, median", "ms, 95 %"], rows)


def _verdicts(comparison: Comparison) -> str:
    rows = [
        [
            f"{escape(verdict.metric)}: {escape(verdict.second)} − {escape(verdict.first)}",
            *map(escape, verdict.figures()),
            f"{verdict.result.better} / {verdict.result.worse}",
            f'<span class="{"good" if verdict.real else "soft"}">{escape(verdict.in_words())}</span>',
        ]
        for verdict in comparison.verdicts
    ]
    head = ["Difference", "", f"{comparison.confidence:.0%} interval", "p", "better / worse", "verdict"]
    note = (
        "Randomisation test on the same queries, its p corrected for the number of pairs; bootstrap interval of each "
        "pair for itself."
    )
    return f'<h2>Are the differences real?</h2><p class="soft">{note}</p>{_table(head, rows)}'


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are markup already."""
    header = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table></div>'


def _query(outcome: Outcome, runs: Sequence[SystemRun]) -> str:
    primary = _primary(runs[0])
    expected = "".join(f'<li dir="auto">{escape(text)}</li>' for text in outcome.expected)
    found = "".join(
        f'<li dir="auto"><span class="{"good" if hit.good else "bad"}">{"✓" if hit.good else "✗"} {escape(hit.place)}'
        f'</span><br><span class="soft">{escape(hit.text)}</span></li>'
        for hit in outcome.found
    )
    others = [
        f"{escape(run.name)} {other.metrics[primary]:.2f}"
        for run in runs[1:]
        for other in run.outcomes
        if other.query_id == outcome.query_id
    ]
    elsewhere = f'<p class="soft">{escape(primary)} of the others: {", ".join(others)}</p>' if others else ""
    return (
        f'<details><summary dir="auto"><span class="figure">{outcome.metrics[primary]:.2f}</span> '
        f"{escape(outcome.query)}</summary><h3>Expected</h3><ul>{expected}</ul>"
        f"<h3>Found first</h3><ol>{found or '<li>nothing</li>'}</ol>{elsewhere}</details>"
    )


def _case(result: CaseResult) -> str:
    mark, word = ("good", "✓") if result.passed else ("bad", "✗")
    failures = "".join(f'<li class="bad" dir="auto">{escape(failure)}</li>' for failure in result.failures)
    unsupported = () if result.answer is None else result.answer.unsupported
    doubted = "".join(f'<li dir="auto">{escape(one.text)}: {escape(one.detail)}</li>' for one in unsupported)
    text = "" if result.answer is None else result.answer.text
    figures = ", ".join(
        f"{name.replace('_', ' ')} {shown(value)}" for name, value in result.metrics.items() if value is not None
    )
    return (
        f'<details><summary dir="auto"><span class="{mark}">{word}</span> {escape(result.case.query)}</summary>'
        f'<ul>{failures}</ul><h3>Answer</h3><p dir="auto">{escape(text)}</p>{_passages(result)}'
        + (f"<h3>Not supported by the sources</h3><ul>{doubted}</ul>" if doubted else "")
        + f'<p class="soft">{figures} · {result.latency_ms:,.0f} ms</p></details>'
    )


def _passages(result: CaseResult) -> str:
    """The passages shown in place of an answer, what is closest to the question marked."""
    items = [
        f'<li dir="auto"><span class="soft">{escape(place_of(one))}</span><br><span class="passage">'
        + "".join(f"<mark>{escape(text)}</mark>" if marked else escape(text) for text, marked in pieces_of(one))
        + "</span></li>"
        for one in (() if result.answer is None else result.answer.shown_instead)
    ]
    return f"<ol>{''.join(items)}</ol>" if items else ""


# Small charts as inline SVG, without any library. Pure: figures in, markup out.
#
# Colours are left to the page: series ``n`` has the class ``s<n>``, which the page colours for light and for dark.


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
    """Round numbers to write on an axis, at most nine of them; the axis's ends where there are fewer than two.

    Args:
        low: The axis's smaller end, above 0.
        high: Its larger end.
    """
    powers = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
    steps = -(-len(powers) // 8)
    for digits in ((1, 2, 5), (1,)):
        found = [digit * 10.0**power for power in powers[::steps] for digit in digits]
        inside = [value for value in found if low <= value <= high]
        if len(inside) <= 8:
            break
    return inside if len(inside) > 1 else sorted({low, high})


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
