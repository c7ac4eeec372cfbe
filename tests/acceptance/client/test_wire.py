"""Servers that are none, that are slow, that lie; connections that break: what a client makes of them."""

from __future__ import annotations

import gzip
import json
import os
import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx2
import pytest

from recollect import Client, Document
from recollect.client.requests import ERRORS, error_of
from recollect.errors import (
    NotFoundError,
    RateLimitedError,
    RecollectError,
    RequestUnderWayError,
    ServerError,
    ServerUnavailableError,
    UsageError,
)
from recollect.server import problems
from wires import Cutter, answering, reply, request_of

ME = {"tenant": {}, "principal": None, "scopes": [], "credential": {}, "settings": {"collection": "default"}}


def saying(*replies: bytes):
    """Answers the first connection with the first of these, and so on; the last for all that follow."""
    heads: list[bytes] = []

    def handle(connection: socket.socket, number: int) -> None:
        heads.append(request_of(connection))
        connection.sendall(replies[min(number, len(replies) - 1)])

    return handle, heads


def problem(name: str, status: int = 400, **more: object) -> bytes:
    told = {"type": f"urn:recollect:problem:{name}", "status": status, "detail": f"It is {name}.", "request_id": "r-1"}
    return json.dumps(told | more).encode()


STRANGE = {
    "a page": reply(b"<html>hello</html>", kind="text/html"),
    "no type": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
    "no JSON": reply(b"{no", kind="application/json"),
    "deep JSON": reply(b"[" * 200_000, kind="application/json"),
    "another JSON": reply(b'{"what": 1}'),
    "a list": reply(b"[1, 2]"),
    "nothing": reply(b""),
    "a redirect": reply(b"", status="302 Found", more="Location: http://127.0.0.1:1/elsewhere\r\n"),
    "a page of errors": reply(b"<h1>no</h1>", status="404 Not Found", kind="text/html"),
    "a problem that is none": reply(b"[]", status="400 Bad", kind="application/problem+json"),
    "no gzip": reply(b"no gzip at all", more="Content-Encoding: gzip\r\n"),
}


@pytest.mark.parametrize("name", STRANGE)
def test_what_is_no_server_of_recollect_is_said_to_be_none(name):
    handle, heads = saying(STRANGE[name])
    with answering(handle) as url, Client(url, "a-key") as client, pytest.raises(ServerError) as told:
        client.search("words")
    assert told.value.url == url
    assert len(heads) == 1, "it is not asked again, nor anybody else"


def test_a_key_does_not_follow_a_redirect():
    elsewhere, seen = saying(reply(b"{}"))
    with answering(elsewhere) as other:
        handle, _ = saying(reply(b"", status="307 Temporary Redirect", more=f"Location: {other}/v1/search\r\n"))
        with answering(handle) as url, Client(url, "a-key") as client, pytest.raises(ServerError, match="elsewhere"):
            client.search("words")
    assert seen == []


def test_a_reply_without_end_is_not_read_to_its_end():
    def handle(connection: socket.socket, _: int) -> None:
        request_of(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            connection.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")

    with answering(handle) as url, small(Client(url), 1 << 20) as client, pytest.raises(ServerError, match="more than"):
        client.search("words")


def test_a_reply_that_unpacks_to_more_than_it_may_is_refused():
    bomb = reply(gzip.compress(b" " * (64 << 20)), more="Content-Encoding: gzip\r\n")
    handle, _ = saying(bomb)
    with answering(handle) as url, small(Client(url), 1 << 20) as client, pytest.raises(ServerError, match="more than"):
        client.search("words")


def small(client: Client, most: int) -> Client:
    client._connection.settings = replace(client._connection.settings, max_reply_bytes=most)
    return client


def test_nobody_who_listens_is_said_to_be_nobody():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}", retries=1) as client, pytest.raises(ServerUnavailableError, match="serve"):
        client.search("words")


