"""``recollect db verify``: what an operator sees of a sound store and of a damaged one."""

from __future__ import annotations

import psycopg
import pytest


@pytest.fixture
def damage(dsn: str):
    def run(*statements: str) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("SET search_path = recollect, public")
            for statement in statements:
                connection.execute(statement)

    return run


def test_a_sound_store(recollect, office):
    assert recollect("db", "verify").out == "The store is sound: 29 checks of 0 chunks in 0 collections.\n"
    recollect("ingest", office)
    assert recollect("db", "verify", "--deep").out.startswith("The store is sound: 29 checks of ")
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
    recollect(*command.split())
    recollect("ingest", office)
    assert recollect("db", "verify").out.startswith("The store is sound: ")
    assert "25th" in recollect("query", "when are salaries paid").out


def test_a_store_that_is_restored_is_sound(recollect_embedded, office, tmp_path):
    recollect = recollect_embedded
    recollect("ingest", office)
    recollect("db", "backup", tmp_path / "store.backup")
    recollect("db", "restore", tmp_path / "store.backup", "--force")
    assert recollect("db", "verify", "--deep", "--json").json["clean"] is True
