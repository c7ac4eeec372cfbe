"""Backup and restore on real servers, with files as they come: right, wrong, cut off, from elsewhere, from an enemy."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pwd
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from conftest import value
from hostile import EFFORT
from recollect import Document, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import (
    ConflictError,
    NotFoundError,
    RecollectError,
    SchemaVersionError,
    StoreUnavailableError,
    UsageError,
)
from recollect.model import Scope
from recollect.store import restore as restore_module
from recollect.store._server_account import installation
from recollect.store.backup import NewArchive, backup
from recollect.store.migrate import code_schema_version, migrate, replace_schema
from recollect.store.restore import build_indexes, restore
from recollect.store.sql import migrations
from server import reachable_folder

TABLES = """
    SELECT relname::text FROM pg_class WHERE relnamespace = 'recollect'::regnamespace AND relkind IN ('r', 'p')
    AND NOT relispartition AND relname NOT IN ('schema_migrations', 'schema_routines') ORDER BY 1
"""


def digests(dsn: str) -> dict[str, str]:
    """Every table's rows, whatever their order."""
    with psycopg.connect(dsn) as connection:
        names = [name for (name,) in connection.execute(TABLES)]
        statement = "SELECT md5(coalesce(string_agg(t::text, '|' ORDER BY t::text), '')) FROM recollect.{} t"
        found = {}
        for name in names:
            row = connection.execute(sql.SQL(statement).format(sql.Identifier(name))).fetchone()
            found[name] = row[0] if row else ""
        return found


@pytest.fixture(scope="module")
def made(maintenance: psycopg.Connection, server_dsn: str) -> Iterator[Callable[[], str]]:
    """Makes empty databases."""
    names: list[str] = []

    def make() -> str:
        names.append(f"backup_{len(names)}")
        maintenance.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(names[-1])))
        return make_conninfo(server_dsn, dbname=names[-1])

    yield make
    for name in names:
        maintenance.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(scope="module")
def scratch(made: Callable[[], str]) -> str:
    return made()


@pytest.fixture
def database(scratch: str) -> str:
    """A database with nothing in it."""
    run(scratch, "DROP SCHEMA IF EXISTS recollect CASCADE")
    return scratch


@pytest.fixture(scope="module")
def in_use(made: Callable[[], str]) -> tuple[str, dict[str, str]]:
    """A store that no refused backup may change, and what it holds."""
    dsn = made()
    migrate(dsn)
    run(dsn, "INSERT INTO recollect.tenants (tenant_id, name) VALUES (7, 'mine')")
    return dsn, digests(dsn)


