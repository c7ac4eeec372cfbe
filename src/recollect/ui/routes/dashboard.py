"""The pages of the area 'Dashboard'."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Form, Query
from starlette.responses import Response

from recollect.errors import NotFoundError
from recollect.model.job import JobStatus
from recollect.pipeline.figures import Figures, Window, read_figures, unanswered_questions
from recollect.ui.dashboard_charts import RANGES, charts, totals
from recollect.ui.page_route import page_router
from recollect.ui.visit import DASHBOARD, PAGE_HEADERS, Visit, Visiting

if TYPE_CHECKING:
    from recollect.pipeline import View

router = page_router()

_MOST_JOBS = 20
_KINDS = ("embed", "rerank", "answer")


def _(text: str) -> str:
    """Marks a text for the catalogues."""
    return text


# Jobs that succeeded need nothing; one that no attempt could make succeed is cancelled, with its reason.
_SHOWN: tuple[JobStatus, ...] = (_("running"), _("pending"), _("failed"), _("cancelled"))  # type: ignore[assignment]

_Range = Annotated[Literal["1h", "6h", "24h", "7d", "30d"], Query(alias="range")]
_Kind = Annotated[Literal["", "embed", "rerank", "answer"], Query()]


@router.get(DASHBOARD.path)
async def dashboard(visit: Visiting, span: _Range = "24h", kind: _Kind = "") -> Response:
    """Everything, over a time up to now."""
    await visit.require(DASHBOARD.scope)
    return visit.page("dashboard/dashboard.html", DASHBOARD, **await visit.run(_shown, visit, span, kind))


@router.get(DASHBOARD.path + "/{key}.csv")
async def numbers(visit: Visiting, key: str, span: _Range = "24h", kind: _Kind = "") -> Response:
    """The numbers of one chart."""
    await visit.require(DASHBOARD.scope)
    figures = await visit.run(_figures, visit, _window(span), kind)
    chart = next((one for one in charts(figures) if one.key == key), None)
    if chart is None:
        raise NotFoundError(f"There is no chart {key!r}.")
    headers = {**PAGE_HEADERS, "Content-Disposition": f'attachment; filename="{chart.key}-{span}.csv"'}
    return Response(chart.csv(), media_type="text/csv; charset=utf-8", headers=headers)


@router.post(DASHBOARD.path + "/jobs/{job_id}/{action}")
async def change_job(
    visit: Visiting, job_id: int, action: Literal["retry", "cancel"], query: Annotated[str, Form(max_length=200)] = ""
) -> Response:
    """Try a job again, or cancel it, and show the page again."""
    await visit.require("write", kind="ingest")
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
