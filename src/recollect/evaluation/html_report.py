"""Evaluations as HTML files that need nothing else: no script, no font, no network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template

from recollect.evaluation.compare import Comparison, SystemRun
from recollect.evaluation.outcomes import Outcome
from recollect.evaluation.plots import Series, bar_chart, legend, line_chart, shares
from recollect.evaluation.quality import METRICS, ModelQuality
from recollect.evaluation.rag_test import CaseResult

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
        f'<ul>{failures}</ul><h3>Answer</h3><p dir="auto">{escape(text)}</p>'
        + (f"<h3>Not supported by the sources</h3><ul>{doubted}</ul>" if doubted else "")
        + f'<p class="soft">{figures} · {result.latency_ms:,.0f} ms</p></details>'
    )
