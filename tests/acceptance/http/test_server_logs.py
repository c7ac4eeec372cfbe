"""The server's log: a line for each request, ids on every line, and no secret anywhere."""

from __future__ import annotations

import io
import json
import logging
import sys
from contextlib import contextmanager

import pytest

from recollect import Document
from recollect.errors import StoreUnavailableError
from recollect.privacy.credentials import without_secrets
from recollect.server.request_context import JsonFormatter, RequestIdFilter, TextFormatter, logging_as

LEAVE = "Every employee has thirty days of annual leave."


@contextmanager
def log(monkeypatch, log_format="json"):
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    with logging_as(log_format):
        yield written
    monkeypatch.undo()


def lines(written: io.StringIO) -> list[dict]:
    return [json.loads(line) for line in written.getvalue().splitlines()]


def test_a_request_is_one_line_that_says_who_and_what_but_not_what_for(rag, connect, monkeypatch):
    key = rag.keys.create("reader", scopes=["read"])
    with log(monkeypatch) as written:
        reply = connect(key.secret).post("/v1/search?trace=hushed", json={"query": "the secret merger"})
        connect().get("/v1/collections/hr-layoffs")
        connect().get("/healthz")
    told = [line for line in lines(written) if line["logger"] == "recollect.requests"]
    assert [(line["method"], line["route"], line["status"]) for line in told] == [
        ("POST", "/v1/search", 200),
        ("GET", "/v1/collections/{name}", 404),
    ]
    assert told[0]["request_id"] == reply.headers["x-request-id"]
    assert told[0]["credential"] == f"key:{key.key.key_id}"
    assert told[0]["tenant"] == 0 or isinstance(told[0]["tenant"], int)
    assert told[1]["credential"] == "local"
    assert told[0]["duration_ms"] > 0
    for hidden in (key.secret, "merger", "hushed", "layoffs"):
        assert hidden not in written.getvalue()


def test_lines_of_the_threads_that_answer_have_the_requests_id(rag, client, monkeypatch):
    rag.ingest([Document(content=LEAVE, source="leave.md")])
    search = rag.standpoint.assembly.search

    def telling(*given):
        logging.getLogger("recollect.of_a_thread").warning("searching")
        return search(*given)

    monkeypatch.setattr(rag.standpoint.assembly, "search", telling)
    asked = {"question": "How many days of leave?"}
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    with logging_as("json"):
        whole = client.post("/v1/ask", json=asked).headers["x-request-id"]
        stream = client.post("/v1/ask", json=asked, headers={"Accept": "text/event-stream"}).headers["x-request-id"]
    told = [line["request_id"] for line in lines(written) if line["logger"] == "recollect.of_a_thread"]
    assert told == [whole, stream]


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_no_secret_is_in_the_log_whatever_fails(rag, connect, monkeypatch, log_format):
    key = rag.keys.create("reader", scopes=["read"]).secret

    def away():
        raise StoreUnavailableError(f"postgresql://ann:hunter2@db/x password=hunter3 with {key} is away")

    def broken():
        raise ZeroDivisionError(f"Authorization: Bearer {key}")

    with log(monkeypatch, log_format) as written:
        for failing in (away, broken):
            with monkeypatch.context() as patched:
                patched.setattr(rag.store.database, "ping", failing)
                connect(key).get("/readyz")
        connect(key[:-1] + "A").get("/v1/collections")
        connect(key).get(f"/v1/collections?api_key={key}")
    text = written.getvalue()
    assert "is away" in text
    assert "ZeroDivisionError" in text
    for secret in ("hunter2", "hunter3", key, key[20:]):
        assert secret not in text


def test_a_line_stays_one_line(monkeypatch):
    record = logging.LogRecord("x", logging.INFO, "f", 1, "a\nFORGED \x1b[31m%s", ("b\r\n",), None)
    RequestIdFilter().filter(record)
    assert len(TextFormatter().format(record).splitlines()) == 1
    assert "\x1b" not in TextFormatter().format(record)
    assert json.loads(JsonFormatter().format(record))["message"] == "a\nFORGED \x1b[31mb\r\n"
    assert len(JsonFormatter().format(record).splitlines()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://ann:s3cretpw@host/db",
        "https://:s3cretpw@host/",
        "host=db password=s3cretpw dbname=x",
        "host=db password = 's3cretpw with blanks' dbname=x",
        "Authorization: bearer s3cretpw0123",
        "eyJhbGciOiJIUzI1NiJ9.s3cretpw.abc",
        "GET /x?api_key=s3cretpw&y=1",
    ],
)
def test_secrets_are_left_out(text):
    assert "s3cretpw" not in without_secrets(text)


def test_logging_is_as_it_was_afterwards():
    root = logging.getLogger()
    before = root.handlers[:], logging.getLogger("recollect.requests").level
    with logging_as("text"):
        assert root.handlers != before[0]
    assert (root.handlers, logging.getLogger("recollect.requests").level) == before
