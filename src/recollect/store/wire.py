"""pgvector's binary form, read and written many rows at a time: one by one would cost more than the search itself.

The layouts are those of pgvector's ``halfvec_send`` and ``sparsevec_send``, big-endian as everything PostgreSQL sends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import accumulate, pairwise
from struct import Struct
from typing import TYPE_CHECKING, Any, LiteralString

import numpy as np
import numpy.typing as npt
from psycopg import sql
from psycopg.adapt import Dumper
from psycopg.pq import Format

from recollect.store.connections import TRANSACTIONS_SETTINGS, is_pooled

if TYPE_CHECKING:
    from psycopg import Copy

    from recollect.store.database import Connection


Floats = npt.NDArray[np.float32]


Ints = npt.NDArray[np.int32]


# halfvec: dimension, unused (int16 each), then float16 values.
_HALFVEC_HEADER = 4


# sparsevec: dimension, elements, unused (int32 each), then int32 indices from 0, then float32 values.
_SPARSEVEC_HEADER = 12


def halfvecs(sent: Sequence[bytes]) -> Floats:
    """Vectors of one dimension as a float32 array of shape (vectors, dimension)."""
    if not sent:
        return np.zeros((0, 0), dtype=np.float32)
    joined = b"".join([vector[_HALFVEC_HEADER:] for vector in sent])
    return np.frombuffer(joined, dtype=">f2").reshape(len(sent), -1).astype(np.float32)


def sparsevec_batch(sent: Sequence[bytes]) -> tuple[Ints, Ints, Floats]:
    """How many elements each sparse vector has, then the indices (from 0) and the values of all of them in turn."""
    counts = [(len(vector) - _SPARSEVEC_HEADER) // 8 for vector in sent]
    middles = [_SPARSEVEC_HEADER + 4 * count for count in counts]
    indices = b"".join([vector[_SPARSEVEC_HEADER:middle] for vector, middle in zip(sent, middles, strict=True)])
    values = b"".join([vector[middle:] for vector, middle in zip(sent, middles, strict=True)])
    return (
        np.array(counts, dtype=np.int32),
        np.frombuffer(indices, dtype=">i4").astype(np.int32),
        np.frombuffer(values, dtype=">f4").astype(np.float32),
    )


def sparsevecs(sent: Sequence[bytes]) -> list[tuple[Ints, Floats]]:
    """For each sparse vector its indices (int32, from 0) and its values (float32), in parallel."""
    counts, indices, values = sparsevec_batch(sent)
    borders = pairwise(accumulate(counts.tolist(), initial=0))
    return [(indices[start:end], values[start:end]) for start, end in borders]


# Rows in the binary form of COPY, many at a time: building them value by value would cost as much as storing them.
#
# The layouts are those of PostgreSQL's `COPY … (FORMAT BINARY)` and array_recv, and of pgvector's halfvec_recv and
# sparsevec_recv, big-endian all of them. What comes back is read above.


#: What a stream of rows begins and ends with.
COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)


COPY_TRAILER = b"\xff\xff"


_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


_INT4_OID, _TEXT_OID = 23, 25


_NULL = b"\xff\xff\xff\xff"


_LENGTH = Struct(">i")


_COUNT = Struct(">h")


_INT4 = Struct(">ii")  # its length, the value


_ARRAY = Struct(">iiiiii")  # length, dimensions, whether it holds nulls, element type, elements, lower bound


_EMPTY_ARRAY = Struct(">iiii")


_SPARSEVEC = Struct(">iiii")  # length, dimension, elements, unused


_LEXICAL_HEAD = Struct(">hiiiqiiiqiqiiii")


_LEXICAL_FIELDS = 9


Integers = Sequence[int] | npt.NDArray[np.integer[Any]]


def microseconds(moment: datetime) -> int:
    """A timestamptz as it is sent."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def vector_rows(
    head: tuple[int, int, datetime],
    chunk_ids: Integers,
    version_ids: Integers,
    access_ids: Integers,
    embeddings: npt.NDArray[Any],
) -> bytes:
    """Rows (tenant, chunk, space, version, known from, access list, halfvec).

    Args:
        head: Tenant, space and known from, the same for all rows.
        chunk_ids: One a row.
        version_ids: One a row.
        access_ids: One a row.
        embeddings: Shape (rows, dimension), of any float type.
    """
    tenant_id, space_id, known_from = head
    count, dimension = embeddings.shape
    layout: list[tuple[str, str] | tuple[str, str, int]] = [("fields", ">i2")]
    values = {
        "tenant": (">i4", tenant_id),
        "chunk": (">i8", chunk_ids),
        "space": (">i4", space_id),
        "version": (">i8", version_ids),
        "known_from": (">i8", microseconds(known_from)),
        "access": (">i4", access_ids),
    }
    for name, (kind, _) in values.items():
        layout += [(f"{name}_length", ">i4"), (name, kind)]
    layout += [("length", ">i4"), ("dimension", ">i2"), ("unused", ">i2"), ("embedding", ">f2", dimension)]
    rows = np.zeros(count, dtype=layout)
    rows["fields"] = len(values) + 1
    for name, (kind, value) in values.items():
        rows[f"{name}_length"] = np.dtype(kind).itemsize
        rows[name] = value
    rows["length"] = 4 + 2 * dimension
    rows["dimension"] = dimension
    with np.errstate(over="ignore"):  # infinity is refused by the database, with the reason
        rows["embedding"] = embeddings
    return rows.tobytes()