@pytest.fixture(scope="module")
def source(made: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with something in most of its tables."""
    dsn = made()
    config = RAGConfig.load(
        storage={"data_dir": tmp_path_factory.mktemp("unused"), "dsn": dsn}, embedding={"provider": "hashing"}
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        for text in (
            "# Leave\n\nThirty days, título مرحبا \\ \x0b of leave.",
            "# Leave\n\nThirty-one days of leave now.",
        ):
            rag.ingest(
                [
                    Document(content=text, source="hr/leave.md", tags=("hr",), permissions=("role:hr",)),
                    Document(content=f"An old paper: {text}", source="old.md", metadata={"year": 2020}),
                ]
            )
        rag.ingest("goodbye to this", force=True)
        rag.documents.delete(["old.md"])
        rag.view(session="s1").remember(["How many days of leave are there?", "Thirty-one days."])
        rag.recall("days of leave")
    return dsn


@pytest.fixture(scope="module")
def saved(source: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("saved") / "store.backup"
    report = backup(source, file)
    assert report.file == file
    assert report.bytes_written == file.stat().st_size > 1000
    return file


def changed(saved: Path, target: Path, change: Callable[[dict[str, Any], dict[str, bytes]], None]) -> Path:
    """The backup with its manifest and members changed, hashes and sizes made to fit: as an enemy writes it."""
    with zipfile.ZipFile(saved) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        members = {name: archive.read(name) for name in archive.namelist() if name != "manifest.json"}
    change(manifest, members)
    for table, entry in manifest["tables"].items():
        data = members.get(f"tables/{table}.copy", b"")
        entry |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        archive.writestr("manifest.json", json.dumps(manifest))
    return target


def run(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def copied(dsn: str, query: str) -> bytes:
    out = io.BytesIO()
    with psycopg.connect(dsn) as connection, connection.cursor().copy(f"COPY ({query}) TO STDOUT (FORMAT binary)") as c:
        for block in c:
            out.write(block)
    return out.getvalue()


def test_a_round_trip_brings_every_row_back_and_the_next_number(source, saved, database, tmp_path):
    restore(database, saved)
    before = digests(source)
    assert digests(database) == before
    assert sum(digest != before["closed_row_segments"] for digest in before.values()) > 15
    indexes = "SELECT count(*) FROM pg_indexes WHERE schemaname = 'recollect'"
    assert value(database, indexes) == value(source, indexes)
    for name in ("documents_document_id_seq", "chunks_chunk_id_seq", "access_ids"):
        last = f"SELECT last_value FROM recollect.{name}"
        assert value(database, last) == value(source, last)
    config = RAGConfig.load(storage={"data_dir": tmp_path, "dsn": database}, embedding={"provider": "hashing"})
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        assert rag.tenants.isolation().in_force
        assert rag.maintenance.check() == []
        assert rag.ingest("one more").status == "added"
        assert any("Thirty-one" in found.content for found in rag.retrieve("days of leave"))


def test_a_restored_store_has_statistics(saved, database):
    restore(database, saved)
    counted = "SELECT reltuples FROM pg_class WHERE oid = 'recollect.documents'::regclass"
    assert value(database, counted) == value(database, "SELECT count(*) FROM recollect.documents")


def test_a_store_in_use_is_not_replaced_unless_forced(saved, source, database):
    migrate(database)
    restore(database, saved)
    for table in ("sessions", "documents"):
        with pytest.raises(ConflictError, match="has documents, conversations or tenants"):
            restore(database, saved)
        run(database, f"DELETE FROM recollect.{table}")
    run(database, "INSERT INTO recollect.tenants (tenant_id, name) VALUES (2, 'other')")
    with pytest.raises(ConflictError):
        restore(database, saved)
    restore(database, saved, force=True)
    assert digests(database) == digests(source)


def test_large_collections_get_their_indexes_again(saved, database, tmp_path):
    restore(database, saved)
    config = RAGConfig.load(
        storage={"data_dir": tmp_path, "dsn": database, "index_threshold": 1}, embedding={"provider": "hashing"}
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        place = rag.collections.list()[0]
        assert not place.indexed
        build_indexes(rag.store)
        assert rag.store.collections.get(Scope(), place.name).indexed


def test_a_backup_of_an_older_schema_is_brought_up_to_date(made, database, tmp_path, monkeypatch):
    older = made()
    now = code_schema_version()
    known = migrations()
    later = (now + 1, f"{now + 1:04}_later", "ALTER TABLE collections ADD COLUMN note text NOT NULL DEFAULT 'none'")
    monkeypatch.setattr("recollect.store.sql.migrations", lambda: [*known, later])
    with psycopg.connect(older) as connection:
        replace_schema(connection, now)
        connection.execute(
            "INSERT INTO recollect.collections (tenant_id, name, embedding_model, embedding_dimension) "
            "VALUES (1, 'mine', 'm', 3)"
        )
    backup(older, tmp_path / "b")
    restore(database, tmp_path / "b")
    assert value(database, "SELECT name || ' ' || note FROM recollect.collections") == "mine none"
    assert value(database, "SELECT max(version) FROM recollect.schema_migrations") == code_schema_version()
    assert migrate(database).applied == ()


def test_a_backup_is_one_moment_while_others_write(saved, made, database, tmp_path, monkeypatch):
    made_copy = made()
    restore(made_copy, saved)
    before = digests(made_copy)
    write = NewArchive.table

    def and_meanwhile(self, name, columns, blocks, rows):
        write(self, name, columns, blocks, rows)
        run(
            made_copy,
            f"INSERT INTO recollect.tenants (tenant_id, name) SELECT max(tenant_id) + 1, '{name}' "
            "FROM recollect.tenants",
        )

    monkeypatch.setattr(NewArchive, "table", and_meanwhile)
    backup(made_copy, tmp_path / "b")
    restore(database, tmp_path / "b")
    assert digests(database) == before


def test_rows_that_a_policy_hides_are_an_error_and_never_missing(made, saved, tmp_path):
    hidden = made()
    restore(hidden, saved)
    run(
        hidden,
        "DROP ROLE IF EXISTS half_owner",
        "CREATE ROLE half_owner LOGIN",
        "GRANT USAGE ON SCHEMA recollect TO half_owner",
        "GRANT SELECT ON ALL TABLES IN SCHEMA recollect TO half_owner",
    )
    try:
        with pytest.raises(RecollectError, match="row-level security"):
            backup(make_conninfo(hidden, user="half_owner"), tmp_path / "b")
        assert list(tmp_path.iterdir()) == []
    finally:
        run(hidden, "DROP OWNED BY half_owner", "DROP ROLE half_owner")


# What is in a file


def test_nothing_of_a_store_but_its_rows_travels(source, made, database, tmp_path):
    planted = made()
    backup(source, tmp_path / "clean")
    restore(planted, tmp_path / "clean")
    run(
        planted,
        "CREATE FUNCTION recollect.evil(text) RETURNS boolean LANGUAGE plpgsql AS "
        "$$ BEGIN IF current_database() LIKE 'backup_%' THEN CREATE TABLE IF NOT EXISTS public.owned (); END IF; "
        "RETURN true; END $$",
        "ALTER TABLE recollect.tenants ADD CHECK (recollect.evil(name)) NOT VALID",
        "CREATE TRIGGER evil AFTER INSERT ON recollect.documents EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "CREATE VIEW recollect.peep AS SELECT * FROM recollect.tenants",
    )
    backup(planted, tmp_path / "b")
    restore(database, tmp_path / "b")
    assert value(database, "SELECT to_regclass('public.owned')") is None
    assert value(database, "SELECT to_regproc('recollect.evil')") is None
    assert value(database, "SELECT to_regclass('recollect.peep')") is None
    triggers = "SELECT array_agg(tgname::text ORDER BY tgname) FROM pg_trigger WHERE NOT tgisinternal"
    assert value(database, triggers) == value(source, triggers)


def test_an_archive_of_statements_is_refused_with_what_to_do(source, database, tmp_path):
    file = tmp_path / "dumped"
    subprocess.run(
        [installation() / "bin" / "pg_dump", "-Fc", "-n", "recollect", "-f", str(file), "-d", source], check=True
    )
    with pytest.raises(UsageError, match=r"is a pg_dump archive.*Restore it with the recollect that wrote it"):
        restore(database, file)
    assert value(database, "SELECT to_regnamespace('recollect')") is None


def add_table(manifest, members):
    manifest["tables"]["evil"] = {"columns": ["a"], "rows": 0, "bytes": 0, "sha256": ""}
    members["tables/evil.copy"] = b""


def add_column(manifest, members):
    manifest["tables"]["tenants"]["columns"].append("x\") FROM PROGRAM 'id' --")


def add_member(manifest, members):
    members["post-data.sql"] = b"SELECT 1"


def escape_the_folder(manifest, members):
    members["../../etc/cron.d/evil"] = b"* * * * * root id"


def leave_out(manifest, members):
    del manifest["tables"]["chunks"], members["tables/chunks.copy"]


def add_sequence(manifest, members):
    manifest["sequences"]["evil"] = 1


def end_a_sequence(manifest, members):
    manifest["sequences"]["documents_document_id_seq"] = 2**63 - 1


def count_wrong(manifest, members):
    manifest["tables"]["documents"]["rows"] += 1


def an_orphan(manifest, members):
    members["tables/collections.copy"] = b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\xff\xff"
    manifest["tables"]["collections"]["rows"] = 0


def no_rows_at_all(manifest, members):
    members["tables/documents.copy"] = b"DROP TABLE documents; --"


def other_migrations(manifest, members):
    manifest["schema_digest"] = "0" * 64


def unknown_key(manifest, members):
    manifest["run"] = "SELECT 1"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (add_table, "the table 'evil'"),
        (add_column, "FROM PROGRAM"),
        (add_member, "post-data.sql"),
        (escape_the_folder, "etc/cron.d/evil"),
        (leave_out, "the table 'chunks'"),
        (add_sequence, "the sequence 'evil'"),
        (end_a_sequence, "documents_document_id_seq"),
        (count_wrong, "rows of 'documents' instead of"),
        (an_orphan, "violates foreign key"),
        (no_rows_at_all, "COPY file signature not recognized"),
        (other_migrations, "migrations are not this recollect's"),
        (unknown_key, "at 'run'"),
    ],
)
def test_what_has_no_place_in_the_schema_is_refused_by_its_name(saved, in_use, tmp_path, change, says):
    database, before = in_use
    with pytest.raises(UsageError) as caught:
        restore(database, changed(saved, tmp_path / "b", change), force=True)
    assert says in str(caught.value)
    assert digests(database) == before


@pytest.mark.parametrize(
    ("table", "columns", "query", "says"),
    [
        ("tenants", ["tenant_id", "name"], "SELECT 1, 'a'::text UNION ALL SELECT 1, 'b'", "duplicate key"),
        ("tenants", ["tenant_id", "name"], "SELECT 1::bigint, 'a'::text", "incorrect binary data format"),
    ],
)
def test_rows_that_the_schema_refuses_are_refused_as_a_whole(
    saved, source, database, tmp_path, table, columns, query, says
):
    def replace_rows(manifest, members):
        all_columns = manifest["tables"][table]["columns"]
        picked = ", ".join(
            f"t.{name}" if name in columns else f"(SELECT {name} FROM recollect.{table} LIMIT 1)"
            for name in all_columns
        )
        statement = f"SELECT {picked} FROM ({query}) AS t ({', '.join(columns)})"
        members[f"tables/{table}.copy"] = copied(source, statement)

    with pytest.raises(UsageError, match=says):
        restore(database, changed(saved, tmp_path / "b", replace_rows))
    assert value(database, "SELECT to_regnamespace('recollect')") is None


def test_a_newer_store_is_refused(saved, database, tmp_path):
    def newer(manifest, members):
        manifest["schema_version"] = code_schema_version() + 1

    with pytest.raises(SchemaVersionError, match="a newer one, or one from before the first release"):
        restore(database, changed(saved, tmp_path / "b", newer))


def test_a_cut_off_backup_changes_nothing(saved, database, tmp_path):
    content = saved.read_bytes()
    cut = tmp_path / "cut.backup"
    for length in (5, 200, len(content) // 3, len(content) * 2 // 3, len(content) - 500, len(content) - 1):
        cut.write_bytes(content[:length])
        with pytest.raises(UsageError, match="cut off, damaged"):
            restore(database, cut, force=True)
    assert value(database, "SELECT to_regnamespace('recollect')") is None


def test_a_changed_byte_anywhere_changes_nothing(saved, database, tmp_path):
    content = saved.read_bytes()
    bad = tmp_path / "bad.backup"
    for place in range(10, len(content), max(1, len(content) // (6 * EFFORT))):
        changed_bytes = bytearray(content)
        changed_bytes[place] ^= 0xFF
        bad.write_bytes(changed_bytes)
        try:
            restore(database, bad)
        except RecollectError:
            assert value(database, "SELECT to_regnamespace('recollect')") is None
        else:
            # Times and flags of the ZIP's own, which nothing reads.
            run(database, "DROP SCHEMA recollect CASCADE")


@pytest.mark.parametrize("content", [b"", b"%PDF-1.7 not a dump", b"PGDM", b"\x00" * 100, b"CREATE TABLE t ();"])
def test_a_file_that_is_no_backup_is_refused(database, tmp_path, content):
    file = tmp_path / "letter"
    file.write_bytes(content)
    with pytest.raises(UsageError, match="is not a backup"):
        restore(database, file, force=True)


def test_another_archive_is_refused(database, tmp_path):
    file = tmp_path / "b"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", "x")
    with pytest.raises(UsageError, match="without the manifest"):
        restore(database, file)
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(30_000):
            archive.writestr(f"tables/{number:040}", "")
    with pytest.raises(UsageError, match="far more"):
        restore(database, file)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("manifest.json", "[" * 100_000)
    with pytest.raises(UsageError):
        restore(database, file)


def test_a_missing_backup_or_a_folder(source, tmp_path):
    with pytest.raises(NotFoundError, match="There is no backup"):
        restore(source, tmp_path / "missing")
    with pytest.raises(UsageError, match="cannot be read"):
        restore(source, tmp_path)


def test_who_restores_does_not_wait_for_ever_behind_a_user(saved, database, monkeypatch):
    monkeypatch.setattr(restore_module, "_SETTINGS", restore_module._SETTINGS.replace("30s", "50ms"))
    restore(database, saved)
    with psycopg.connect(database) as user:
        user.execute("SELECT FROM recollect.documents")
        with pytest.raises(StoreUnavailableError, match="Others are using the store"):
            restore(database, saved, force=True)
    assert value(database, "SELECT count(*) FROM recollect.documents") > 0


# Writing


def test_existing_files_are_kept_unless_told_otherwise(source, tmp_path):
    file = tmp_path / "b"
    file.write_text("precious", encoding="ascii")
    with pytest.raises(ConflictError, match="exists already"):
        backup(source, file)
    assert file.read_text(encoding="ascii") == "precious"
    backup(source, file, overwrite=True)
    assert zipfile.is_zipfile(file)
    assert file.stat().st_mode & 0o077 == 0


def test_a_failed_backup_leaves_nothing(made, database, tmp_path):
    with pytest.raises(NotFoundError, match="nothing to back up"):
        backup(database, tmp_path / "b")
    with pytest.raises(UsageError, match="no folder"):
        backup(database, tmp_path / "missing" / "b")
    with pytest.raises(UsageError, match="is a folder"):
        backup(database, tmp_path)
    with pytest.raises(StoreUnavailableError):
        backup("host=/nonexistent", tmp_path / "b")
    # One that breaks off midway.
    broken = made()
    migrate(broken)
    run(broken, "UPDATE pg_class SET relam = 999 WHERE relname = 'documents'")
    with pytest.raises(RecollectError):
        backup(broken, tmp_path / "b")
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, sys
from pathlib import Path
from recollect.store.backup import NewArchive
from recollect.store.backup import backup
NewArchive.close = lambda *_: os.kill(os.getpid(), 9)
backup(sys.argv[1], Path(sys.argv[2]))
"""


def test_what_a_killed_backup_leaves_the_next_one_removes(source, tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLED, source, str(tmp_path / "b")], check=False)
    assert done.returncode == -9
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".b.")
    assert left.name.endswith(".part")
    (tmp_path / ".b.mine.part").symlink_to(tmp_path / "elsewhere")
    backup(source, tmp_path / "b")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".b.mine.part", "b"]


