"""From ranked chunks to the passages that are shown: fetched, made distinct and varied, widened, merged."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from recollect.model import CompleteOptions, RetrievedContext, SearchExplain
from recollect.model.chunk import SECTIONS
from recollect.model.passage import AlsoIn
from recollect.retrieval.diversity import collapse_duplicates, mmr
from recollect.retrieval.passages import Stretch, gaps_between, merge_adjacent, widen
from recollect.retrieval.spaces import side_by_side
from recollect.store.identities import names_with_roots

if TYPE_CHECKING:
    from recollect.model import Outline, Scope
    from recollect.retrieval.candidates import CandidateSource
    from recollect.retrieval.targets import Searched
    from recollect.store.database import Database
    from recollect.store.search import SearchRepository
    from recollect.store.search_rows import Floats, PassageRow, Span, StretchRow


_Named = TypeVar("_Named", RetrievedContext, AlsoIn)


Scored = tuple[int, float]


ExplainChunk = Callable[[int, float], SearchExplain]


_WORD = re.compile(r"\w{3,}")


# How many times `top_k` chunks are looked at where some of them may be left out.
_SPARE = 3


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of the chunks of a ranking beside their scores, and how they are read.

    Attributes:
        outlined: With their outlines.
        words: Beginnings of the query's words, which tell under which heading a chunk answers it.
    """

    similarities: Mapping[int, float]
    relevance: Mapping[int, float]
    models: Mapping[int, str]
    explain: ExplainChunk | None
    outlined: bool
    words: frozenset[str]


