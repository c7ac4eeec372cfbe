"""Looking after tenants, as a person does it."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg


def test_a_tenant_from_its_making_to_its_end(recollect, office: Path, tmp_path: Path):
    recollect("ingest", office)
    assert "Made the tenant 'acme', number 2." in recollect("tenants", "create", "acme", "--max-documents", "2").out
    again = recollect("tenants", "create", "acme", "--json", status=1).json
    assert again["error"]["type"] == "ConflictError"

    listed = recollect("tenants", "list", "--json").json
    assert [(one["name"], one["documents"], one["quota"]["max_documents"]) for one in listed["items"]] == [
        ("acme", 0, 2),
        ("default", 4, None),
    ]
    assert listed["next_cursor"] is None
    assert "0 of 2" in recollect("tenants", "list").out
    first = recollect("tenants", "list", "--limit", "1", "--json").json
    for behind in (("--cursor", first["next_cursor"]), ("--after", "acme")):
        assert [one["name"] for one in recollect("tenants", "list", *behind, "--json").json["items"]] == ["default"]

    assert "suspended" in recollect("tenants", "suspend", "acme").out
    assert recollect("tenants", "show", "acme", "--json").json["status"] == "suspended"
    assert "active" in recollect("tenants", "resume", "2").out
    changed = recollect(
        "tenants", "set-quota", "acme", "--max-documents", "none", "--max-bytes", "5,000", "--json"
    ).json
    assert changed["quota"] == {"max_documents": None, "max_chunks": None, "max_bytes": 5000}
    shown = recollect("tenants", "show", "acme").out
    assert "acme, number 2, active" in shown and "past versions included" in shown
    assert "number, or none" in recollect("tenants", "set-quota", "acme", "--max-bytes", "much", status=2).err
    assert "Name a quota" in recollect("tenants", "set-quota", "acme", status=2).err

    done = recollect("tenants", "export", "default", tmp_path / "out", "--json").json
    assert done["collections"] == {"default": 4} and done["tables"]["documents"] == 4
    manifest = json.loads((tmp_path / "out" / "tenant.json").read_text(encoding="utf-8"))
    assert (tmp_path / "out" / manifest["collections"][0]["file"]).is_file()
    assert "empty folder" in recollect("tenants", "export", "default", tmp_path / "out", status=1).err

    receipt = recollect("tenants", "erase", "acme", "--yes", "--reason", "over", "--json").json
    assert receipt["rows"]["tenants"] == 1 and receipt["reason"] == "over"
    assert "no tenant 'acme'" in recollect("tenants", "erase", "acme", "--yes", status=1).err
    assert "stays" in recollect("tenants", "erase", "default", "--yes", status=2).err


def test_collections_are_shared_where_that_is_configured(recollect, office: Path, tmp_path: Path):
    recollect("ingest", office)
    recollect("tenants", "create", "acme")
    assert "isolation_level" in recollect("tenants", "share", "default", "default", "acme", status=2).err
    settings = tmp_path / "shared.toml"
    settings.write_text('[rag.multi_tenant]\nisolation_level = "shared"\n', encoding="utf-8")
    words = ("--config", settings)
    assert "may read" in recollect("tenants", "share", "default", "default", "acme", *words).out
    assert "reads      default of default" in recollect("tenants", "show", "acme").out
    assert recollect("tenants", "unshare", "default", "default", "acme", "--json", *words).json["shared"] is False
    assert "not shared" in recollect("tenants", "unshare", "default", "default", "acme", *words, status=1).err


def test_db_check_says_whether_isolation_is_in_force(recollect, recollect_embedded):
    for run, login in ((recollect, "postgres"), (recollect_embedded, "recollect_app")):
        assert "Row-level security keeps tenants apart (role recollect_app)." in run("db", "check").out
        assert run("db", "check", "--json").json["isolation"] == {
            "in_force": True,
            "role": "recollect_app",
            "login": login,
            "unguarded": [],
            "remedy": [],
        }


def test_every_command_works_for_the_tenant_that_is_named(recollect, office: Path):
    recollect("tenants", "create", "acme")
    recollect("ingest", office, "--tenant", "acme")
    assert recollect("status", "--json").json["total_documents"] == 0
    assert recollect("--tenant", "acme", "status", "--json").json["total_documents"] == 4
    found = recollect("query", "annual leave", "--tenant", "2", "--json").json["results"]
    assert found[0]["source"] == "hr/leave.md"
    assert recollect("query", "annual leave", "--json").json["results"] == []
    assert "no tenant 'nobody'" in recollect("query", "annual leave", "--tenant", "nobody", status=1).err
    recollect("tenants", "suspend", "acme")
    assert "is suspended" in recollect("query", "annual leave", "--tenant", "acme", status=1).err


def test_db_attack_says_what_is_open(recollect, recollect_embedded, dsn: str):
    recollect_embedded("tenants", "create", "acme")
    held = recollect_embedded("db", "attack", "--json").json
    assert held["clean"] and {one["outcome"] for one in held["attacks"]} <= {"held", "not tried"}
    assert "0 went through" in recollect_embedded("db", "attack").out
    recollect("tenants", "create", "acme")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE POLICY more ON recollect.documents USING (true)")
    told = recollect("db", "attack", status=1).out
    assert "✗ open: catalogue: policy more on documents" in told
    assert "✗ open: table documents: store for another tenant" in told
    # It looks, and mends nothing.
    assert recollect("db", "attack", "--json", status=1).json["clean"] is False
    assert "policy more on documents" in recollect("db", "check", status=1).out
    assert recollect("db", "attack").out.endswith("0 went through.\n")


def test_what_becomes_of_personal_data(recollect):
    recollect("tenants", "create", "acme")
    assert "redact" in recollect("tenants", "set-pii", "acme", "redact").out
    assert recollect("tenants", "show", "acme", "--json").json["pii"] == "redact"
    (recollect.folder / "mail.md").write_text("# Mail\n\nWrite to zoe@example.com for leave.\n")
    recollect("ingest", "mail.md", "--tenant", "acme")
    assert "[redacted email]" in recollect("query", "leave", "--tenant", "acme").out
    assert "off, tag, redact or refuse" in recollect("tenants", "set-pii", "acme", "maybe", status=2).err
    assert recollect("tenants", "set-pii", "acme", "none", "--json").json["pii"] is None
