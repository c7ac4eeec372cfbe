"""Searches of chunks by vectors and by words, and what is read of those that are found."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from types import MappingProxyType
from typing import Any, LiteralString, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from pgvector import HalfVector, SparseVector
from psycopg.rows import TupleRow

from recollect.model import Heading, Outline, PageSpan, Scope
from recollect.model.collection import Collection
from recollect.model.source import told_apart
from recollect.store.connections import DEFAULT_EF_SEARCH
from recollect.store.database import Database, Repository
from recollect.store.database import rows as _rows
from recollect.store.past import PastParts
from recollect.store.rights import access_params, may_read_version
from recollect.store.sql import queries
from recollect.store.wire import halfvecs, sparsevec_batch

# What searches read of chunks, and which rows they look through: the forms that retrieval works with.


#: pgvector's sparse vectors have at most this many dimensions; lexemes are numbers from 1 to it.
LEXEME_SPACE = 1_000_000_000


_NOTHING: Mapping[int, int] = MappingProxyType({})


#: A version of a document, and offsets in its content: from, and up to.
Span = tuple[int, int, int]


Floats = npt.NDArray[np.float32]


Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class LexicalRow:
    """What searches by words read of a chunk.

    Attributes:
        length: The chunk's length in terms.
        lexemes: int32 array, ascending.
        weights: float32 array of BM25 document weights, parallel to ``lexemes``.
    """

    length: int
    lexemes: Ints
    weights: Floats


@dataclass(frozen=True, slots=True)
class LexicalRows:
    """What searches by words read of many chunks, laid out for scoring them at once.

    Attributes:
        chunk_ids: Of n chunks.
        lengths: float64 array of shape (n,): each chunk's length in terms.
        counts: int32 array of shape (n,): how many distinct lexemes each chunk has.
        lexemes: int32 array of shape (counts.sum(),): the first chunk's, then the second's, …
        weights: float32 array parallel to ``lexemes``: BM25 document weights.
    """

    chunk_ids: list[int]
    lengths: npt.NDArray[np.float64]
    counts: Ints
    lexemes: Ints
    weights: Floats

    @classmethod
    def read(cls, found: Sequence[TupleRow]) -> LexicalRows:
        """From rows of (chunk_id, length, weights as sent)."""
        counts, indices, weights = sparsevec_batch([row[2] for row in found])
        lengths = np.array([row[1] for row in found], dtype=np.float64)
        return cls([row[0] for row in found], lengths, counts, indices + 1, weights)

    def __len__(self) -> int:
        return len(self.chunk_ids)

    def joined(self, more: LexicalRows) -> LexicalRows:
        """These, and then those; a chunk that is in both is there twice."""
        return LexicalRows(
            [*self.chunk_ids, *more.chunk_ids],
            np.concatenate([self.lengths, more.lengths]),
            np.concatenate([self.counts, more.counts]),
            np.concatenate([self.lexemes, more.lexemes]),
            np.concatenate([self.weights, more.weights]),
        )


@dataclass(frozen=True, slots=True)
class RowSelection:
    """Which rows of a collection are looked through, of those that the scope's moment and the caller's rights leave.

    Attributes:
        version_ids: Only chunks of these document versions; None: of all.
        past: Part by part, each through its own indexes; None: all as one.
    """

    version_ids: list[int] | None = None
    past: PastParts | None = None

    def params(self, scope: Scope, collection: Collection) -> dict[str, Any]:
        """The parameters of a ``row_selection``."""
        past = self.past
        starts = None if past is None else [*(["infinity"] if past.current else []), *past.starts]
        return {
            **collection_params(scope, collection),
            "as_of": scope.as_of,
            "starts": starts,
            "ends": None if past is None else [*(["infinity"] if past.current else []), *past.ends],
            "beside": None if past is None else past.version_ids,
            "version_ids": self.version_ids,
        }


EVERY_ROW = RowSelection()


@dataclass(frozen=True, slots=True)
class CandidateRows:
    """The chunks that one way of searching found, with what the other way stores of each.

    Attributes:
        chunk_ids: Best first.
        similarities: Cosine similarities of these chunks, where a vector was given.
        lexical: Their lexical rows, where they were asked for.
        vectors: Their stored vectors, where they were asked for.
    """

    chunk_ids: list[int]
    similarities: dict[int, float]
    lexical: LexicalRows
    vectors: dict[int, Floats]


@dataclass(frozen=True, slots=True)
class BothRows:
    """The chunks that both ways of searching found, and the rows of those beside them.

    Attributes:
        nearest: By meaning.
        worded: By words.
        beside: As `SearchRepository.beside` gives them for all of these; none where no context is wanted.
    """

    nearest: CandidateRows
    worded: CandidateRows
    beside: LexicalRows


class PassageRow(NamedTuple):
    """What is shown of a chunk (its parent's span where it has one).

    Attributes:
        settled: Whether the collections still had the revisions that were given, when this was read.
        current: Whether a collection was as it had been looked up, when this was read.
    """

    chunk_id: int
    document_id: int
    title: str
    source: str
    section: tuple[str, ...]
    page: int | None
    start_offset: int
    end_offset: int
    content: str
    metadata: Mapping[str, Any]
    department: str | None
    tags: tuple[str, ...]
    version_id: int
    event_time: datetime | None = None
    has_namesake: bool = False
    id: str | None = None
    settled: bool = True
    current: bool = True
    outline: Outline | None = None


@dataclass(frozen=True, slots=True)
class StretchRow:
    """A chunk with its neighbours: one span of its document, and where its first chunk stands."""

    start_offset: int
    end_offset: int
    content: str
    section: tuple[str, ...]
    page: int | None


def to_sparse(lexemes: Sequence[int] | Ints, weights: Sequence[float] | Floats) -> SparseVector:
    """A pgvector sparse vector from lexemes (1-based) and their weights."""
    return SparseVector(
        {int(lexeme) - 1: float(weight) for lexeme, weight in zip(lexemes, weights, strict=True)}, LEXEME_SPACE
    )


def candidate_rows(found: Sequence[TupleRow]) -> CandidateRows:
    """From rows of (chunk_id, length, weights as sent, similarity, vector as sent), the last four of which may be None.

    A chunk that lacks its row in the other way's table has no score there.
    """
    return CandidateRows(
        chunk_ids=[row[0] for row in found],
        similarities={row[0]: row[3] for row in found if row[3] is not None},
        lexical=LexicalRows.read([row for row in found if row[1] is not None]),
        vectors=stored_vectors([(row[0], row[4]) for row in found if row[4]]),
    )


def stored_vectors(found: Sequence[TupleRow]) -> dict[int, Floats]:
    """From rows of (chunk_id, vector as sent): float32 arrays by chunk."""
    return dict(zip([row[0] for row in found], halfvecs([row[1] for row in found]), strict=True))


def collection_params(scope: Scope, collection: Collection) -> dict[str, Any]:
    """The parameters of whatever is searched in a collection with its caller's rights."""
    allowed = None if collection.access_ids is None else list(collection.access_ids)
    return {
        "tenant_id": scope.tenant_id,
        "collection_id": collection.collection_id,
        "space_id": collection.space_id,
        "access_ids": allowed,
    }


_SQL = queries("search")
_READABLE_TERMS = queries("readable_terms")
_DOCUMENTS = queries("documents")
_ACRONYMS = queries("acronyms")
_COLLECTIONS = queries("collections")
_TOKEN_VECTORS = queries("token_vectors")

# Made once: of the very same statement psycopg knows how its columns are read.
_COMPARED: dict[str, LiteralString] = {
    name: f"{_SQL['compared']} ({_COLLECTIONS['as_text']} ({_COLLECTIONS['get']}) p) FROM ({_SQL[name]}) p"
    for name in ("passages", "passages_outlined")
}


# pgvector's own limit.
_MAX_EF_SEARCH = 1_000


class SearchRepository:
    """Searches the chunks of one collection.

    Attributes:
        known_frequencies: What is remembered of words.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.known_frequencies = KnownFrequencies()

    @property
    def room_ahead(self) -> bool:
        """Whether `dense_ahead` gains anything; see `Database.room_ahead`."""
        return self._database.room_ahead

    def dense(
        self,
        scope: Scope,
        collection: Collection,
        embedding: Floats,
        *,
        limit: int,
        rows: RowSelection = EVERY_ROW,
        indexed: bool = False,
    ) -> list[tuple[int, float]]:
        """Nearest chunks as (chunk_id, cosine similarity), best first.

        Args:
            scope: Whose chunks, and as of when.
            collection: Where to look.
            embedding: float32 unit vector of the collection's dimension.
            limit: How many at most.
            rows: Which to look through.
            indexed: Go through approximate indexes instead of comparing every chunk. Under a filter they may give up
                early, and return fewer than there are.
        """
        params = _dense_params(scope, collection, embedding, limit, rows, indexed=indexed)
        found = self._database.read(scope, _SQL["dense"], params | {"words": False, "vectors": False})
        return [(row[0], row[3]) for row in found]

    @contextmanager
    def dense_ahead(
        self,
        scope: Scope,
        collection: Collection,
        embedding: Floats,
        *,
        limit: int,
        rows: RowSelection = EVERY_ROW,
        indexed: bool = False,
        vectors: bool = False,
    ) -> Iterator[Callable[[], CandidateRows]]:
        """As `dense`, with lexical rows, under way while the caller looks words up and searches by them.

        ``vectors``: with the stored vectors.

        Yields:
            What waits for the rows; to be called once.
        """
        params = _dense_params(scope, collection, embedding, limit, rows, indexed=indexed)
        with self._database.read_ahead(scope, _SQL["dense"], params | {"words": True, "vectors": vectors}) as fetch:
            yield lambda: candidate_rows(fetch())

    def lexical(
        self,
        scope: Scope,
        collection: Collection,
        *,
        conditions: Sequence[Sequence[int]],
        query: Mapping[int, float],
        limit: int,
        rows: RowSelection = EVERY_ROW,
        embedding: Floats | None = None,
        vectors: bool = False,
    ) -> CandidateRows:
        """Chunks by the inner product with ``query`` (lexeme → IDF), best first.

        Args:
            scope: Whose chunks, and as of when.
            collection: Where to look.
            conditions: Sets of lexemes: a chunk must hold at least one of each. Without any, every chunk that holds
                a lexeme of ``query`` is scored.
            query: The lexemes' weights.
            limit: How many chunks at most.
            rows: Which to look through.
            embedding: Compared with each chunk that is found; None: with none.
            vectors: With the stored vectors, where there is an ``embedding``.
        """
        params = {
            **rows.params(scope, collection),
            **_lexical_params(conditions, query),
            "limit": limit,
            "embedding": None if embedding is None else HalfVector(embedding),
            "vectors": vectors and embedding is not None,
        }
        return candidate_rows(self._database.read(scope, _SQL["lexical"], params))

    def both(
        self,
        scope: Scope,
        collection: Collection,
        embedding: Floats,
        *,
        conditions: Sequence[Sequence[int]],
        query: Mapping[int, float],
        limit: int,
        rows: RowSelection = EVERY_ROW,
        indexed: bool = False,
        vectors: bool = False,
        context: bool = True,
    ) -> BothRows:
        """What `dense`, `lexical` and `beside` give, in one statement; arguments as theirs.

        ``context``: with the rows beside the chunks that have lexical rows of their own.
        """
        params = {
            **_dense_params(scope, collection, embedding, limit, rows, indexed=indexed),
            **_lexical_params(conditions, query),
            "vectors": vectors,
            "context": context,
        }
        found = self._database.read(scope, _SQL["both"], params)
        dense, lexical, beside = ([row[1:] for row in found if row[0] == part] for part in range(3))
        return BothRows(candidate_rows(dense), candidate_rows(lexical), LexicalRows.read(beside))

    def document_frequencies(self, scope: Scope, collection: Collection, lexemes: Sequence[int]) -> dict[int, int]:
        """In how many chunks each lexeme stands, by the last refresh; lexemes never seen are absent.

        What was asked for before is remembered until the collection, or its count, is another.
        """
        known = self.known_frequencies.of(scope, collection)
        found = {one: known[one] for one in lexemes if one in known}
        missing = [one for one in lexemes if one not in found]
        if missing:
            params = {**collection_params(scope, collection), "lexemes": missing}
            read: dict[int, int] = dict(self._database.read(scope, _SQL["document_frequencies"], params))
            fresh = {one: read.get(one, 0) for one in missing}
            # A replica may have the count before the last: that is good for this search alone.
            if self._database.replica is None:
                self.known_frequencies.keep(scope, collection, fresh)
            found |= fresh
        return {one: found[one] for one in lexemes if found[one]}

    def similarities(
        self, scope: Scope, embedding: Floats, chunk_ids: Sequence[int], *, space_ids: Iterable[int]
    ) -> dict[int, float]:
        """Cosine similarities of given chunks, by their vectors in the spaces that were searched."""
        params = {**_chunks(scope, chunk_ids, space_ids), "embedding": HalfVector(embedding)}
        return dict(self._database.read(scope, _SQL["similarities"], params))

    def lexical_rows(self, scope: Scope, chunk_ids: Sequence[int]) -> LexicalRows:
        """Lexical rows of given chunks, in no order."""
        params = {"tenant_id": scope.tenant_id, "chunk_ids": list(chunk_ids)}
        return LexicalRows.read(self._database.read(scope, _SQL["lexical_rows"], params))

    def beside(self, scope: Scope, chunk_ids: Sequence[int]) -> LexicalRows:
        """Lexical rows of the chunks before and after given ones in their documents, in no order.

        The ``chunk_ids`` returned are those of the given chunks, each once for every chunk beside it.
        """
        params = {"tenant_id": scope.tenant_id, "chunk_ids": list(chunk_ids)}
        return LexicalRows.read(self._database.read(scope, _SQL["beside"], params))

    def departments(self, scope: Scope, chunk_ids: Sequence[int]) -> dict[int, str | None]:
        """The departments of given chunks' documents; None for a document of none."""
        params = {"tenant_id": scope.tenant_id, "chunk_ids": list(chunk_ids)}
        return dict(self._database.read(scope, _SQL["departments"], params))

    def vectors(self, scope: Scope, chunk_ids: Sequence[int], *, space_ids: Iterable[int]) -> dict[int, Floats]:
        """Stored vectors of given chunks: float32 arrays of shape (dimension,), of unit length."""
        found = self._database.read(scope, _SQL["vectors"], _chunks(scope, chunk_ids, space_ids))
        return stored_vectors(found)

    def spans(self, scope: Scope, wanted: Sequence[Span]) -> dict[Span, str]:
        """The characters of document versions, by (version_id, start_offset, end_offset)."""
        if not wanted:
            return {}
        version_ids, starts, ends = (list(column) for column in zip(*wanted, strict=True))
        params = {"tenant_id": scope.tenant_id, "version_ids": version_ids, "starts": starts, "ends": ends}
        return {(row[0], row[1], row[2]): row[3] for row in self._database.read(scope, _SQL["spans"], params)}

    def stretches(self, scope: Scope, chunk_ids: Sequence[int], *, neighbours: int) -> dict[int, StretchRow]:
        """Given chunks with so many chunks before and after them, each as one span of its document."""
        params = {"tenant_id": scope.tenant_id, "chunk_ids": list(chunk_ids), "neighbours": neighbours}
        found = self._database.read(scope, _SQL["stretches"], params)
        return {row[0]: StretchRow(row[1], row[2], row[3], tuple(row[4]), row[5]) for row in found}

    def outlines(self, scope: Scope, spans: Sequence[Span]) -> dict[Span, Outline]:
        """What tells where the characters of spans of document versions stand, by (version_id, start, end)."""
        if not spans:
            return {}
        version_ids, starts, ends = (list(column) for column in zip(*spans, strict=True))
        params = {"tenant_id": scope.tenant_id, "version_ids": version_ids, "starts": starts, "ends": ends}
        found = self._database.read(scope, _SQL["outlines"], params)
        return {(row[0], row[1], row[2]): _outline(row[3], row[4]) for row in found}

    def passages(
        self,
        scope: Scope,
        chunk_ids: Sequence[int],
        *,
        outlined: bool = False,
        revisions: Mapping[int, int] = _NOTHING,
        looked_up: tuple[str, str] | None = None,
    ) -> dict[int, PassageRow]:
        """What is shown of given chunks, by chunk id.

        Args:
            scope: Whose chunks.
            chunk_ids: Of them.
            outlined: With what `outlines` gives of the same spans.
            revisions: Of collections, by their ids: whether these are still theirs, `PassageRow.settled` says.
            looked_up: A collection's name, and its row as text (`CollectionRepository.look_up`): whether that is still
                so, `PassageRow.current` says.

        Raises:
            TenantSuspendedError: A collection is given, and the tenant is suspended.
        """
        name = "passages_outlined" if outlined else "passages"
        query = _SQL[name]
        params: dict[str, Any] = {
            "tenant_id": scope.tenant_id,
            # As text: a list is written by a dozen steps in Python.
            "chunk_ids": "{" + ",".join(map(str, chunk_ids)) + "}",
            "collection_ids": list(revisions) or None,
            "revisions": list(revisions.values()) or None,
        }
        if looked_up is not None:
            params |= {"name": looked_up[0], "session": scope.session, "record": looked_up[1]}
            query = _COMPARED[name]
        found = self._database.read(scope, query, params)
        return {
            row[0]: PassageRow(
                chunk_id=row[0],
                document_id=row[1],
                title=row[2],
                source=row[3],
                section=tuple(row[4]),
                page=row[5],
                start_offset=row[6],
                end_offset=row[7],
                content=row[8],
                metadata=row[9],
                department=row[10],
                tags=tuple(row[11]),
                version_id=row[12],
                event_time=row[13],
                has_namesake=row[14],
                id=row[15],
                settled=row[16],
                current=looked_up is None or row[-1],
                outline=_outline(row[18], row[19]) if outlined and row[17] else None,
            )
            for row in found
        }


def _outline(headings: Sequence[Any] | None, pages: Sequence[Any] | None) -> Outline:
    return Outline(tuple(Heading(*one) for one in headings or ()), tuple(PageSpan.of_list(one) for one in pages or ()))


def _dense_params(
    scope: Scope, collection: Collection, embedding: Floats, limit: int, rows: RowSelection, *, indexed: bool
) -> dict[str, Any]:
    # An index gives out as many as it keeps candidates, so more have to be kept where more are wanted.
    approximate = indexed and (rows.past is None or rows.past.indexed)
    return {
        **rows.params(scope, collection),
        "embedding": HalfVector(embedding),
        "limit": limit,
        "indexed": indexed,
        "ef_search": min(limit, _MAX_EF_SEARCH) if approximate and limit > DEFAULT_EF_SEARCH else None,
    }


def _lexical_params(conditions: Sequence[Sequence[int]], query: Mapping[int, float]) -> dict[str, Any]:
    return {
        "conditions": ["{" + ",".join(map(str, lexemes)) + "}" for lexemes in conditions],
        "query": to_sparse(list(query), list(query.values())),
    }


def _chunks(scope: Scope, chunk_ids: Sequence[int], space_ids: Iterable[int]) -> dict[str, Any]:
    return {"tenant_id": scope.tenant_id, "chunk_ids": list(chunk_ids), "space_ids": list(space_ids)}


# In how many chunks words stand, as it was read: questions share words, and each look at them is a statement.

# Words of all collections together, some hundred bytes each.
_MOST = 100_000


_Key: TypeAlias = tuple[int, int]


# Every change that searches could see gives a collection a later revision, and a count of its words other numbers,
# where there was something to count.
_Count: TypeAlias = tuple[str, int, int, int]


class KnownFrequencies:
    """Keeps document frequencies by lexeme, those of the last count of each collection. Safe to share between threads.

    Args:
        most: Lexemes of all collections together; of more, those of the collections that were kept first go.
    """

    def __init__(self, *, most: int = _MOST) -> None:
        self._most = most
        self._kept: OrderedDict[_Key, tuple[_Count, dict[int, int]]] = OrderedDict()
        self._lexemes = 0
        self._lock = Lock()

    def of(self, scope: Scope, collection: Collection) -> Mapping[int, int]:
        """What is known of a collection as it is; 0: of a lexeme that stands nowhere in it."""
        count, known = self._kept.get(_key(scope, collection), (None, _NOTHING))
        return known if count == _count(collection) else _NOTHING

    def keep(self, scope: Scope, collection: Collection, found: Mapping[int, int]) -> None:
        """Add to what is known of a collection. Of a session nothing is kept, here either."""
        if collection.hidden or len(found) > self._most:
            return
        key, count = _key(scope, collection), _count(collection)
        with self._lock:
            of, known = self._kept.get(key, (None, {}))
            if of != count:
                self._drop(key)
                known = {}
                self._kept[key] = count, known
            self._lexemes += len(found.keys() - known.keys())
            known.update(found)
            while self._lexemes > self._most:
                self._drop(next(iter(self._kept)))

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self._lexemes = 0

    def _drop(self, key: _Key) -> None:
        if key in self._kept:
            self._lexemes -= len(self._kept.pop(key)[1])


def _key(scope: Scope, collection: Collection) -> _Key:
    return scope.tenant_id, collection.collection_id


def _count(collection: Collection) -> _Count:
    return collection.revision_id, collection.stats_chunks, collection.stats_terms, collection.stats_pending


#: How many a search takes up at most, those explained most often.
MAX_ACRONYMS = 2_000


class AcronymRepository(Repository):
    """Reads a collection's acronyms."""

    def frequent(
        self,
        scope: Scope,
        collection_id: int,
        *,
        access_ids: Sequence[int] | None = None,
        limit: int = MAX_ACRONYMS,
    ) -> list[tuple[str, str, int]]:
        """(acronym, long form, how often current documents explain it so), the most frequent first.

        Args:
            scope: Whose documents.
            collection_id: Where they are.
            access_ids: Only documents of these access lists (`Collection.access_ids`); None: all.
            limit: How many at most.
        """
        params = {
            "tenant_id": scope.tenant_id,
            "collection_id": collection_id,
            "access_ids": None if access_ids is None else list(access_ids),
            "limit": limit,
        }
        return [(row[0], row[1], row[2]) for row in self._database.read(scope, _ACRONYMS["frequent"], params)]


class TokenVectorRepository(Repository):
    """Reads packed token vectors, and says which collections have them."""

    def get_many(self, scope: Scope, chunk_ids: Sequence[int], *, model: str) -> dict[int, bytes]:
        """The packed vectors that an embedding model, by its name, made of those chunks that have some."""
        params = {"tenant_id": scope.tenant_id, "chunk_ids": list(chunk_ids), "model": model}
        return {
            chunk_id: bytes(packed)
            for chunk_id, packed in self._database.run(scope, _TOKEN_VECTORS["get_many"], params)
        }


# Which words stand in what a caller may read: numbers of the whole collection would tell of what is hidden.


class ReadableTermRepository(Repository):
    """Looks at the current chunks of a collection that a caller may read, one by one: not for every search.

    A collection that may be read whole (`Collection.access_ids` None) is not asked about here; its counts are known,
    see `SearchRepository.document_frequencies`.
    """

    def frequencies(self, scope: Scope, collection: Collection, lexemes: Sequence[int]) -> dict[int, int]:
        """In how many readable chunks each lexeme stands."""
        return dict(self._rows("frequencies", scope, collection, lexemes))

    def present(self, scope: Scope, collection: Collection, lexemes: Sequence[int]) -> set[int]:
        """Those of the lexemes that stand in a readable chunk at least; each is looked for until it is found."""
        return {row[0] for row in self._rows("present", scope, collection, lexemes)}

    def _rows(self, query: str, scope: Scope, collection: Collection, lexemes: Sequence[int]) -> list[Any]:
        params = {**collection_params(scope, collection), "lexemes": list(lexemes)}
        return self._database.read(scope, _READABLE_TERMS[query], params)


def names_with_roots(database: Database, scope: Scope, collection: Collection, uris: Sequence[str]) -> dict[int, str]:
    """Return the names, by id, of documents whose URI documents of several roots have that the scope may read."""
    params = {
        "tenant_id": scope.tenant_id,
        "collection_id": collection.collection_id,
        "uris": list(uris),
        "as_of": scope.as_of,
        **access_params(scope),
    }
    known = _DOCUMENTS["known_now"] if scope.as_of is None else _DOCUMENTS["known_as_of"]
    query: LiteralString = f"{_DOCUMENTS['roots']} AND {known} AND {may_read_version(scope)}"
    with database.single_reads(scope) as connection:
        found = _rows(connection, query, params)
    labels = {uri: told_apart({root for _, other, root in found if other == uri}) for _, uri, _ in found}
    return {number: f"{labels[uri][root]}/{uri}" for number, uri, root in found if len(labels[uri]) > 1}
