"""What a search returns: passages, why they rank where they do, and what it took."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from operator import add
from typing import Annotated, Any, Literal, overload

from recollect.model.document import GENERATED_BY
from recollect.model.outline import Outline, PageBox, PassagePart, outline_of
from recollect.model.record import Public, PublicIfAny, PublicIfKnown, ReadFrom, Record, public, public_if_known


@dataclass(frozen=True, slots=True)
class RetrieverScore(Record):
    """Where one retriever placed a chunk.

    Attributes:
        rank: From 1.
        score: The retriever's own: cosine similarity of embeddings, BM25 of words.
    """

    rank: Public[int]
    score: Public[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchExplain(Record):
    """How a result came to its rank.

    Attributes:
        dense: Its place in the dense retriever (score: cosine similarity), None where that retriever did not find it.
        lexical: Its place in the lexical retriever (score: BM25), None where that retriever did not find it.
        fused_score: What fusion made of both.
        coverage: The share of the query's words that it holds, by their rarity; None where words were not compared.
        rerank_score: The reranker's own score; None where it was not asked.
        moved_from: The rank before it was moved up for the words of the query that it holds; None where it was not.
        preference: What the score was multiplied by in the end because of who asked; None where nobody's preferences
            counted.
    """

    dense: Public[RetrieverScore | None]
    lexical: Public[RetrieverScore | None]
    fused_score: Public[float]
    coverage: PublicIfKnown[float | None] = None
    rerank_score: PublicIfKnown[float | None] = None
    moved_from: PublicIfKnown[int | None] = None
    preference: PublicIfKnown[float | None] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyExplain(Record):
    """What was done with a query, for people who want to know.

    Attributes:
        terms: The query's terms with their weight (inverse document frequency times occurrences), heaviest first;
            terms that the collection lacks have none.
        filter_kept: Documents that the filters keep, None without filters.
        filter_removed: Current documents of the collection that the filters remove.
        removed_by: Each condition in words, and how many documents it would remove by itself; one document may fail
            several.
        enhancements: What each query enhancement did, in words.
        reranker: The reranker's name, None where none was asked.
        rerank_reason: Why its order is not the one shown; empty where it is.
        dropped: Candidates that were left out, by reason.
    """

    terms: Public[tuple[tuple[str, float], ...]] = ()
    filter_kept: Public[int | None] = None
    filter_removed: Public[int | None] = None
    removed_by: Public[tuple[tuple[str, int], ...]] = ()
    enhancements: Public[tuple[str, ...]] = ()
    reranker: Public[str | None] = None
    rerank_reason: Public[str] = ""
    dropped: Public[Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageNote(Record):
    """Why a passage is not the last word.

    Attributes:
        kind: ``superseded``, ``deleted`` or ``expired``: what became of the version that the passage stands in, after
            the moment that was searched; ``newer_document``: there is another document of a later date or edition.
        text: The note for people.
        at: When the version ended, or the date of the newer document; None where that has none.
        document_id: The newer document.
        source: Its path.
        department: Its department.
    """

    kind: Public[Literal["superseded", "deleted", "expired", "newer_document"]]
    text: Public[str]
    at: Public[datetime | None] = None
    document_id: Public[int | None] = None
    source: Public[str | None] = None
    department: Public[str | None] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlsoIn(Record):
    """Another document that says what a passage says.

    Attributes:
        document_id: Of it.
        source: Where it came from.
        title: Of it.
        chunk_id: The chunk that was found of it.
        collection: Where it is, in a search of several collections; None: where the reply says.
        id: The id that it was given (`Document.id`); None: its source identifies it.
    """

    document_id: Public[int]
    source: Public[str]
    title: Public[str]
    chunk_id: int = 0
    collection: Public[str | None] = None
    id: PublicIfKnown[str | None] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievedContext(Record):
    """A passage that a search found.

    Attributes:
        rank: From 1.
        score: What the results are ordered by, best first; comparable within one search only.
        similarity: Cosine similarity to the query, None where it was not computed. Those of different models are not
            comparable.
        relevance: How likely it answers the query, 0 to 1, by its similarity and its words; comparable over queries and
            collections. None where neither is known.
        content: The passage; ``document.content[start_offset:end_offset] == content``.
        section: Titles of the headings that the chunk found stands under, joined by `` > ``; None outside any section.
        page: That the chunk found begins on, from 1; None where the format has no pages.
        version_id: The version of the document that it was cut from, None where that is not known.
        event_time: When what it tells happened or was written.
        chunk_ids: The chunks that it was merged from, in order of their place; empty: ``chunk_id`` alone.
        duplicates: Chunks that say the same and were left out for it, best first.
        also_in: The other documents that say the same, as far as they were found; each once.
        notes: Why it is not the last word, where it is not.
        collection: Where it was found, in a search of several collections; None: where the reply says.
        outline: The headings and pages that its characters stand under and on; None: they were not looked up.
        embedding_model: Which measured ``similarity``; None where none did.
        server: The remote that it was found by (`recollect.Remote`), in whose store it is; None: this one. The numbers
            of its document and chunk are negative then, and hold for one reply: ``source`` names it there.
        id: The id that its document was given (`Document.id`); None: its source identifies it.
    """

    rank: Public[int]
    score: Public[float]
    relevance: Public[float | None] = None
    content: Public[str]
    chunk_id: Public[int]
    document_id: Public[int]
    title: Public[str]
    source: Public[str]
    department: Public[str | None] = None
    section: Public[str | None]
    page: Public[int | None]
    start_offset: Public[int]
    end_offset: Public[int]
    metadata: Public[Mapping[str, Any]]
    tags: tuple[str, ...] = ()
    similarity: float | None = None
    explain: PublicIfKnown[SearchExplain | None] = None
    version_id: PublicIfKnown[int | None] = None
    event_time: datetime | None = None
    chunk_ids: tuple[int, ...] = ()
    duplicates: tuple[int, ...] = ()
    also_in: PublicIfAny[tuple[AlsoIn, ...]] = ()
    notes: PublicIfAny[tuple[PassageNote, ...]] = ()
    collection: PublicIfKnown[str | None] = None
    outline: Annotated[Outline | None, ReadFrom("parts", outline_of)] = None
    embedding_model: str | None = None
    server: PublicIfKnown[str | None] = None
    id: PublicIfKnown[str | None] = None

    @property
    @public_if_known
    def table_header(self) -> str | None:
        """The line that names the columns of the table that it begins in, where it does not hold that line itself."""
        header = self.metadata.get("table_header")
        return header if isinstance(header, str) and header not in self.content else None

    @property
    @public_if_known
    def generated_by(self) -> str | None:
        """The model that has written it, as ``provider/model``: of a picture's description; None: the author has."""
        model = self.metadata.get(GENERATED_BY)
        return model if isinstance(model, str) else None

    @property
    @public
    def parts(self) -> tuple[PassagePart, ...]:
        """Its characters, cut where another section or page begins; one part where no outline was looked up."""
        if self.outline is None:
            return (PassagePart(self.start_offset, self.end_offset, self.section, self.page),)
        parts = self.outline.parts(self.start_offset, self.end_offset)
        if self.outline.headings:
            return parts
        # A chunker finds headings in texts that came without any.
        return tuple(replace(part, section=self.section) for part in parts)

    def boxes(self, start: int, end: int) -> tuple[PageBox, ...]:
        """Where the document's characters from ``start`` to ``end`` stand on their pages, as far as that is known."""
        return () if self.outline is None else self.outline.boxes(start, end)

    def part_at(self, offset: int) -> PassagePart:
        """The part that the document's character at ``offset`` belongs to; of one outside, the nearest."""
        parts = self.parts
        return next((part for part in parts if offset < part.end_offset), parts[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchReply(Record):
    """Everything that one search has to say. Iterating it gives its results, ``len`` their number, ``[0]`` the best.

    Attributes:
        query: As asked.
        collection: The collection searched.
        mode: As run.
        results: Best first.
        timings_ms: Milliseconds by stage.
        paths: Which path each retriever took, for instance ``{"dense": "exact", "lexical": "exact"}``.
        exact: Whether both retrievers are known to have found their best: no index approximated, no bound left open.
        reranked: Whether a reranker had a say; None where none was asked.
        cached: Whether an equal search of a moment ago answered.
        explain: What was done with the query, where that was asked for.
        usage: What a language model took to enhance the query; None where none was asked, as where a reply of a moment
            ago answered.
        warnings: What did not reply, or failed, and is missing from the results.
    """

    query: Public[str]
    collection: Public[str]
    mode: Public[str]
    results: Public[tuple[RetrievedContext, ...]]
    timings_ms: Public[Mapping[str, float]]
    paths: Public[Mapping[str, str]] = field(default_factory=dict)
    exact: Public[bool] = True
    reranked: Public[bool | None] = None
    cached: bool = False
    explain: PublicIfKnown[ReplyExplain | None] = None
    usage: TokenUsage | None = None
    warnings: PublicIfAny[tuple[str, ...]] = ()

    def __iter__(self) -> Iterator[RetrievedContext]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    @overload
    def __getitem__(self, place: int) -> RetrievedContext: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[RetrievedContext, ...]: ...

    def __getitem__(self, place: int | slice) -> RetrievedContext | tuple[RetrievedContext, ...]:
        return self.results[place]


# What language models took.


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage(Record):
    """What an answer took of language models; adds up.

    What embedding and reranking models are asked is not in it: ``recollect requests`` lists every request by its kind.

    Attributes:
        input_tokens: Of all prompts.
        output_tokens: Of all that the model wrote.
        requests: How often it was asked.
        estimated: Whether the model's server did not tell, and the numbers are counted here.
    """

    input_tokens: Public[int]
    output_tokens: Public[int]
    requests: Public[int] = 1
    estimated: Public[bool] = False

    def __add__(self, other: TokenUsage) -> TokenUsage:
        """What both took together."""
        return TokenUsage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            requests=self.requests + other.requests,
            estimated=self.estimated or other.estimated,
        )

    @staticmethod
    def total(usages: Iterable[TokenUsage | None]) -> TokenUsage | None:
        """What several requests took together; None where none was made."""
        made = [usage for usage in usages if usage is not None]
        return reduce(add, made) if made else None


# What texts may say in place of words of a query.