def test_a_backup_under_way_is_not_taken_for_a_leftover(source, tmp_path, monkeypatch):
    close = NewArchive.close

    def and_another(self, manifest):
        monkeypatch.setattr(NewArchive, "close", close)
        backup(source, tmp_path / "b")
        close(self, manifest)

    monkeypatch.setattr(NewArchive, "close", and_another)
    backup(source, tmp_path / "b")
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


@pytest.fixture
def older_server() -> Iterator[str]:
    """A PostgreSQL 16 that is none of recollect's, with pgvector: the wheel has one."""
    programs = installation().parent / "pginstall" / "bin"
    if not (programs / "postgres").exists():
        pytest.skip("the wheel has no PostgreSQL 16")
    with reachable_folder() as folder:
        account = pwd.getpwnam("pgserver") if os.geteuid() == 0 else None
        identity = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if account else {}
        home = folder / "older"
        home.mkdir()
        if account:
            os.chown(home, account.pw_uid, account.pw_gid)

        def run_as_server(name: str, *arguments: str) -> None:
            command = [str(programs / name), *arguments]
            subprocess.run(command, cwd=home, check=True, stdout=subprocess.DEVNULL, **identity)

        cluster = ["-D", "pg", "-U", "postgres", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"]
        run_as_server("initdb", *cluster)
        run_as_server("pg_ctl", "start", "-w", "-D", "pg", "-l", "log", "-o", "-h '' -k .. -F")
        yield make_conninfo("", host=str(home), user="postgres", dbname="postgres")
        run_as_server("pg_ctl", "stop", "-w", "-m", "immediate", "-D", "pg")


def test_a_store_moves_to_an_older_server_and_back(source, saved, older_server, database, tmp_path):
    restore(older_server, saved)
    assert digests(older_server) == digests(source)
    backup(older_server, tmp_path / "b")
    restore(database, tmp_path / "b")
    assert digests(database) == digests(source)
