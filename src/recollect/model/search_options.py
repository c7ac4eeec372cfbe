"""How a search is asked: every option is declared once, and all doors read its name, bounds and words here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, MISSING, dataclass, field, fields, replace
from functools import cache
from typing import Any, Literal, TypeAlias, get_type_hints

from recollect.familiar_names import suggesting
from recollect.model.bounds import MAX_CANDIDATES, MAX_NEIGHBOURS, MAX_RERANK_CANDIDATES, MAX_RRF_K, MAX_TOP_K
from recollect.model.time import Duration, MomentRange

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
        given = {one.name: getattr(options, one.name) for one in fields(options)}
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
    for option in search_options():
        values = [given.get(name) for name in option.names]
        if option.type == MomentRange | None:
            found[option.field] = None if values == [None, None] else tuple(values)
        elif option.names[0] in given:
            found[option.field] = values[0]
    return RetrievalOptions(**found)


def names_of(options: RetrievalOptions) -> dict[str, Any]:
    """The options that are not their defaults, by the names that doors have for them: `options_named` backwards."""
    found: dict[str, Any] = {}
    for option in search_options():
        value = getattr(options, option.field)
        if value != option.default:
            values = value if option.type == MomentRange | None else (value,)
            found |= {name: one for name, one in zip(option.names, values, strict=True) if one is not None}
    return found
