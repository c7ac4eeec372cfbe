"""The pages of the area 'Search bench'."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import parse_qsl, urlencode

from fastapi import Form
from starlette.responses import Response

from recollect.errors import NotFoundError, PermissionDeniedError, RecollectError, UsageError
from recollect.model.time import read_time
from recollect.pipeline.saved_cases import cases_as_yaml, delete_case, run_cases, save_case, saved_cases, suite_of
from recollect.pipeline.temporal import known_span
from recollect.ui.bench_form import OPTIONS, SIDES, Bench, Side, configured, may_ask_as_others, offered
from recollect.ui.page_route import page_router
from recollect.ui.visit import BENCH, PAGE_HEADERS, Visit, Visiting

if TYPE_CHECKING:
    from recollect.evaluation.rag_test import SuiteResult
    from recollect.model import RetrievedContext, SearchReply
    from recollect.model.saved_case import SavedCase
    from recollect.model.why_not import WhyNot
    from recollect.pipeline import View

router = page_router()


# Two replies to the same query beside each other: which passages both found, where, and with which scores.


_BINS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A passage of one side.

    Attributes:
        passage: As it was found.
        other_rank: Its rank on the other side; None: it is not there.
    """

    passage: RetrievedContext
    other_rank: int | None

    @property
    def moved(self) -> int:
        """How many ranks better than on the other side; 0 where it is not there."""
        return 0 if self.other_rank is None else self.other_rank - self.passage.rank


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two replies.

    Attributes:
        replies: Of both sides.
        results: Of both sides.
        shared: Passages that both have.
    """

    replies: tuple[SearchReply, SearchReply]
    results: tuple[tuple[Compared, ...], tuple[Compared, ...]]
    shared: int

    @property
    def scores(self) -> list[tuple[int, tuple[float | None, float | None]]]:
        """By rank, the scores of both sides."""
        return [
            (rank, (_score(self.replies[0].results, rank), _score(self.replies[1].results, rank)))
            for rank in range(1, max(len(reply.results) for reply in self.replies) + 1)
        ]

    @property
    def relevances(self) -> list[tuple[float, tuple[int, int]]]:
        """How many passages of both sides lie in each tenth of relevance, by where the tenth begins."""
        counted = [_counted(reply.results) for reply in self.replies]
        return [(one / _BINS, (counted[0][one], counted[1][one])) for one in range(_BINS)]

    @property
    def has_relevance(self) -> bool:
        """Whether relevance is known of any."""
        return any(one.relevance is not None for reply in self.replies for one in reply.results)

    @property
    def stages(self) -> list[tuple[str, tuple[float | None, float | None]]]:
        """The milliseconds of each stage of both sides."""
        names = dict.fromkeys(name for reply in self.replies for name in reply.timings_ms)
        first, second = (reply.timings_ms for reply in self.replies)
        return [(name, (first.get(name), second.get(name))) for name in names]


def compared(first: SearchReply, second: SearchReply) -> Comparison:
    """Two replies beside each other; a passage is the same where it is the same chunk."""
    ranks = [{one.chunk_id: one.rank for one in reply.results} for reply in (first, second)]

    def beside(reply: SearchReply, other: dict[int, int]) -> tuple[Compared, ...]:
        return tuple(Compared(passage=one, other_rank=other.get(one.chunk_id)) for one in reply.results)

    return Comparison(
        replies=(first, second),
        results=(beside(first, ranks[1]), beside(second, ranks[0])),
        shared=len(ranks[0].keys() & ranks[1].keys()),
    )


def _score(results: Sequence[RetrievedContext], rank: int) -> float | None:
    return results[rank - 1].score if rank <= len(results) else None


def _counted(results: Sequence[RetrievedContext]) -> list[int]:
    counts = [0] * _BINS
    for one in results:
        if one.relevance is not None:
            counts[min(_BINS - 1, int(one.relevance * _BINS))] += 1
    return counts


CASES = f"{BENCH.path}/cases"


def _(text: str) -> str:
    """Marks a text for the catalogues."""
    return text


_MEASURES = {"recall": _("recall"), "precision": _("precision"), "mrr": _("mrr")}


@router.get(BENCH.path)
async def compare(visit: Visiting) -> Response:
    """A query under two configurations, side by side."""
    bench = Bench.of(visit.request.query_params)
    await visit.require(BENCH.scope)
    context: dict[str, Any] = {
        "problem": "",
        "comparison": None,
        "missed": {},
        "saved": visit.request.query_params.get("saved"),
    }
    if bench["q"]:
        for _side in SIDES[1:]:
            await visit.require(BENCH.scope)
        try:
            replies = await visit.service.searches.run(visit.request, _replies, visit, bench)
            context["comparison"] = compared(*replies)
            if bench["missed"]:
                await visit.require(BENCH.scope)
                context["missed"] = await visit.service.searches.run(visit.request, _missed, visit, bench)
        except (UsageError, NotFoundError, PermissionDeniedError) as exc:
            context["problem"] = str(exc)
    return visit.page("bench/compare.html", BENCH, **await visit.run(_form, visit, bench), **context)


def _replies(visit: Visit, bench: Bench) -> list[SearchReply]:
    view = bench.view(visit)
    return [view.search(bench["q"], bench.options(side, view.config)) for side in SIDES]


def _missed(visit: Visit, bench: Bench) -> dict[Side, WhyNot | str]:
    """Under each configuration, what keeps the document out that is missed, or why that cannot be told."""
    view, document = bench.view(visit), bench["missed"]
    named = int(document) if document.isdecimal() and len(document) < 19 else document
    told: dict[Side, WhyNot | str] = {}
    for side in SIDES:
        try:
            told[side] = view.why_not(bench["q"], named, bench.options(side, view.config))
        except RecollectError as exc:
            told[side] = str(exc)
    return told


def _form(visit: Visit, bench: Bench) -> dict[str, Any]:
    """What the form and the tabs show."""
    config = visit.view.config
    places = visit.view.collections.list()
    chosen = bench["collection"] or config.collection
    try:
        span = known_span(visit.view.view(collections=chosen))
        at = read_time(bench["as_of"], name="as_of") if bench["as_of"] else None
    except UsageError:
        span = at = None
    return {
        "bench": bench,
        "options": offered(visit.view.standpoint.assembly),
        "sides": SIDES,
        "defaults": {option.name: configured(option, config) for option in OPTIONS},
        "collections": [one.name for one in places],
        "chosen": chosen,
        "span": span,
        "at": at,
        "personas": may_ask_as_others(visit),
        "enforced": config.access.mode == "enforce",
        "cases_path": CASES,
        "bench_path": BENCH.path,
    }


@router.get(CASES)
async def cases(visit: Visiting) -> Response:
    """The test cases of a collection, and how they fare under both configurations."""
    bench = Bench.of(visit.request.query_params)
    await visit.require(BENCH.scope)
    context: dict[str, Any] = {
        "problem": "",
        "cases": [],
        "runs": {},
        "means": [],
        "saved": visit.request.query_params.get("saved"),
    }
    try:
        found = await visit.run(saved_cases, _keeper(visit, bench))
        context["cases"] = found
        if found and visit.request.query_params.get("run"):
            context["runs"] = await visit.service.searches.run(visit.request, _runs, visit, bench, found)
            context["means"] = _means(context["runs"])
    except (UsageError, NotFoundError, PermissionDeniedError) as exc:
        context["problem"] = str(exc)
    return visit.page("bench/cases.html", BENCH, **await visit.run(_form, visit, bench), **context)


def _keeper(visit: Visit, bench: Bench) -> View:
    """The view that test cases are kept and listed with: whoever administers the tenant sees everybody's."""
    view = visit.administration if visit.may("admin") else visit.view
    return view.view(collections=bench["collection"] or None)


