"""The options of a search: each is declared once, with its name, bounds and words for all doors, and checked here."""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, MISSING, dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, TypeVar, cast, get_type_hints

from recollect.errors import OutOfBoundsError, UsageError
from recollect.familiar_names import suggesting
from recollect.model.arguments import require_fields
from recollect.model.time import DatedRange, Duration, MomentRange, is_relative, read_duration, read_range

if TYPE_CHECKING:
    from recollect.model.memory import RecallMode, RecallOptions


# The bounds of a search: the same at every door.

#: Characters of a query or question at most.
MAX_QUERY_CHARACTERS = 20_000
#: Passages that a search returns at most.
MAX_TOP_K = 1_000
#: Candidates that each retriever contributes at most.
MAX_CANDIDATES = 10_000
#: Candidates that a reranker sees at most.
MAX_RERANK_CANDIDATES = 1_000
#: Chunks before and after each passage at most.
MAX_NEIGHBOURS = 10
#: The constant of reciprocal rank fusion at most.
MAX_RRF_K = 10_000
# Passages times neighbours: each neighbour is text that is read and returned.
_MAX_WIDENED = 1_000


def most_passages(neighbours: int) -> int:
    """Return how many passages a search returns at most that widens each by so many chunks on both sides."""
    return min(MAX_TOP_K, _MAX_WIDENED // max(neighbours, 1))


#: ``hybrid``, ``dense``, ``lexical``, or the name of a retriever of your own.
SearchMode: TypeAlias = str
FusionMethod = Literal["weighted", "rrf"]

_SEARCH, _RESULTS, _FILTERS, _TIME = "Search", "Results", "Filters", "Time"


@dataclass(frozen=True, slots=True)
class SearchOption:
    """One option of a search, as every door needs to know it.

    Attributes:
        help: What it is for, in a sentence, for ``--help`` and the server's document; of a range, one for each side.
        panel: The heading under which commands that search take it; empty: they do not, or each in its own way.
        names: What HTTP and the command line call it; the two sides of a range. `RetrievalOptions` may have another
            name for it.
        short: Its flag of one letter on the command line.
        metavar: How ``--help`` writes its value.
        least: The least number allowed.
        most: The greatest number allowed.
        remote: Whether a server takes it.
        field: Of `RetrievalOptions`. This and what follows is filled in by `search_options`.
        type: Of its values.
        default: Where it is not given.
    """

    help: str | tuple[str, str] = ""
    panel: str = ""
    _: KW_ONLY
    names: tuple[str, ...] = ()
    short: str = ""
    metavar: str | None = None
    least: float | None = None
    most: float | None = None
    remote: bool = True
    field: str = ""
    type: Any = None
    default: Any = None

    @property
    def described(self) -> Iterator[tuple[str, str]]:
        """Each of its names, with what it is for."""
        return zip(self.names, (self.help,) if isinstance(self.help, str) else self.help, strict=True)


@suggesting
@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalOptions:
    """How to search.

    Attributes:
        mode: Both retrievers (``hybrid``), embeddings only (``dense``), BM25 only (``lexical``), or the name of a
            retriever of your own, which is asked in their place; None: the configured mode.
        top_k: How many passages to return (1 to 1,000); None: the configured number, of answers that of their passages.
        fusion: ``weighted`` adds normalised scores, ``rrf`` adds reciprocal ranks (Cormack et al. 2009);
            None: the configured default.
        dense_weight: Share of the dense retriever, 0 to 1, of scores in ``weighted`` fusion and of reciprocal ranks in
            ``rrf``; None: the configured default.
        rrf_k: The constant k of reciprocal rank fusion, 1 to 10,000; None: the configured default.
        candidates: How many results each retriever contributes before fusion, 1 to 10,000; None: as configured.
        similarity_threshold: Drop results whose cosine similarity to the query is below this, -1 to 1.
        min_relevance: Drop results whose relevance is below this, 0 to 1; 0: none. None: as configured (none).
        relevance_floor: Return nothing if not even the best result reaches the relevance floor of its embedding model;
            `min_relevance`, given or configured, takes its place. Answers and contexts set it themselves.
        rerank: Name of the reranker of the best candidates; ``"none"``: no reranking; None: the configured one, for
            hybrid searches.
        rerank_candidates: How many candidates it sees, 1 to 1,000; None: what suits it, at least twice ``top_k``.
        rerank_from: Rerank only where so many candidates or more are found: few need no second look.
        pseudo_relevance: Whether the first results move the query (pseudo-relevance feedback); None: as configured.
        enhance: Whether the configured query enhancements (synonyms, …) run.
        min_score: Drop results whose score is below this.
        collapse_duplicates: Show of passages that say the same only the best; None: as configured.
        mmr_lambda: Balance relevance (1) against variety (0) among the results (Carbonell & Goldstein 1998); None: by
            relevance alone.
        neighbours: Widen each passage by so many chunks before and after it, 0 to 10; times ``top_k`` at most 1,000.
        merge_adjacent: Join results that touch or overlap in one document; there may then be fewer than ``top_k``.
        department: Only documents of one of these departments.
        source: Only documents whose source is one of these.
        tags: Only documents that carry all of these tags.
        metadata_filters: Only documents whose metadata has these values.
        filters: A filter in the full language of `recollect.model.filter`, for instance
            ``{"metadata.year": {"gte": 2024}}``; it holds beside the ones above.
        event_window: Only documents whose event lies within this time before the moment of the search, ``"7d"`` for
            instance (`recollect.model.time.read_duration`). Like the next, it leaves out documents without event time.
        event_time_range: Only documents whose event time, or a part of whose event interval, lies from the first time
            (inclusive) to the second (exclusive); None leaves a side open. Times as `recollect.model.time.read_time`
            takes them: without a zone they are UTC, and ``"7d"`` is that long before the moment of the search.
        ingestion_time_range: Only documents whose version found became known in this range.
        explain: Attach to each result how it came to its rank, and to the reply what was done with the query.
        outline: Look up the headings and page breaks within each passage, for `RetrievedContext.parts`; answers and
            contexts do by themselves.
        use_cache: Whether an equal search of a moment ago may answer.
    """

    mode: str | None = None
    top_k: int | None = None
    fusion: FusionMethod | None = None
    dense_weight: float | None = None
    rrf_k: int | None = None
    candidates: int | None = None
    similarity_threshold: float | None = None
    min_relevance: float | None = None
    relevance_floor: bool = False
    rerank: str | None = None
    rerank_candidates: int | None = None
    rerank_from: int = 0
    pseudo_relevance: bool | None = None
    enhance: bool = True
    min_score: float | None = None
    collapse_duplicates: bool | None = None
    mmr_lambda: float | None = None
    neighbours: int = 0
    merge_adjacent: bool = False
    department: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    metadata_filters: Mapping[str, Any] = field(default_factory=dict)
    filters: Mapping[str, Any] | None = None
    event_window: Duration | None = None
    event_time_range: MomentRange | None = None
    ingestion_time_range: MomentRange | None = None
    explain: bool = False
    outline: bool = False
    use_cache: bool = True


#: What every door knows of each of them, by field.
_DECLARED: Mapping[str, SearchOption] = {
    "mode": SearchOption(
        "Words and meaning (hybrid), meaning only (dense), words only (lexical), or a retriever of your own.",
        _SEARCH,
        metavar="MODE",
    ),
    "top_k": SearchOption("Passages to find, 1 to 1,000.", _SEARCH, short="-k", least=1, most=MAX_TOP_K),
    "fusion": SearchOption("Add normalised scores, or reciprocal ranks.", _SEARCH),
    "dense_weight": SearchOption("Share of the meaning in either fusion, 0 to 1.", _SEARCH, least=0, most=1),
    "rrf_k": SearchOption("The constant k of reciprocal rank fusion.", _SEARCH, least=1, most=MAX_RRF_K),
    "candidates": SearchOption("Passages that each retriever contributes.", _SEARCH, least=1, most=MAX_CANDIDATES),
    "similarity_threshold": SearchOption(
        "Drop passages of a lower cosine similarity, -1 to 1.", _SEARCH, names=("min_similarity",), least=-1, most=1
    ),
    "min_relevance": SearchOption("Drop passages of a lower relevance, 0 to 1; 0: none.", _SEARCH, least=0, most=1),
    "relevance_floor": SearchOption("Nothing, if not even the best passage is relevant enough."),
    "rerank": SearchOption(
        "Reranker: consensus, bm25, best_sentence, late_interaction, cross_encoder, none, or one of your own.",
        _RESULTS,
        metavar="NAME",
    ),
    "rerank_candidates": SearchOption(
        "Passages that the reranker sees.", _RESULTS, least=1, most=MAX_RERANK_CANDIDATES
    ),
    "rerank_from": SearchOption(least=0, most=MAX_CANDIDATES, remote=False),
    "pseudo_relevance": SearchOption("Let the first results move the query.", _RESULTS),
    "enhance": SearchOption(remote=False),
    "min_score": SearchOption("Drop passages of a lower score.", _RESULTS),
    "collapse_duplicates": SearchOption(
        "Of what several documents say in the same words, show only the best.", _RESULTS, names=("collapse",)
    ),
    "mmr_lambda": SearchOption("Balance relevance (1) against variety (0).", _RESULTS, names=("mmr",), least=0, most=1),
    "neighbours": SearchOption(
        "Chunks to show before and after each, 0 to 10; times top_k at most 1,000.",
        _RESULTS,
        least=0,
        most=MAX_NEIGHBOURS,
    ),
    "merge_adjacent": SearchOption("Join passages that touch or overlap.", _RESULTS, names=("merge",)),
    "department": SearchOption("Only documents of one of these departments.", _FILTERS),
    "source": SearchOption("Only documents of one of these sources.", _FILTERS),
    "tags": SearchOption("Only documents with all of these tags.", _FILTERS, names=("tag",)),
    "metadata_filters": SearchOption(
        "Only documents whose metadata has these values.", _FILTERS, names=("where",), metavar="KEY=VALUE"
    ),
    "filters": SearchOption(
        'A filter in the full language, for instance {"metadata.year": {"gte": 2024}}.',
        _FILTERS,
        names=("filter",),
        metavar="JSON",
    ),
    "event_window": SearchOption(
        "Only events of so long before now or before the moment searched, such as 12h, 7d or 3mo.",
        _TIME,
        metavar="DURATION",
    ),
    "event_time_range": SearchOption(
        ("Only events of this time or later.", "Only events before this time."),
        _TIME,
        names=("event_from", "event_to"),
        metavar="TIME",
    ),
    "ingestion_time_range": SearchOption(
        ("Only what became known at this time or later.", "Only what became known before this time."),
        _TIME,
        names=("ingested_from", "ingested_to"),
        metavar="TIME",
    ),
    "explain": SearchOption("Say how each passage came to its rank."),
    "outline": SearchOption(remote=False),
    "use_cache": SearchOption(remote=False),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteOptions(RetrievalOptions):
    """Options of a search with the configured number of passages and mode where none were given."""

    top_k: int = 10
    mode: str = "hybrid"

    @classmethod
    def of(cls, options: RetrievalOptions, *, top_k: int, mode: str) -> CompleteOptions:
        """Complete options.

        Args:
            options: As given.
            top_k: The configured number of passages.
            mode: The configured mode.
        """
        given = {name: getattr(options, name) for name in cls.__dataclass_fields__}
        defaults = {"top_k": top_k, "mode": mode}
        return cls(**given | {name: value for name, value in defaults.items() if given[name] is None})


@cache
def search_options() -> tuple[SearchOption, ...]:
    """Every option of a search, in the order of `RetrievalOptions`."""
    types = get_type_hints(RetrievalOptions)
    return tuple(
        replace(
            _DECLARED[one.name],
            field=one.name,
            type=types[one.name],
            default=one.default if one.default_factory is MISSING else one.default_factory(),
            names=_DECLARED[one.name].names or (one.name,),
        )
        for one in fields(RetrievalOptions)
    )


def options_named(given: Mapping[str, Any]) -> RetrievalOptions:
    """The options of a search by the names that doors have for them; those that are absent are not given.

    Args:
        given: By `SearchOption.names`; a side of a range that is absent, or None, is open.
    """
    found: dict[str, Any] = {}
    for name in given.keys() & _option_names().keys():
        option = _option_names()[name]
        if len(option.names) == 1:
            found[option.field] = given[name]
        elif given[name] is not None:
            found[option.field] = tuple(given.get(side) for side in option.names)
    return RetrievalOptions(**found)


@cache
def _option_names() -> Mapping[str, SearchOption]:
    return {name: option for option in search_options() for name in option.names}


def names_of(options: RetrievalOptions) -> dict[str, Any]:
    """The options that are not their defaults, by the names that doors have for them: `options_named` backwards."""
    found: dict[str, Any] = {}
    for option in search_options():
        value = getattr(options, option.field)
        if value != option.default:
            values = value if option.type == MomentRange | None else (value,)
            found |= {name: one for name, one in zip(option.names, values, strict=True) if one is not None}
    return found


# The times that a search is confined to.

#: Any time.
EVER = DatedRange()


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """What the times of a document must be for a search to find it.

    Attributes:
        event: Its event time, or a part of its event interval, lies in this range.
        ingested: The version found became known in this range.
    """

    event: DatedRange = EVER
    ingested: DatedRange = EVER

    def __bool__(self) -> bool:
        return self is not ALWAYS and bool(self.event or self.ingested)


#: What confines nothing.
ALWAYS = TimeLimits()


def time_limits(options: RetrievalOptions, as_of: datetime | None = None) -> TimeLimits:
    """The times that the options of a search confine it to.

    Args:
        options: ``event_window`` counts back from the moment of the search; both conditions on events hold together.
        as_of: That moment; None: the present.

    Raises:
        UsageError: An option is no length of time, no time or no range.
    """
    if not _confined(options):
        return ALWAYS
    now = as_of or datetime.now(UTC)
    event = EVER
    if options.event_time_range is not None:
        event = read_range(options.event_time_range, now=now, name="event_time_range")
    if options.event_window is not None:
        window = read_duration(options.event_window, name="event_window")
        try:
            # The moment itself belongs to the window: what happens now is not over yet.
            recent = DatedRange(now - window, now + timedelta(microseconds=1))
        except OverflowError as exc:
            raise UsageError(f"event_window reaches back before any calendar: {options.event_window!r}.") from exc
        event = event.within(recent)
        if event.start is not None and event.end is not None and not event.start < event.end:
            raise UsageError("event_window and event_time_range have no time in common: give one of them.")
    ingested = EVER
    if options.ingestion_time_range is not None:
        ingested = read_range(options.ingestion_time_range, now=now, name="ingestion_time_range")
    return TimeLimits(event, ingested)


def at_moment(options: RetrievalOptions, as_of: datetime | None = None) -> RetrievalOptions:
    """The options with every time that is relative to the moment of the search made absolute.

    A search whose times move with the clock asks for something else every time, so that no earlier reply may answer it.

    Args:
        options: As given.
        as_of: The moment of the search; None: the present.

    Raises:
        UsageError: As `time_limits`.
    """
    if not _confined(options):
        return options
    limits = time_limits(options, as_of)
    return replace(
        options,
        event_window=None,
        event_time_range=_pair(limits.event),
        ingestion_time_range=_pair(limits.ingested),
        use_cache=options.use_cache and (as_of is not None or not _moves(options)),
    )


def _confined(options: RetrievalOptions) -> bool:
    given = (options.event_window, options.event_time_range, options.ingestion_time_range)
    return given != (None, None, None)


def _pair(limits: DatedRange) -> MomentRange | None:
    return (limits.start, limits.end) if limits else None


def _moves(options: RetrievalOptions) -> bool:
    if options.event_window is not None:
        return True
    given = [*(options.event_time_range or ()), *(options.ingestion_time_range or ())]
    return any(isinstance(one, str) and is_relative(one) for one in given)


# Options as keywords: `rag.search("annual leave", top_k=3)` and `rag.recall("leave", after=0)`.

_Options = TypeVar("_Options", "RetrievalOptions", "RecallOptions")

# Options of which none is given, made once.
_UNSET: dict[object, Any] = {}


class SearchKeywords(TypedDict, total=False):
    """The attributes of `recollect.RetrievalOptions`, for the type checker; a test compares both."""

    top_k: int | None
    mode: str | None
    fusion: FusionMethod | None
    dense_weight: float | None
    rrf_k: int | None
    candidates: int | None
    similarity_threshold: float | None
    department: tuple[str, ...]
    source: tuple[str, ...]
    tags: tuple[str, ...]
    metadata_filters: Mapping[str, Any]
    filters: Mapping[str, Any] | None
    event_window: Duration | None
    event_time_range: MomentRange | None
    ingestion_time_range: MomentRange | None
    explain: bool
    rerank: str | None
    rerank_candidates: int | None
    rerank_from: int
    pseudo_relevance: bool | None
    enhance: bool
    min_score: float | None
    min_relevance: float | None
    relevance_floor: bool
    collapse_duplicates: bool | None
    mmr_lambda: float | None
    neighbours: int
    merge_adjacent: bool
    outline: bool
    use_cache: bool


class RecallKeywords(TypedDict, total=False):
    """The attributes of `recollect.RecallOptions`, for the type checker; a test compares both."""

    top_k: int
    mode: RecallMode
    before: int
    after: int
    since: datetime | None
    until: datetime | None
    counted: bool


def refined(kind: type[_Options], options: _Options | None, keywords: Mapping[str, Any]) -> _Options:
    """Return options with what is given as keywords, which win; a keyword that is None is not given.

    Args:
        kind: The class of the options.
        options: As given; None: the defaults.
        keywords: By attribute.

    Raises:
        TypeError: There is no such option.
        UsageError: A value is not of the option's type.
    """
    given = {name: value for name, value in keywords.items() if value is not None}
    if not given:
        unset: _Options = options or _UNSET.get(kind) or _UNSET.setdefault(kind, kind())
        return unset
    made = kind(**given) if options is None else replace(options, **given)
    require_fields(made, given)
    return made


# What a search may be asked.


def validate(query: str, options: RetrievalOptions) -> None:
    """Refuse a query or options that make no sense.

    Raises:
        OutOfBoundsError: The query is too long, or a number too small or too large; says what is allowed.
        UsageError: Something else is wrong; says what, and what is allowed.
    """
    require_question(query)
    if options.mode is not None and not isinstance(options.mode, str):
        raise UsageError(f"mode must be a text, not {options.mode!r}.")
    if options.fusion not in (None, "weighted", "rrf"):
        raise UsageError(f"fusion must be weighted or rrf, not {options.fusion!r}.")
    _require_json(options.metadata_filters)
    if options.filters:
        from recollect.model.filter import parse_filter

        parse_filter(options.filters)
    for option in search_options():
        value = getattr(options, option.field)
        if value is not option.default:
            _require_allowed(option, value)
    require_width(options)


def _require_allowed(option: SearchOption, value: object) -> None:
    if option.type in (int, int | None, float, float | None):
        if value is not None or option.type is int:
            _require_number(option, value, whole=option.type in (int, int | None))
    elif option.type in (bool, bool | None):
        if value not in (None, True, False):
            raise UsageError(f"{option.field} must be true or false, not {value!r}.")
    elif option.type == tuple[str, ...]:
        _require_names(option.field, value)


def require_width(options: RetrievalOptions) -> None:
    """Refuse more passages than can be widened; also to be called once the configured ``top_k`` is known.

    Raises:
        OutOfBoundsError: Says how many passages and neighbours are allowed together.
    """
    most = most_passages(options.neighbours)
    if (options.top_k or 0) > most:
        raise OutOfBoundsError(
            f"With neighbours={options.neighbours} a search returns at most {most:,} passages, not {options.top_k:,}. "
            "Lower top_k or neighbours."
        )


def require_question(query: object) -> None:
    """Refuse what is no question.

    Raises:
        OutOfBoundsError: It is too long.
        UsageError: It is no text, or empty.
    """
    if not isinstance(query, str):
        raise UsageError(f"The query must be text, not {query!r}.")
    if not query.strip():
        raise UsageError("The query is empty: ask something.")
    if len(query) > MAX_QUERY_CHARACTERS:
        raise OutOfBoundsError(
            f"The query has {len(query):,} characters; at most {MAX_QUERY_CHARACTERS:,} are allowed."
        )
    if "\0" in query:
        raise UsageError("The query holds a NUL character: remove it.")


def _require_names(name: str, given: object) -> None:
    if not isinstance(given, tuple | list) or not all(isinstance(item, str) and "\0" not in item for item in given):
        raise UsageError(f'{name} must be a tuple of strings, for instance {name}=("one",), not {given!r}.')


def _require_json(given: object) -> None:
    if isinstance(given, dict) and not given:
        return
    # What PostgreSQL's jsonb takes: no NaN, no NUL, no lone surrogates.
    try:
        text = json.dumps(dict(given) if isinstance(given, Mapping) else None, allow_nan=False, ensure_ascii=False)
        text.encode("utf-8")
    except (TypeError, ValueError) as exc:
        raise UsageError(f"metadata_filters must be JSON values by name, not {given!r}: {exc}.") from exc
    if not isinstance(given, Mapping) or "\\u0000" in text:
        raise UsageError(f"metadata_filters must be JSON values by name, without NUL characters, not {given!r}.")


def _require_number(option: SearchOption, value: object, *, whole: bool) -> None:
    name = option.field
    if isinstance(value, bool) or not isinstance(value, numbers.Integral if whole else numbers.Real):
        raise UsageError(f"{name} must be a {'whole ' if whole else ''}number, not {value!r}.")
    low, high = (
        (-math.inf if option.least is None else option.least),
        (math.inf if option.most is None else option.most),
    )
    if not low <= cast("float", value) <= high:
        allowed = f"lie between {low:,} and {high:,}" if math.isfinite(high) else "be a number"
        raise OutOfBoundsError(f"{name} must {allowed}, not {value!r}.")
