"""The rows of new document versions, copied into their tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from struct import Struct
from typing import TYPE_CHECKING, Any, LiteralString

import numpy as np
from psycopg.types.json import Jsonb

from recollect.model import Scope
from recollect.store import wire
from recollect.store.search import LEXEME_SPACE
from recollect.store.sql import queries
from recollect.store.wire import copy_into, insert_into

if TYPE_CHECKING:
    from recollect.model import Chunk
    from recollect.model.collection import Collection
    from recollect.store.database import Connection
    from recollect.store.prepared import PreparedDocument

_SQL = queries("writer")
_ACRONYMS = queries("acronyms")
_TOKEN_VECTORS = queries("token_vectors")
_DUPLICATES = queries("duplicates")

# Rows that are built in memory at once; a document may have a hundred thousand.
_SLICE = 1_024

# So few rows are stored by one statement: by way of a temporary table it takes five.
_FEW = 16

# fields, then with its length each: tenant, chunk, version, position, start, end
_CHUNK_HEAD = Struct(">hiiiqiqiiiiii")
_CHUNK_FIELDS = 16


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A prepared document with the numbers that it is stored under, that of its access list among them."""

    prepared: PreparedDocument
    document_id: int
    version_id: int
    version: int
    chunk_ids: Sequence[int]
    access_id: int = 0


def copy_all(
    connection: Connection, scope: Scope, collection: Collection, versions: Sequence[NewVersion], now: datetime
) -> None:
    """Store versions with their contents, chunks, vectors and lexical rows, in the transaction of ``connection``."""
    with wire.plans_of_checks_kept(connection):
        _store_all(connection, scope, collection, versions, now)


def _store_all(
    connection: Connection, scope: Scope, collection: Collection, versions: Sequence[NewVersion], now: datetime
) -> None:
    tenant, place = scope.tenant_id, collection.collection_id
    _copy_values(
        connection,
        _SQL["copy_versions"],
        "int4 int8 int8 int4 int4 text text text text text jsonb text[] int4 bytea bytea text "
        "timestamptz timestamptz timestamptz int4 text[] text",
        [_version_row(tenant, place, new, now) for new in versions],
    )
    _copy_texts(connection, tenant, versions)
    _copy_values(
        connection,
        _SQL["copy_contents"],
        "int4 int8 bytea jsonb jsonb",
        [_content_row(tenant, new) for new in versions],
    )
    chunk_ids = [chunk_id for new in versions for chunk_id in new.chunk_ids]
    version_ids = [new.version_id for new in versions for _ in new.chunk_ids]
    access_ids = [new.access_id for new in versions for _ in new.chunk_ids]
    head, in_space = (tenant, place, now), (tenant, collection.space_id, now)
    _copy_bytes(connection, _SQL["copy_chunks"], _chunk_rows(tenant, versions), len(chunk_ids))
    arrays = [new.prepared.embeddings for new in versions]
    embeddings = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    _copy_bytes(
        connection,
        _SQL["copy_vectors"],
        (
            wire.vector_rows(in_space, chunk_ids[at], version_ids[at], access_ids[at], embeddings[at])
            for at in _slices(len(chunk_ids))
        ),
        len(chunk_ids),
    )
    terms = [(row.length, row.lexemes, row.weights) for new in versions for row in new.prepared.lexical]
    _copy_bytes(
        connection,
        _SQL["copy_lexical"],
        (
            wire.lexical_rows(head, chunk_ids[at], version_ids[at], access_ids[at], terms[at], dimension=LEXEME_SPACE)
            for at in _slices(len(chunk_ids))
        ),
        len(chunk_ids),
    )
    _copy_extras(connection, scope, collection, versions)


def _copy_texts(connection: Connection, tenant_id: int, versions: Sequence[NewVersion]) -> None:
    """What the versions say, each text once; before the originals and the cached embeddings, as whoever erases them.

    Also what is stored already is sent: how long it takes to store a text does not tell whether somebody has it.
    """
    texts = {new.prepared.document.content_hash: new.prepared.document.content for new in versions}
    records = [(tenant_id, *text) for text in sorted(texts.items())]
    _copy_values(
        connection, _SQL["copy_texts"], "int4 bytea text", records, _SQL["hold_texts"], order="ORDER BY text_hash"
    )


def _copy_extras(connection: Connection, scope: Scope, collection: Collection, versions: Sequence[NewVersion]) -> None:
    acronyms = [(new.version_id, *found) for new in versions for found in new.prepared.acronyms]
    copy_acronyms(connection, scope, collection.collection_id, acronyms)
    _copy_values(
        connection,
        _DUPLICATES["copy_bands"],
        "int4 int8 int4",
        [(scope.tenant_id, new.version_id, band) for new in versions for band in dict.fromkeys(new.prepared.bands)],
    )
    asked = [new for new in versions if new.prepared.token_vectors is not None]
    if asked:
        chunk_ids = [chunk_id for new in asked for chunk_id in new.chunk_ids]
        packed = [one for new in asked for one in new.prepared.token_vectors or ()]
        copy_token_vectors(connection, scope, chunk_ids, packed, space_id=collection.space_id)


