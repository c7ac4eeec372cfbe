"""Backup and restore on real servers, with files as they come: right, wrong, cut off, from elsewhere."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from conftest import value
from recollect.errors import ConflictError, NotFoundError, StoreError, StoreUnavailableError, UsageError
from recollect.store import backup as backup_module
from recollect.store._server_account import make_reachable, server_account
from recollect.store._server_binaries import installation
from recollect.store.backup import backup, restore
from recollect.store.embedded import EmbeddedServer
from server import reachable_folder

# What makes a store hard to copy: vectors, an index over an expression, row-level security, a function, an identity.
STORE = """
    CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;
    CREATE SCHEMA recollect;
    CREATE TABLE recollect.documents (tenant_id bigint, id bigint GENERATED ALWAYS AS IDENTITY, title text,
        embedding halfvec, lexemes int4[], PRIMARY KEY (tenant_id, id));
    CREATE INDEX part ON recollect.documents USING hnsw ((embedding::halfvec(3)) halfvec_ip_ops) WHERE tenant_id = 1;
    CREATE INDEX lex ON recollect.documents USING gin (lexemes) WITH (fastupdate = off);
    ALTER TABLE recollect.documents ENABLE ROW LEVEL SECURITY;
    ALTER TABLE recollect.documents FORCE ROW LEVEL SECURITY;
    CREATE POLICY own ON recollect.documents USING (tenant_id = current_setting('recollect.tenant')::bigint);
    CREATE FUNCTION recollect.titles() RETURNS SETOF text LANGUAGE sql SECURITY DEFINER
        SET search_path = recollect, public AS 'SELECT title FROM documents ORDER BY id';
"""
ROWS = """
    INSERT INTO recollect.documents (tenant_id, title, embedding, lexemes)
    SELECT 1, 'título ' || n || repeat(' مرحبا \\ ', 40), ('[' || n || ',0.5,1]')::halfvec, ARRAY[n, n % 7]
    FROM generate_series(1, 2000) AS n
"""
DIGEST = "SELECT md5(string_agg(d::text, '|' ORDER BY id)) FROM recollect.documents d"


@pytest.fixture(scope="module")
def server(pristine_data_dir: Path) -> Iterator[str]:
    with reachable_folder() as folder:
        subprocess.run(["cp", "-a", str(pristine_data_dir), str(folder / "data")], check=True)
        with EmbeddedServer(folder / "data") as dsn:
            yield dsn


@pytest.fixture
def database(server: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database of the test's own, with nothing in it."""
    name = sql.Identifier(f"db_{abs(hash(request.node.nodeid))}")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
        yield psycopg.conninfo.make_conninfo(server, dbname=name._obj[0])
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


