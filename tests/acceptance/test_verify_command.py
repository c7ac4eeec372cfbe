"""``recollect db verify``: what an operator sees of a sound store and of a damaged one."""

from __future__ import annotations

import shlex
from pathlib import Path

import psycopg
import pytest

from recollect.store.embedded import EmbeddedServer


@pytest.fixture
def damage(dsn: str):
    def run(*statements: str) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("SET search_path = recollect, public")
            for statement in statements:
                connection.execute(statement)

    return run


def test_a_sound_store(recollect, office):
    assert recollect("db", "verify").out == "The store is sound: 31 checks of 0 chunks in 0 collections.\n"
    recollect("ingest", office)
    assert recollect("db", "verify", "--deep").out.startswith("The store is sound: 31 checks of ")
    report = recollect("db", "verify", "--json").json
    assert report["clean"] is True
    assert {tuple(check) for check in report["checks"]} == {("name", "found", "repaired", "detail")}
    assert all(check["found"] == check["repaired"] == 0 for check in report["checks"])
    assert recollect("db", "verify", "--repair").out.startswith("The store is sound: ")
    one = recollect("db", "verify", "--collection", "default", "--json").json
    assert 0 < len(one["checks"]) < len(report["checks"])
    assert "There is no collection 'x'" in recollect("db", "verify", "-c", "x", status=1).err


def test_damage_is_told_mended_and_gone(recollect, office, damage):
    recollect("ingest", office)
    before = recollect("query", "annual leave", "--json").json["results"]
    damage("DELETE FROM chunk_vectors", "UPDATE collection_state SET chunk_count = 77")
    told = recollect("db", "verify", status=1)
    assert "✗ 4: chunks without a vector; for instance chunk" in told.out
    assert "recollect db verify --repair" in told.err
    found = {check["name"]: check["found"] for check in recollect("db", "verify", "--json", status=1).json["checks"]}
    assert {name for name, count in found.items() if count} == {"missing_vectors", "counters"}

    mended = recollect("db", "verify", "--repair")
    assert "✓ 4 mended: chunks without a vector" in mended.out
    assert "The store is sound again" in mended.out
    assert recollect("db", "verify", "--repair", "--json").json["clean"] is True
    sound = "The store is sound.\nRow-level security keeps tenants apart (role recollect_app).\n"
    assert recollect("db", "check").out == sound
    assert recollect("query", "annual leave", "--json").json["results"] == before


def test_what_is_lost_is_left_with_what_to_do(recollect, office, damage):
    recollect("ingest", office)
    damage(
        "UPDATE texts SET content = 'other'",
        r"UPDATE chunks SET text = reverse(text), content_hash = '\x00' WHERE version_id = "
        "(SELECT version_id FROM document_versions WHERE uri = 'hr/pay.txt')",
    )
    left = recollect("db", "verify", "--repair", status=1)
    assert "✗ 3 of 4 mended: versions whose text does not have its hash" in left.out
    (command,) = {part.split(",")[0] for part in left.out.split("recollect ")[1:] if part.startswith("documents erase")}
    assert "hr/pay.txt" in left.out
    recollect(*shlex.split(command))
    recollect("ingest", office)
    assert recollect("db", "verify").out.startswith("The store is sound: ")
    assert "25th" in recollect("query", "when are salaries paid").out


def test_a_store_that_is_restored_is_sound(recollect_embedded, office, tmp_path):
    recollect = recollect_embedded
    recollect("ingest", office)
    recollect("db", "backup", tmp_path / "store.backup")
    recollect("db", "restore", tmp_path / "store.backup", "--force")
    assert recollect("db", "verify", "--deep", "--json").json["clean"] is True


DROPPED = {
    "DROP INDEX document_versions_current": "index document_versions_current on document_versions",
    "DROP INDEX access_log_documents": "index access_log_documents on access_log",
    "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'document_versions_current'::regclass": (
        "index document_versions_current on document_versions"
    ),
    "ALTER TABLE chunks DROP CONSTRAINT chunks_span": "constraint chunks_span on chunks",
    "ALTER TABLE sources DROP CONSTRAINT sources_pkey CASCADE": "constraint sources_pkey on sources",
}