def lexical_rows(
    head: tuple[int, int, datetime],
    chunk_ids: Integers,
    version_ids: Integers,
    access_ids: Integers,
    terms: Sequence[tuple[int, npt.NDArray[np.int32], npt.NDArray[np.float32]]],
    *,
    dimension: int,
) -> bytes:
    """Rows (tenant, chunk, collection, version, known from, access list, length, lexemes int[], weights sparsevec).

    Args:
        head: Tenant, collection and known from, the same for all rows.
        chunk_ids: One a row.
        version_ids: One a row.
        access_ids: One a row.
        terms: For each row its length, its lexemes (ascending, from 1) and their weights.
        dimension: Of the sparse vectors.
    """
    if not terms:
        return b""
    tenant_id, collection_id, known_from = head
    moment = microseconds(known_from)
    lexemes = np.concatenate([one[1] for one in terms]).astype(">i4")
    elements = np.empty((len(lexemes), 2), ">i4")
    elements[:, 0], elements[:, 1] = 4, lexemes
    as_array, as_indices = elements.tobytes(), (lexemes - 1).astype(">i4").tobytes()
    as_values = np.concatenate([one[2] for one in terms]).astype(">f4").tobytes()
    ends = list(accumulate(len(one[1]) for one in terms))
    parts: list[bytes] = []
    start = 0
    numbers = zip(chunk_ids, version_ids, access_ids, terms, ends, strict=True)
    for chunk_id, version_id, access_id, (length, _, _), end in numbers:
        count = end - start
        place = (4, tenant_id, 8, chunk_id, 4, collection_id, 8, version_id, 8, moment, 4, access_id)
        parts += (
            _LEXICAL_HEAD.pack(_LEXICAL_FIELDS, *place, 4, length),
            _ARRAY.pack(20 + 8 * count, 1, 0, _INT4_OID, count, 1) if count else _EMPTY_ARRAY.pack(12, 0, 0, _INT4_OID),
            as_array[8 * start : 8 * end],
            _SPARSEVEC.pack(12 + 8 * count, dimension, count, 0),
            as_indices[4 * start : 4 * end],
            as_values[4 * start : 4 * end],
        )
        start = end
    return b"".join(parts)


#: A field without a value.
NULL = b"\xff\xff\xff\xff"


def int4(value: int | None) -> bytes:
    """An int4 field, or NULL."""
    return _NULL if value is None else _INT4.pack(4, value)


def data(value: bytes) -> bytes:
    """A bytea field."""
    return _LENGTH.pack(len(value)) + value


def text(value: str) -> bytes:
    """A text field."""
    return data(value.encode("utf-8"))


def texts(values: Sequence[str]) -> bytes:
    """A text[] field."""
    if not values:
        return _EMPTY_ARRAY.pack(12, 0, 0, _TEXT_OID)
    elements = b"".join(map(text, values))
    return _ARRAY.pack(20 + len(elements), 1, 0, _TEXT_OID, len(values), 1) + elements


def jsonb(value: Mapping[str, Any]) -> bytes:
    """A jsonb field, of which the first byte is a version."""
    return data(b"\x01" + json.dumps(value).encode("utf-8"))


# Binary COPY into tables that row-level security guards, which refuse it.


_TARGET = re.compile(r"COPY (\w+) \(([\w\s,]+)\)\s+FROM STDIN \(FORMAT BINARY\)")


_INSERT: LiteralString = "INSERT INTO %s (%s) VALUES %s %s"


class Field:
    """A value that is in its binary form already, of the type of the column that it is stored in."""

    def __init__(self, value: bytes) -> None:
        self.value = value


class _FieldDumper(Dumper):
    format = Format.BINARY
    oid = 0

    def dump(self, obj: Field) -> bytes:
        return obj.value


