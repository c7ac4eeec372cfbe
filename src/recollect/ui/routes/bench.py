"""The pages of the area 'Search bench'."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import parse_qsl

from fastapi import Form
from pydantic import ValidationError
from starlette.responses import Response

from recollect.errors import NotFoundError, PermissionDeniedError, RecollectError, UsageError
from recollect.model import RetrievalOptions
from recollect.model.search_options import search_options
from recollect.model.time import read_time
from recollect.pipeline.facades import known_span
from recollect.pipeline.saved_cases import cases_as_yaml, delete_case, run_cases, save_case, saved_cases, suite_of
from recollect.retrieval.rerank.registry import DEFAULTS as RERANKERS
from recollect.server.bodies import Asker, SearchOptions, acting_as
from recollect.ui.languages import _
from recollect.ui.visit import BENCH, PAGE_HEADERS, Reading, Visit, Writing, link, page_router

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams

    from recollect.config import RAGConfig
    from recollect.evaluation.rag_test import SuiteResult
    from recollect.model import RetrievedContext, SearchReply
    from recollect.model.saved_case import SavedCase
    from recollect.model.why_not import WhyNot
    from recollect.pipeline import View
    from recollect.pipeline.assembly import Assembly


# What the search bench is asked, all of it in its address: a query, where and as whom, and two configurations.


Side = Literal["a", "b"]
SIDES: tuple[Side, ...] = ("a", "b")

#: The longest list that a page shows.
MOST_SHOWN = 50


class Configuration(SearchOptions):
    """How one side searches; what is left out is as configured."""

    enhance: bool | None = None

    def options(self) -> RetrievalOptions:
        """As the library takes them, with all scores."""
        return replace(super().options(), explain=True, enhance=self.enhance is not False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option of a configuration, as the form asks for it.

    Attributes:
        name: Of `Configuration`.
        label: Its text's key.
        kind: How it is asked for.
        choices: Of a ``choice``, its values.
        least: Of a ``number``.
        most: Of a ``number``.
        step: Of a ``number``.
    """

    name: str
    label: str
    kind: Literal["choice", "number", "flag"]
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    step: float | str = "any"


def _number(name: str, label: str, step: float | str = "any") -> Option:
    """A number, with the bounds that it has at every door."""
    declared = next(option for option in search_options() if name in option.names)
    return Option(name=name, label=label, kind="number", least=declared.least, most=declared.most, step=step)


OPTIONS: tuple[Option, ...] = (
    Option(name="mode", label=_("Mode"), kind="choice", choices=("hybrid", "dense", "lexical")),
    Option(name="fusion", label=_("Fusion"), kind="choice", choices=("weighted", "rrf")),
    _number("dense_weight", _("Weight of meaning"), step=0.05),
    _number("rrf_k", _("RRF constant k"), step=1),
    _number("candidates", _("Candidates"), step=1),
    Option(name="rerank", label=_("Reranker"), kind="choice", choices=("none", *sorted(RERANKERS))),
    _number("rerank_candidates", _("Reranked passages"), step=1),
    Option(name="top_k", label=_("Results"), kind="number", least=1, most=MOST_SHOWN, step=1),
    _number("min_similarity", _("Least similarity")),
    _number("min_relevance", _("Least relevance")),
    _number("min_score", _("Least score")),
    _number("mmr", _("Diversity (MMR λ)"), step=0.05),
    Option(name="collapse", label=_("Collapse duplicates"), kind="flag"),
    Option(name="enhance", label=_("Query enhancement"), kind="flag"),
    Option(name="pseudo_relevance", label=_("Pseudo-relevance feedback"), kind="flag"),
    _number("neighbours", _("Neighbours shown"), step=1),
    Option(name="merge", label=_("Merge adjacent passages"), kind="flag"),
)

_SHARED = ("q", "collection", "as_of", "user", "roles", "in_department", "groups")
_FILTERS = ("department", "source", "tag", "filter", "event_from", "event_to")
#: Everything that stands in the address of a bench, the document that is missed included.


def offered(assembly: Assembly) -> tuple[Option, ...]:
    """The options, with the names of parts that are not recollect's own among the choices."""
    parts = {"mode": assembly.retrievers, "rerank": assembly.rerankers}

    def choices(option: Option) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*option.choices, *(parts[option.name].names() if option.name in parts else ())]))

    return tuple(replace(option, choices=choices(option)) for option in OPTIONS)