class Shaper:
    """Turns a ranking into results.

    Args:
        collapse: Whether duplicates are collapsed where the options leave it open.
    """

    def __init__(self, *, collapse: bool) -> None:
        self._collapse = collapse

    def shape(
        self,
        reader: ChunkReader,
        options: CompleteOptions,
        ranking: Sequence[Scored],
        *,
        query: str,
        similarities: Mapping[int, float],
        relevance: Mapping[int, float],
        explain: ExplainChunk | None,
        dropped: dict[str, int],
    ) -> list[RetrievedContext]:
        """The results of a search, best first, ranked from 1.

        Args:
            reader: Reads texts and vectors of what was found.
            options: What was asked for.
            ranking: (chunk_id, score), best first.
            query: As asked.
            similarities: Cosine similarities, where they are known.
            relevance: Likewise.
            explain: Says how a chunk came to its score; None where nobody asked.
            dropped: Counts what is left out, by reason.
        """
        collapse = self._collapse if options.collapse_duplicates is None else options.collapse_duplicates
        wanted = options.top_k * _SPARE if options.mmr_lambda is not None else options.top_k
        # Passages that are shown as they are read are outlined in the same statement.
        changed = options.mmr_lambda is not None or options.neighbours or options.merge_adjacent
        outlined = options.outline and not changed
        known = _Known(similarities, relevance, reader.models, explain, outlined=outlined, words=_beginnings(query))
        found = self._fetch(reader, ranking, wanted, known, dropped)
        if collapse:
            distinct = _distinct(found, dropped)
            while len(distinct) < options.top_k and len(found) == wanted < len(ranking):
                # Something was left out: look further down for others.
                wanted *= _SPARE
                found = self._fetch(reader, ranking, wanted, known, dropped)
                distinct = _distinct(found, dropped)
            found = distinct
        if options.mmr_lambda is not None:
            found = self._varied(reader, found, options)
        found = found[: options.top_k]
        if options.neighbours:
            found = self._widened(reader, found, options.neighbours)
        if options.merge_adjacent:
            found = self._merged(reader, found)
        if options.outline and not outlined:
            found = self._outlined(reader, found)
        return [
            passage if passage.rank == rank else replace(passage, rank=rank) for rank, passage in enumerate(found, 1)
        ]

    def _fetch(
        self,
        reader: ChunkReader,
        ranking: Sequence[Scored],
        wanted: int,
        known: _Known,
        dropped: dict[str, int],
    ) -> list[RetrievedContext]:
        found: list[RetrievedContext] = []
        shown: set[tuple[int, int, int]] = set()
        start = same_parent = 0
        # Chunks that share a parent make one passage, so more chunks may be needed than passages are wanted.
        while len(found) < wanted and start < len(ranking):
            step = ranking[start : start + wanted]
            start += len(step)
            rows = reader.passages([chunk_id for chunk_id, _ in step], outlined=known.outlined)
            for chunk_id, score in step:
                row = rows.get(chunk_id)
                if row is None or len(found) == wanted:
                    continue
                span = (row.version_id, row.start_offset, row.end_offset)
                if span in shown:
                    same_parent += 1
                    continue
                shown.add(span)
                found.append(_context(row, len(found) + 1, score, known))
        dropped["same parent"] = same_parent
        return found

    def _varied(
        self, reader: ChunkReader, found: list[RetrievedContext], options: CompleteOptions
    ) -> list[RetrievedContext]:
        vectors = reader.vectors([passage.chunk_id for passage in found])
        known = [passage for passage in found if passage.chunk_id in vectors]
        if not known or options.mmr_lambda is None:
            return found
        matrix = side_by_side(
            [vectors[one.chunk_id] for one in known], [reader.models.get(one.chunk_id) for one in known]
        )
        scores = [passage.score for passage in known]
        order = mmr(scores, matrix, lambda_=options.mmr_lambda, top_k=min(options.top_k, len(known)))
        return [known[index] for index in order]

    def _widened(self, reader: ChunkReader, found: list[RetrievedContext], neighbours: int) -> list[RetrievedContext]:
        rows = reader.stretches([passage.chunk_id for passage in found], neighbours=neighbours)
        stretches = {
            chunk_id: Stretch(row.start_offset, row.end_offset, row.content, row.page) for chunk_id, row in rows.items()
        }
        return widen(found, stretches)

    def _merged(self, reader: ChunkReader, found: list[RetrievedContext]) -> list[RetrievedContext]:
        ranked = [replace(passage, rank=rank) for rank, passage in enumerate(found, 1)]
        gaps = [gap for gap in gaps_between(ranked) if gap.version_id is not None]
        wanted = [(gap.version_id, gap.start_offset, gap.end_offset) for gap in gaps if gap.version_id is not None]
        texts = reader.spans(wanted)
        known = {gap: texts[span] for gap, span in zip(gaps, wanted, strict=True) if span in texts}
        return merge_adjacent(ranked, gap_texts=known)

    def _outlined(self, reader: ChunkReader, found: list[RetrievedContext]) -> list[RetrievedContext]:
        spans = [(passage.version_id or 0, passage.start_offset, passage.end_offset) for passage in found]
        outlines = reader.outlines(spans)
        return [replace(passage, outline=outlines.get(span)) for passage, span in zip(found, spans, strict=True)]


def _distinct(found: list[RetrievedContext], dropped: dict[str, int]) -> list[RetrievedContext]:
    """Leave out what another document says in the same words: copies of files, versions side by side.

    What one document repeats stays: there it matters where it stands.
    """
    left_out: dict[int, int] = {}
    for group in collapse_duplicates([passage.content for passage in found]):
        for copy in group.duplicates:
            if found[copy].document_id != found[group.index].document_id:
                left_out[copy] = group.index
    dropped["duplicate"] = len(left_out)
    copies: dict[int, list[RetrievedContext]] = {}
    for copy, original in left_out.items():
        copies.setdefault(original, []).append(found[copy])
    return [
        replace(
            passage,
            duplicates=tuple(copy.chunk_id for copy in copies[index]),
            also_in=_also_in(copies[index]),
        )
        if index in copies
        else passage
        for index, passage in enumerate(found)
        if index not in left_out
    ]


