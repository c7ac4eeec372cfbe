"""``/v1/collections/{name}/files``: files that are sent are kept at once, and stored by whichever worker comes."""

from __future__ import annotations

import asyncio
import threading

import psycopg
import pytest

from recollect import Principal
from recollect.server.app import create_app

FILES = "/v1/collections/default/files"
TEXT = b"# Leave\n\nThirty days of annual leave."


def sent(client, *files: tuple[str, bytes], **fields):
    return client.post(FILES, files=[("file", (name, data)) for name, data in files], data=fields)


def done(client, reply) -> list[dict]:
    assert reply.status_code == 202, reply.text
    rag = client.app.state.service.rag
    for job in reply.json()["jobs"]:
        assert rag.jobs.wait(job["job_id"], timeout_seconds=60).ended
    return [client.get(f"/v1/jobs/{job['job_id']}").json() for job in reply.json()["jobs"]]


def kept(dsn: str) -> tuple[int, int, int]:
    """Originals, their pieces, and the files that jobs are to read."""
    with psycopg.connect(dsn) as connection:
        counts = [
            connection.execute(f"SELECT count(*) FROM recollect.{table}").fetchone()[0]
            for table in ("originals", "original_pieces", "job_uploads")
        ]
    return tuple(counts)


def test_files_are_kept_at_once_and_stored_by_whoever_runs_their_jobs(client, dsn):
    large = TEXT + b"\n\n" + b"Words and words. " * 40_000
    reply = sent(client, ("leave.md", TEXT), ("large.txt", large), tag=["hr", "official"], department="hr")
    assert [job["document"] for job in reply.json()["jobs"]] == ["leave.md", "large.txt"]
    assert kept(dsn) == (2, 4, 2)
    listed = client.get("/v1/collections/default/documents", params={"status": "pending"}).json()["items"]
    assert {one["source"] for one in listed} == {"leave.md", "large.txt"}
    jobs = done(client, reply)
    assert [job["status"] for job in jobs] == ["succeeded", "succeeded"], jobs
    assert kept(dsn) == (2, 4, 0)
    number = jobs[0]["result"]["document_id"]
    shown = client.get(f"/v1/documents/{number}").json()
    assert (shown["title"], shown["tags"], shown["department"]) == ("Leave", ["hr", "official"], "hr")
    assert (shown["source_type"], shown["origin"]) == ("upload", "upload")
    original = client.get(f"/v1/documents/{number}/original")
    assert (original.content, "leave.md" in original.headers["content-disposition"]) == (TEXT, True)
    assert client.post("/v1/search", json={"query": "annual leave"}).json()["results"]
    again = done(client, sent(client, ("leave.md", TEXT), tag=["hr", "official"], department="hr"))
    assert again[0]["result"]["status"] == "unchanged"
    changed = done(client, sent(client, ("leave.md", TEXT + b" Or more."), force="true"))
    assert (changed[0]["result"]["status"], changed[0]["result"]["document_id"]) == ("updated", number)


def test_a_file_that_cannot_be_read_says_so_and_is_there_for_another_try(client, dsn):
    (job,) = done(client, sent(client, ("scan.bin", bytes(range(256)) * 10)))
    assert job["status"] in {"failed", "cancelled"}
    assert "scan.bin" in job["error"]
    listed = client.get("/v1/collections/default/documents", params={"status": "error"}).json()["items"]
    assert [one["source"] for one in listed] == ["scan.bin"]
    assert kept(dsn) == (1, 1, 1)
    again = client.post(f"/v1/jobs/{job['job_id']}/retry")
    assert again.json()["status"] == "pending"
    erased = client.post(f"/v1/documents/{listed[0]['document_id']}/erase", json={})
    assert erased.json()["complete"], erased.text
    assert kept(dsn) == (0, 0, 0)
    assert client.get(f"/v1/jobs/{job['job_id']}").status_code == 404