def test_too_much_is_asked_again_when_the_server_says(monkeypatch):
    waits: list[float] = []
    monkeypatch.setattr("recollect.client.connection.time.sleep", waits.append)
    slow = reply(
        problem("rate-limited", 429), status="429 Too Many", kind="application/problem+json", more="Retry-After: 7\r\n"
    )
    handle, heads = saying(slow, slow, reply(json.dumps(ME).encode()))
    with answering(handle) as url, Client(url) as client:
        assert client.me() == ME
    assert len(heads) == 3
    assert [wait >= 7 for wait in waits] == [True, True]


def test_who_would_wait_too_long_is_told_how_long(monkeypatch):
    monkeypatch.setattr("recollect.client.connection.time.sleep", lambda _: pytest.fail("it waits"))
    late = problem("rate-limited", 429, retry_after_seconds=3600.0)
    handle, heads = saying(
        reply(late, status="429 Too Many", kind="application/problem+json", more="Retry-After: 3600\r\n")
    )
    with answering(handle) as url, Client(url) as client, pytest.raises(RateLimitedError) as told:
        client.me()
    assert (told.value.retry_after_seconds, told.value.request_id, len(heads)) == (3600.0, "r-1", 1)


def test_a_gateway_is_asked_again_and_a_model_that_failed_is_not(monkeypatch):
    monkeypatch.setattr("recollect.client.connection.time.sleep", lambda _: None)
    gateway = reply(b"<h1>502</h1>", status="502 Bad Gateway", kind="text/html")
    handle, heads = saying(gateway, gateway, reply(json.dumps(ME).encode()))
    with answering(handle) as url, Client(url) as client:
        client.me()
    assert len(heads) == 3
    failed = reply(problem("model-failed", 502), status="502 Bad Gateway", kind="application/problem+json")
    handle, heads = saying(failed)
    with answering(handle) as url, Client(url) as client, pytest.raises(RecollectError, match="model-failed"):
        client.search("words")
    assert len(heads) == 1


@pytest.mark.parametrize("row", problems._ROWS, ids=lambda row: row.name)
def test_every_error_of_the_server_is_raised_as_what_it_was(row):
    told = problem(row.name, row.status)
    error = error_of(json.loads(told), url="http://server", status=row.status)
    if row.name == "failed":
        assert type(error) is ServerError
        return
    assert type(error) is ERRORS[row.name]
    # What has one name is told from elsewhere alike, whichever of the library's errors it was.
    first = next(one.error for one in problems._ROWS if one.name == row.name)
    assert issubclass(first, type(error)) or issubclass(type(error), first)
    assert str(error) == f"It is {row.name}."
    # Whoever reads an error's attributes finds them.
    for name in getattr(row.error.__init__, "__kwdefaults__", None) or {}:
        assert hasattr(error, name)


def test_a_write_whose_reply_is_lost_takes_effect_once(served, client):
    cut = Cutter(served.url, [0])
    with answering(cut) as url, Client(url) as cut_off:
        made = cut_off.collections.create("once", description="made once")
    assert made.name == "once"
    keys = {line for head in cut.heads for line in head.lower().splitlines() if line.startswith("idempotency-key")}
    assert len(cut.heads) == 2
    assert len(keys) == 1
    client.collections.delete("once")


def test_a_text_that_is_sent_twice_is_one_document(served, client):
    cut = Cutter(served.url, [10, 10])
    with answering(cut) as url, Client(url) as cut_off:
        made = cut_off.ingest(Document(content="Sent while the line broke.", source="cut.md"))
    assert (made.status, made.version) == ("added", 1)
    client.documents.delete(["cut.md"])


def test_a_download_goes_on_where_it_broke(served, client, tmp_path):
    (tmp_path / "large.txt").write_text("A line of a file that is large enough.\n" * 20_000)
    (job,) = client.jobs.upload(tmp_path / "large.txt")
    done = client.jobs.wait(job.job_id)
    cut = Cutter(served.url, [100_000, 300_000])
    with answering(cut) as url, Client(url) as cut_off:
        read = b"".join(cut_off.contents.download(done.result["document_id"]))
    assert read == (tmp_path / "large.txt").read_bytes()
    assert len(cut.heads) == 3
    assert "range: bytes=" in cut.heads[1].lower()
    client.documents.delete([done.result["document_id"]])


