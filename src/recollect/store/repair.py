"""Making a store agree with itself again, and knowing what lacks a context.

Each change is a transaction, under the locks that writers take.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, LiteralString

import psycopg
from pgvector import HalfVector
from psycopg import sql
from psycopg.types.json import Jsonb

from recollect.errors import StoreError
from recollect.model import Chunk, Document, Scope
from recollect.model.outline import Heading, PageSpan
from recollect.store.catalogue import lacking
from recollect.store.database import Connection, Database, Repository, rows
from recollect.store.search import Floats, LexicalRow, to_sparse
from recollect.store.spaces import require_same_space
from recollect.store.sql import queries
from recollect.store.verification import StoredVersion, copied_wrongly, read_versions

if TYPE_CHECKING:
    from recollect.model.collection import Collection


_SQL = queries("verify_repair")


_FOUND = queries("verify")


_WRITER = queries("writer")


# Documents changed in one transaction.
_PAGE_DOCUMENTS = 500


# What belongs to no collection, mended in this order. A statement holds rows before another one deletes them: the
# deletion then sees the version that a writer gave a document, or that a text is stored again.
_OUTSIDE: tuple[LiteralString, ...] = (
    _SQL["hold_collections"],
    _SQL["add_states"] + " " + _FOUND["stateless_collections"],
    _SQL["add_access_lists"] + " " + _FOUND["missing_access_lists"],
    _SQL["touch_collections"],
    "SELECT " + _FOUND["orphaned_documents"] + " ORDER BY coalesce(d.given_id, d.uri), d.document_id FOR UPDATE",
    "DELETE " + _FOUND["orphaned_documents"],
    "DELETE " + _FOUND["wrong_cached_embeddings"],
    "SELECT " + _FOUND["unowned_texts"] + " ORDER BY t.text_hash FOR UPDATE",
    "DELETE " + _FOUND["unowned_texts"],
    "DELETE " + _FOUND["unowned_originals"],
)


# What stands in two places is copied from its owner, in this order.
_COPYING: tuple[LiteralString, ...] = (
    _SQL["copy_close_overlapping"],
    _SQL["copy_to_versions"].replace("WRONG", _FOUND["other_readers"]),
    _SQL["copy_given_ids"],
    _SQL["copy_to_acronyms"],
    _SQL["copy_to_vectors"],
    _SQL["copy_to_lexical"],
)


_DROP_STRAY: LiteralString = _SQL["drop_vectors"].replace(
    "STRAY", _FOUND["vectors_elsewhere"] + " AND (" + _FOUND["stray_vectors"] + ")"
)


# What is stored of a chunk, each where its field is given: in the place of chunks that were dropped, chunks are added.
_STORING = (
    ("drop_replaced", "context_by"),
    ("set_context", "context_by"),
    ("set_chunk", "key"),
    ("drop_vectors_elsewhere", "embedding"),
    ("drop_tokens_elsewhere", "embedding"),
    ("set_vector", "embedding"),
    ("set_lexical", "lexemes"),
    ("set_tokens", "packed"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MendedChunk:
    """What is stored anew of a chunk; None: it stays as it is."""

    chunk: Chunk
    key: bytes | None = None
    embedding: Floats | None = None
    lexical: LexicalRow | None = None
    token_vectors: bytes | None = None
    context_by: str | None = None


class Mender:
    """Changes one tenant's rows.

    Args:
        database: The store's connections.
        scope: The tenant.
    """

    def __init__(self, database: Database, scope: Scope) -> None:
        self._database = database
        self._scope = scope
        self._tenant = {"tenant_id": scope.tenant_id}

    def mend_outside(self) -> None:
        """Add what collections lack, and delete what no constraint keeps from standing alone."""
        with self._database.transaction(self._scope) as connection:
            for statement in _OUTSIDE:
                connection.execute(statement, self._tenant)

    def put_fact_vectors(self, vectors: Mapping[int, Floats]) -> None:
        """Store the vectors of facts, by their numbers; what was erased meanwhile stays so."""
        params = [
            self._tenant | {"fact_id": fact_id, "embedding": HalfVector(vector)} for fact_id, vector in vectors.items()
        ]
        with self._database.transaction(self._scope) as connection:
            connection.cursor().executemany(_SQL["set_fact_vector"], params)

    def mend_copies(self, collection: Collection) -> None:
        """Say beside versions, vectors and terms what their document and version say; close versions that overlap."""
        with self._database.transaction(self._scope) as connection:
            wrong = copied_wrongly(connection, self._of(collection))
        for start in range(0, len(wrong), _PAGE_DOCUMENTS):
            with self._changing(collection, wrong[start : start + _PAGE_DOCUMENTS]) as (connection, params):
                for statement in _COPYING:
                    connection.execute(statement, params)
        with self._changing(collection, []) as (connection, params):
            connection.execute(_DROP_STRAY, params)

    def version(self, version_id: int) -> StoredVersion | None:
        """A version as it is now; None where it is gone."""
        with self._database.transaction(self._scope) as connection:
            return next(iter(read_versions(connection, self._scope, [version_id])), None)

    def document(self, version: StoredVersion, content: str) -> Document:
        """The document that a version was, with another text: to be cut anew."""
        params = self._tenant | {"version_id": version.version_id}
        uri, title, mime_type, language, headings, pages = self._database.run(self._scope, _SQL["document"], params)[0]
        return Document(
            content=content,
            source=uri,
            title=title,
            mime_type=mime_type,
            language=language,
            headings=tuple(Heading(*heading) for heading in headings or ()),
            pages=tuple(PageSpan.of_list(page) for page in pages or ()),
        )

    def put(
        self,
        collection: Collection,
        version: StoredVersion,
        chunks: Sequence[MendedChunk],
        *,
        content: str | None,
        anew: bool = False,
    ) -> None:
        """Store what was mended of a version.

        Args:
            collection: Where it is.
            version: As it was read.
            chunks: What its chunks are to say, in order.
            content: Its text; None: it stays as it is.
            anew: Put the chunks in the place of those that are there.
        """
        with self._changing(collection, [version.document_id], pending=len(chunks)) as (connection, params):
            params["version_id"] = version.version_id
            if content is not None:
                kept = Document(content=content)
                values = {"content": content, "content_hash": kept.content_hash, "chunk_count": len(chunks)}
                if not rows(connection, _SQL["set_version"], params | values):
                    return  # erased meanwhile
                connection.execute(_SQL["set_text"], params | values)
                connection.execute(_SQL["set_content"], params | values)
            written = [params | _values(chunk) for chunk in chunks]
            cursor = connection.cursor()
            if anew:
                cursor.execute(_SQL["drop_chunks"], params)
            for name, field in _STORING:
                if given := [one for one in written if one[field] is not None]:
                    cursor.executemany(_SQL["add_chunk" if anew and name == "set_chunk" else name], given)

    def recount(self, collection: Collection) -> None:
        """Count the collection's documents and chunks anew."""
        with self._changing(collection, []):
            pass

    def set_reference_length(self, collection: Collection, length: float) -> None:
        """Keep the reference length that the stored weights were made with."""
        params: dict[str, Any] = self._of(collection) | {"reference_length": length}
        with self._database.transaction(self._scope) as connection:
            connection.execute(_WRITER["hold_collection"], params)
            connection.execute(_SQL["set_reference_length"], params)

    def _of(self, collection: Collection) -> dict[str, Any]:
        return self._tenant | {"collection_id": collection.collection_id, "space_id": collection.space_id}

    @contextmanager
    def _changing(
        self, collection: Collection, document_ids: Sequence[int], *, pending: int = 0
    ) -> Iterator[tuple[Connection, dict[str, Any]]]:
        """A transaction that holds what a writer would; the collection is counted at its end."""
        params: dict[str, Any] = self._of(collection) | {"document_ids": list(document_ids), "pending": pending}
        with self._database.transaction(self._scope) as connection:
            for _, _, space_id in rows(connection, _WRITER["hold_collection"], params):
                require_same_space(collection, space_id)
            connection.execute(_WRITER["lock_documents_by_id"], params)
            connection.execute(_SQL["note_versions"], params)
            yield connection, dict(params)
            connection.execute(_SQL["lock_state"], params)
            connection.execute(_SQL["recount"], params)


