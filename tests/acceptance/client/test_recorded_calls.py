"""Three hundred calls through every door give what they gave: ``recorded_calls.txt`` has a line for each.

A line that changes is a change that somebody's program sees: it belongs into CHANGELOG.md. With ``RECORD=1`` in the
environment this test writes the file anew.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from acceptance.client import test_command_line, test_methods
from program import Recollect
from recollect import Principal
from recollect.model.record import json_of
from wires import ASKED, untimed

RECORDED = Path(__file__).with_name("recorded_calls.txt")
KEPT = {name: value for name, value in os.environ.items() if not name.startswith(("RECOLLECT_", "FORCE_COLOR"))}

#: Values that differ from run to run, by what they look like.
VARYING = [
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d| UTC)?", "<time>"),
    (r"\d{4}-\d\d-\d\d", "<day>"),
    (r"\d{1,2} [A-Z][a-z]{2,8} \d{4}(, \d\d:\d\d)?", "<day>"),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uuid>"),
    (r"(chatcmpl-|resp_|msg_|fs_|rs_|job_|vs_|file-|conv_)[0-9A-Za-z]{8,}", r"\1<id>"),
    (r"127\.0\.0\.1:\d+", "<address>"),
    (r"\b[0-9a-f]{16,64}\b", "<hex>"),
    (r"test_\d+", "<database>"),
    (r"PostgreSQL \d+(\.\d+)?", "PostgreSQL <version>"),
]
#: Names of what each run has of its own: sizes, moments and measurements.
OWN = {
    "created",
    "created_at",
    "completed_at",
    "database_bytes",
    "request_id",
    "bytes",
    "milliseconds",
    "kept",
    "secret",
    "key_id",
    "hint",
}
OWN |= {"search", "version", "server_version", "last_used_at", "prefix", "latency_ms", "pid", "uptime_seconds"}


def plain(told: Any) -> Any:
    """What was told, without what each run has of its own."""
    if isinstance(told, dict):
        return {key: f"<{key}>" if key in OWN and value is not None else plain(value) for key, value in told.items()}
    if isinstance(told, list | tuple):
        return [plain(one) for one in told]
    if isinstance(told, float):
        return round(told, 3)
    if isinstance(told, str):
        for pattern, name in VARYING:
            told = re.sub(pattern, name, told)
    return told


def line(door: str, asked: object, told: Any) -> str:
    return f"{door}: {asked}\t{json.dumps(plain(untimed(told)), ensure_ascii=False, sort_keys=True, default=json_of)}"


#: What stands in a path, by its name there: of something that is there.
THERE = {
    "name": "default",
    "document_id": 1,
    "fact_id": 1,
    "session": "talk",
    "tenant": "default",
    "model": "recollect",
    "file": "file-1",
    "vector_store_id": "vs_1",
}
#: Replies that are of one moment, or whose length is counted.
MOMENTARY = {"/metrics", "/v1/audit/export", "/v1/requests", "/v1/requests/stats", "/v1/audit", "/api/rag/stats"}
MOMENTARY |= {"/v1/audit/verification", "/v1/stats", "/v1/jobs/{job_id}/events", "/v1/streams/{stream}"}

BODIES: list[tuple[str, dict[str, Any]]] = [
    ("/v1/search", {"query": ASKED}),
    ("/v1/search", {"query": ASKED, "top_k": 1, "explain": True, "mode": "lexical"}),
    ("/v1/search", {"query": "ERR-4012", "everywhere": True}),
    ("/v1/search", {"query": "draft", "session": "desk", "with": ["it"]}),
    ("/v1/search", {"query": ASKED, "filter": {"metadata.year": {"gte": 2020}}, "department": ["hr"]}),
    ("/v1/search", {"query": ASKED, "tag": ["no-such-tag"]}),
    ("/v1/search", {"query": ASKED, "as_of": "2020-01-01"}),
    ("/v1/search", {"query": "leave", "as": {"user": "ada", "roles": ["hr"]}}),
    ("/v1/search", {"query": ""}),
    ("/v1/search", {"query": ASKED, "top_k": 0}),
    ("/v1/search", {"query": ASKED, "no_such_option": 1}),
    ("/v1/search", {"query": ASKED, "collections": "*"}),
    ("/v1/search", {"query": ASKED, "department": "hr"}),
    ("/v1/search", {"query": ASKED, "collection": "nowhere"}),
    ("/v1/search", {"query": ASKED, "filter": {"nothing": 1}}),
    ("/v1/search", {"query": ASKED, "as_of": "soon"}),
    ("/v1/search/hints", {"tag": ["no-such-tag"]}),
    ("/v1/ask", {"question": ASKED}),
    ("/v1/ask", {"question": ASKED, "explain": True}),
    ("/v1/ask", {"question": "Who won the cup of 1954?"}),
    ("/v1/ask", {"question": ASKED, "top_k": 100_000}),
    ("/v1/why-not", {"query": ASKED, "document": "hr/pay.txt"}),
    ("/v1/why-not", {"query": ASKED, "document": 1, "tag": ["no-such-tag"]}),
    ("/v1/why-not", {"query": ASKED, "document": "nowhere.md"}),
    ("/v1/context", {"query": ASKED, "token_budget": 300}),
    ("/v1/context", {"query": ASKED, "token_budget": 0}),
    ("/v1/context/assembly", {"query": ASKED, "token_budget": 300}),
    ("/v1/context/assembly", {"query": "Where does my sister live?", "session": "talk", "token_budget": 300}),
    ("/v1/contents", {}),
    ("/v1/contents", {"limit": 1, "collection": "it"}),
    ("/v1/grep", {"pattern": "leave"}),
    ("/v1/grep", {"pattern": "(", "regex": True}),
    ("/v1/diff", {"question": ASKED, "from": "2020-01-01", "to": "2020-01-02"}),
    ("/v1/recall", {"query": "Where does my sister live?"}),
    ("/v1/recall", {"query": "sister", "session": "talk", "top_k": 1}),
    ("/v1/recall", {"query": "sister", "session": "nobody's"}),
    ("/v1/facts/search", {"query": "sister"}),
    ("/v1/chat", {"session": "recorded", "question": ASKED}),
    ("/v1/chat", {"session": "recorded"}),
    ("/api/chat", {"query": ASKED}),
    ("/api/chat", {"query": ""}),
    ("/v1/chat/completions", {"model": "default", "messages": [{"role": "user", "content": ASKED}]}),
    ("/v1/chat/completions", {"model": "it@extractive", "messages": [{"role": "user", "content": "ERR-4012?"}]}),
    ("/v1/chat/completions", {"model": "nowhere", "messages": [{"role": "user", "content": ASKED}]}),
    ("/v1/chat/completions", {"model": "default", "messages": []}),
    ("/v1/chat/completions", {"model": "default", "messages": [{"role": "user", "content": ASKED}], "n": 5}),
    ("/v1/responses", {"model": "default", "input": ASKED, "include": ["file_search_call.results"]}),
    ("/v1/responses", {"model": "default@extractive", "input": "Who won the cup of 1954?"}),
    ("/v1/responses", {"model": "nowhere", "input": ASKED}),
    ("/v1/responses", {"model": "default"}),
    ("/v1/embeddings", {"model": "default", "input": []}),
    ("/v1/embeddings", {"model": "nowhere", "input": "leave"}),
    ("/v1/vector_stores/vs_2/search", {"query": "ERR-4012"}),
    ("/v1/vector_stores/vs_2/search", {"query": "ERR-4012", "max_num_results": 0}),
    ("/v1/sessions", {"session": "desk"}),
    ("/v1/tenants", {"name": ""}),
    ("/v1/keys", {"name": "k", "scopes": ["none"]}),
    ("/v1/grants", {"who": "nobody", "change": "allow"}),
    ("/v1/collections", {"name": "it"}),
    ("/v1/collections", {"name": ""}),
    ("/v1/feedback", {"sources": ["hr/leave.md"], "helpful": "perhaps"}),
    ("/v1/jobs/999999/cancel", {}),
    ("/v1/documents/999999/erase", {}),
    ("/v1/sources", {"location": "no-scheme://x"}),
]

#: Asked for piece by piece.
STREAMS: list[tuple[str, dict[str, Any]]] = [
    ("/v1/ask", {"question": ASKED}),
    ("/v1/ask", {"question": "Who won the cup of 1954?"}),
    ("/v1/chat/completions", {"model": "default", "messages": [{"role": "user", "content": ASKED}], "stream": True}),
    ("/v1/responses", {"model": "default", "input": ASKED, "stream": True}),
]

#: Behind the path, where it must be there.
QUERIES = {"/v1/documents": "?source=hr/pay.txt", "/v1/grants/documents": "?document=1&document=2"}

TOOL_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("search", {"query": ASKED}),
    ("search", {"query": ASKED, "document_id": 1, "department": "hr"}),
    ("search", {"query": ""}),
    ("search", {"query": ASKED, "nothing": 1}),
    ("ask", {"question": ASKED}),
    ("ask", {"question": "Who won the cup of 1954?"}),
    ("grep", {"pattern": "leave"}),
    ("grep", {"pattern": "("}),
    ("list_documents", {}),
    ("list_documents", {"after": 1}),
    ("outline", {"document_id": 1}),
    ("outline", {"document_id": 999_999}),
    ("read", {"document_id": 1}),
    ("read", {"document_id": 1, "start_offset": 3, "end_offset": 20}),
    ("read", {"document_id": 0}),
    ("recall", {"query": "Where does my sister live?"}),
    ("remember", {"text": ""}),
    ("add", {"text": "x"}),
    ("nothing", {}),
]

RESOURCES = ["recollect://documents/1", "recollect://documents/999999"]


def of_library(rag: Any) -> Iterator[str]:
    for name, make in test_methods.SAME.items():
        if not name.startswith(("audit", "requests", "status")):
            yield line("library", name, make(rag))


def of_http(url: str) -> Iterator[str]:
    with httpx.Client(base_url=url, timeout=60) as http:
        for path, methods in sorted(http.get("/openapi.json").json()["paths"].items()):
            if "get" not in methods or path in MOMENTARY:
                continue
            names = re.findall(r"{(\w+)}", path)
            for known in (THERE, {}) if names else (THERE,):
                filled = path
                for name in names:
                    filled = filled.replace(f"{{{name}}}", quote(str(known.get(name, "999999"))))
                yield replied("GET", filled, http.get(filled + QUERIES.get(filled, "")))
        for path, body in BODIES:
            yield replied("POST", path, http.post(path, json=body), body)
        for path, body in STREAMS:
            yield replied("stream", path, http.post(path, json=body, headers={"Accept": "text/event-stream"}), body)
        calls = [("tools/call", {"name": tool, "arguments": given}) for tool, given in TOOL_CALLS]
        calls += [("resources/list", {}), *(("resources/read", {"uri": uri}) for uri in RESOURCES)]
        for method, params in calls:
            call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            reply = http.post("/mcp", json=call, headers={"Accept": "application/json, text/event-stream"})
            told = json.loads(reply.text.partition("data: ")[2] or reply.text)
            yield line("MCP", f"{method} {json.dumps(params)}", told)


def replied(method: str, path: str, reply: httpx.Response, body: object = None) -> str:
    kind = reply.headers.get("content-type", "").partition(";")[0]
    told = reply.json() if kind.endswith("json") and reply.content else reply.text
    if kind == "text/event-stream":
        told = [event(one) for one in reply.text.split("\n\n") if one]
    asked = f"{method} {path}" + ("" if body is None else f" {json.dumps(body)}")
    return line("HTTP", asked, {"status": reply.status_code, "kind": kind, "body": told})


def event(text: str) -> list[Any]:
    """The fields of an event, with data that is JSON read."""
    fields = [one.split(": ", 1) for one in text.splitlines()]
    return [[name, json.loads(value) if value.startswith("{") else value] for name, value in fields]


def of_commands(command: Recollect) -> Iterator[str]:
    changing = {"cleanup", "status", "audit", "requests", "export"}
    for asked in test_command_line.SAME + test_command_line.FAILING:
        if asked[0] in changing or asked[:2] == ("documents", "restore"):
            continue
        told = command(*asked, "--json", status=None)
        yield line("command", " ".join(asked), {"status": told.status, "json": told.json})


def test_calls_through_every_door_give_what_they_gave(served, tmp_path):
    rag = served.rag
    rag.view(user="ada").recall("sister")
    rag.facts.consolidate(min_retrievals=1)
    rag.keys.create("somebody's", principal=Principal(user_id="ada", roles=("hr",)), expires="90d")
    dsn = rag.config.storage.dsn.get_secret_value()
    store = {"RECOLLECT_DSN": dsn, "RECOLLECT_EMBEDDING__PROVIDER": "hashing"}
    calls = [*of_library(rag), *of_http(served.url), *of_commands(Recollect(tmp_path, {**KEPT, **store}))]
    calls = [one.replace(str(tmp_path), "<folder>") for one in calls]
    if "RECORD" in os.environ:
        RECORDED.write_text("".join(f"{one}\n" for one in calls), encoding="utf-8")
        pytest.skip(f"{len(calls)} calls were recorded")
    recorded = RECORDED.read_text(encoding="utf-8").splitlines()
    given, kept = (dict(one.split("\t", 1) for one in some) for some in (calls, recorded))
    assert given.keys() == kept.keys()
    changed = [f"{asked}\nwas {kept[asked]}\nis  {told}" for asked, told in given.items() if told != kept[asked]]
    assert not changed, "\n".join(changed)