def test_a_job_is_followed_over_a_broken_connection(served, client, tmp_path):
    (tmp_path / "job.txt").write_text("Followed.")
    (job,) = client.jobs.upload(tmp_path / "job.txt")
    client.jobs.wait(job.job_id)
    whole = list(client.jobs.events(job.job_id))
    cut = Cutter(served.url, [0, 150])
    with answering(cut) as url, Client(url) as cut_off:
        assert list(cut_off.jobs.events(job.job_id)) == whole
    assert len(cut.heads) == 3


def test_the_certificates_are_read_once_for_all_clients(monkeypatch, tmp_path):
    read = []

    def reading() -> ssl.SSLContext:
        read.append(os.environ.get("SSL_CERT_FILE"))
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    monkeypatch.setattr(httpx2, "create_ssl_context", reading)
    for file in ("one.pem", "two.pem"):
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / file))
        for _ in range(3):
            with Client("https://127.0.0.1:9", retries=0) as one, pytest.raises(ServerUnavailableError):
                one.me()
    assert read == [str(tmp_path / "one.pem"), str(tmp_path / "two.pem")]


def test_threads_share_a_client(served):
    with served.client() as client, ThreadPoolExecutor(8) as threads:
        found = list(
            threads.map(lambda number: client.search(f"annual leave {number % 3}").results[0].source, range(40))
        )
    assert set(found) == {"hr/leave.md"}


def test_a_forked_child_has_connections_of_its_own(served):
    with served.client() as client:
        assert client.search("leave").results
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            # Nothing of pytest's may run here.
            found = client.search("leave").results[0].source
            os.write(writing, found.encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            assert pipe.read() == "hr/leave.md"
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert client.search("leave").results


def test_a_server_that_began_anew_is_asked_again(served, client):
    # The connection that was kept open is closed by the other end.
    gone = threading.Event()

    def handle(connection: socket.socket, number: int) -> None:
        request_of(connection)
        body = json.dumps(ME).encode()
        connection.sendall(reply(body).replace(b"Connection: close\r\n", b""))
        if number == 0:
            gone.set()

    with answering(handle) as url, Client(url) as asking:
        assert asking.me() == ME
        assert gone.wait(5)
        assert asking.me() == ME


def test_what_another_request_is_busy_with_is_waited_for(monkeypatch):
    monkeypatch.setattr("recollect.client.connection.time.sleep", lambda _: None)
    busy = reply(
        problem("under-way", 409), status="409 Conflict", kind="application/problem+json", more="Retry-After: 1\r\n"
    )
    handle, heads = saying(busy, reply(b"", status="204 No Content"))
    with answering(handle) as url, Client(url) as client:
        client.collections.delete("a")
    assert len(heads) == 2
    handle, heads = saying(busy)
    with answering(handle) as url, Client(url, retries=2) as client, pytest.raises(RequestUnderWayError):
        client.collections.delete("a")
    assert len(heads) == 3


@pytest.mark.parametrize(
    "url",
    [
        "",
        "knowledge.example",
        "ftp://a.example",
        "http://",
        "http://u:p@a.example",
        "http://a.example/?q=1",
        "http://[::",
    ],
)
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(UsageError) as told:
        Client(url)
    assert ":p@" not in str(told.value)


def test_a_key_is_not_sent_in_the_clear_to_another_machine():
    with pytest.raises(UsageError, match="plain HTTP"):
        Client("http://knowledge.example", "a-key")
    for url in ("https://knowledge.example", "http://localhost:1", "http://127.0.0.1:1/below", "http://[::1]:1"):
        Client(url, "a-key").close()
    Client("http://knowledge.example", "a-key", allow_insecure=True).close()
    Client("http://knowledge.example").close()
    for key in ("", "two words", "line\nbreak", "schlüssel"):
        with pytest.raises(UsageError, match="key"):
            Client("https://knowledge.example", key)


def test_what_is_not_there_says_so_over_names_of_any_kind(client):
    for name in ("../keys", "a b", "ä/ö", "?x=1", "%2e", "#"):
        with pytest.raises((NotFoundError, UsageError, ServerError)):
            client.collections.get(name)
