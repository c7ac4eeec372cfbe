"""The command line against a server prints what it prints on a store."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from program import Recollect
from recollect import Document
from wires import ASKED, untimed

KEPT = {name: value for name, value in os.environ.items() if not name.startswith(("RECOLLECT_", "FORCE_COLOR"))}


@pytest.fixture
def local(served, tmp_path) -> Recollect:
    """Commands on the store itself."""
    dsn = served.rag.config.storage.dsn
    return Recollect(
        tmp_path, {**KEPT, "RECOLLECT_DSN": dsn.get_secret_value(), "RECOLLECT_EMBEDDING__PROVIDER": "hashing"}
    )


@pytest.fixture
def remote(served, tmp_path) -> Recollect:
    """Commands that know where the server is and nothing else."""
    return Recollect(tmp_path, {**KEPT, "RECOLLECT_SERVER": served.url, "HOME": str(tmp_path)})


#: Commands that print one JSON document, the same from both.
SAME = [
    ("query", ASKED),
    ("query", ASKED, "--explain", "--rerank", "bm25", "--neighbours", "1", "--merge"),
    ("query", "ERR-4012", "--everywhere"),
    ("query", "ERR-4012", "-c", "it", "--mode", "lexical"),
    ("query", "draft", "--session", "desk", "--with", "it"),
    ("query", "leave", "--as", "ada", "--roles", "hr"),
    ("query", "leave", "--as-of", "2020-01-01"),
    ("query", "leave", "--tag", "no-such-tag"),
    ("query", "leave", "-c", "empty"),
    ("query", "zeppelin", "--everywhere", "--mode", "lexical"),
    ("query", "leave", "--session", "desk", "--with", "it", "--tag", "no-such-tag"),
    ("query", ASKED, "--context", "--token-budget", "300"),
    ("query", "leave", "-c", "empty", "--context"),
    ("ask", ASKED),
    ("ask", "Who won the cup of 1954?", "--explain"),
    ("ask", "leave", "--department", "nobody's"),
    ("why-not", ASKED, "hr/pay.txt"),
    ("context", ASKED, "--explain"),
    ("context", "Where does my sister live?", "--user", "ada", "--focus", "memory", "--token-budget", "80"),
    ("context", "Where does my sister live?", "--session", "talk", "--strategy", "semantic", "--explain"),
    ("context", "sister", "--strategy", "episodic", "--session", "not-begun"),
    ("context", "leave", "--strategy", "documents", "--min-relevance", "0", "-c", "it"),
    ("context", "leave", "-c", "empty"),
    ("documents", "show", "err.md", "-c", "it"),
    ("documents", "history", "err.md", "-c", "*"),
    ("collections", "list", "--limit", "1"),
    ("collections", "list", "--after", "default"),
    ("documents", "list", "--limit", "1"),
    ("documents", "list", "--after", "1", "--department", "hr"),
    ("documents", "list", "--department", "nobody's"),
    ("documents", "show", "hr/leave.md"),
    ("history", "hr/leave.md"),
    ("sessions", "list"),
    ("sessions", "show", "talk"),
    ("sessions", "show", "desk"),
    ("recall", "Where does my sister live?"),
    ("facts", "list", "--all"),
    ("feedback", "show"),
    ("grants", "list"),
    ("grants", "list", "hr/leave.md"),
    ("keys", "list"),
    ("tenants", "list"),
    ("tenants", "show", "default"),
    ("audit", "list"),
    ("documents", "duplicates", "--limit", "1", "--after", "1"),
    ("documents", "ttl", "hr/pay.txt", "never"),
    ("documents", "restore", "hr/leave.md", "1"),
    ("sources", "list", "--everywhere"),
    ("logins", "list"),
    ("logins", "revoke", "--everybody"),
    ("cleanup",),
    ("export", "-", "-c", "it"),
    ("requests", "stats"),
    ("reembed", "--status"),
    ("jobs", "list"),
    ("status",),
]


@pytest.mark.parametrize("command", SAME, ids=" ".join)
def test_a_command_prints_the_same_of_a_server_and_of_its_store(served, local, remote, command):
    if "empty" in command and not any(one.name == "empty" for one in served.rag.collections.list()):
        served.rag.collections.create("empty")
    if "-" not in command:  # where standard output is the file
        here, there = local(*command, "--json"), remote(*command, "--json")
        if untimed(there.json) != untimed(here.json):  # a database may grow by itself between two looks
            here = local(*command, "--json")
        assert untimed(there.json) == untimed(here.json)
    # For people too, as far as it does not tell how long it took, or where.
    varies = command[0] in {"query", "ask", "status"}
    if not varies or len(command) < 3:
        here, there = local(*command, status=None), remote(*command, status=None)
        assert there.status == here.status
        assert varies or there.out == here.out


FAILING = [
    ("query", "leave", "-c", "nowhere"),
    ("query", "leave", "--top-k", "0"),
    ("query", "leave", "--rrf-k", "3"),
    ("collections", "delete", "nowhere"),
    ("sessions", "show", "none"),
    ("documents", "show", "4711"),
    ("documents", "show", "nowhere.md"),
    ("facts", "show", "4711"),
    ("context", "leave", "--token-budget", "0"),
    ("context", "leave", "--as-of", "soon"),
    ("context", "leave", "--strategy", "documents", "--focus", "rag"),
    ("context", "leave", "--min-relevance", "2"),
    ("context", "leave", "-c", "nowhere"),
    ("diff", "leave", "--from", "soon"),
    ("diff", "leave", "--from", "2020-01-01", "--to", "2020-01-01"),
    ("diff", "leave", "--from", "7d", "-c", "nowhere"),
    ("import", "nowhere.jsonl"),
    ("import", "."),
    ("documents", "history", "nowhere.md"),
    ("sources", "refresh", "nowhere"),
    ("sources", "refresh", "manual"),
    ("sources", "remove", "nowhere"),
    ("sources", "add", "no-scheme://x"),
    ("sources", "add", "https://example.com", "--every", "0s"),
    ("sources", "add", "https://example.com", "--set", "none=1"),
    ("tenants", "share", "default", "it", "nobody"),
    ("tenants", "share", "nobody", "it", "default"),
    ("tenants", "unshare", "default", "it", "nobody"),
    ("keys", "revoke", "nobody"),
    ("logins", "revoke", "nobody"),
    ("documents", "restore", "1", "9"),
    ("documents", "ttl", "1", "soon"),
    ("export", "there.jsonl", "-c", "nowhere"),
]


@pytest.mark.parametrize("command", FAILING, ids=" ".join)
def test_a_command_fails_alike(local, remote, command):
    here, there = local(*command, "--json", status=None), remote(*command, "--json", status=None)
    assert (there.status, there.json) == (here.status, here.json)


def test_files_are_sent_and_found(served, remote, tmp_path: Path):
    folder = tmp_path / "docs"
    (folder / "hr").mkdir(parents=True)
    (folder / "hr" / "hours.md").write_text("# Hours\n\nThe office opens at seven.")
    (folder / "readme.txt").write_text("This folder holds the hours.")
    told = remote("ingest", folder, "-c", "fresh", "--tag", "new", "--json").json
    counts = [told[name] for name in ("added", "updated", "unchanged", "removed", "failed", "skipped")]
    assert counts == [2, 0, 0, 0, 0, 0]
    assert told["chunks"] == 2
    listed = remote("documents", "list", "-c", "fresh", "--json").json["items"]
    assert {(one["source"], one["department"]) for one in listed} == {("hr/hours.md", "hr"), ("readme.txt", None)}
    asked = remote("ingest", folder / "readme.txt", "-c", "fresh", "--background", "--json").json["jobs"]
    assert [job["kind"] for job in asked] == ["ingest_upload"]
    remote("documents", "original", "readme.txt", "-c", "fresh", "-o", "again.txt")
    assert (tmp_path / "again.txt").read_text() == "This folder holds the hours."
    assert remote("ingest", folder, "--sync", status=2).err.count("sync") == 1
    queued = remote("ingest", "http://127.0.0.1:9/a", "-c", "fresh", "--background", "--json").json["jobs"][0]
    assert queued["kind"] == "ingest_url"
    remote("documents", "erase", "hr/hours.md", "-c", "fresh", "--yes")
    remote("documents", "delete", "readme.txt", "-c", "fresh")
    remote("collections", "delete", "fresh", "--yes")


def test_what_was_said_is_remembered_and_forgotten(remote):
    remote("remember", "cli", "My dog is called Rex.")
    assert remote("recall", "What is my dog called?", "--conversation", "cli", "--json", status=None).status in {0, 2}
    talked = remote("chat", "--session", "cli-talk", "--json", stdin=f"{ASKED}\n").json
    assert "30 days" in talked["answers"][0]["answer"]
    assert len(remote("sessions", "show", "cli-talk", "--json").json["turns"]) == 2
    assert remote("chat", "--forget", "--json", stdin="x\n", status=2).json["error"]["type"] == "UsageError"
    remote("sessions", "delete", "cli-talk", "--yes")
    remote("sessions", "delete", "cli", "--yes")


def test_keys_rights_and_tenants_are_changed(served, remote, tmp_path: Path):
    made = remote("keys", "create", "bob's", "--as", "bob", "--json").json
    (tmp_path / "key").write_text(made["secret"] + "\n")
    listed = remote("keys", "list", "--key-file", "key", status=1)
    assert "admin" in listed.err
    assert remote("query", "leave", "--json", "--key-file", "key").json["results"]
    as_bob = Recollect(tmp_path, {**remote.environment, "RECOLLECT_API_KEY": made["secret"]})
    assert as_bob("query", "leave", "--json").json["results"]
    assert "not as somebody else" in as_bob("documents", "list", "--as", "ada", status=2).err
    remote("keys", "revoke", made["key"]["key_id"])
    assert as_bob("query", "leave", "--json", status=1).json["error"]["type"] == "AuthenticationError"
    remote("grants", "deny", "user:bob", "--document", "hr/pay.txt", status=None)
    assert remote("tenants", "create", "cli-acme", "--json").json["name"] == "cli-acme"
    assert remote("tenants", "suspend", "cli-acme", "--json").json["status"] == "suspended"
    remote("tenants", "erase", "cli-acme", "--yes", "--reason", "gone", status=None)


def test_what_became_of_a_document_is_changed_and_a_collection_taken_along(served, local, remote, tmp_path: Path):
    view = served.rag.view(collections="turned")
    first = view.ingest(Document(content="The gate opens at six.", source="gate.md"))
    view.ingest(Document(content="The gate opens at seven.", source="gate.md"))
    view.ingest(Document(content="The gate opens at seven.", source="copy.md"))
    assert len(remote("documents", "duplicates", "--json").json["items"]) == 1
    told = remote("documents", "restore", "gate.md", "1", "-c", "turned", "--json").json
    assert (told["document_id"], told["version"], told["status"]) == (first.document_id, 3, "updated")
    assert view.documents.get("gate.md").content == "The gate opens at six."
    assert [one.action for one in served.rag.audit.list(action="restore")] == ["restore"]
    assert remote("documents", "ttl", "copy.md", "30d", "-c", "turned", "--json").json["expires_at"]
    assert "never" in remote("documents", "ttl", "copy.md", "never", "-c", "turned").out
    for who, name in ((local, "here.jsonl"), (remote, "there.jsonl")):
        assert who("export", name, "-c", "turned", "--json").json["documents"] == 2
    assert (tmp_path / "there.jsonl").read_bytes() == (tmp_path / "here.jsonl").read_bytes()
    assert "exists already" in remote("export", "there.jsonl", "-c", "turned", status=1).err
    served.rag.collections.delete("turned")


#: What works where the store is, and nowhere else.
LOCAL = [
    ("db", "check"),
    ("db", "verify"),
    ("worker", "--once"),
    ("serve", "--port", "0"),
    ("config", "show"),
    ("config", "check"),
    ("models", "list"),
    ("providers", "list"),
    ("tenants", "export", "default", "x"),
    ("calibrate",),
    ("eval", "make"),
    ("watch", "."),
    ("demo",),
    ("mcp",),
]


@pytest.mark.parametrize("command", LOCAL, ids=" ".join)
def test_what_needs_the_store_says_so(remote, served, command):
    told = remote(*command, status=None)
    assert told.status == 2
    if "No such option" not in told.err and "Missing" not in told.err:
        assert "needs the store itself" in told.err, told.err


def test_which_store_or_server_is_asked(served, remote, local, tmp_path):
    # What the command line names wins over the environment; both at once are too much.
    dsn = served.rag.config.storage.dsn.get_secret_value()
    assert remote("db", "check", "--dsn", dsn, status=None).status != 2
    assert "leave --dsn" in remote("status", "--server", served.url, "--dsn", dsn, status=2).err
    named, configured = local("status", "--server", served.url, "--json").json, remote("status", "--json").json
    # What is counted of searches is written in the background, at any time, and the database grows by it.
    changing = {"search": None, "database_bytes": None}
    assert named | changing == configured | changing
    assert "the key says" in remote("status", "--tenant", "acme", status=2).err
    assert "leave out options" in remote("ask", ASKED, "--model", "ollama/x", status=2).err
    assert "no address" in remote("status", "--server", "nowhere", status=2).err
    assert "cannot be read" in remote("status", "--key-file", "none", status=2).err
    gone = remote("status", "--server", "http://127.0.0.1:1", "--json", status=1)
    assert gone.json["error"]["type"] == "ServerUnavailableError"
    # A section of the settings has the same name.
    section = Recollect(tmp_path, {**local.environment, "RECOLLECT_SERVER": json.dumps({"port": 1})})
    assert section("status", "--json").json["total_documents"]


def test_a_query_of_a_server_loads_nothing_of_the_engine(served, tmp_path):
    code = (
        "import sys\nfrom recollect.cli.main import main\nmain()\nprint(chr(10).join(sys.modules), file=sys.stderr)\n"
    )
    import subprocess
    import sys

    environment = {**KEPT, "RECOLLECT_SERVER": served.url, "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code, "query", "leave", "--json"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert json.loads(done.stdout)["results"]
    loaded = set(done.stderr.split())
    engine = {"numpy", "psycopg", "onnxruntime", "tokenizers", "re2", "fastapi", "procrastinate", "rich", "lxml"}
    assert not loaded & engine
    own = ("pipeline", "store", "embedding", "ingest.folder", "documents", "providers", "jobs", "answer", "chunking")
    assert not [name for name in loaded if name.startswith(tuple(f"recollect.{one}" for one in own))]
    assert not [name for name in loaded if name.startswith("recollect.context")]