def fields(rows: bytes) -> Iterator[list[Field | None]]:
    """The fields of rows in the binary form of COPY, row by row."""
    at = 0
    while at < len(rows):
        row: list[Field | None] = []
        (count,) = _COUNT.unpack_from(rows, at)
        at += _COUNT.size
        for _ in range(count):
            (length,) = _LENGTH.unpack_from(rows, at)
            at += _LENGTH.size
            row.append(None if length < 0 else Field(rows[at : at + length]))
            at += max(length, 0)
        yield row


def insert_into(
    connection: Connection, statement: LiteralString, rows: Sequence[Sequence[Any]], ending: LiteralString = ""
) -> None:
    """Store a few rows as `copy_into` does, in a sixth of its round trips.

    Args:
        connection: In a transaction.
        statement: As for `copy_into`.
        rows: Values in the order of its columns, `Field` among them.
        ending: What becomes of those that are there already.
    """
    if not rows:
        return
    table, names = _target(statement)
    line: LiteralString = f"({', '.join(['%s'] * len(rows[0]))})"
    insert: LiteralString = _INSERT % (table, names, ", ".join([line] * len(rows)), ending)
    connection.adapters.register_dumper(Field, _FieldDumper)
    # Statements of each length would drive others out of those that are kept prepared.
    connection.execute(insert, [value for row in rows for value in row], prepare=None if len(rows) == 1 else False)


@contextmanager
def plans_of_checks_kept(connection: Connection) -> Iterator[None]:
    """What is stored meanwhile is checked by plans that the session keeps (`_MOVE`)."""
    connection.execute(_KEEP)
    yield
    connection.execute(_KEEP_NO_MORE)


# No constraints and no indexes: the rows meet those on their way on.
_STAGE = sql.SQL(
    "CREATE TEMP TABLE {stage} WITH (toast_tuple_target = 8160) ON COMMIT {end} "
    "AS SELECT {columns} FROM {table} WITH NO DATA"
)


_COPY = sql.SQL("COPY pg_temp.{stage} ({columns}) FROM STDIN (FORMAT BINARY)")


# A foreign key is checked row by row, with a statement whose plan the session keeps. Transactions plan every statement
# each time (`TRANSACTIONS_SETTINGS`), and did so for that one too: for every row, longer than storing it takes. The
# plan that is kept uses the index however small the table is that it refers to.
_KEEP = sql.SQL("SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off; ")


_KEEP_NO_MORE = sql.SQL("SET LOCAL plan_cache_mode = {}; SET LOCAL enable_seqscan = {}").format(
    *(sql.Literal(TRANSACTIONS_SETTINGS[name]) for name in ("plan_cache_mode", "enable_seqscan"))
)


_MOVE = sql.SQL(
    "{keep} INSERT INTO {table} ({columns}) SELECT {columns} FROM pg_temp.{stage} {ending}; "
    "DELETE FROM pg_temp.{stage}; {keep_no_more}"
)


_STAGED = "SELECT to_regclass('pg_temp.' || %s) IS NOT NULL"


@contextmanager
def copy_into(connection: Connection, statement: LiteralString, ending: LiteralString = "") -> Iterator[Copy]:
    """Copy rows into a table, by way of a temporary one of the connection's own.

    PostgreSQL has no COPY into a table whose policies bind the role; INSERT, which checks them, it has.

    Args:
        connection: In a transaction.
        statement: ``COPY table (columns) FROM STDIN (FORMAT BINARY)``.
        ending: Of the statement that moves them on: in which order, and what becomes of those that are there already.
    """
    table, names = _target(statement)
    stage = f"staged_{table}"
    parts = {
        "table": sql.Identifier(table),
        "stage": sql.Identifier(stage),
        # Behind a pooler, somebody else has the session next.
        "end": sql.SQL("DROP" if is_pooled(connection) else "DELETE ROWS"),
        "ending": sql.SQL(ending),
        "keep": _KEEP,
        "keep_no_more": _KEEP_NO_MORE,
        "columns": sql.SQL(", ").join(sql.Identifier(name.strip()) for name in names.split(",")),
    }
    staged = connection.execute(_STAGED, (stage,)).fetchone()
    if not (staged and staged[0]):
        connection.execute(_STAGE.format(**parts))
    with connection.cursor().copy(_COPY.format(**parts)) as copy:
        yield copy
    connection.execute(_MOVE.format(**parts))


def _target(statement: LiteralString) -> tuple[Any, Any]:
    """The table and the columns that a statement copies into."""
    target = _TARGET.fullmatch(statement)
    if target is None:
        raise ValueError(f"Not a binary COPY into a table: {statement}")
    return target[1], target[2]
