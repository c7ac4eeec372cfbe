"""Ranked chunks as passages: widened, merged, told apart from copies, and noted where a newer text is there."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from recollect.model import CompleteOptions, Outline, PassageNote, RetrievedContext, Scope, SearchExplain
from recollect.model.document import SECTIONS
from recollect.model.passage import AlsoIn
from recollect.retrieval.candidates import OutdatedError
from recollect.retrieval.diversity import duplicates_of, mmr, side_by_side
from recollect.retrieval.passages import Stretch, gaps_between, merge_adjacent, widen
from recollect.store.search import names_with_roots

if TYPE_CHECKING:
    from recollect.retrieval.candidates import CandidateSource, Searched
    from recollect.store.database import Database
    from recollect.store.past import Sibling, StalenessRepository, VersionEnd
    from recollect.store.search import Floats, PassageRow, SearchRepository, Span, StretchRow


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
        exact: Chunks at the front that hold every word of the query.
        written: Finds the word that the query is, in the form in which it is written; None: it is several, or one chunk
            at most holds it.
    """

    similarities: Mapping[int, float]
    relevance: Mapping[int, float]
    models: Mapping[int, str]
    explain: ExplainChunk | None
    outlined: bool
    words: frozenset[str]
    exact: Collection[int]
    written: re.Pattern[str] | None


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
        exact: Collection[int] = (),
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
            exact: The first chunks of the ranking, if they hold every word of the query: of a query that is one word,
                those come first that have it as it is written, not in another form.
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
        known = _Known(
            similarities,
            relevance,
            reader.models,
            explain,
            outlined=outlined,
            words=_beginnings(query),
            exact=exact,
            written=_as_written(query) if len(exact) > 1 else None,
        )
        if known.written is not None:
            wanted = max(wanted, len(exact))
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
        return found if known.written is None else _in_the_form(known.written, found, known.exact)

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


def _as_written(query: str) -> re.Pattern[str] | None:
    """What finds the word that a query is; None: it is several."""
    words = query.split()
    return re.compile(rf"(?<!\w){re.escape(words[0])}(?!\w)", re.IGNORECASE) if len(words) == 1 else None


def _in_the_form(
    written: re.Pattern[str], found: Sequence[RetrievedContext], exact: Collection[int]
) -> list[RetrievedContext]:
    """The passages with those first that hold a word as it is written; scores stay where they are."""
    ordered = sorted(found, key=lambda one: not (one.chunk_id in exact and written.search(one.content)))
    return [replace(one, score=other.score) for one, other in zip(ordered, found, strict=True)]