def _also_in(copies: Sequence[RetrievedContext]) -> tuple[AlsoIn, ...]:
    documents: dict[int, AlsoIn] = {}
    for copy in copies:
        also = AlsoIn(
            document_id=copy.document_id, source=copy.source, id=copy.id, title=copy.title, chunk_id=copy.chunk_id
        )
        documents.setdefault(copy.document_id, also)
    return tuple(documents.values())


def _beginnings(text: str) -> frozenset[str]:
    return frozenset(word[:5] for word in _WORD.findall(text.casefold()))


def _section(row: PassageRow, words: frozenset[str]) -> str | None:
    """The headings above the part of a chunk that holds most of the query's words; of equal ones the first."""
    starts = [(row.start_offset, " > ".join(row.section)), *row.metadata.get(SECTIONS, ())]
    ends = [*(start for start, _ in starts[1:]), row.end_offset]
    parts = (
        (len(words & _beginnings(row.content[start - row.start_offset : end - row.start_offset])), section)
        for (start, section), end in zip(starts, ends, strict=True)
    )
    return max(parts, key=lambda part: part[0])[1] or None


def with_roots(
    database: Database,
    origins: Sequence[tuple[Searched, Set[int]]],
    results: Sequence[RetrievedContext],
    namesakes: Set[int],
) -> list[RetrievedContext]:
    """The results with their roots' names in the sources that documents of several roots have.

    Args:
        database: The store's connections.
        origins: The collections that were searched, and the chunks found in each.
        results: What was found.
        namesakes: Chunks of documents whose name another document of their collection has too.
    """
    sources = {passage.chunk_id: passage.source for passage in results}
    sources |= {also.chunk_id: also.source for passage in results for also in passage.also_in}
    names: dict[int, str] = {}
    for searched, chunk_ids in origins:
        uris = {source for chunk_id, source in sources.items() if chunk_id in namesakes and chunk_id in chunk_ids}
        if uris:
            names |= names_with_roots(database, searched.scope, searched.collection, sorted(uris))

    def named(one: _Named) -> _Named:
        return replace(one, source=names.get(one.document_id, one.source))

    return [replace(named(passage), also_in=tuple(map(named, passage.also_in))) for passage in results]


def _context(row: PassageRow, rank: int, score: float, known: _Known) -> RetrievedContext:
    measured = row.chunk_id in known.similarities
    return RetrievedContext(
        rank=rank,
        score=score,
        content=row.content,
        chunk_id=row.chunk_id,
        document_id=row.document_id,
        title=row.title,
        source=row.source,
        id=row.id,
        section=_section(row, known.words) if SECTIONS in row.metadata else " > ".join(row.section) or None,
        page=row.page,
        start_offset=row.start_offset,
        end_offset=row.end_offset,
        metadata={name: value for name, value in row.metadata.items() if name != SECTIONS},
        department=row.department,
        tags=row.tags,
        similarity=known.similarities.get(row.chunk_id),
        relevance=known.relevance.get(row.chunk_id),
        explain=known.explain(row.chunk_id, score) if known.explain else None,
        version_id=row.version_id,
        event_time=row.event_time,
        outline=row.outline,
        embedding_model=known.models.get(row.chunk_id) if measured else None,
    )


# Reads what is stored of the chunks that one search found.


_Key = TypeVar("_Key")


_Value = TypeVar("_Value")