def _values(mended: MendedChunk) -> dict[str, Any]:
    chunk, row = mended.chunk, mended.lexical
    parent_start, parent_end = chunk.parent or (None, None)
    return {
        "position": chunk.position,
        "start": chunk.start_offset,
        "end": chunk.end_offset,
        "parent_start": parent_start,
        "parent_end": parent_end,
        "page": chunk.page,
        "token_count": chunk.token_count,
        "section": list(chunk.section),
        "text": chunk.text,
        "metadata": Jsonb(dict(chunk.metadata)),
        "key": mended.key,
        "embedding": None if mended.embedding is None else HalfVector(mended.embedding),
        "length": row and row.length,
        "lexemes": row and row.lexemes.tolist(),
        "weights": row and to_sparse(row.lexemes, row.weights),
        "packed": mended.token_vectors,
        "context": chunk.context,
        "context_by": mended.context_by,
    }


# The tables' files and the schema: what cannot be read, what is missing, and what can be made again.

_COPY = sql.SQL("COPY recollect.{} TO STDOUT (FORMAT binary)")


# Foreign keys need the keys that they refer to, and what is unique comes before what may be slow.
_ORDER = ("PRIMARY KEY", "UNIQUE", "CREATE UNIQUE INDEX", "CREATE INDEX", "CHECK", "FOREIGN KEY")