NAMES = (*_SHARED, *_FILTERS, "missed", *(f"{side}_{option.name}" for side in SIDES for option in OPTIONS))
_LONGEST = 20_000


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What is asked, as it stands in the address.

    Attributes:
        given: By name; those that are empty are not there.
    """

    given: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, params: QueryParams | Mapping[str, str]) -> Bench:
        """What an address asks; of what it does not know nothing is taken."""
        named = {name: params.get(name, "").strip()[:_LONGEST] for name in NAMES}
        return cls(given={name: value for name, value in named.items() if value})

    def __getitem__(self, name: str) -> str:
        return self.given.get(name, "")

    def path(self, base: str, **changes: str | None) -> str:
        """An address with all this in it, but for what is changed."""
        return link(base, **{**self.given, **changes})

    def differs(self, option: Option) -> bool:
        """Whether the two sides differ in an option."""
        return self[f"a_{option.name}"] != self[f"b_{option.name}"]

    @property
    def filtered(self) -> bool:
        """Whether documents are filtered."""
        return any(self[name] for name in _FILTERS)

    @property
    def has_persona(self) -> bool:
        """Whether somebody else is asked as."""
        return any(self[name] for name in ("user", "roles", "in_department", "groups"))

    def words(self, side: Side) -> Iterator[tuple[Option, str]]:
        """The options of a side that are not as configured."""
        for option in OPTIONS:
            value = self[f"{side}_{option.name}"]
            if value:
                yield option, value

    def view(self, visit: Visit) -> View:
        """What is searched: where, as of when and as whom the address says.

        Raises:
            PermissionDeniedError: The caller may not ask as somebody else.
            UsageError: A name or the moment is none.
        """
        view = asking_view(visit) if self.has_persona else visit.view
        view = view.view(collections=self["collection"] or None)
        if self.has_persona:
            if not self["user"]:
                raise UsageError("Name the user that is asked as; roles, a department and groups go with the name.")
            asker: Asker = _valid(
                Asker,
                user=self["user"],
                roles=listed(self["roles"]),
                department=self["in_department"] or None,
                groups=listed(self["groups"]),
            )
            view = acting_as(view, asker)
        return view.view(as_of=self["as_of"] or None)

    def options(self, side: Side, config: RAGConfig) -> RetrievalOptions:
        """How a side searches.

        Raises:
            UsageError: An option is not valid.
        """
        own = {option.name: _value(option, self[f"{side}_{option.name}"]) for option in OPTIONS}
        configuration: Configuration = _valid(
            Configuration,
            **{name: value for name, value in own.items() if value is not None},
            department=listed(self["department"]),
            source=listed(self["source"]),
            tag=listed(self["tag"]),
            filter=self.filter(),
            event_from=self["event_from"] or None,
            event_to=self["event_to"] or None,
        )
        given = configuration.options()
        return replace(given, top_k=given.top_k or min(config.top_k, MOST_SHOWN))

    def filter(self) -> dict[str, Any] | None:
        """The filter in the full language.

        Raises:
            UsageError: It is no JSON object.
        """
        if not self["filter"]:
            return None
        try:
            found = json.loads(self["filter"])
        except (ValueError, RecursionError) as exc:
            raise UsageError(f'The filter is no JSON, such as {{"metadata.year": {{"gte": 2024}}}}: {exc}.') from exc
        if not isinstance(found, dict):
            raise UsageError('The filter must be a JSON object, such as {"metadata.year": {"gte": 2024}}.')
        return found

    def definition(self, name: str, *, have: Sequence[str], have_not: Sequence[str], answerable: str) -> dict[str, Any]:
        """The query with its filters as a test case, as files have it; see `recollect.evaluation.case_files.Case`."""
        short = {
            "department": listed(self["department"]),
            "source": listed(self["source"]),
            "tags": listed(self["tag"]),
        }
        filters = {**{key: list(value) for key, value in short.items() if value}, **(self.filter() or {})}
        wanted: dict[str, Any] = {
            "name": name,
            "query": self["q"],
            "must_have": list(have),
            "must_not_have": list(have_not),
            "answerable": {"yes": True, "no": False}.get(answerable),
            "filters": filters,
        }
        return {key: value for key, value in wanted.items() if value not in (None, [], {})}


def asking_view(visit: Visit) -> View:
    """The view that others can be asked as from.

    Raises:
        PermissionDeniedError: The caller is somebody in particular, and does not administer the tenant.
    """
    if not may_ask_as_others(visit):
        raise PermissionDeniedError("Only the owner of the store, and who administers the tenant, ask as others.")
    return visit.view if visit.caller.principal is None else visit.administration


def may_ask_as_others(visit: Visit) -> bool:
    """Whether the caller may ask as somebody else."""
    return visit.caller.principal is None or visit.may("admin")


def listed(text: str) -> tuple[str, ...]:
    """The names in a field, with commas between them."""
    return tuple(dict.fromkeys(name for one in text.split(",") if (name := one.strip())))


def configured(option: Option, config: RAGConfig) -> str:
    """What holds where an option is left out; empty: that depends."""
    name = _SETTINGS.get(option.name, option.name)
    if name == "rerank" and config.reranking.provider != "none":
        return "hosted"
    settings = _DEFAULTS | {"top_k": config.top_k}
    found = settings[name] if name in settings else getattr(config.retrieval, name, None)
    if isinstance(found, bool):
        return "yes" if found else "no"
    return "" if found is None else str(found)


# What settings are called that have another name than their option, and the options that have no setting.
_SETTINGS = {"min_similarity": "similarity_threshold", "collapse": "collapse_duplicates"}
_DEFAULTS: dict[str, object] = {"enhance": True, "neighbours": 0, "merge": False}


def _value(option: Option, text: str) -> object:
    if not text:
        return None
    if option.kind == "flag":
        return {"yes": True, "no": False}.get(text, text)
    return text


def _valid(kind: Any, **given: Any) -> Any:  # noqa: ANN401 - whichever body is checked
    try:
        return kind(**given)
    except ValidationError as exc:
        told = "; ".join(f"{one['loc'][-1]}: {one['msg']}" for one in exc.errors(include_url=False)[:5])
        raise UsageError(f"{told}.") from exc


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
_MEASURES = {"recall": _("recall"), "precision": _("precision"), "mrr": _("mrr")}


@router.get(BENCH.path)
async def compare(visit: Reading) -> Response:
    """A query under two configurations, side by side."""
    bench = Bench.of(visit.request.query_params)
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
    places = [*visit.view.collections.each()]
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
async def cases(visit: Reading) -> Response:
    """The test cases of a collection, and how they fare under both configurations."""
    bench = Bench.of(visit.request.query_params)
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
    visit: Writing,
    query: Annotated[str, Form(max_length=100_000)],
    name: Annotated[str, Form(max_length=1_000)],
    expect: Annotated[tuple[str, ...], Form(max_length=200)] = (),
    sources: Annotated[str, Form(max_length=10_000)] = "",
    answerable: Annotated[str, Form(max_length=10)] = "",
) -> Response:
    """Keep the query with what is expected of it, and go back to where it was asked."""
    bench = Bench.of(_read_query(query))
    have = [one.removeprefix("have:") for one in expect if one.startswith("have:")]
    have += [line for one in sources.splitlines() if (line := one.strip())]
    have_not = [one.removeprefix("not:") for one in expect if one.startswith("not:")]
    definition = bench.definition(
        name.strip(), have=list(dict.fromkeys(have)), have_not=list(dict.fromkeys(have_not)), answerable=answerable
    )
    as_of = read_time(bench["as_of"], name="as_of") if bench["as_of"] else None
    await visit.run(save_case, visit.view.view(collections=bench["collection"] or None), definition, as_of=as_of)
    return visit.go_to(bench.path(CASES, saved=name.strip()[:200]))


@router.post(CASES + "/{case_id}/delete")
async def delete(visit: Writing, case_id: int, query: Annotated[str, Form(max_length=100_000)] = "") -> Response:
    """Delete a test case."""
    bench = Bench.of(_read_query(query))
    await visit.run(delete_case, _keeper(visit, bench), case_id)
    return visit.go_to(bench.path(CASES))


@router.get(CASES + ".yaml")
async def download(visit: Reading) -> Response:
    """The test cases as a file for ``recollect rag-test``."""
    bench = Bench.of(visit.request.query_params)
    found = await visit.run(saved_cases, _keeper(visit, bench))
    if not found:
        raise NotFoundError("The collection has no test cases.")
    text = cases_as_yaml(found, comment="Run them: recollect rag-test cases.yaml")
    headers = {**PAGE_HEADERS, "Content-Disposition": 'attachment; filename="cases.yaml"'}
    return Response(text.encode("utf-8", "replace"), media_type="application/yaml", headers=headers)


def _read_query(query: str) -> dict[str, str]:
    return dict(parse_qsl(query.partition("?")[2] or query, max_num_fields=200))
