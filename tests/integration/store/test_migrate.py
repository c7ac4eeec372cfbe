"""Migrations on real databases."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from recollect.errors import SchemaVersionError, StoreCorruptError, StoreError, StoreUnavailableError
from recollect.store.backup import backup
from recollect.store.catalogue import differences
from recollect.store.migrate import code_schema_version, migrate, replace_schema
from recollect.store.sql import migrations, routines, with_includes

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
    assert first.applied[0] == "0001_baseline"
    assert migrate(empty).applied == ()
    assert advisory_locks(empty) == 0


def test_a_queue_that_has_changed_is_not_made_of_what_nobody_looked_at():
    text = f"-- include procrastinate sql/schema.sql {'0' * 64}"
    with pytest.raises(StoreError, match=r"installed procrastinate [0-9.]+ has another sql/schema.sql"):
        with_includes(text)


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


def test_an_access_log_in_partitions_takes_the_outcomes_of_this_version(empty: str):
    insert = (
        "INSERT INTO recollect.access_log (tenant_id, at, actor, action, outcome) VALUES (1, {}, 'local', 'ask', '{}')"
    )
    # Of which the partition of this month, and the one of all other times, hold a row.
    times = ("now()", "now() - interval '9 years'")
    with psycopg.connect(empty, autocommit=True) as connection:
        replace_schema(connection, 26)
        connection.execute("SET search_path = recollect, public")
        connection.execute("SET check_function_bodies = off")
        for text in routines():
            connection.execute(text)
        connection.execute("SELECT make_time_partitions('access_log', 'month', 1)")
        for at in times:
            connection.execute(insert.format(at, "refused"))
            with pytest.raises(psycopg.errors.CheckViolation):
                connection.execute(insert.format(at, "passages"))
    assert migrate(empty).applied[0] == "0027_passages"
    with psycopg.connect(empty, autocommit=True) as connection:
        for at in times:
            for outcome in ("nothing", "low", "passages", "refused"):
                connection.execute(insert.format(at, outcome))
            with pytest.raises(psycopg.errors.CheckViolation):
                connection.execute(insert.format(at, "other"))
        counts = connection.execute("SELECT count(*) FROM recollect.access_log GROUP BY tableoid").fetchall()
    assert counts == [(5,), (5,)]


def test_a_migration_that_was_applied_with_other_content_is_noticed(dsn: str):
    execute(dsn, "UPDATE recollect.schema_migrations SET checksum = 'other' WHERE version = 1")
    with pytest.raises(StoreCorruptError, match="0001_baseline"):
        migrate(dsn)


def test_a_store_from_before_the_first_release_is_refused_and_left_alone(dsn: str, tmp_path: Path):
    execute(
        dsn,
        "DELETE FROM recollect.schema_migrations WHERE version > 1; "
        "UPDATE recollect.schema_migrations SET name = '0001_foundation', checksum = 'x'; "
        "INSERT INTO recollect.schema_migrations (version, name, checksum) "
        "SELECT n, 'of then', 'x' FROM generate_series(2, 22) n; "
        "ALTER TABLE recollect.documents DROP COLUMN twin CASCADE; "
        "UPDATE recollect.schema_routines SET checksum = 'other'; "
        "CREATE FUNCTION recollect.of_then() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    )
    with psycopg.connect(dsn) as connection:
        before = differences(connection)
        rows = connection.execute("SELECT * FROM recollect.schema_migrations ORDER BY 1").fetchall()
    for attempt in (migrate, lambda dsn: migrate(dsn, own_server=True), lambda dsn: backup(dsn, tmp_path / "b")):
        with pytest.raises(
            SchemaVersionError, match=r"before the first release.*tenants export default.*--data-dir"
        ) as told:
            attempt(dsn)
        for left_behind in ("history", "deleted and expired", "sessions", "every tenant that you do not export"):
            assert left_behind in str(told.value).partition("leaves behind")[2]
    with psycopg.connect(dsn) as connection:
        assert differences(connection) == before != []
        assert connection.execute("SELECT * FROM recollect.schema_migrations ORDER BY 1").fetchall() == rows
    assert advisory_locks(dsn) == 0 and list(tmp_path.iterdir()) == []


def test_routines_of_another_version_are_replaced_and_what_only_it_had_is_dropped(dsn: str):
    create = "CREATE FUNCTION recollect.{}(int) RETURNS int LANGUAGE sql AS 'SELECT 1'"
    execute(dsn, "UPDATE recollect.schema_routines SET checksum = 'other'")
    execute(
        dsn,
        f"DROP FUNCTION recollect.dense_candidates; {create.format('dense_candidates')}; {create.format('of_then')}",
    )
    # One whose parameters had other names or that returned something else: both cannot be replaced as they stand.
    drop = "DROP FUNCTION recollect.{0}; "
    other = drop + "CREATE FUNCTION recollect.{0}({1}) RETURNS {2} LANGUAGE sql AS 'SELECT NULL::{2}'"
    execute(dsn, other.format("enqueue_jobs", "p_one int, p_other bigint[]", "int"))
    execute(dsn, other.format("require_tenant", "p_other int", "text"))
    assert migrate(dsn).applied == ()
    with psycopg.connect(dsn) as connection:
        assert differences(connection) == []
    # Beside this version's own routines it is not an older version's: it is left, and told.
    execute(dsn, create.format("of_mine"))
    migrate(dsn)
    with psycopg.connect(dsn) as connection:
        told = {one.partition(":")[0] for one in differences(connection)}
    assert told == {"function recollect.of_mine(integer)", "grant on function recollect.of_mine(integer) to public"}


def test_an_index_that_is_missing_changed_or_not_valid_is_told_and_one_more_is_not(dsn: str):
    execute(
        dsn,
        "SET search_path = recollect; DROP INDEX documents_by_edition_group; "
        "CREATE INDEX more ON documents (tenant_id, owner); "
        "ALTER INDEX episode_lexical_lexemes SET (fastupdate = off); "
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'document_versions_current'::regclass",
    )
    with psycopg.connect(dsn) as connection:
        told = [one.partition(":")[0] for one in differences(connection)]
    assert told == [
        "index document_versions_current on document_versions",
        "index documents_by_edition_group on documents",
        "index episode_lexical_lexemes on episode_lexical",
    ]


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_that_cannot_hold_every_text_is_refused(server_dsn: str, encoding: str):
    name = f"encoded_{encoding.lower()}"
    execute(
        server_dsn, f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE_PROVIDER libc LOCALE 'C'"
    )
    try:
        with pytest.raises(StoreError, match=f"encoding {encoding}.*ENCODING 'UTF8' TEMPLATE template0"):
            migrate(make_conninfo(server_dsn, dbname=name))
    finally:
        execute(server_dsn, f"DROP DATABASE {name} WITH (FORCE)")


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
