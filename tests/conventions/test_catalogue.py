"""The catalogue that stores are compared with is what migrations and routines make. As a program: writes it anew.

A new migration changes the schema, so the catalogue is written anew with it, and its difference is what the migration
does. It must do that to a store in use as to a fresh one.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import psycopg
import pytest

from recollect.store import sql
from recollect.store.catalogue import DIGEST, differences, sound_digests
from recollect.store.migrate import complete_schema, migrate, replace_schema

FILE = Path(__file__).resolve().parents[2] / "src/recollect/store/sql/catalogue.txt"
ROWS = Path(__file__).resolve().parents[1] / "data/rows_0001.sql"


def made(connection: psycopg.Connection) -> list[str]:
    lines: list[str] = []
    with connection.transaction():
        connection.execute("SET LOCAL search_path = pg_catalog, public")
        for name in ("guards", "structure"):
            query = sql.queries("catalogue")[name]
            lines += [row[0] for row in connection.execute(query.replace("%%", "%"))]
    return sorted(lines)


def test_the_catalogue_is_what_migrations_and_routines_make(dsn: str):
    with psycopg.connect(dsn) as connection:
        assert FILE.read_text(encoding="utf-8").splitlines() == made(connection), f"run: python {Path(__file__).name}"
        assert differences(connection) == []
        connection.execute("SET LOCAL search_path = pg_catalog, public")
        assert connection.execute(DIGEST.replace("%%", "%")).fetchone()[0] == sound_digests()[0]


# From the first version to the last


@pytest.fixture(scope="module")
def first_version(clone: Callable[..., AbstractContextManager[str]]) -> Iterator[psycopg.Connection]:
    """A store of the first version, in use."""
    with clone("template0") as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        replace_schema(connection, 1)
        connection.execute("SET search_path = recollect, public")
        connection.execute(ROWS.read_text(encoding="utf-8"))
        # Functions may name tables that come later.
        connection.execute("SET check_function_bodies = off")
        for text in sql.routines():
            connection.execute(text)
        connection.execute("RESET check_function_bodies")
        yield connection


@pytest.fixture
def in_use(first_version: psycopg.Connection) -> Iterator[psycopg.Connection]:
    """The same, for each test as it was."""
    with first_version.transaction(force_rollback=True):
        yield first_version


def test_a_store_in_use_has_a_row_in_every_table(in_use: psycopg.Connection):
    for (table,) in in_use.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'recollect'::regnamespace AND relkind IN ('r', 'p') "
        "AND NOT relispartition AND relname <> 'schema_routines'"
    ).fetchall():
        assert in_use.execute(f"SELECT EXISTS (SELECT FROM {table})").fetchone() == (True,), table


def test_migrations_lead_a_store_in_use_to_the_schema_of_a_fresh_one(in_use: psycopg.Connection):
    complete_schema(in_use)
    assert made(in_use) == FILE.read_text(encoding="utf-8").splitlines()


def plant(monkeypatch: pytest.MonkeyPatch, migration: str) -> None:
    """Have one migration more."""
    known = sql.migrations()
    planted = (known[-1][0] + 1, f"{known[-1][0] + 1:04}_planted", migration)
    monkeypatch.setattr(sql, "migrations", lambda: [*known, planted])


@pytest.mark.parametrize(
    ("migration", "what"),
    [
        ("ALTER TABLE chunks ADD COLUMN note text", "column chunks.note"),
        ("ALTER TABLE chunks ALTER COLUMN page SET DEFAULT 1", "column chunks.page"),
        ("ALTER TABLE chunks ALTER COLUMN page TYPE bigint", "column chunks.page"),
        ("ALTER TABLE chunks ALTER COLUMN page SET STATISTICS 7", "column chunks.page"),
        ("ALTER TABLE chunks ALTER COLUMN text SET STORAGE EXTERNAL", "column chunks.text"),
        ("ALTER TABLE chunks DROP CONSTRAINT chunks_span", "constraint chunks_span on chunks"),
        ("CREATE INDEX more ON chunks (tenant_id, page)", "index more on chunks"),
        ("DROP INDEX document_versions_current", "index document_versions_current on document_versions"),
        ("ALTER INDEX chunk_lexical_lexemes SET (fastupdate = off)", "index chunk_lexical_lexemes on chunk_lexical"),
        ("ALTER TABLE audit_heads RESET (fillfactor)", "storage audit_heads"),
        ("ALTER SEQUENCE audit_numbers OWNED BY NONE", "sequence audit_numbers"),
        ("CREATE TABLE notes (tenant_id int PRIMARY KEY)", "policy tenant on notes"),
        ("CREATE FUNCTION more() RETURNS int LANGUAGE sql AS 'SELECT 1'", "function recollect.more()"),
    ],
)
def test_whatever_a_migration_changes_the_catalogue_tells(
    in_use: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, migration: str, what: str
):
    plant(monkeypatch, migration)
    complete_schema(in_use)
    changed = set(made(in_use)) ^ set(FILE.read_text(encoding="utf-8").splitlines())
    assert what in {line.partition(": ")[0] for line in changed}


def test_a_migration_that_depends_on_what_is_there_is_noticed(
    in_use: psycopg.Connection,
    clone: Callable[..., AbstractContextManager[str]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    plant(
        monkeypatch,
        "DO $$BEGIN IF EXISTS (SELECT FROM documents) THEN ALTER TABLE documents ADD COLUMN note text; "
        "ELSE ALTER TABLE documents ADD COLUMN note text NOT NULL; END IF; END$$",
    )
    complete_schema(in_use)
    with clone("template0") as fresh:
        migrate(fresh)
        with psycopg.connect(fresh) as connection:
            assert set(made(in_use)) ^ set(made(connection)) == {
                "column documents.note: text, statistics 0",
                "column documents.note: text not null, statistics 0",
            }
    assert caplog.messages == []


def test_a_migration_that_fails_on_rows_is_noticed(in_use: psycopg.Connection, monkeypatch: pytest.MonkeyPatch):
    plant(monkeypatch, "ALTER TABLE documents ADD COLUMN note text NOT NULL")
    with pytest.raises(psycopg.errors.NotNullViolation):
        complete_schema(in_use)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from recollect.store.embedded import EmbeddedServer
    from server import data_directory

    FILE.touch()
    # A store that differs from the old file is what this is for.
    logging.disable()
    with data_directory() as folder, EmbeddedServer(folder) as server:
        migrate(server)
        with psycopg.connect(server) as opened:
            FILE.write_text("\n".join(made(opened)) + "\n", encoding="utf-8")
