"""The audit, as a person meets it: listed, verified, exported, and verified without the store."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime

import psycopg
import pytest


@pytest.fixture
def told(recollect, tmp_path):
    """A store in which something was erased and something restored."""
    (tmp_path / "a.md").write_text("# Pumps\n\nThe pump in hall C leaked on the ninth of May.\n", encoding="utf-8")
    recollect("ingest", str(tmp_path / "a.md"))
    recollect("documents", "erase", "a.md", "--yes", "--reason", "asked for")
    return recollect


def test_the_audit_is_listed_verified_and_exported(told, tmp_path):
    listed = told("audit", "list", "--json").json
    assert [one["action"] for one in listed["items"]] == ["erase_proof", "erase"]
    assert listed["next_cursor"] is None and listed["items"][1]["details"]["reason"] == "asked for"
    assert [one["number"] for one in told("audit", "list", "--action", "erase", "--json").json["items"]] == [1]
    assert "reason asked for" in told("audit", "list", "--since", "1h", "--limit", 1, "--before", 2).out
    assert told("audit", "list", "--until", "2020").out == "Nothing is recorded.\n"
    verified = told("audit", "verify", "--json").json
    (chain,) = verified["chains"]
    assert verified["intact"] and (chain["entries"], chain["dropped"], chain["broken"]) == (2, 0, None)
    assert chain["hash"] in told("audit", "verify").out
    told("audit", "export", tmp_path / "audit.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text(encoding="utf-8").splitlines()]
    before = bytes(32)
    for line in lines:
        assert bytes.fromhex(line["previous_hash"]) == before
        before = hashlib.sha256(before + line["content"].encode()).digest()
    assert before.hex() == chain["hash"]
    assert "exists already" in told("audit", "export", tmp_path / "audit.jsonl", status=1).err


def test_a_changed_entry_is_named(told, dsn):
    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE recollect.audit SET actor = 'nobody' WHERE number = 2")
    (chain,) = told("audit", "verify", "--json", status=1).json["chains"]
    assert chain["broken"]["number"] == 2
    assert "number 2" in told("audit", "verify", status=1).out
    checked = told("db", "check", status=1)
    assert "number 2" in checked.out
    assert "cannot be mended" in checked.err and "db verify --repair" not in checked.err


def test_a_backup_brings_the_chain_along(told, tmp_path):
    before = told("audit", "verify", "--json").json
    told("db", "backup", tmp_path / "store.backup")
    told("ingest", tmp_path / "a.md")
    told("documents", "erase", "a.md", "--yes")
    told("db", "restore", tmp_path / "store.backup", "--force")
    assert told("audit", "verify", "--json").json == before
    told("ingest", tmp_path / "a.md")
    told("documents", "erase", "a.md", "--yes")
    assert told("audit", "verify", "--json").json["chains"][0]["entries"] == 4


def test_what_was_erased_is_scrubbed(told, tmp_path):
    assert told("db", "scrub", "--after", 5).out == "Nothing to do: 1 erased since the last time.\n"
    (tmp_path / "strings").write_text("The pump in hall C\n\n", encoding="utf-8")
    done = told("db", "scrub", "--look-for", tmp_path / "strings", "--json").json
    assert done["scrub"]["complete"] and done["scrub"]["relations"] > 100 and done["scrub"]["found"] == {}
    assert not done["scrub"]["proven"] and any("nothing was proven" in line for line in done["remains"])
    assert told("db", "scrub", "--after", 1, "--json").json == {"scrub": None, "remains": []}
    told("ingest", tmp_path / "a.md")
    receipt = told("documents", "erase", "a.md", "--yes", "--scrub", "--json").json
    assert receipt["complete"] and receipt["scrub"]["kept"] == [] and receipt["probe"]["mentions"] == {}
    told("ingest", tmp_path / "a.md")
    assert "Written anew" in told("documents", "erase", "a.md", "--yes", "--scrub").out
    assert "cannot be read" in told("db", "scrub", "--look-for", tmp_path / "missing", status=2).err


def test_the_audit_of_an_erased_tenant_is_found_by_its_number(told, tmp_path):
    made = told("tenants", "create", "acme", "--json").json
    number = made.get("number") or made["tenant_id"]
    assert told("audit", "list", "--tenant", "acme").out == "Nothing is recorded.\n"
    told("tenants", "erase", "acme", "--yes")
    (entry,) = told("audit", "list", "--tenant", number, "--json").json["items"]
    assert entry["action"] == "erase_tenant"
    assert len(told("audit", "verify", "--json").json["chains"]) == 2
    assert len(told("audit", "verify", "--tenant", number, "--json").json["chains"]) == 1


def test_what_was_shown_is_listed(recollect, dsn):
    from recollect import RAGConfig, RAGPipeline
    from recollect.model.activity import Access, ShownDocument

    assert "Nothing is recorded" in recollect("audit", "accesses").out
    with RAGPipeline(RAGConfig.load(storage={"dsn": dsn})) as rag:
        shown = {"actor": "user:ann", "action": "search", "request_id": None, "question_hash": None}
        for question, document in (("Why?", 1), ("When?", 2)):
            shown_documents = (ShownDocument(document, None),)
            access = Access(access_id=0, at=datetime.now(UTC), question=question, documents=shown_documents, **shown)
            rag.standpoint.assembly.access_log.add(1, access)
    assert "user:ann search Why? documents 1" in recollect("audit", "accesses", "--document", "1").out
    told = recollect("audit", "accesses", "--json", "--limit", "1").json
    assert told["items"][0]["question"] == "When?" and told["next_cursor"]
    assert recollect("audit", "accesses", "--actor", "user:bob", "--json").json["items"] == []


def test_a_chain_without_entries_is_none_whoever_asks_for_it(recollect):
    """As a server says it too, which always asks for one tenant's."""
    for whose in ((), ("--tenant", "default")):
        assert recollect("audit", "verify", "--json", *whose).json == {"intact": True, "chains": []}
        assert recollect("audit", "verify", *whose).out == "Nothing is recorded.\n"