def run(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.fixture(scope="module")
def source(server: str) -> str:
    run(server, STORE, ROWS)
    return server


@pytest.fixture(scope="module")
def saved(source: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("saved") / "store.backup"
    report = backup(source, file)
    assert report.file == file
    assert report.bytes_written == file.stat().st_size > 1000
    return file


def test_a_round_trip_brings_everything_back(source, saved, database):
    restore(database, saved)
    assert value(database, DIGEST) == value(source, DIGEST)
    assert value(database, "SELECT count(*) FROM recollect.titles()") == 2000
    assert value(database, "SELECT count(*) FROM pg_indexes WHERE schemaname = 'recollect'") == 3
    assert value(database, "SELECT relforcerowsecurity FROM pg_class WHERE relname = 'documents'") is True
    run(database, "INSERT INTO recollect.documents (tenant_id, title) VALUES (1, 'next')")
    assert value(database, "SELECT max(id) FROM recollect.documents") == 2001


def test_a_restored_store_has_statistics(saved, database):
    restore(database, saved)
    assert value(database, "SELECT reltuples FROM pg_class WHERE oid = 'recollect.documents'::regclass") == 2000


def test_a_store_without_documents_is_replaced_and_one_with_documents_is_not(saved, database):
    run(database, STORE, "CREATE TABLE recollect.extra ()")
    restore(database, saved)
    assert value(database, "SELECT to_regclass('recollect.extra')") is None
    run(database, "DELETE FROM recollect.documents WHERE id > 1")
    with pytest.raises(ConflictError, match="has documents"):
        restore(database, saved)
    assert value(database, "SELECT count(*) FROM recollect.documents") == 1
    restore(database, saved, force=True)
    assert value(database, "SELECT count(*) FROM recollect.documents") == 2000


def test_a_cut_off_backup_changes_nothing(saved, database, tmp_path):
    run(database, STORE, "INSERT INTO recollect.documents (tenant_id, title) VALUES (1, 'mine')")
    content = saved.read_bytes()
    cut = tmp_path / "cut.backup"
    for length in (5, 200, len(content) // 3, len(content) * 2 // 3, len(content) - 500, len(content) - 1):
        cut.write_bytes(content[:length])
        with pytest.raises(UsageError, match="cut off, damaged"):
            restore(database, cut, force=True)
        assert value(database, "SELECT title FROM recollect.documents") == "mine"


def test_a_backup_with_a_changed_byte_changes_nothing(saved, database, tmp_path):
    content = bytearray(saved.read_bytes())
    content[len(content) * 3 // 4] ^= 0xFF
    bad = tmp_path / "bad.backup"
    bad.write_bytes(content)
    with pytest.raises((UsageError, StoreError)):
        restore(database, bad)
    assert value(database, "SELECT to_regnamespace('recollect')") is None


@pytest.mark.parametrize("content", [b"", b"%PDF-1.7 not a dump", b"PGDM", b"\x00" * 100, b"CREATE TABLE t ();"])
def test_a_file_that_is_no_backup_is_refused(source, tmp_path, content):
    file = tmp_path / "letter"
    file.write_bytes(content)
    with pytest.raises(UsageError, match="is not a backup"):
        restore(source, file, force=True)


def test_a_backup_of_another_database_is_refused(database, tmp_path, source):
    run(database, "CREATE TABLE public.theirs (n int)")
    file = tmp_path / "theirs"
    subprocess.run([backup_module.program("pg_dump"), "-Fc", "-f", str(file), "-d", database], check=True)
    with pytest.raises(UsageError, match="another database"):
        restore(source, file, force=True)
    assert value(source, "SELECT count(*) FROM recollect.documents") == 2000


def test_a_missing_backup_or_a_folder(source, tmp_path):
    with pytest.raises(NotFoundError, match="There is no backup"):
        restore(source, tmp_path / "missing")
    with pytest.raises(UsageError, match="cannot be read"):
        restore(source, tmp_path)


def test_existing_files_are_kept_unless_told_otherwise(source, tmp_path):
    file = tmp_path / "b"
    file.write_text("precious", encoding="ascii")
    with pytest.raises(ConflictError, match="exists already"):
        backup(source, file)
    assert file.read_text(encoding="ascii") == "precious"
    backup(source, file, overwrite=True)
    assert file.read_bytes().startswith(b"PGDMP")
    assert file.stat().st_mode & 0o077 == 0


def test_a_failed_backup_leaves_nothing(database, tmp_path):
    with pytest.raises(NotFoundError, match="nothing to back up"):
        backup(database, tmp_path / "b")
    with pytest.raises(NotFoundError, match="no folder"):
        backup(database, tmp_path / "missing" / "b")
    with pytest.raises(UsageError, match="is a folder"):
        backup(database, tmp_path)
    with pytest.raises(StoreUnavailableError):
        backup("host=/nonexistent", tmp_path / "b")
    run(database, STORE, "CREATE FUNCTION recollect.f() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    # A dump that breaks off midway: the catalogue names a library that is not there.
    run(database, "UPDATE pg_class SET relam = 999 WHERE relname = 'lex'")
    with pytest.raises(StoreError):
        backup(database, tmp_path / "b")
    assert list(tmp_path.iterdir()) == []


def test_a_server_newer_than_our_programs_is_named(source, tmp_path, monkeypatch):
    monkeypatch.setattr(backup_module, "MAJOR_VERSION", 17)
    with pytest.raises(StoreUnavailableError, match="newer than this pg_dump"):
        backup(source, tmp_path / "b")


def test_the_password_is_not_among_the_arguments():
    arguments, extra = backup_module._connection_arguments("postgresql://me:s3cret@db/x?application_name=a%20b")
    assert "s3cret" not in " ".join(arguments)
    assert extra == {"PGPASSWORD": "s3cret"}


@pytest.fixture
def older_server(tmp_path: Path) -> Iterator[str]:
    """A PostgreSQL 16 that is none of recollect's, with pgvector: the wheel has one."""
    programs = installation().parent / "pginstall" / "bin"
    if not (programs / "postgres").exists():
        pytest.skip("the wheel has no PostgreSQL 16")
    account = server_account(tmp_path, tmp_path / "absent")
    identity = {"user": account.uid, "group": account.gid, "extra_groups": []} if account else {}
    home = tmp_path / "older"
    home.mkdir()
    if account:
        os.chown(home, account.uid, account.gid)
        make_reachable(home, account)

    def run_as_server(name: str, *arguments: str) -> None:
        command = [str(programs / name), *arguments]
        subprocess.run(command, cwd=home, check=True, stdout=subprocess.DEVNULL, **identity)

    run_as_server("initdb", "-D", "pg", "-U", "postgres", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C")
    run_as_server("pg_ctl", "start", "-w", "-D", "pg", "-l", "log", "-o", "-h '' -k .. -F")
    yield psycopg.conninfo.make_conninfo("", host=str(home), user="postgres", dbname="postgres")
    run_as_server("pg_ctl", "stop", "-w", "-m", "immediate", "-D", "pg")


def test_a_store_moves_to_an_older_server_and_back(source, saved, older_server, database, tmp_path):
    restore(older_server, saved)
    assert value(older_server, DIGEST) == value(source, DIGEST)
    backup(older_server, tmp_path / "b")
    restore(database, tmp_path / "b")
    assert value(database, DIGEST) == value(source, DIGEST)