def _runs(visit: Visit, bench: Bench, found: Sequence[SavedCase]) -> dict[Side, SuiteResult]:
    view, limits = bench.view(visit), visit.service.limits

    def counting(kind: Literal["search", "answer"]) -> AbstractContextManager[object]:
        return limits.admitted(visit.caller, kind)

    suite = suite_of(found)
    return {side: run_cases(view, suite, bench.options(side, view.config), counting=counting) for side in SIDES}


def _means(runs: dict[Side, SuiteResult]) -> list[tuple[str, list[float | None]]]:
    """The figures of both configurations, by name, for the plot and its table."""
    rows: list[tuple[str, list[float | None]]] = [
        (_("passed"), [sum(one.passed for one in run.results) / len(run.results) for run in runs.values()])
    ]
    rows += [(text, [run.mean(name) for run in runs.values()]) for name, text in _MEASURES.items()]
    return rows


@router.post(CASES)
async def save(
    visit: Visiting,
    query: Annotated[str, Form(max_length=100_000)],
    name: Annotated[str, Form(max_length=1_000)],
    expect: Annotated[tuple[str, ...], Form(max_length=200)] = (),
    sources: Annotated[str, Form(max_length=10_000)] = "",
    answerable: Annotated[str, Form(max_length=10)] = "",
) -> Response:
    """Keep the query with what is expected of it, and go back to where it was asked."""
    await visit.require("write", kind="ingest")
    bench = Bench.of(_read_query(query))
    have = [one.removeprefix("have:") for one in expect if one.startswith("have:")]
    have += [line for one in sources.splitlines() if (line := one.strip())]
    have_not = [one.removeprefix("not:") for one in expect if one.startswith("not:")]
    definition = bench.definition(
        name.strip(), have=list(dict.fromkeys(have)), have_not=list(dict.fromkeys(have_not)), answerable=answerable
    )
    as_of = read_time(bench["as_of"], name="as_of") if bench["as_of"] else None
    await visit.run(save_case, visit.view.view(collections=bench["collection"] or None), definition, as_of=as_of)
    return visit.go_to(_with(bench.path(CASES), saved=name.strip()[:200]))


@router.post(CASES + "/{case_id}/delete")
async def delete(visit: Visiting, case_id: int, query: Annotated[str, Form(max_length=100_000)] = "") -> Response:
    """Delete a test case."""
    await visit.require("write", kind="ingest")
    bench = Bench.of(_read_query(query))
    await visit.run(delete_case, _keeper(visit, bench), case_id)
    return visit.go_to(bench.path(CASES))


@router.get(CASES + ".yaml")
async def download(visit: Visiting) -> Response:
    """The test cases as a file for ``recollect rag-test``."""
    bench = Bench.of(visit.request.query_params)
    await visit.require(BENCH.scope)
    found = await visit.run(saved_cases, _keeper(visit, bench))
    if not found:
        raise NotFoundError("The collection has no test cases.")
    text = cases_as_yaml(found, comment="Run them: recollect rag-test cases.yaml")
    headers = {**PAGE_HEADERS, "Content-Disposition": 'attachment; filename="cases.yaml"'}
    return Response(text.encode("utf-8", "replace"), media_type="application/yaml", headers=headers)


def _read_query(query: str) -> dict[str, str]:
    return dict(parse_qsl(query.partition("?")[2] or query, max_num_fields=200))


def _with(path: str, **more: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}{urlencode(more)}"
