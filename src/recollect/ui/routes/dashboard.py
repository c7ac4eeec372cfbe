"""The pages of the area 'Dashboard', and its charts."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Form, Query
from starlette.responses import Response

from recollect.errors import NotFoundError
from recollect.model.activity import Tally
from recollect.model.job import JobStatus
from recollect.pipeline.figures import Figures, Window, read_figures, unanswered_questions
from recollect.ui.languages import _
from recollect.ui.visit import DASHBOARD, PAGE_HEADERS, Reading, Visit, Writing, page_router

if TYPE_CHECKING:
    from recollect.pipeline import View


router = page_router()


_MOST_JOBS = 20


_KINDS = ("embed", "rerank", "answer")


# Jobs that succeeded need nothing; one that no attempt could make succeed is cancelled, with its reason.
_SHOWN: tuple[JobStatus, ...] = (_("running"), _("pending"), _("failed"), _("cancelled"))  # type: ignore[assignment]


_Range = Annotated[Literal["1h", "6h", "24h", "7d", "30d"], Query(alias="range")]


_Kind = Annotated[Literal["", "embed", "rerank", "answer"], Query()]


@router.get(DASHBOARD.path)
async def dashboard(visit: Reading, span: _Range = "24h", kind: _Kind = "") -> Response:
    """Everything, over a time up to now."""
    return visit.page("dashboard/dashboard.html", DASHBOARD, **await visit.run(_shown, visit, span, kind))


@router.get(DASHBOARD.path + "/{key}.csv")
async def numbers(visit: Reading, key: str, span: _Range = "24h", kind: _Kind = "") -> Response:
    """The numbers of one chart."""
    figures = await visit.run(_figures, visit, _window(span), kind)
    chart = next((one for one in charts(figures) if one.key == key), None)
    if chart is None:
        raise NotFoundError(f"There is no chart {key!r}.")
    headers = {**PAGE_HEADERS, "Content-Disposition": f'attachment; filename="{chart.key}-{span}.csv"'}
    return Response(chart.csv(), media_type="text/csv; charset=utf-8", headers=headers)


@router.post(DASHBOARD.path + "/jobs/{job_id}/{action}")
async def change_job(
    visit: Writing, job_id: int, action: Literal["retry", "cancel"], query: Annotated[str, Form(max_length=200)] = ""
) -> Response:
    """Try a job again, or cancel it, and show the page again."""
    jobs = visit.view.jobs
    await visit.run(jobs.retry if action == "retry" else jobs.cancel, job_id)
    return visit.go_to(f"{DASHBOARD.path}{_own(query)}#jobs")


def _own(query: str) -> str:
    """The address's query as it came, where it is one of these pages'."""
    known = {f"?range={span}&kind={kind}" for span in RANGES for kind in ("", *_KINDS)}
    return query if query in known else ""


def _shown(visit: Visit, span: str, kind: str) -> dict[str, Any]:
    window = _window(span)
    figures = _figures(visit, window, kind)
    view = visit.view
    return {
        "span": span,
        "kind": kind,
        "ranges": list(RANGES),
        "kinds": _KINDS,
        "query": f"?range={span}&kind={kind}",
        "path": DASHBOARD.path,
        "figures": figures,
        "totals": totals(figures),
        "charts": charts(figures),
        "jobs": [job for status in _SHOWN for job in view.jobs.list(status=status, limit=_MOST_JOBS)],
        "questions": unanswered_questions(visit.administration, window) if visit.may("admin") else None,
        "questions_kept": view.config.server.audit.questions == "keep",
        "holds": view.maintenance.status(),
    }


def _figures(visit: Visit, window: Window, kind: str) -> Figures:
    view: View = visit.administration if visit.may("admin") else visit.view
    return read_figures(view, window, kind=kind or None)


def _window(span: str) -> Window:
    """The last so many hours, in whiles that begin where they begin for everybody."""
    length, seconds = RANGES[span]
    now = datetime.now(UTC).timestamp()
    until = datetime.fromtimestamp((now // seconds + 1) * seconds, UTC)
    return Window(since=until - length, until=until, seconds=seconds)


# The dashboard's charts: each its numbers, which the page's table shows, its script draws and its CSV holds.


Value = float | None


#: By the name in the address, how long the time is that is shown, and each while within it.
RANGES: Mapping[str, tuple[timedelta, int]] = {
    "1h": (timedelta(hours=1), 60),
    "6h": (timedelta(hours=6), 300),
    "24h": (timedelta(hours=24), 1_200),
    "7d": (timedelta(days=7), 3 * 3_600),
    "30d": (timedelta(days=30), 12 * 3_600),
}


_MOST_STAGES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One chart.

    Attributes:
        key: Its name in addresses.
        title: Its text's key.
        kind: How it is drawn.
        x: What stands below: ``time`` or ``day``.
        unit: Of its values: a text's key.
        series: Their names: texts' keys, or names of the code.
        rows: When each while begins, with the values of all series.
        note: What else is to be known: a text's key.
    """

    key: str
    title: str
    kind: Literal["line", "bars"]
    unit: str
    series: tuple[str, ...]
    rows: tuple[tuple[datetime, tuple[Value, ...]], ...]
    x: Literal["time", "day"] = "time"
    note: str = ""

    def csv(self) -> str:
        """Its numbers as a file, with times in UTC."""
        written = io.StringIO()
        out = csv.writer(written)
        out.writerow(["time", *(safe_cell(f"{name} ({self.unit})") for name in self.series)])
        for at, values in self.rows:
            out.writerow([at.isoformat(), *("" if value is None else repr(value) for value in values)])
        return written.getvalue()


