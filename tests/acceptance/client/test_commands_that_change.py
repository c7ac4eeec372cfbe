"""What commands change over a server: sources, and documents as JSON Lines; who may, and what becomes of bad files."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from program import Recollect
from recollect import Document, Principal
from served import Served, fill, serving
from wires import answering, reply, request_of, untimed

KEPT = {name: value for name, value in os.environ.items() if not name.startswith(("RECOLLECT_", "FORCE_COLOR"))}


@pytest.fixture(scope="module")
def served(clone: Callable, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that others reach too: everybody needs a key."""
    with (
        clone() as dsn,
        serving(
            dsn,
            tmp_path_factory.mktemp("served"),
            server={"host": "0.0.0.0"},
            jobs={"backoff_seconds": 60.0},
            multi_tenant={"isolation_level": "shared"},
        ) as one,
    ):
        fill(one.rag)
        one.rag.tenants.create("acme")
        yield one


@pytest.fixture
def local(served, tmp_path) -> Recollect:
    dsn = served.rag.config.storage.dsn.get_secret_value()
    environment = {**KEPT, "RECOLLECT_DSN": dsn, "RECOLLECT_EMBEDDING__PROVIDER": "hashing"}
    return Recollect(tmp_path, {**environment, "RECOLLECT_MULTI_TENANT__ISOLATION_LEVEL": "shared"})


@pytest.fixture
def caller(served, tmp_path) -> Callable[..., Recollect]:
    """Commands of somebody with a key of these scopes."""

    def made(*scopes: str, tenant: str | None = None, url: str | None = None) -> Recollect:
        secret = served.rag.view(tenant=tenant).keys.create("test", scopes=scopes).secret
        asked = {"RECOLLECT_SERVER": url or served.url, "RECOLLECT_API_KEY": secret, "HOME": str(tmp_path)}
        return Recollect(tmp_path, {**KEPT, **asked})

    return made


@pytest.fixture
def operator(caller) -> Recollect:
    return caller("read", "write", "admin", "operator")


def line(number: int, words: str = "The gate opens at") -> str:
    return json.dumps({"source": f"gates/{number}.md", "content": f"{words} {number}.", "tags": ["gate"]})


def test_the_evidence_of_two_moments_is_compared(served, local, operator):
    view = served.rag.view(collections="turned")
    view.ingest(Document(content="The gate opens at six in the morning.", source="gate.md"))
    view.ingest(Document(content="Bicycles stand behind the gate.", source="bicycles.md"))
    between = served.rag.audit.list(limit=1)[0].at.isoformat()
    view.ingest(Document(content="The gate opens at seven in the morning.", source="gate.md"))
    view.ingest(Document(content="The gate is painted green.", source="paint.md"))
    view.documents.delete(["bicycles.md"])
    command = ("diff", "When does the gate open?", "-c", "turned", "--from", between, "--to", "2100-01-01")
    here, there = local(*command, "--json").json, operator(*command, "--json").json
    assert untimed(there) == untimed(here)
    assert here["came"] or here["changed"]
    assert operator(*command).out == local(*command).out


@pytest.fixture
def small_parts(monkeypatch) -> None:
    """A client sends few lines at a time."""
    monkeypatch.setattr("recollect.client.calls.collections._MOST_LINES", 20)


def test_a_file_of_lines_is_imported_as_where_the_store_is(served, local, operator, tmp_path, small_parts):
    lines = [line(number) for number in range(45)]
    lines[7] = "no json"
    lines[23] = ""
    lines[30] = json.dumps({"source": "x", "content": " "})
    (tmp_path / "gates.jsonl").write_text("\n".join(lines), encoding="utf-8")
    there = operator("import", "gates.jsonl", "-c", "gates", "--json", status=1).json
    here = local("import", "gates.jsonl", "-c", "gates-here", "--json", status=1).json
    assert untimed(there) == untimed(here)
    assert there["added"] == 42
    assert [one["path"] for one in there["errors"]] == ["gates.jsonl:8", "gates.jsonl:31"]
    again = operator("import", "gates.jsonl", "-c", "gates", "--json", status=1).json
    assert (again["added"], again["unchanged"]) == (0, 42)
    forced = operator("import", "gates.jsonl", "-c", "gates", "--force", "--json", status=1).json
    assert forced["updated"] == 42
    assert operator("query", "gate 35", "-c", "gates", "--json").json["results"]
    # What a server exports, a server takes, with its vectors; how it is cut is made with it.
    operator("export", "out.jsonl", "-c", "turned-back", status=1)
    operator("export", "out.jsonl", "-c", "gates")
    taken = operator("import", "out.jsonl", "-c", "copied", "--chunking", "paragraph", "--json")
    assert taken.json["added"] == 42
    different = operator("import", "out.jsonl", "-c", "copied", "--chunking", "markdown", status=2)
    assert "is cut differently" in different.err
    assert "42" in operator("import", "out.jsonl", "-c", "copied").out
    for name in ("gates", "gates-here", "copied"):
        served.rag.collections.delete(name)