def _slices(count: int) -> Iterator[slice]:
    return (slice(start, min(start + _SLICE, count)) for start in range(0, count, _SLICE))


def _copy_values(
    connection: Connection,
    statement: LiteralString,
    types: str,
    records: Sequence[Sequence[Any]],
    ending: LiteralString = "",
    *,
    order: LiteralString = "",
) -> None:
    """Store rows; ``order`` is the one that they are in, ``ending`` what becomes of those that are there already."""
    if len(records) <= _FEW:
        insert_into(connection, statement, records, ending)
        return
    with copy_into(connection, statement, f"{order} {ending}") as copy:
        copy.set_types(types.split())
        for record in records:
            copy.write_row(record)


def _copy_bytes(connection: Connection, statement: LiteralString, blocks: Iterable[bytes], count: int) -> None:
    if count <= _FEW:
        insert_into(connection, statement, list(wire.fields(b"".join(blocks))))
        return
    with copy_into(connection, statement) as copy:
        copy.write(wire.COPY_HEADER)
        for block in blocks:
            copy.write(block)
        copy.write(wire.COPY_TRAILER)


def _version_row(tenant_id: int, collection_id: int, new: NewVersion, now: datetime) -> tuple[Any, ...]:
    document = new.prepared.document
    return (
        tenant_id,
        new.version_id,
        new.document_id,
        collection_id,
        new.version,
        document.source,
        document.title or document.source,
        document.department,
        document.language,
        document.mime_type,
        Jsonb(dict(document.metadata)),
        list(document.tags),
        len(new.chunk_ids),
        document.content_hash,
        document.file_hash,
        new.prepared.fingerprint,
        document.event_time,
        document.event_end,
        now,
        new.access_id,
        None if new.prepared.analysed_as is None else list(new.prepared.analysed_as),
        document.id,
    )


def _content_row(tenant_id: int, new: NewVersion) -> tuple[Any, ...]:
    document = new.prepared.document
    headings = [[h.level, h.title, h.start_offset, h.end_offset] for h in document.headings]
    pages = [page.as_list() for page in document.pages]
    return (tenant_id, new.version_id, document.content_hash, Jsonb(headings), Jsonb(pages))


def _chunk_rows(tenant_id: int, versions: Sequence[NewVersion]) -> Iterator[bytes]:
    block: list[bytes] = []
    sections: dict[tuple[str, ...], bytes] = {}
    for new in versions:
        prepared = new.prepared
        for chunk_id, chunk, key in zip(new.chunk_ids, prepared.chunks, prepared.embedding_keys, strict=True):
            section = tuple(chunk.section)
            if section not in sections:
                sections[section] = wire.texts(section)
            block += _chunk_row((tenant_id, chunk_id, new.version_id), chunk, key, sections[section])
        if len(block) > _SLICE:
            yield b"".join(block)
            block = []
    yield b"".join(block)


def _chunk_row(ids: tuple[int, int, int], chunk: Chunk, key: bytes, section: bytes) -> tuple[bytes, ...]:
    tenant_id, chunk_id, version_id = ids
    parent_start, parent_end = chunk.parent or (None, None)
    place = (4, chunk.position, 4, chunk.start_offset, 4, chunk.end_offset)
    return (
        _CHUNK_HEAD.pack(_CHUNK_FIELDS, 4, tenant_id, 8, chunk_id, 8, version_id, *place),
        wire.int4(parent_start),
        wire.int4(parent_end),
        wire.int4(chunk.page),
        wire.int4(chunk.token_count),
        wire.data(key),
        section,
        wire.text(chunk.text),
        wire.jsonb(dict(chunk.metadata)),
        wire.text(chunk.context),
        wire.NULL if chunk.context_by is None else wire.text(chunk.context_by),
    )


def copy_acronyms(
    connection: Connection, scope: Scope, collection_id: int, found: Sequence[tuple[int, str, str, int]]
) -> None:
    """Store the acronyms of new versions, in the transaction that stores the versions.

    Args:
        connection: In that transaction.
        scope: Whose versions.
        collection_id: Of the versions.
        found: Version, acronym, long form and occurrences; none twice.
    """
    records = [
        (scope.tenant_id, version_id, collection_id, short, long, occurrences)
        for version_id, short, long, occurrences in found
    ]
    _copy_values(connection, _ACRONYMS["copy"], "int4 int8 int4 text text int4", records)


def copy_token_vectors(
    connection: Connection, scope: Scope, chunk_ids: Sequence[int], packed: Sequence[bytes], *, space_id: int
) -> None:
    """Store the packed vectors of new chunks, in the transaction that stores the chunks.

    Args:
        connection: In that transaction.
        scope: Whose chunks.
        chunk_ids: Of chunks that are stored already.
        packed: Parallel to ``chunk_ids``; from `recollect.retrieval.rerank.late_interaction.pack`.
        space_id: Whose model made them.
    """
    with copy_into(connection, _TOKEN_VECTORS["copy"]) as copy:
        copy.set_types(["int4", "int8", "int4", "bytea"])
        for chunk_id, own in zip(chunk_ids, packed, strict=True):
            copy.write_row((scope.tenant_id, chunk_id, space_id, own))