_PART = re.compile(r"(constraint|index) (\S+) on (\S+): (.*)", re.DOTALL)


# Made of others, row by row: of doubles one is kept, and made anew where it is wrong.
_DERIVED = (
    "chunk_vectors",
    "chunk_lexical",
    "chunk_token_vectors",
    "collection_state",
    "embedding_cache",
    "term_stats",
)


_DROP_DOUBLES = sql.SQL(
    "DELETE FROM recollect.{} WHERE (tableoid, ctid) IN (SELECT tableoid, ctid FROM (SELECT t.tableoid, t.ctid, "
    "row_number() OVER (PARTITION BY {} ORDER BY t.ctid) AS number FROM recollect.{} t) n WHERE number > 1)"
)


_LEAVE_COPIES = (
    "UPDATE recollect.collection_state SET revision_id = one.id FROM (SELECT gen_random_uuid() AS id OFFSET 0) one"
)


_RESTORE = "recollect cannot make it again: restore a backup (recollect db restore)"


# Classes of errors that say nothing of a table: the connection broke, the server has no room or ends.
_ELSEWHERE = ("08", "53", "57")


def unreadable_tables(database: Database) -> Iterator[tuple[str, str]]:
    """Read every table whole, and yield those that cannot be read, each with the database's reason.

    Raises:
        StoreUnavailableError: The database cannot be reached.
    """
    with database.autocommit() as connection:
        tables = [row[0] for row in rows(connection, _FOUND["tables"])]
    for table in tables:
        try:
            with (
                database.autocommit() as connection,
                connection.transaction(),
                connection.cursor().copy(_COPY.format(sql.Identifier(table))) as blocks,
            ):
                for _ in blocks:
                    pass
        except StoreError as exc:
            cause = exc.__cause__
            state = cause.sqlstate if isinstance(cause, psycopg.Error) else None
            if state is None or state.startswith(_ELSEWHERE):
                raise
            if not isinstance(cause, psycopg.errors.UndefinedTable):  # a partition may have gone meanwhile
                yield table, str(cause).strip().splitlines()[0]


def damaged_index(database: Database, error: StoreError) -> str | None:
    """Return the name of the index whose file a statement could not read; None: it failed for another reason."""
    if not isinstance(error.__cause__, psycopg.errors.DataCorrupted | psycopg.errors.IndexCorrupted):
        return None
    told = re.search(r'relation "base/\d+/(\d+)|index "([^"]+)"', str(error.__cause__))
    if told is None:
        return None
    with database.autocommit() as connection:
        found = rows(connection, _FOUND["index_of"], {"file": told[1] and int(told[1]), "name": told[2]})
    return str(found[0][0]) if found else None


