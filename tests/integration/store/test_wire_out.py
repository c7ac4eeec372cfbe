"""Rows built as bytes arrive as the values that they were built from."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.store import wire
from recollect.store.search import LEXEME_SPACE
from recollect.store.wire import halfvecs, sparsevecs

MOMENT = datetime(2024, 2, 29, 12, 0, 0, 123456, tzinfo=UTC)
BIG = 2**40


def sent(connection, table: str, *blocks: bytes):
    with connection.cursor().copy(f"COPY {table} FROM STDIN (FORMAT BINARY)") as copy:
        copy.write(wire.COPY_HEADER)
        for block in blocks:
            copy.write(block)
        copy.write(wire.COPY_TRAILER)
    return connection.execute(f"SELECT * FROM {table} ORDER BY 2", binary=True).fetchall()


@pytest.fixture
def connection(dsn: str):
    with psycopg.connect(dsn, autocommit=True) as opened:
        opened.execute(
            "CREATE TEMP TABLE v (tenant int, chunk int8, place int, version int8, moment timestamptz, access int,"
            " x halfvec);"
            "CREATE TEMP TABLE l (tenant int, chunk int8, place int, version int8, moment timestamptz, access int,"
            " length int, lexemes int[], weights sparsevec);"
            "CREATE TEMP TABLE t (number int, place int, bytes bytea, words text[], said text, facts jsonb)"
        )
        yield opened


ONCE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)


@ONCE
@given(
    st.integers(0, 20), st.integers(1, 400), st.sampled_from([np.float16, np.float32, np.float64]), st.integers(0, 9)
)
def test_vectors(connection, count: int, dimension: int, kind, seed: int):
    connection.execute("TRUNCATE v")
    vectors = np.random.default_rng(seed).normal(size=(count, dimension)).astype(kind)
    ids = [BIG + number for number in range(count)]
    found = sent(connection, "v", wire.vector_rows((7, 8, MOMENT), ids, ids, range(count), vectors))
    assert [row[:6] for row in found] == [(7, one, 8, one, MOMENT, number) for number, one in enumerate(ids)]
    if found:
        assert (halfvecs([row[6] for row in found]) == vectors.astype(np.float16).astype(np.float32)).all()


TERMS = st.lists(
    st.tuples(
        st.integers(0, 10**6),
        st.dictionaries(st.integers(1, LEXEME_SPACE), st.floats(0.0078125, 2.0, width=32), max_size=30),
    ),
    max_size=12,
)


@ONCE
@given(TERMS)
def test_lexical_rows(connection, terms: list[tuple[int, dict[int, float]]]):
    connection.execute("TRUNCATE l")
    rows = [
        (length, np.array(sorted(own), np.int32), np.array([own[key] for key in sorted(own)], np.float32))
        for length, own in terms
    ]
    ids = [BIG + number for number in range(len(rows))]
    head = (1, 2, MOMENT)
    half = len(rows) // 2
    blocks = [
        wire.lexical_rows(head, ids[at], ids[at], [9] * len(ids[at]), rows[at], dimension=LEXEME_SPACE)
        for at in (slice(half), slice(half, None))
    ]
    found = sent(connection, "l", *blocks)
    assert [row[:7] for row in found] == [(1, i, 2, i, MOMENT, 9, row[0]) for i, row in zip(ids, rows, strict=True)]
    for row, (indices, values), given_row in zip(found, sparsevecs([row[8] for row in found]), rows, strict=True):
        assert row[7] == given_row[1].tolist() == (indices + 1).tolist()
        assert values.tolist() == given_row[2].tolist()


PLAIN = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


@ONCE
@given(
    number=st.none() | st.integers(-(2**31), 2**31 - 1),
    data=st.binary(max_size=20),
    words=st.lists(PLAIN, max_size=4),
    said=PLAIN,
    facts=st.dictionaries(
        PLAIN, PLAIN | st.integers(-1000, 1000) | st.none() | st.lists(PLAIN, max_size=2), max_size=3
    ),
)
def test_single_values(connection, number, data, words, said, facts):
    connection.execute("TRUNCATE t")
    row = (
        (6).to_bytes(2, "big")
        + wire.int4(number)
        + wire.int4(None)
        + wire.data(data)
        + wire.texts(words)
        + wire.text(said)
        + wire.jsonb(facts)
    )
    assert sent(connection, "t", row) == [(number, None, data, words, said, facts)]


def test_numbers_that_are_none_are_refused_by_the_database(connection):
    bad = np.array([[1.0, 1e9]])
    with pytest.raises(psycopg.errors.DataException, match=r"infinite|range"):
        sent(connection, "v", wire.vector_rows((1, 1, MOMENT), [1], [1], [0], bad))


def test_no_rows_are_no_bytes():
    assert wire.lexical_rows((1, 1, MOMENT), [], [], [], [], dimension=9) == b""
    assert wire.vector_rows((1, 1, MOMENT), [], [], [], np.zeros((0, 3))) == b""
