"""What the search bench is asked, all of it in its address: a query, where and as whom, and two configurations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlencode

from pydantic import ValidationError

from recollect.errors import PermissionDeniedError, UsageError
from recollect.model import RetrievalOptions
from recollect.model.bounds import MAX_CANDIDATES, MAX_NEIGHBOURS, MAX_RERANK_CANDIDATES, MAX_RRF_K
from recollect.retrieval.rerank.registry import DEFAULTS as RERANKERS
from recollect.server.schemas.base import Asker, acting_as
from recollect.server.schemas.retrieval import SearchOptions

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams

    from recollect.config import RAGConfig
    from recollect.pipeline import View
    from recollect.pipeline.assembly import Assembly
    from recollect.ui.visit import Visit

Side = Literal["a", "b"]
SIDES: tuple[Side, ...] = ("a", "b")

#: The longest list that a page shows.
MOST_SHOWN = 50


def _(text: str) -> str:
    """Marks a text for the catalogues."""
    return text


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


OPTIONS: tuple[Option, ...] = (
    Option(name="mode", label=_("Mode"), kind="choice", choices=("hybrid", "dense", "lexical")),
    Option(name="fusion", label=_("Fusion"), kind="choice", choices=("weighted", "rrf")),
    Option(name="dense_weight", label=_("Weight of meaning"), kind="number", least=0, most=1, step=0.05),
    Option(name="rrf_k", label=_("RRF constant k"), kind="number", least=1, most=MAX_RRF_K, step=1),
    Option(name="candidates", label=_("Candidates"), kind="number", least=1, most=MAX_CANDIDATES, step=1),
    Option(name="rerank", label=_("Reranker"), kind="choice", choices=("none", *sorted(RERANKERS))),
    Option(
        name="rerank_candidates",
        label=_("Reranked passages"),
        kind="number",
        least=1,
        most=MAX_RERANK_CANDIDATES,
        step=1,
    ),
    Option(name="top_k", label=_("Results"), kind="number", least=1, most=MOST_SHOWN, step=1),
    Option(name="min_similarity", label=_("Least similarity"), kind="number", least=-1, most=1),
    Option(name="min_relevance", label=_("Least relevance"), kind="number", least=0, most=1),
    Option(name="min_score", label=_("Least score"), kind="number"),
    Option(name="mmr", label=_("Diversity (MMR λ)"), kind="number", least=0, most=1, step=0.05),
    Option(name="collapse", label=_("Collapse duplicates"), kind="flag"),
    Option(name="enhance", label=_("Query enhancement"), kind="flag"),
    Option(name="pseudo_relevance", label=_("Pseudo-relevance feedback"), kind="flag"),
    Option(name="neighbours", label=_("Neighbours shown"), kind="number", least=0, most=MAX_NEIGHBOURS, step=1),
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
        wanted = {**self.given, **{name: value or "" for name, value in changes.items()}}
        query = urlencode({name: value for name, value in wanted.items() if value})
        return f"{base}?{query}" if query else base

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
        """The query with its filters as a test case, as files have it; see `recollect.evaluation.cases.Case`."""
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
    retrieval = config.retrieval
    values: dict[str, object] = {
        "mode": retrieval.mode,
        "fusion": retrieval.fusion,
        "dense_weight": retrieval.dense_weight,
        "rrf_k": retrieval.rrf_k,
        "candidates": retrieval.candidates,
        "rerank": retrieval.rerank if config.reranking.provider == "none" else "hosted",
        "rerank_candidates": retrieval.rerank_candidates,
        "top_k": config.top_k,
        "min_similarity": retrieval.similarity_threshold,
        "min_relevance": retrieval.min_relevance,
        "min_score": retrieval.min_score,
        "collapse": "yes" if retrieval.collapse_duplicates else "no",
        "enhance": "yes",
        "pseudo_relevance": "yes" if retrieval.pseudo_relevance else "no",
        "neighbours": 0,
        "merge": "no",
    }
    found = values.get(option.name)
    return "" if found is None else str(found)


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
