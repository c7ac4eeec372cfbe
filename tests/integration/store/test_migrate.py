"""Migrations on real databases."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from recollect.errors import SchemaVersionError, StoreCorruptError, StoreError, StoreUnavailableError
from recollect.store.migrate import code_schema_version, migrate
from recollect.store.sql import migrations

NUMBERS = itertools.count(1)


@pytest.fixture
def empty(server_dsn: str) -> Iterator[str]:
    """A database in which nothing was ever made."""
    name = f"empty_{next(NUMBERS)}"
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
    yield make_conninfo(server_dsn, dbname=name)
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def execute(dsn: str, statement: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(statement)


def advisory_locks(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        return connection.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        ).fetchone()[0]


def test_a_fresh_database_gets_everything_and_a_second_run_nothing(empty: str):
    first = migrate(empty)
    assert first.schema_version == code_schema_version()
    assert first.applied[0] == "0001_foundation"
    assert migrate(empty).applied == ()
    assert advisory_locks(empty) == 0


def test_four_processes_at_once_apply_each_migration_once(empty: str):
    code = "import sys; from recollect.store.migrate import migrate; print(len(migrate(sys.argv[1]).applied))"
    running = [
        subprocess.Popen([sys.executable, "-c", code, empty], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    results = [process.communicate() for process in running]
    assert [process.returncode for process in running] == [0] * 4, results
    assert sorted(int(out) for out, _ in results) == [0, 0, 0, len(migrations())]
    assert advisory_locks(empty) == 0


def test_a_newer_schema_is_refused_and_left_alone(dsn: str):
    execute(dsn, "INSERT INTO recollect.schema_migrations (version, name, checksum) VALUES (9999, 'future', 'x')")
    with pytest.raises(SchemaVersionError, match=r"9999.*Upgrade recollect"):
        migrate(dsn)
    assert advisory_locks(dsn) == 0


def test_a_migration_that_was_applied_with_other_content_is_noticed(dsn: str):
    execute(dsn, "UPDATE recollect.schema_migrations SET checksum = 'other' WHERE version = 1")
    with pytest.raises(StoreCorruptError, match="0001_foundation"):
        migrate(dsn)


def test_routines_of_another_version_are_replaced(dsn: str):
    execute(dsn, "UPDATE recollect.schema_routines SET checksum = 'other'")
    execute(dsn, "DROP FUNCTION recollect.search_dense")
    assert migrate(dsn).applied == ()
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT to_regproc('recollect.search_dense')").fetchone() != (None,)


def test_an_unknown_server_and_a_bad_dsn_are_told_apart():
    with pytest.raises(StoreUnavailableError, match="Cannot connect"):
        migrate("host=/nonexistent dbname=x")
    with pytest.raises(StoreUnavailableError, match="Not a PostgreSQL DSN"):
        migrate("this is no dsn")


def test_a_role_that_may_not_make_a_schema_is_told_what_it_lacks(empty: str):
    execute(empty, "CREATE EXTENSION vector")
    execute(empty, "CREATE ROLE makes_nothing LOGIN")
    try:
        with pytest.raises(StoreError, match=r'GRANT CREATE ON DATABASE ".*" TO "makes_nothing"') as caught:
            migrate(make_conninfo(empty, user="makes_nothing"))
        assert "permission denied for database" in str(caught.value)
    finally:
        execute(empty, "DROP ROLE makes_nothing")