def _distinct(found: list[RetrievedContext], dropped: dict[str, int]) -> list[RetrievedContext]:
    """Leave out what another document says in the same words: copies of files, versions side by side.

    What one document repeats stays: there it matters where it stands.
    """
    left_out = {
        copy: original
        for copy, original in duplicates_of([passage.content for passage in found]).items()
        if found[copy].document_id != found[original].document_id
    }
    dropped["duplicate"] = len(left_out)
    if not left_out:
        return found
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
    return frozenset([word[:5] for word in _WORD.findall(text.casefold())])


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
    measured, parts = row.chunk_id in known.similarities, SECTIONS in row.metadata
    return RetrievedContext(
        rank=rank,
        score=score,
        content=row.content,
        chunk_id=row.chunk_id,
        document_id=row.document_id,
        title=row.title,
        source=row.source,
        id=row.id,
        section=_section(row, known.words) if parts else " > ".join(row.section) or None,
        page=row.page,
        start_offset=row.start_offset,
        end_offset=row.end_offset,
        metadata={name: value for name, value in row.metadata.items() if name != SECTIONS} if parts else row.metadata,
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
        current: Whether what was searched is known to be as it was looked up; see `Searched.record`.
        settled: Whether what was read last came with the revisions by which each principal's rights are known, so that
            all of it was theirs to read; where nobody in particular asks, it always is.
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
        self._revisions: dict[int, dict[int, int]] = {}
        for one, _ in found:
            if one.scope.principal is not None:
                own = self._revisions.setdefault(one.scope.tenant_id, {})
                own[one.collection.collection_id] = one.collection.revision
        self.settled = not self._revisions
        first = found[0][0]
        self._looked_up = None if first.record is None else (first.collection.name, first.record)
        self.current = self._looked_up is None

    def passages(self, chunk_ids: Sequence[int], *, outlined: bool = False) -> dict[int, PassageRow]:
        """What is shown of given chunks, by chunk id; ``outlined``: with what `outlines` gives of the same spans.

        Raises:
            OutdatedError: The collection is not as it was remembered.
        """

        def read(scope: Scope, own: Sequence[int]) -> dict[int, PassageRow]:
            revisions = self._revisions.get(scope.tenant_id, {})
            return self._repository.passages(
                scope, own, outlined=outlined, revisions=revisions, looked_up=self._looked_up
            )

        # Of one tenant, which is the rule, without a step between.
        rows = self._each(chunk_ids, read, self._tenants.__getitem__) if self._tenants else read(self._scope, chunk_ids)
        if self._looked_up is not None and rows:
            if not all(row.current for row in rows.values()):
                raise OutdatedError
            self.current = True
        self.namesakes |= {chunk_id for chunk_id, row in rows.items() if row.has_namesake}
        if self._revisions:
            self.settled = bool(rows) and all(row.settled for row in rows.values())
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

    def read_on(self) -> None:
        """Something is shown that is read behind the passages, when rights may have changed again."""
        self.settled = not self._revisions

    def stretches(self, chunk_ids: Sequence[int], *, neighbours: int) -> dict[int, StretchRow]:
        """Given chunks with so many chunks before and after them."""
        self.read_on()

        def read(scope: Scope, own: Sequence[int]) -> dict[int, StretchRow]:
            return self._repository.stretches(scope, own, neighbours=neighbours)

        return self._each(chunk_ids, read, self._tenants.__getitem__)

    def spans(self, wanted: Sequence[Span]) -> dict[Span, str]:
        """The characters of versions whose passages were read."""
        self.read_on()
        return self._each(wanted, self._repository.spans, self._tenant_of)

    def outlines(self, spans: Sequence[Span]) -> dict[Span, Outline]:
        """What tells where the characters of versions stand whose passages were read."""
        self.read_on()
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


# Notes on passages that are not the last word: superseded versions, and newer documents that cover the same.
#
# They are made of the few results of a search, after ranking, and change nothing of it. In the present a statement
# runs only where a result's path names an edition; in the past, one always does.


#: Results beyond these get no notes.
MOST_RESULTS = 50


class StalenessNotes:
    """Adds notes to results. Safe to share between threads.

    Args:
        repository: Looks up what became of versions, and the other documents of an edition group.
    """

    def __init__(self, repository: StalenessRepository) -> None:
        self._repository = repository

    def annotate(
        self, reader: ChunkReader, origins: Sequence[tuple[Searched, Set[int]]], results: Sequence[RetrievedContext]
    ) -> list[RetrievedContext]:
        """The results, those with a note replaced.

        Args:
            reader: Read them.
            origins: The collections that were searched, as whom and as of when, and the chunks found in each.
            results: Best first.
        """
        first, rest = list(results[:MOST_RESULTS]), list(results[MOST_RESULTS:])
        notes: dict[int, list[PassageNote]] = {}
        found = [(searched, [one for one in first if one.chunk_id in chunk_ids]) for searched, chunk_ids in origins]
        for one, end in self._ended(reader, found):
            notes.setdefault(one.chunk_id, []).append(_ended(end))
        for chunk_id, note in self._newer(reader, found, first).items():
            notes.setdefault(chunk_id, []).append(note)
        if not notes:
            return [*first, *rest]
        annotated = [replace(one, notes=tuple(notes[one.chunk_id])) if one.chunk_id in notes else one for one in first]
        return [*annotated, *rest]

    def _ended(
        self, reader: ChunkReader, found: Sequence[tuple[Searched, Sequence[RetrievedContext]]]
    ) -> Iterator[tuple[RetrievedContext, VersionEnd]]:
        for scope in {searched.scope.tenant_id: searched.scope for searched, _ in found}.values():
            own = [one for searched, those in found if searched.scope.tenant_id == scope.tenant_id for one in those]
            if scope.as_of is None or not own:
                continue
            reader.read_on()
            ends = self._repository.endings(scope, [one.version_id for one in own if one.version_id is not None])
            for one in own:
                if one.version_id is not None and (end := ends.get(one.version_id)) is not None:
                    yield one, end

    def _newer(
        self,
        reader: ChunkReader,
        found: Sequence[tuple[Searched, Sequence[RetrievedContext]]],
        results: Sequence[RetrievedContext],
    ) -> dict[int, PassageNote]:
        siblings: dict[int, list[Sibling]] = {}
        for searched, own in found:
            editions = [(one, edition_of(one.source)) for one in own]
            named = {one.chunk_id: one.document_id for one, edition in editions if edition.dates or edition.versions}
            if named:
                reader.read_on()
                siblings |= self._repository.siblings(searched.scope, searched.collection, named)
        newer: dict[int, PassageNote] = {}
        for one in results:
            note = _newest_sibling(one, siblings[one.chunk_id]) if one.chunk_id in siblings else None
            if note is None and one.event_time is not None:
                note = _newer_result(one, one.event_time, results)
            if note is not None:
                newer[one.chunk_id] = note
        return newer


def _ended(end: VersionEnd) -> PassageNote:
    date = end.at.date().isoformat()
    if end.expired:
        return PassageNote(kind="expired", text=f"expired on {date}", at=end.at)
    if end.replaced:
        return PassageNote(kind="superseded", text=f"superseded on {date}", at=end.at)
    return PassageNote(kind="deleted", text=f"deleted on {date}", at=end.at)


def _newest_sibling(passage: RetrievedContext, siblings: Sequence[Sibling]) -> PassageNote | None:
    own = edition_of(passage.source)
    newest: Sibling | None = None
    for sibling in siblings:
        theirs = edition_of(sibling.source)
        if not is_older(own, passage.event_time, theirs, sibling.event_time):
            continue
        # What has a month or a day in its name may be one of many that each tell something else.
        if own.serial and not covers_the_same(passage.content, sibling.text):
            continue
        best = None if newest is None else edition_of(newest.source)
        if best is None or newest is None or is_older(best, newest.event_time, theirs, sibling.event_time):
            newest = sibling
    if newest is None:
        return None
    covered = covers_the_same(passage.content, newest.text)
    return _newer_document(newest, covered=covered)


def _newer_result(
    passage: RetrievedContext, event_time: datetime, results: Sequence[RetrievedContext]
) -> PassageNote | None:
    """Of the other results, the newest that has the same title, is of a later date and covers the same."""
    title = edition_of(passage.title, path=False).group
    newest: RetrievedContext | None = None
    for other in results:
        if other.document_id == passage.document_id or other.event_time is None:
            continue
        least = event_time if newest is None or newest.event_time is None else newest.event_time
        if other.event_time.date() <= least.date() or edition_of(other.title, path=False).group != title:
            continue
        if title and covers_the_same(passage.content, other.content):
            newest = other
    if newest is None:
        return None
    return _newer_document(newest, covered=True)


def _newer_document(newer: Sibling | RetrievedContext, *, covered: bool) -> PassageNote:
    label = newer.event_time.date().isoformat() if newer.event_time is not None else edition_of(newer.source).label
    dated = f" dated {label}" if label else ""
    what = f"a newer document{dated} covers this" if covered else f"there is a newer edition of this document{dated}"
    return PassageNote(
        kind="newer_document",
        text=f"{what}: {newer.source}",
        at=newer.event_time,
        document_id=newer.document_id,
        source=newer.source,
        department=newer.department,
    )


# Editions of documents, as their paths and titles tell them: years, dates, versions. Pure.

_DATE = re.compile(
    r"(?<!\d)(?P<year>19\d\d|20\d\d)"
    r"(?:(?P<gap>[-_.]?)(?P<month>0[1-9]|1[0-2])(?:(?P=gap)(?P<day>0[1-9]|[12]\d|3[01]))?)?(?!\d)"
)
_VERSION = re.compile(r"(?<![a-z0-9])(?:version|ver|rev|v)[-_. ]?(?P<number>\d{1,3}(?:[._]\d{1,3}){0,2})(?![a-z0-9])")
_EXTENSION = re.compile(r"\.[a-z0-9]{1,5}$")
_GAPS = re.compile(r"[-_.,;:()\[\] ]+")
_WORDS = re.compile(r"[^\W\d_]{3,}")

#: Passages cover the same where the smaller vocabulary is shared to this degree; numbers count for nothing.
SAME_SUBJECT = 0.5
_FEWEST_WORDS = 5


@dataclass(frozen=True, slots=True)
class Edition:
    """What a name says of which edition it is.

    Attributes:
        group: The name without it: equal for the editions of one thing.
        dates: Year, month and day, as far as they are named.
        versions: Numbers of the version.
        label: As the name writes them.
    """

    group: str
    dates: tuple[int, ...]
    versions: tuple[int, ...]
    label: str

    @property
    def named(self) -> bool:
        """Whether the name says anything."""
        return bool(self.dates or self.versions)

    @property
    def serial(self) -> bool:
        """Whether it names a month or a day, as minutes, reports and logs do."""
        return len(self.dates) > 1

    def older_than(self, other: Edition) -> bool | None:
        """Whether the other one came later; None where the names do not tell.

        A name without an edition stands for the newest: ``policy.md`` beside ``policy-2023.md``.
        """
        if not self.group or self.group != other.group or not self.named:
            return None
        if not other.named:
            return True
        if bool(self.dates) != bool(other.dates) or bool(self.versions) != bool(other.versions):
            return None
        mine, yours = (self.dates, self.versions), (other.dates, other.versions)
        return None if mine == yours else mine < yours


@lru_cache(maxsize=4_096)
def edition_of(name: str, *, path: bool = True) -> Edition:
    """Read an edition.

    Args:
        name: A path, or a title.
        path: Whether it is a path, whose extension does not count.
    """
    rest = _EXTENSION.sub("", name.casefold()) if path else name.casefold()
    dates: list[int] = []
    versions: list[int] = []
    labels: list[str] = []

    def date(match: re.Match[str]) -> str:
        dates.extend(int(part) for part in match.group("year", "month", "day") if part)
        labels.append("-".join(part for part in match.group("year", "month", "day") if part))
        return " "

    def version(match: re.Match[str]) -> str:
        versions.extend(int(part) for part in re.split(r"[._]", match["number"]))
        labels.append(f"version {match['number'].replace('_', '.')}")
        return " "

    rest = _VERSION.sub(version, rest)
    rest = _DATE.sub(date, rest)
    group = "/".join(_GAPS.sub(" ", part).strip() for part in rest.split("/"))
    return Edition(group, tuple(dates), tuple(versions), ", ".join(labels))


def covers_the_same(one: str, other: str) -> bool:
    """Whether two passages are about the same: they share half of the smaller one's words, or more."""
    first, second = (set(_WORDS.findall(text.casefold())) for text in (one, other))
    smaller = min(len(first), len(second))
    return smaller >= _FEWEST_WORDS and len(first & second) >= SAME_SUBJECT * smaller


def is_older(one: Edition, one_time: datetime | None, other: Edition, other_time: datetime | None) -> bool:
    """Whether one document of an edition group is older than another: by its name, and not against its dates."""
    by_name = one.older_than(other)
    if by_name is None:
        return False
    contradicted = one_time is not None and other_time is not None and other_time < one_time
    # A name without an edition is no more than a habit; of two that name theirs, the names decide.
    return by_name and not (contradicted and not other.named)