def safe_cell(text: str) -> str:
    """A text that no program for tables takes for a formula."""
    return f"'{text}" if text[:1] in "=+-@\t\r" else text


def charts(figures: Figures) -> list[Chart]:
    """Every chart, in the order of the page."""
    return [*_searches(figures), *_answers(figures), *_requests(figures), *_stored(figures)]


def _searches(figures: Figures) -> Iterable[Chart]:
    total = _tallies(figures, "search")
    stages = sorted(
        {label for label in total if label != "total"},
        key=lambda label: -sum(one.total for one in total[label].values()),
    )[:_MOST_STAGES]
    whole = total.get("total", {})
    yield Chart(
        key="search-time",
        title=_("Search time"),
        kind="line",
        unit="ms",
        series=("p50", "p95", "p99"),
        rows=_rows(figures, lambda at: tuple(_percentile(whole.get(at), share) for share in (0.5, 0.95, 0.99))),
        note=_("Searches that were computed; their times are rounded to a tenth."),
    )
    yield Chart(
        key="search-stages",
        title=_("Search time by stage (p95)"),
        kind="line",
        unit="ms",
        series=tuple(stages),
        rows=_rows(figures, lambda at: tuple(_percentile(total[stage].get(at), 0.95) for stage in stages)),
    )
    cache = _tallies(figures, "cache")
    yield _counted(
        figures, "cache", "searches", _("Searches"), _("searches"), {"miss": _("computed"), "hit": _("from the cache")}
    )
    yield Chart(
        key="cache",
        title=_("Cache hit rate"),
        kind="line",
        unit=_("percent"),
        series=(_("hits"),),
        rows=_rows(figures, lambda at: (_share(_count(cache, "hit", at), _count(cache, "miss", at)),)),
    )
    yield Chart(
        key="recall",
        title=_("Recall probe"),
        kind="line",
        unit=_("percent"),
        x="day",
        series=(_("meaning"), _("words")),
        rows=tuple(
            (_midnight(day), (_mean(dense_sum, dense), _mean(lexical_sum, lexical)))
            for day, dense, dense_sum, lexical, lexical_sum in figures.recall
        ),
        note=_("What approximate searches found of the exact result, by day over 30 days."),
    )


def _answers(figures: Figures) -> Iterable[Chart]:
    found, answers = _tallies(figures, "found"), _tallies(figures, "answer")
    yield Chart(
        key="unanswered",
        title=_("Questions that nothing answers"),
        kind="line",
        unit=_("questions"),
        series=(_("nothing found"), _("low relevance"), _("passages only"), _("no answer")),
        rows=_rows(
            figures,
            lambda at: (
                *(_count(found, label, at) for label in ("nothing", "low")),
                *(_count(answers, label, at) for label in ("passages", "refused")),
            ),
        ),
    )
    outcomes = {"answered": _("answered"), "passages": _("passages only"), "refused": _("no answer")}
    yield _counted(figures, "answer", "answers", _("Answers"), _("answers"), outcomes)
    judged = {"helpful": _("helpful"), "not": _("not helpful")}
    yield _counted(figures, "feedback", "feedback", _("Feedback"), _("passages"), judged)
    kinds = {"search": _("search"), "answer": _("answer"), "ingest": _("ingest")}
    yield _counted(figures, "limit", "limits", _("Refused by rate limits"), _("requests"), kinds, kind="line")


def _requests(figures: Figures) -> Iterable[Chart]:
    by_time = {row[0]: row[1:] for row in figures.requests}
    nothing = (0, 0, None, None, None, 0, 0, None)

    def some(*places: int) -> Callable[[datetime], tuple[Value, ...]]:
        return lambda at: tuple(by_time.get(at, nothing)[place] for place in places)

    yield Chart(
        key="requests",
        title=_("Model requests"),
        kind="bars",
        unit=_("requests"),
        series=(_("succeeded"), _("failed")),
        rows=_rows(
            figures, lambda at: (by_time.get(at, nothing)[0] - by_time.get(at, nothing)[1], by_time.get(at, nothing)[1])
        ),
    )
    yield Chart(
        key="request-time",
        title=_("Time of model requests"),
        kind="line",
        unit="ms",
        series=("p50", "p95", "p99"),
        rows=_rows(figures, some(2, 3, 4)),
    )
    yield Chart(
        key="tokens",
        title=_("Tokens"),
        kind="bars",
        unit=_("tokens"),
        series=(_("sent"), _("written")),
        rows=_rows(figures, some(5, 6)),
    )
    yield Chart(
        key="cost",
        title=_("Cost of model requests"),
        kind="bars",
        unit=_("currency of the prices"),
        series=(_("cost"),),
        rows=_rows(figures, some(7)),
    )