def test_what_another_job_is_to_read_is_not_erased_with_a_document(client, dsn):
    (job,) = done(client, sent(client, ("a.md", TEXT)))
    waiting = sent(client, ("b.md", TEXT))
    receipt = client.post(f"/v1/documents/{job['result']['document_id']}/erase", json={}).json()
    assert (receipt["complete"], receipt["counts"]["originals"]) == (True, 0), receipt
    assert done(client, waiting)[0]["status"] == "succeeded"
    assert client.app.state.service.rag.maintenance.verify().clean


NAMES = [
    ("../../etc/passwd.txt", "passwd.txt"),
    ("C:\\fakepath\\report.txt", "report.txt"),
    ("\u202etxt.exe.txt", "txt.exe.txt"),
    ("a\tb\x01c.txt", "abc.txt"),
    ("  spaced   name .txt ", "spaced name .txt"),
    ("Bericht äöü 報告.txt", "Bericht äöü 報告.txt"),
    ("e\u0301.txt", "é.txt"),
    ("x" * 400 + ".txt", "x" * 251 + ".txt"),
]


def test_names_are_for_people_and_never_paths(rag):
    from recollect.errors import UsageError
    from recollect.pipeline.uploading import upload_name

    for given, name in NAMES:
        assert upload_name(given) == name
    for none in ("", ".", "..", "/", "a/", "\x00", "\u202e", "../.."):
        with pytest.raises(UsageError):
            upload_name(none)


def test_what_is_refused_stores_nothing(rag, client, dsn):
    settings = rag.config.ingest.model_copy(update={"max_file_bytes": 2_000})
    rag.standpoint.assembly.config = rag.config.model_copy(update={"ingest": settings})
    refused = [
        (sent(client), 415),
        (client.post(FILES, files={"tag": (None, "x")}), 400),
        (sent(client, ("empty.txt", b"")), 422),
        (sent(client, ("large.txt", b"x" * 2_001)), 422),
        (sent(client, ("ok.txt", TEXT), ("empty.txt", b"")), 422),
        (sent(client, ("same.txt", TEXT), ("a/same.txt", b"other")), 400),
        (sent(client, ("..", TEXT)), 400),
        (sent(client, ("a.txt", TEXT), grant="nobody:x"), 400),
        (sent(client, ("a.txt", TEXT), tags="misspelt"), 422),
        (sent(client, ("a.txt", TEXT), force="perhaps"), 422),
        (sent(client, ("a.txt", TEXT), department=""), 422),
        (sent(client, *[(f"{n}.txt", TEXT) for n in range(101)]), 400),
        (client.post("/v1/collections/none/files", files={"file": ("a.txt", TEXT)}), 404),
        (client.post(FILES, json={"file": "x"}), 415),
        (client.post(FILES, content=TEXT), 415),
    ]
    form = {"Content-Type": "multipart/form-data; boundary=x"}
    broken = (b"", b"--x", b"--y\r\n\r\n--y--", b"--x\r\nContent-Disposition: form-data\r\n\r\nz\r\n--x--")
    refused += [(client.post(FILES, content=body, headers=form), 400) for body in broken]
    half = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhalf of it'
    whole = half.replace(b"a.txt", b"b.txt") + b"\r\n"
    refused += [(client.post(FILES, content=body, headers=form), 400) for body in (half, whole + half)]
    refused.append((client.post(FILES, content=b"x", headers={"Content-Type": "multipart/form-data"}), 400))
    for number, (reply, status) in enumerate(refused):
        assert reply.status_code == status, (number, reply.text)
        assert reply.headers["content-type"] == "application/problem+json"
    assert kept(dsn) == (0, 0, 0)
    assert client.get("/v1/jobs").json()["items"] == []


