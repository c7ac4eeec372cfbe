"""Traces of what a server does, as the SDK of OpenTelemetry receives them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from recollect import Document
from recollect.errors import ConfigurationError
from recollect.model.requests import RequestRecord
from recollect.server import tracing
from recollect.server.app import create_app

LEAVE = "Every employee has thirty days of annual leave."
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def spans(rag, monkeypatch):
    """What the application with traces has exported so far."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    made = tracing.trace.get_tracer
    monkeypatch.setattr(tracing.trace, "get_tracer", lambda name, tracer_provider: made(name, tracer_provider=provider))
    server = rag.config.server.model_copy(update={"traces": True})
    rag.standpoint.assembly.config = rag.config.model_copy(update={"server": server})
    rag.ingest([Document(content=LEAVE, source="leave.md")])
    return exporter


@pytest.fixture
def traced(rag, spans):
    return TestClient(create_app(rag), base_url="http://127.0.0.1", raise_server_exceptions=False)


def test_a_question_is_a_trace_of_its_request_search_and_answer(rag, traced, spans):
    asked = {"question": "Has every employee thirty days of annual leave?"}
    traced.post("/v1/ask?x=hushed", json=asked, headers={"traceparent": PARENT})
    found = {span.name: span for span in spans.get_finished_spans()}
    assert set(found) == {"POST /v1/ask", "search", "answer"}
    request, search, answer = found["POST /v1/ask"], found["search"], found["answer"]
    assert request.kind is SpanKind.SERVER
    assert request.parent.span_id == 0xB7AD6B7169203331
    assert {span.context.trace_id for span in found.values()} == {0x0AF7651916CD43DD8448EB211C80319C}
    assert search.parent.span_id == answer.parent.span_id == request.context.span_id
    assert dict(request.attributes) == {
        "http.request.method": "POST",
        "http.route": "/v1/ask",
        "http.response.status_code": 200,
    }
    assert search.attributes["recollect.search.mode"] == "hybrid"
    assert search.attributes["recollect.search.total_ms"] > 0
    assert answer.attributes["recollect.answer.mode"] == "extractive"
    assert answer.attributes["recollect.answer.outcome"] == "answer"
    assert request.start_time <= answer.start_time <= answer.end_time <= request.end_time
    told = "".join(span.to_json() for span in found.values())
    for hidden in ("annual", "hushed", "leave.md", "thirty"):
        assert hidden not in told


def test_calls_of_models_are_named_by_the_conventions_and_stand_below_their_search(rag, traced, spans, monkeypatch):
    assembly = rag.standpoint.assembly
    search = assembly.searcher.search

    def embedding(*given):
        record = {"kind": "embed", "provider": "bedrock", "model": "titan", "inputs": 1, "milliseconds": 5.0}
        assembly.record_request(RequestRecord(**record, input_tokens=7))
        assembly.record_request(RequestRecord(**record, input_tokens=0, success=False, error="rate_limit"))
        return search(*given)

    monkeypatch.setattr(assembly.searcher, "search", embedding)
    traced.post("/v1/search", json={"query": "annual leave"})
    found = spans.get_finished_spans()
    (searched,) = [span for span in found if span.name == "search"]
    good, failed = [span for span in found if span.name == "embeddings titan"]
    assert good.parent.span_id == failed.parent.span_id == searched.context.span_id
    assert good.kind is SpanKind.CLIENT
    assert dict(good.attributes) == {
        "gen_ai.operation.name": "embeddings",
        "gen_ai.provider.name": "aws.bedrock",
        "gen_ai.request.model": "titan",
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 0,
    }
    assert good.end_time - good.start_time == 5_000_000
    assert (failed.status.status_code, failed.attributes["error.type"]) == (StatusCode.ERROR, "rate_limit")


def test_what_fails_says_so_and_not_what_was_asked(rag, traced, spans, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("the secret merger")

    monkeypatch.setattr(rag.standpoint.assembly.searcher, "search", broken)
    assert traced.post("/v1/search", json={"query": "the secret merger"}).status_code == 500
    found = {span.name: span for span in spans.get_finished_spans()}
    assert found["search"].attributes["error.type"] == "ZeroDivisionError"
    assert found["POST /v1/search"].status.status_code is StatusCode.ERROR
    assert not any("merger" in span.to_json() for span in found.values())


def test_nothing_of_it_is_imported_unless_it_is_wanted(rag, monkeypatch):
    monkeypatch.delitem(sys.modules, "recollect.server.tracing")
    create_app(rag)
    assert "recollect.server.tracing" not in sys.modules


def test_a_package_that_is_missing_is_named(rag, spans, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match=r"\.\[otel\]"):
        create_app(rag)


def test_the_documented_command_leaves_the_options_of_recollect_to_recollect(tmp_path):
    pytest.importorskip("opentelemetry.instrumentation", reason="the extra `dev` brings it")
    page = Path(__file__).parents[3] / "docs/how-to/server.md"
    (line,) = re.findall(
        r"^\$ (?:\w+=\S+ )*(opentelemetry-instrument .*)$", page.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert " serve --config " in line
    # What the server would be started with is shown in place of a server.
    command = shlex.split(line.replace(" serve ", " config show "))
    (tmp_path / command[-1]).write_text("[rag.server]\ntraces = true\n", encoding="utf-8")
    programs = Path(sys.executable).parent
    command[0] = str(programs / command[0])
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "OTEL_TRACES_EXPORTER": "none"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"rag.server.traces = true (file: {command[-1]})" in done.stdout
