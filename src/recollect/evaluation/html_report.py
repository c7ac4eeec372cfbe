"""An evaluation as one HTML file that needs nothing else: no script, no font, no network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template

from recollect.evaluation.compare import Comparison, SystemRun
from recollect.evaluation.outcomes import QueryOutcome
from recollect.evaluation.plots import Series, bar_chart, legend, line_chart, shares

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
    """The report as HTML.

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
    shown = len(queries)
    note = (
        f"{runs[0].name}: the {shown:,} of {len(runs[0].outcomes):,} queries with the lowest {_primary(runs[0])}. Open "
        "one to see what was expected and what was found."
        if shown
        else f"{runs[0].name} has found everything that was looked for."
    )
    parts = {
        "title": escape(title),
        "subtitle": escape(subtitle),
        "legend": legend([run.name for run in runs]),
        "metrics_chart": _metrics_chart(runs),
        "curve_chart": _curve_chart(runs, curve_points, curve_label),
        "latency_chart": _latency_chart(runs),
        "means_table": _means_table(runs),
        "verdicts": _verdicts(comparison) if comparison else "",
        "worst_note": escape(note),
        "worst": "".join(_query(outcome, runs) for outcome in queries),
    }
    template = (files("recollect.evaluation") / "report.html").read_text(encoding="utf-8")
    return Template(template).substitute(parts)


def _primary(run: SystemRun) -> str:
    names = list(run.means())
    return next((name for name in _PRIMARY if name in names), names[0])


def _worst(outcomes: Iterable[QueryOutcome], count: int) -> list[QueryOutcome]:
    """Those with the lowest primary metric, then with the lowest others; perfect ones are none of them."""

    def badness(outcome: QueryOutcome) -> tuple[float, float]:
        primary = next((outcome.metrics[name] for name in _PRIMARY if name in outcome.metrics), 0.0)
        return primary, sum(outcome.metrics.values())

    ordered = sorted(outcomes, key=badness)
    return [outcome for outcome in ordered if badness(outcome)[0] < 1][:count]


def _metrics_chart(runs: Sequence[SystemRun]) -> str:
    means = [(run.name, run.means()) for run in runs]
    groups = [(metric, [(name, values[metric]) for name, values in means]) for metric in means[0][1]]
    return bar_chart(groups, title="Quality by system")


def _curve_chart(runs: Sequence[SystemRun], points: Sequence[float], label: str) -> str:
    lines = [Series(run.name, tuple(zip(points, run.curve(), strict=True))) for run in runs]
    return line_chart(lines, title="Recall by how much is shown", x_label=label, y_label="recall", logarithmic=True)


def _latency_chart(runs: Sequence[SystemRun]) -> str:
    lines = [Series(run.name, shares([outcome.milliseconds for outcome in run.outcomes])) for run in runs]
    return line_chart(
        lines, title="Time of a search", x_label="milliseconds", y_label="share of searches done", logarithmic=True
    )


def _means_table(runs: Sequence[SystemRun]) -> str:
    metrics = list(runs[0].means())
    rows = []
    for run in runs:
        means = run.means()
        times = [f"{run.milliseconds(percentile):,.1f}" for percentile in (50, 95)]
        rows.append([escape(run.name), *(f"{means[metric]:.4f}" for metric in metrics), *times])
    return _table(["System", *map(escape, metrics), "ms, median", "ms, 95 %"], rows)


def _verdicts(comparison: Comparison) -> str:
    rows = []
    for verdict in comparison.verdicts:
        result = verdict.result
        p = "&lt; 0.001" if verdict.corrected_p < 0.001 else f"{verdict.corrected_p:.3f}"
        rows.append(
            [
                f"{escape(verdict.metric)}: {escape(verdict.second)} − {escape(verdict.first)}",
                f"{result.difference:+.4f}",
                f"{result.low:+.4f} … {result.high:+.4f}",
                p,
                f"{result.better} / {result.worse}",
                f'<span class="{"good" if verdict.real else "soft"}">{escape(verdict.in_words())}</span>',
            ]
        )
    head = ["Difference", "", f"{comparison.confidence:.0%} interval", "p", "better / worse", "verdict"]
    note = (
        "Randomisation test on the same queries, its p corrected for the number of pairs; bootstrap interval of each "
        "pair for itself."
    )
    return f'<h2>Are the differences real?</h2><p class="soft">{note}</p><div class="scroll">{_table(head, rows)}</div>'


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are markup already."""
    header = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"


def _query(outcome: QueryOutcome, runs: Sequence[SystemRun]) -> str:
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