def test_whoever_may_not_write_stores_nothing(rag, client, connect, dsn):
    rag.collections.create("default")
    ada = connect(rag.keys.create("ada", scopes=["read", "write"], principal=Principal(user_id="ada")).secret)
    reader = connect(rag.keys.create("reader", scopes=["read"]).secret)
    for stranger in (ada, reader):
        assert sent(stranger, ("a.txt", TEXT)).status_code == 403
    rag.tenants.create("other")
    other = connect(rag.view(tenant="other").keys.create("other", scopes=["read", "write"]).secret)
    (job,) = sent(other, ("a.txt", TEXT)).json()["jobs"]
    assert client.get(f"/v1/jobs/{job['job_id']}").status_code == 404
    assert kept(dsn)[0] == 1
    assert client.get("/v1/collections/default/documents").json()["items"] == []
    rag.view(tenant="other").jobs.wait(job["job_id"])
    assert len(other.get("/v1/collections/default/documents").json()["items"]) == 1


def test_an_upload_is_no_longer_than_it_may_be(rag, dsn):
    from fastapi.testclient import TestClient

    small = rag.config.server.model_copy(update={"max_upload_bytes": 2_000})
    rag.standpoint.assembly.config = rag.config.model_copy(update={"server": small})
    client = TestClient(create_app(rag), base_url="http://localhost", raise_server_exceptions=False)
    assert sent(client, ("a.txt", b"x" * 3_000)).status_code == 413

    def pieces():
        yield b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
        for _ in range(100):
            yield b"x" * 100

    form = {"Content-Type": "multipart/form-data; boundary=x"}
    assert client.post(FILES, content=pieces(), headers=form).status_code == 413
    assert kept(dsn) == (0, 0, 0)


def test_files_may_be_longer_than_bodies_and_only_where_files_are_taken(rag):
    from fastapi.testclient import TestClient

    small = rag.config.server.model_copy(update={"max_body_bytes": 2_000})
    rag.standpoint.assembly.config = rag.config.model_copy(update={"server": small})
    client = TestClient(create_app(rag), base_url="http://localhost", raise_server_exceptions=False)
    assert sent(client, ("a.txt", b"x" * 3_000)).status_code == 202
    file = {"file": ("a.txt", b"x" * 3_000)}
    assert client.post("/v1/files", files=file, data={"purpose": "user_data"}).status_code == 200
    for other in ("/v1/vector_stores/default/files", "/v1/nowhere/files", "/files", "/v1/search/files"):
        assert client.post(other, content=b"x" * 3_000).status_code == 413


def test_a_client_that_goes_away_in_the_middle_stores_nothing(client, dsn):
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
    messages = [
        {"type": "http.request", "body": head + b"x" * 200_000, "more_body": True},
        {"type": "http.disconnect"},
    ]
    told: list[dict] = []

    async def receive() -> dict:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: dict) -> None:
        told.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": FILES,
        "raw_path": FILES.encode(),
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8321"), (b"content-type", b"multipart/form-data; boundary=x")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8321),
    }
    asyncio.run(client.app(scope, receive, send))
    assert told[0]["status"] == 400
    assert kept(dsn) == (0, 0, 0)
    assert client.get("/v1/jobs").json()["items"] == []


def test_the_same_file_sent_twice_at_once_is_one_document(client, dsn):
    replies = []
    both = threading.Barrier(2)

    def send() -> None:
        both.wait()
        replies.append(sent(client, ("same.md", TEXT)))

    threads = [threading.Thread(target=send) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert kept(dsn)[0] == 1
    jobs = [job for reply in replies for job in done(client, reply)]
    assert sorted(job["result"]["status"] for job in jobs) == ["added", "unchanged"]
    assert len({job["result"]["document_id"] for job in jobs}) == 1
    assert kept(dsn) == (1, 1, 0)


def test_a_quota_counts_what_waits_to_be_read(rag, connect, dsn):
    from recollect.model.tenant import TenantQuota

    rag.tenants.create("small", quota=TenantQuota(max_bytes=1_000))
    small = connect(rag.view(tenant="small").keys.create("k", scopes=["read", "write"]).secret)
    refused = sent(small, ("a.txt", b"x " * 2_000))
    assert refused.status_code == 403
    assert refused.json()["type"] == "urn:recollect:problem:quota-exceeded"
    assert kept(dsn) == (0, 0, 0)