def test_what_is_moved_by_way_of_a_server_stays_restricted(served, operator, tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "pay.md").write_text("Salaries are paid on the 25th.", encoding="utf-8")
    (tmp_path / "book" / "hello.md").write_text("Welcome.", encoding="utf-8")
    here, there = (served.rag.view(collections=name) for name in ("moved", "moved-there"))
    here.ingest(tmp_path / "book")
    here.grants.add("role:clerk", documents="pay.md", only=True)
    here.ingest(Document(content="Of today.", source="today", ttl="1d"))
    operator("export", "moved.jsonl", "-c", "moved")
    with (tmp_path / "moved.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"source": "late", "content": "Late.", "expires_at": "2020-01-01T00:00:00Z"}))
    told = operator("import", "moved.jsonl", "-c", "moved-there", "--json").json
    assert (told["added"], told["failed"], told["skipped"]) == (3, 0, 1)
    assert there.ingest(tmp_path / "book").updated == 2
    assert len(there.documents.list()) == 3
    sam = there.view(principal=Principal(user_id="sam"))
    assert [one.source for one in sam.documents.list()] == ["hello.md", "today"]
    assert there.documents.history("today").versions[-1].expires_at is not None
    for name in ("moved", "moved-there"):
        served.rag.collections.delete(name)


HOSTILE = {
    "binary": bytes(range(256)) * 40,
    "zeros": b"\0" * 10_000,
    "empty": b"",
    "blank": b"\n\n  \n",
    "cut": b'{"source": "a", "content": "whole"}\n{"source": "b", "content": "br',
    "nested": b"[" * 100_000,
    "returns": b'{"source": "a", "content": "a"}\r\n{"source": "b", "content": "b"}\r\n',
    "no text": b'{"source": "a", "content": "\\ud800"}\n{"source": "a\\u0000", "content": "b"}',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_bad_file_is_told_alike(served, local, operator, tmp_path, name):
    (tmp_path / "bad.jsonl").write_bytes(HOSTILE[name])
    here = local("import", "bad.jsonl", "-c", "bad-here", "--json", status=None)
    there = operator("import", "bad.jsonl", "-c", "bad-there", "--json", status=None)
    assert (there.status, untimed(there.json)) == (here.status, untimed(here.json))


def test_a_file_that_cannot_be_read_is_said_so(operator, tmp_path):
    assert "There is no file" in operator("import", "none.jsonl", "-c", "unmade", status=1).err
    assert "There is no file" in operator("import", ".", "-c", "unmade", status=1).err
    assert not any(one["name"] == "unmade" for one in operator("collections", "list", "--json").json["items"])


def test_a_line_longer_than_the_server_takes_stops_no_other(served, operator, tmp_path, monkeypatch):
    monkeypatch.setattr("recollect.server.routes.uploads._MOST_OF_A_LINE", 1_000)
    lines = [line(1), line(2, "long " * 1_000), line(3)]
    (tmp_path / "long.jsonl").write_text("\n".join(lines), encoding="utf-8")
    told = operator("import", "long.jsonl", "-c", "long", "--json", status=1).json
    assert told["added"] == 2
    assert [(one["path"], one["error"]) for one in told["errors"]] == [("long.jsonl:2", "is longer than 1,000 bytes")]


def test_who_may_not_write_imports_nothing(served, caller, tmp_path):
    (tmp_path / "one.jsonl").write_text(line(1), encoding="utf-8")
    refused = caller("read")("import", "one.jsonl", "--json", status=1).json["error"]
    assert refused["type"] == "PermissionDeniedError" and "write" in refused["message"]
    # Another tenant's key writes into its own collection of that name, and finds nothing of this one's.
    other = caller("read", "write", "admin", tenant="acme")
    other("import", "one.jsonl", "-c", "theirs", "--json")
    assert not any(one.name == "theirs" for one in served.rag.collections.list())
    missing = caller("read", "write")("import", "one.jsonl", "-c", "misspelt", "--json", status=1).json["error"]
    assert missing["type"] == "PermissionDeniedError"
    for_others = caller("read", "write")("import", "one.jsonl", "--as", "ann", status=2)
    assert "not as somebody else" in for_others.err


def test_an_import_that_is_interrupted_by_the_servers_end_is_completed_by_the_next(
    served, caller, tmp_path, small_parts
):
    """The server ends behind the first part: it is stored, the rest is not, and the same command completes it."""
    (tmp_path / "gates.jsonl").write_text("\n".join(map(line, range(45))), encoding="utf-8")
    ended = threading.Event()

    def through(connection: socket.socket, number: int) -> None:
        request = request_of(connection)
        if b"/import" in request and ended.is_set():
            return  # closed without a word, as by a server that was killed
        if b"/import" in request:
            ended.set()
        host, port = served.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as server:
            server.sendall(
                request.replace(b"Connection: keep-alive", b"Connection: close", 1).replace(
                    b"connection: keep-alive", b"connection: close", 1
                )
            )
            while piece := server.recv(65536):
                connection.sendall(piece)

    with answering(through) as url:
        broken = caller("read", "write", "admin", url=url)
        told = broken("import", "gates.jsonl", "-c", "half", "--json", status=1).json["error"]
    assert told["type"] == "ServerUnavailableError"
    view = served.rag.view(collections="half")
    assert len(view.documents.list(limit=1_000)) == 20
    completed = caller("read", "write", "admin")("import", "gates.jsonl", "-c", "half", "--json").json
    counts = ("added", "updated", "unchanged", "removed", "failed", "skipped")
    assert [completed[name] for name in counts] == [25, 0, 20, 0, 0, 0]


def test_a_part_whose_reply_was_lost_takes_effect_once(served, caller, tmp_path):
    (tmp_path / "gates.jsonl").write_text("\n".join(map(line, range(3))), encoding="utf-8")
    seen = []

    def through(connection: socket.socket, number: int) -> None:
        request = request_of(connection)
        host, port = served.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as server:
            server.sendall(request.replace(b"onnection: keep-alive", b"onnection: close", 1))
            replied = b""
            while piece := server.recv(65536):
                replied += piece
        if b"/import" in request:
            seen.append(replied)
            if len(seen) == 1:
                return
        connection.sendall(replied)

    with answering(through) as url:
        told = caller("read", "write", "admin", url=url)(
            "import", "gates.jsonl", "-c", "once", "--force", "--json"
        ).json
    assert len(seen) == 2 and b"idempotency-replayed" in seen[1].lower()
    assert told["added"] == 3
    assert {one.version for one in served.rag.view(collections="once").documents.list()} == {1}


def test_a_server_that_is_none_is_told_of(tmp_path, caller):
    (tmp_path / "one.jsonl").write_text(line(1), encoding="utf-8")

    def other(connection: socket.socket, _: int) -> None:
        request_of(connection)
        connection.sendall(reply(b"<html>", kind="text/html", status="404 Not Found"))

    with answering(other) as url:
        told = caller("write", url=url)("import", "one.jsonl", "--json", status=1).json["error"]
    assert told["type"] == "ServerError" and "no server of recollect" in told["message"]


@pytest.fixture
def folder(tmp_path) -> Path:
    made = tmp_path / "shelf"
    made.mkdir()
    (made / "keys.md").write_text("# Keys\n\nThe spare key lies in the drawer.", encoding="utf-8")
    (made / "lamp.md").write_text("# Lamp\n\nThe lamp stands on the shelf.", encoding="utf-8")
    return made


def test_a_source_is_added_refreshed_and_removed(served, local, operator, folder):
    told = operator("sources", "add", folder, "-c", "shelf", "--name", "the shelf", "--json").json["refreshed"]
    assert [(one["source"], one["added"], one["chunks"]) for one in told] == [("the shelf", 2, 2)]
    assert operator("query", "spare key", "-c", "shelf", "--json").json["results"][0]["source"] == "keys.md"
    listed = ("sources", "list", "-c", "shelf", "--json")
    assert operator(*listed).json == local(*listed).json
    (folder / "lamp.md").unlink()
    (folder / "keys.md").write_text("# Keys\n\nThe spare key hangs on the wall.", encoding="utf-8")
    (folder / "hidden.bin").write_bytes(b"\0\1")
    here = untimed(local("sources", "refresh", "-c", "shelf", "--json").json)
    (folder / "keys.md").write_text("# Keys\n\nThe spare key is lost.", encoding="utf-8")
    there = untimed(operator("sources", "refresh", "-c", "shelf", "--json").json)
    assert {**there["refreshed"][0], "removed": 1} == {**here["refreshed"][0], "chunks": 1}
    shown = operator("sources", "refresh", "the shelf", "-c", "shelf").out
    assert "the shelf" in shown and "unchanged" in shown
    (job,) = operator("sources", "refresh", "-c", "shelf", "--background", "--json").json["jobs"]
    assert job["kind"] == "refresh_source" and job["source"] == "the shelf"
    removed = operator("sources", "remove", "the shelf", "-c", "shelf", "--yes", "--json").json
    assert removed == {"documents": 1}
    again = operator("sources", "add", folder, "-c", "shelf", "--name", "other", "--no-refresh", "--json").json
    assert (again["name"], again["documents"]) == ("other", 0)
    operator("sources", "refresh", "other", "-c", "shelf")
    # More fail than a server names: how many is told all the same.
    for number in range(110):
        (folder / f"bad-{number:03}.md").write_bytes(b"")
    told = operator("sources", "refresh", "other", "-c", "shelf", status=1)
    assert "110 failed" in " ".join(told.out.split())
    assert "and 90 more; --json lists the first 100 that failed" in told.err
    both = local("sources", "refresh", "other", "-c", "shelf", status=1)
    assert "and 90 more; --json lists all of them" in both.err
    assert operator("sources", "remove", "other", "-c", "shelf", "--erase", "--yes", "--json").json["documents"] == 1
    assert not served.rag.view(collections="shelf").documents.list()


def test_a_source_that_cannot_be_read_says_why_at_once(served, local, operator, folder):
    operator("sources", "add", folder, "-c", "gone", "--name", "gone", "--no-refresh")
    folder.rename(folder.with_name("elsewhere"))
    command = ("sources", "refresh", "gone", "-c", "gone", "--json")
    here, there = local(*command, status=1).json, operator(*command, status=1).json
    assert there == here
    assert there["error"]["type"] == "SourceError" and "is not there" in there["error"]["message"]
    operator("sources", "remove", "gone", "-c", "gone", "--yes")


def test_what_the_server_alone_has_is_read_for_who_runs_it(served, caller, operator, folder, tmp_path):
    admin, acme = caller("read", "write", "admin"), caller("read", "write", "admin", tenant="acme")
    for who in (admin, acme):
        for location, *more in (
            [folder],
            ["/etc"],
            ["s3://bucket"],
            ["s3://bucket", "--set", "access_key=env:RECOLLECT_DSN"],
            ["imaps://me@example.com"],
            ["ssh://git@example.com/a.git"],
            ["/srv/a.git"],
            ["https://example.com/a.git", "--set", "token=env:RECOLLECT_DSN"],
            ["https://example.com/a.git", "--set", "ssh_key=/root/.ssh/id"],
        ):
            refused = who("sources", "add", location, *more, "--no-refresh", "--json", status=1).json["error"]
            assert refused["type"] == "PermissionDeniedError" and "operator" in refused["message"], location
        for location, *more in (
            ["https://example.com"],
            ["https://example.com/a.git"],
            ["s3://open", "--set", "anonymous=true"],
        ):
            added = who("sources", "add", location, *more, "--no-refresh", "--json").json
            who("sources", "remove", added["name"], "--yes")
    refused = caller("read", "write")("sources", "add", "https://example.com", "--json", status=1).json["error"]
    assert refused["type"] == "PermissionDeniedError"
    # The folder would be looked for where the server was started.
    assert "whole path" in operator("sources", "add", "shelf", status=2).err
    # Neither by name nor with the same words: another tenant's sources are not there.
    operator("sources", "add", folder, "--name", "ours", "--no-refresh")
    for command in (("refresh", "ours"), ("remove", "ours", "--yes")):
        assert "There is no source" in acme("sources", *command, status=1).err
    assert [one["name"] for one in operator("sources", "list", "--json").json["items"] if one["connector"]] == ["ours"]
    operator("sources", "remove", "ours", "--yes")


def test_a_collection_is_shared_with_another_tenant(served, caller, operator):
    told = operator("tenants", "share", "default", "it", "acme", "--json").json
    assert told == {"tenant": "default", "collection": "it", "reader": "acme", "shared": True}
    assert [one["collection"] for one in operator("tenants", "show", "acme", "--json").json["shared_with_it"]]
    assert "no longer reads" in operator("tenants", "unshare", "default", "it", "acme").out
    again = operator("tenants", "unshare", "default", "it", "acme", "--json", status=1).json["error"]
    assert again["type"] == "NotFoundError"
    refused = caller("read", "write", "admin")("tenants", "share", "default", "it", "acme", "--json", status=1)
    assert refused.json["error"]["type"] == "PermissionDeniedError"


def test_a_reader_asks_and_compares_what_it_may_read(served, caller):
    reader = caller("read")
    assert reader("context", "annual leave", "--json").json["passages"]
    assert reader("diff", "annual leave", "--from", "7d", "--json").json["came"]
    other = caller("read", tenant="acme")
    assert other("context", "annual leave", "--json").json["passages"] == []
    found = other("diff", "annual leave", "--from", "7d", "--json", status=None).json
    assert not found.get("came")
    told = other("documents", "show", "err.md", "--json", status=1).json["error"]
    assert told["type"] == "NotFoundError"


def test_a_model_is_changed_by_a_worker_of_the_server(served, local, operator, caller):
    view = served.rag.view(collections="voices")
    view.ingest([Document(content=f"Voice {n} sings at dawn.", source=f"{n}.md") for n in range(3)])
    before = view.collections.get("voices").embedding_model
    told = operator("reembed", "-c", "voices", "--model", "hashing:96", "--samples", "3", "--json").json
    assert (told["from"]["model"], told["to"]["model"], told["switched"]) == (before, "hashing:96", True)
    assert told["comparison"]["of"] == "samples" and told["dropped"] == []
    status = operator("reembed", "-c", "voices", "--status", "--json").json
    assert status == local("reembed", "-c", "voices", "--status", "--json").json
    assert operator("reembed", "-c", "voices", "--status").out == local("reembed", "-c", "voices", "--status").out
    refused = operator("reembed", "-c", "voices", "--model", "hashing:128", "--min", "found@10=1.1", status=1)
    assert "Not changed to it: found@10 is" in refused.err
    operator("reembed", "-c", "voices", "--drop", "--yes")
    assert "already" in operator("reembed", "-c", "voices", "--model", "hashing:96", status=2).err
    assert "--cases" in operator("reembed", "-c", "voices", "--model", "x", "--cases", "x.yaml", status=2).err
    assert "Nothing is kept" in operator("reembed", "-c", "voices", "--rollback", status=1).err
    command = ("reembed", "-c", "voices", "--model", "hashing:64", "--no-switch", "--background", "--json")
    assert served.rag.jobs.wait(operator(*command).json["job_id"]).status == "succeeded"
    admin = caller("read", "write", "admin")
    assert "'operator'" in admin("reembed", "-c", "voices", "--model", "hashing:64", status=1).err
    assert "contextualise" in admin("contextualise", "-c", "voices", status=2).err
    assert view.collections.get("voices").embedding_model == "hashing:96"
