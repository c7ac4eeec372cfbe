from __future__ import annotations

import pathlib
import time

STATUS_KEYS = {
    "total_documents", "total_chunks", "departments", "collections", "embedding_model", "embedding_dimension",
    "schema_version", "database_bytes", "search", "resident",
}  # fmt: skip


def test_status(recollect, office):
    empty = recollect("status", "--json").json
    assert set(empty) == STATUS_KEYS
    assert (empty["total_documents"], empty["collections"]) == (0, [])
    recollect("ingest", office)
    status = recollect("status", "--json").json
    assert set(status) == STATUS_KEYS
    assert status["total_documents"] == 4
    assert sum(status["departments"].values()) == status["total_chunks"]
    assert [collection["name"] for collection in status["collections"]] == ["default"]
    assert (status["embedding_model"], status["embedding_dimension"]) == ("hashing:64", 64)
    assert status["database_bytes"] > 0
    people = recollect("status").out
    assert "4 documents" in people
    assert "hr" in people


def test_collections(recollect, office):
    made = recollect("collections", "create", "legal", "--language", "de", "--chunking", "paragraph", "--json").json
    assert made["language"] == "de"
    assert made["chunking"]["strategy"] == "paragraph"
    assert "There is a collection 'legal' already" in recollect("collections", "create", "legal", status=1).err
    recollect("ingest", office)
    listed = recollect("collections", "list", "--json").json["items"]
    assert [(collection["name"], collection["documents"]) for collection in listed] == [("default", 4), ("legal", 0)]
    assert "legal" in recollect("collections", "list").out
    assert recollect("collections", "delete", "default", "--json").json == {"deleted": "default", "documents": 4}
    assert recollect("collections", "delete", "default", status=1).err.startswith("Error: There is no collection")
    assert recollect("status", "--json").json["total_documents"] == 0


def test_documents(recollect, office):
    recollect("ingest", office)
    listed = recollect("documents", "list", "--json").json
    assert len(listed["items"]) == 4
    assert listed["next_cursor"] is None
    page = recollect("documents", "list", "--limit", "3", "--json").json
    rest = recollect("documents", "list", "--cursor", page["next_cursor"], "--json").json
    assert page["items"] + rest["items"] == listed["items"]
    last = page["items"][-1]["document_id"]
    assert recollect("documents", "list", "--after", str(last), "--json").json == rest
    hr = recollect("documents", "list", "--department", "hr", "--json").json["items"]
    assert {document["source"] for document in hr} == {"hr/leave.md", "hr/pay.txt"}

    shown = recollect("documents", "show", "hr/pay.txt", "--json").json
    assert shown["content"] == (office / "hr/pay.txt").read_text()
    assert recollect("documents", "show", shown["document_id"], "--json").json == shown
    assert "Salaries are paid on the 25th" in recollect("documents", "show", "hr/pay.txt").out
    assert "There is no document" in recollect("documents", "show", "4711", status=1).err

    assert recollect("documents", "delete", "hr/pay.txt", "--json").json == {"deleted": 1}
    assert recollect("documents", "delete", "hr/pay.txt", "--json").json == {"deleted": 0}
    assert recollect("documents", "erase", "hr/leave.md", "it/errors.md", "--json").json["erased"] == 2
    left = recollect("documents", "list", "--json").json["items"]
    assert [document["source"] for document in left] == ["readme.txt"]
    assert recollect("db", "check", "--json").json["ok"]


def test_the_embedded_store_from_backup_to_restore(recollect_embedded, office, tmp_path):
    recollect = recollect_embedded
    assert recollect("db", "migrate", "--json").json["applied"]
    assert recollect("db", "migrate", "--json").json["applied"] == []
    recollect("ingest", office)
    backup = tmp_path / "store.backup"
    written = recollect("db", "backup", backup, "--json").json
    assert written == {"file": str(backup), "bytes": backup.stat().st_size}
    assert "--overwrite" in recollect("db", "backup", backup, status=1).err or backup.exists()
    before = recollect("query", "annual leave", "--json").json["results"]

    recollect("documents", "erase", "hr/leave.md")
    assert "has documents" in recollect("db", "restore", backup, status=1).err
    recollect("db", "restore", backup, "--force")
    assert recollect("query", "annual leave", "--json").json["results"] == before
    sound = "The store is sound.\nRow-level security keeps tenants apart (role recollect_app).\n"
    assert recollect("db", "check").out == sound
    assert recollect("db", "restore", tmp_path / "missing", status=1).err.startswith("Error: There is no backup")


def test_the_embedded_server_is_gone_when_the_command_is(recollect_embedded, office):
    assert recollect_embedded.process("ingest", office).status == 0
    data_dir = recollect_embedded.environment["RECOLLECT_DATA_DIR"]
    deadline = time.monotonic() + 10
    while pathlib.Path(f"{data_dir}/pg/postmaster.pid").exists():
        assert time.monotonic() < deadline, "the server still runs"
        time.sleep(0.1)


def test_models(recollect, tmp_path):
    recollect.environment["RECOLLECT_MODEL_DIR"] = str(tmp_path / "models")
    assert recollect("models", "list", "--json").json == {"directory": str(tmp_path / "models"), "models": []}
    assert "models pull" in recollect("models", "list").out
    assert "neither a directory nor known" in recollect("models", "pull", "no/such-model", status=1).err


def test_models_pull_and_list_the_real_one(recollect_with_model):
    pulled = recollect_with_model("models", "pull", "--json").json
    listed = recollect_with_model("models", "list", "--json").json["models"]
    assert pulled["path"] in {model["path"] for model in listed}
    assert recollect_with_model("models", "pull", "--json").json["fetched"] is False
