"""How good answers are, as one HTML file that needs nothing else: no script, no font, no network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

from recollect.evaluation.quality import METRICS, ModelQuality, QualityResult


def render_quality(models: Sequence[ModelQuality], *, title: str, subtitle: str = "") -> str:
    """The page: a table by model, and each model's cases, those that fail first.

    Args:
        models: At least one.
        title: What was measured.
        subtitle: With what, and when.
    """
    parts = [f"<h2>By model</h2>{_overview(models)}"]
    for model in models:
        ordered = sorted(model.results, key=lambda result: result.passed)
        parts.append(f"<h2>{escape(model.model)}</h2>{''.join(map(_case, ordered))}")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f'<meta name="color-scheme" content="light dark"><title>{escape(title)}</title>{_style()}</head>'
        f'<body><h1>{escape(title)}</h1><p class="soft">{escape(subtitle)}</p>{"".join(parts)}</body></html>\n'
    )


def shown(value: float | None) -> str:
    """A metric for people; a dash where it could not be measured."""
    return "–" if value is None else f"{value:.2f}"


def _style() -> str:
    """That of the other report."""
    page = (files("recollect.evaluation") / "report.html").read_text(encoding="utf-8")
    return page[page.index("<style>") : page.index("</style>") + len("</style>")]


def _overview(models: Iterable[ModelQuality]) -> str:
    head = ["Model", "passed", *(name.replace("_", " ") for name in METRICS)]
    head += ["ms, median", "ms, 95 %", "tokens in", "out", "cost"]
    rows = []
    for model in models:
        sent, written = model.tokens()
        cost = model.cost()
        passed = sum(result.passed for result in model.results)
        cells = [escape(model.model), f"{passed:,} of {len(model.results):,}"]
        cells += [shown(model.mean(name)) for name in METRICS]
        cells += [f"{model.latency_ms(0.5):,.0f}", f"{model.latency_ms(0.95):,.0f}", f"{sent:,}", f"{written:,}"]
        rows.append([*cells, "–" if cost is None else f"{cost:.4f}"])
    header = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table></div>'


def _case(result: QualityResult) -> str:
    mark, word = ("good", "✓") if result.passed else ("bad", "✗")
    failures = "".join(f'<li class="bad" dir="auto">{escape(failure)}</li>' for failure in result.failures)
    unsupported = () if result.answer is None else result.answer.unsupported
    doubted = "".join(f'<li dir="auto">{escape(one.text)}: {escape(one.detail)}</li>' for one in unsupported)
    text = "" if result.answer is None else result.answer.text
    figures = ", ".join(
        f"{escape(name.replace('_', ' '))} {shown(value)}"
        for name, value in result.metrics.items()
        if value is not None
    )
    return (
        f'<details><summary dir="auto"><span class="{mark}">{word}</span> {escape(result.case.query)}</summary>'
        f'<ul>{failures}</ul><h3>Answer</h3><p dir="auto">{escape(text)}</p>'
        + (f"<h3>Not supported by the sources</h3><ul>{doubted}</ul>" if doubted else "")
        + f'<p class="soft">{figures} · {result.milliseconds:,.0f} ms</p></details>'
    )