def rebuild_index(database: Database, name: str) -> None:
    """Build an index anew; writers of its table wait."""
    with database.autocommit() as connection:
        connection.execute(sql.SQL("REINDEX INDEX recollect.{}").format(sql.Identifier(name)))


def missing_parts(database: Database) -> dict[str, str]:
    """Return what the schema lacks or has otherwise than it should, each with its definition."""
    with database.autocommit() as connection:
        return dict(line.partition(": ")[::2] for line in lacking(connection))


def mend_schema(database: Database) -> dict[str, str]:
    """Make dropped and changed indexes and constraints again.

    Opening a store puts functions, triggers, policies and grants back; tables and columns are lost with their rows. Of
    rows that a key allows once, all but one go: where they are equal, or in tables that are made of others.

    Returns:
        What is missing still, each with the reason.
    """
    parts = [match for subject, what in missing_parts(database).items() if (match := _PART.match(f"{subject}: {what}"))]
    reasons: dict[str, str] = {}
    for part in sorted(parts, key=lambda one: next(n for n, word in enumerate(_ORDER) if word in one[4])):
        with database.autocommit() as connection:
            try:
                try:
                    _make(connection, *part.groups())
                except psycopg.errors.UniqueViolation:
                    _make(connection, *part.groups(), without_doubles=True)
            except psycopg.Error as exc:
                told = " ".join(filter(None, (exc.diag.message_primary, exc.diag.message_detail)))
                reasons[f"{part[1]} {part[2]} on {part[3]}"] = f"it cannot be made again: {told}"
    return {subject: reasons.get(subject, _RESTORE) for subject in missing_parts(database)}


def _make(
    connection: Connection, kind: str, name: str, table: str, definition: str, *, without_doubles: bool = False
) -> None:
    named, owner, made = sql.Identifier(name), sql.Identifier(table), sql.SQL(definition)
    with connection.transaction():
        connection.execute("SET LOCAL search_path = pg_catalog, public")
        connection.execute("SET LOCAL lock_timeout = '30s'")
        if kind == "constraint":
            drop = sql.SQL("ALTER TABLE recollect.{} DROP CONSTRAINT IF EXISTS {}").format(owner, named)
            make = sql.SQL("ALTER TABLE recollect.{} ADD CONSTRAINT {} {}").format(owner, named, made)
        else:
            drop = sql.SQL("DROP INDEX IF EXISTS recollect.{}").format(named)
            # With ONLY, the partitions would be left without it.
            make = sql.SQL(definition.replace(" ON ONLY ", " ON ")).format()
        connection.execute(drop)
        if without_doubles:
            key = definition[definition.rindex("(") + 1 : definition.rindex(")")] if table in _DERIVED else "t::text"
            connection.execute(_DROP_DOUBLES.format(owner, sql.SQL(key), owner))
            # A copy of a collection may hold either of two: it has no more to follow. Doubles of states stay equal.
            connection.execute(_LEAVE_COPIES)
        connection.execute(make)


# Which chunks still need a sentence that situates them.


_CONTEXTS = queries("contexts")


_CONTEXTS_A_PAGE = 500


class ContextRepository(Repository):
    """Knows what is contextualised; `recollect.store.repair.Mender` stores it."""

    def pending(self, scope: Scope, collection: Collection, made_by: str, *, after: int = 0) -> list[int]:
        """Current versions with a chunk that this model and prompt were not asked about, by id; one page of them."""
        found = self._rows(scope, collection, "pending", made_by=made_by, after=after, limit=_CONTEXTS_A_PAGE)
        return [row[0] for row in found]

    def size(
        self, scope: Scope, collection: Collection, made_by: str, *, beginning: int, around: int
    ) -> tuple[int, int, int]:
        """How many documents and chunks are pending, and how many bytes a model would be given for them."""
        params = {"made_by": made_by, "beginning": beginning, "around": around}
        documents, chunks, size = self._rows(scope, collection, "size", **params)[0]
        return int(documents), int(chunks), int(size)

    def _rows(self, scope: Scope, collection: Collection, name: str, **params: Any) -> list[Any]:  # noqa: ANN401
        given = {"tenant_id": scope.tenant_id, "collection_id": collection.collection_id, **params}
        return self._database.read(scope, _CONTEXTS[name], given)