@pytest.mark.parametrize("statement", DROPPED)
def test_dropped_indexes_and_constraints_are_named_and_made_again(recollect, office, damage, statement: str):
    recollect("ingest", office)
    damage(statement)
    told = recollect("db", "verify", status=1)
    assert f"{DROPPED[statement]}: " in told.out and "--repair" in told.err
    assert "✓" in recollect("db", "verify", "--repair").out
    assert recollect("db", "verify").out.startswith("The store is sound: ")
    assert recollect("db", "check").out.startswith("The store is sound.")


def test_a_constraint_that_rows_contradict_is_made_again_with_them_or_left_with_the_reason(recollect, office, damage):
    recollect("ingest", office)
    damage(
        "ALTER TABLE chunks DROP CONSTRAINT chunks_span",
        "UPDATE chunks SET start_offset = end_offset + 9",
        "ALTER TABLE sources DROP CONSTRAINT sources_tenant_id_collection_id_name_key",
        "INSERT INTO sources (tenant_id, collection_id, name, type) "
        "SELECT tenant_id, collection_id, name, type FROM sources",
    )
    left = recollect("db", "verify", "--repair", status=1)
    assert "1 of 2 mended" in left.out and "is duplicated" in left.out
    assert left.out.count("cannot be made again") == 1
    assert recollect("db", "verify", status=1).out.count("should be") == 1


def test_functions_triggers_and_policies_come_back_when_the_store_is_opened(recollect, office, damage):
    recollect("ingest", office)
    damage(
        "DROP FUNCTION drop_lone_texts() CASCADE",
        "DROP POLICY tenant ON facts",
        "DROP TRIGGER version_originals_deleted ON version_originals",
    )
    assert recollect("db", "verify").out.startswith("The store is sound: ")


def test_a_dropped_column_or_table_is_named_with_what_to_do(recollect, office, damage):
    recollect("ingest", office)
    damage("ALTER TABLE saved_cases DROP COLUMN made_by")
    left = recollect("db", "verify", "--repair", status=1)
    assert "column saved_cases.made_by: " in left.out and "recollect db restore" in left.out
    damage("DROP TABLE chunk_vectors CASCADE")
    assert "table chunk_vectors: " in recollect("db", "verify", "--repair", status=1).out


def overwrite_first_page(data_dir: Path, *relations: str) -> None:
    """Write over the first page of tables' or indexes' files, as a failing disk does."""
    with EmbeddedServer(data_dir) as dsn, psycopg.connect(dsn) as connection:
        path = "SELECT pg_relation_filepath(%s)"
        files = [connection.execute(path, (f"recollect.{relation}",)).fetchone()[0] for relation in relations]
    for file in files:
        with (data_dir / "pg" / file).open("r+b") as pages:
            pages.write(b"\xff" * 8192)


def test_damaged_tables_are_named(recollect_embedded, office, data_dir_of_its_own):
    recollect = recollect_embedded
    recollect("ingest", office)
    recollect("sessions", "create", "s1")
    tables = ("chunks", "texts", "sessions")
    overwrite_first_page(data_dir_of_its_own, *tables)
    for options in ([], ["--repair"]):
        told = recollect("db", "verify", *options, status=1)
        assert all(f"table {table}: invalid page" in told.out for table in tables)
        assert "recollect db restore" in told.out
    assert "recollect db verify names the table" in recollect("query", "leave", status=1).err


def test_an_index_with_a_damaged_file_is_built_anew(recollect_embedded, office, data_dir_of_its_own):
    recollect = recollect_embedded
    recollect("ingest", office)
    overwrite_first_page(data_dir_of_its_own, "chunks_pkey")
    told = recollect("db", "verify", status=1)
    assert "index chunks_pkey: its file is damaged" in told.out and "--repair" in told.err
    assert "1 mended" in recollect("db", "verify", "--repair").out
    assert recollect("db", "verify").out.startswith("The store is sound: ")