def _stored(figures: Figures) -> Iterable[Chart]:
    ended = {(at, status): count for at, status, count in figures.jobs}
    statuses = (_("succeeded"), _("failed"), _("cancelled"))
    yield Chart(
        key="jobs",
        title=_("Jobs that ended"),
        kind="line",
        unit=_("jobs"),
        series=statuses,
        rows=_rows(figures, lambda at: tuple(ended.get((at, status), 0) for status in statuses)),
    )
    # Days on which nothing expires are told too: without any, the chart would have no axes.
    today = figures.window.until.astimezone(UTC).date()
    days = {today + timedelta(days=ahead): 0 for ahead in range(31)}
    for *_document, expires_at in figures.expiring:
        day = expires_at.astimezone(UTC).date()
        days[day] = days.get(day, 0) + 1
    yield Chart(
        key="expiring",
        title=_("Documents that expire"),
        kind="bars",
        unit=_("documents"),
        x="day",
        series=(_("documents"),),
        rows=tuple((_midnight(day), (count,)) for day, count in sorted(days.items())),
        note=_("By day, over the next 30 days."),
    )
    if figures.database_bytes is not None:
        sizes = _tallies(figures, "size").get("database", {})
        yield Chart(
            key="size",
            title=_("Size of the database"),
            kind="line",
            unit="MB",
            series=(_("database"),),
            rows=tuple(
                (at, (sizes[at].total / sizes[at].count / 1e6,)) for at in figures.window.moments if at in sizes
            ),
            note=_("Noted once an hour while there is something to do."),
        )


def _counted(
    figures: Figures,
    name: str,
    key: str,
    title: str,
    unit: str,
    labels: Mapping[str, str],
    *,
    kind: Literal["line", "bars"] = "bars",
) -> Chart:
    """How often something happened, by its labels, each with what it is called."""
    tallies = _tallies(figures, name)
    rows = _rows(figures, lambda at: tuple(_count(tallies, label, at) for label in labels))
    return Chart(key=key, title=title, kind=kind, unit=unit, series=tuple(labels.values()), rows=rows)


def _tallies(figures: Figures, name: str) -> dict[str, dict[datetime, Tally]]:
    found: dict[str, dict[datetime, Tally]] = {}
    for row in figures.activity:
        if row.name == name:
            found.setdefault(row.label, {})[row.at] = row.tally
    return found


def _rows(
    figures: Figures, values: Callable[[datetime], tuple[Value, ...]]
) -> tuple[tuple[datetime, tuple[Value, ...]], ...]:
    return tuple((at, values(at)) for at in figures.window.moments)


def _count(tallies: Mapping[str, Mapping[datetime, Tally]], label: str, at: datetime) -> int:
    found = tallies.get(label, {}).get(at)
    return 0 if found is None else found.count


def _percentile(tally: Tally | None, share: float) -> Value:
    found = None if tally is None else tally.percentile(share)
    return None if found is None else round(found, 2)


def _share(some: int, others: int) -> Value:
    return 100 * some / (some + others) if some + others else None


def _mean(total: float, count: int) -> Value:
    return 100 * total / count if count else None


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def totals(figures: Figures) -> dict[str, Value]:
    """The figures at the top of the page, over the whole time."""
    whole = Tally()
    for tally in _tallies(figures, "search").get("total", {}).values():
        whole.merge(tally)

    def count(name: str, *labels: str) -> int:
        return sum(row.tally.count for row in figures.activity if row.name == name and row.label in labels)

    costs = [row[8] for row in figures.requests if row[8] is not None]
    probes: Sequence[tuple[float, int]] = [(row[2] + row[4], row[1] + row[3]) for row in figures.recall]
    return {
        "searches": count("cache", "hit", "miss"),
        "p95": whole.percentile(0.95),
        "hit_rate": _share(count("cache", "hit"), count("cache", "miss")),
        "recall": _mean(sum(total for total, _many in probes), sum(many for _total, many in probes)),
        "unanswered": count("found", "nothing", "low"),
        "passages": count("answer", "passages"),
        "refused": count("answer", "refused"),
        "requests": sum(row[1] for row in figures.requests),
        "failures": sum(row[2] for row in figures.requests),
        "cost": sum(costs) if costs else None,
        "limited": count("limit", "search", "answer", "ingest"),
    }