class ChunkReader:
    """Reads chunks as whom they were found: no statement sees two tenants, a search may.

    Args:
        repository: Runs the statements.
        found: The collections that were searched, and the chunks that were found in each.

    Attributes:
        models: The embedding model of each chunk.
        namesakes: Chunks that were read of documents whose name another document of their collection has too.
    """

    def __init__(
        self,
        repository: SearchRepository,
        found: Sequence[tuple[Searched, Collection[int]]],
    ) -> None:
        self._repository = repository
        self.models = {chunk_id: one.collection.embedding_model for one, chunks in found for chunk_id in chunks}
        self.namesakes: set[int] = set()
        self._scope = found[0][0].scope
        self._scopes = {one.scope.tenant_id: one.scope for one, _ in found}
        several = len(self._scopes) > 1
        self._tenants = {c: one.scope.tenant_id for one, chunks in found for c in chunks} if several else {}
        self._spaces: dict[int, list[int]] = {}
        for one, _ in found:
            self._spaces.setdefault(one.scope.tenant_id, []).append(one.collection.space_id)
        self._of_versions: dict[int, int] = {}

    def passages(self, chunk_ids: Sequence[int], *, outlined: bool = False) -> dict[int, PassageRow]:
        """What is shown of given chunks, by chunk id; ``outlined``: with what `outlines` gives of the same spans."""
        read = partial(self._repository.passages, outlined=outlined)
        rows = self._each(chunk_ids, read, self._tenants.__getitem__)
        self.namesakes |= {chunk_id for chunk_id, row in rows.items() if row.has_namesake}
        if self._tenants:
            self._of_versions |= {row.version_id: self._tenants[chunk_id] for chunk_id, row in rows.items()}
        return rows

    def vectors(self, chunk_ids: Sequence[int]) -> dict[int, Floats]:
        """Stored vectors of given chunks."""

        def read(scope: Scope, own: Sequence[int]) -> dict[int, Floats]:
            return self._repository.vectors(scope, own, space_ids=self._spaces[scope.tenant_id])

        # Read together, vectors are of one length.
        of_model: dict[str | None, list[int]] = {}
        for chunk_id in chunk_ids:
            of_model.setdefault(self.models.get(chunk_id), []).append(chunk_id)
        parts = [self._each(own, read, self._tenants.__getitem__) for own in of_model.values()]
        return {chunk_id: vector for part in parts for chunk_id, vector in part.items()}

    def similarities(self, source: CandidateSource, embedding: Floats, chunk_ids: Sequence[int]) -> dict[int, float]:
        """Cosine similarities of given chunks."""

        def read(scope: Scope, own: Sequence[int]) -> dict[int, float]:
            return source.similarities(scope, embedding, own, space_ids=self._spaces[scope.tenant_id])

        return self._each(chunk_ids, read, self._tenants.__getitem__)

    def departments(self, scope: Scope, chunk_ids: Sequence[int]) -> dict[int, str | None]:
        """The departments of the documents of given chunks, those of the scope's tenant."""
        own = [chunk_id for chunk_id in chunk_ids if self._tenants.get(chunk_id, scope.tenant_id) == scope.tenant_id]
        return self._repository.departments(scope, own)

    def stretches(self, chunk_ids: Sequence[int], *, neighbours: int) -> dict[int, StretchRow]:
        """Given chunks with so many chunks before and after them."""

        def read(scope: Scope, own: Sequence[int]) -> dict[int, StretchRow]:
            return self._repository.stretches(scope, own, neighbours=neighbours)

        return self._each(chunk_ids, read, self._tenants.__getitem__)

    def spans(self, wanted: Sequence[Span]) -> dict[Span, str]:
        """The characters of versions whose passages were read."""
        return self._each(wanted, self._repository.spans, self._tenant_of)

    def outlines(self, spans: Sequence[Span]) -> dict[Span, Outline]:
        """What tells where the characters of versions stand whose passages were read."""
        return self._each(spans, self._repository.outlines, self._tenant_of)

    def _tenant_of(self, span: Span) -> int:
        return self._of_versions[span[0]]

    def _each(
        self,
        keys: Sequence[_Key],
        read: Callable[[Scope, Sequence[_Key]], dict[_Key, _Value]],
        tenant_of: Callable[[_Key], int],
    ) -> dict[_Key, _Value]:
        if not self._tenants:
            return read(self._scope, keys)
        grouped: dict[int, list[_Key]] = {}
        for key in keys:
            grouped.setdefault(tenant_of(key), []).append(key)
        parts = [read(self._scopes[tenant_id], own) for tenant_id, own in grouped.items()]
        return {key: value for part in parts for key, value in part.items()}
