"""``/metrics``: what was done, read as Prometheus reads it, by whoever may."""

from __future__ import annotations

import re

from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from recollect import Document
from recollect.errors import StoreUnavailableError
from recollect.model.requests import RequestRecord
from recollect.server import metrics as module
from recollect.server.app import create_app

LEAVE = "Every employee has thirty days of annual leave. Leave is asked for two weeks ahead."


def figures(client) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Every sample, by its name and labels."""
    reply = client.get("/metrics")
    assert reply.status_code == 200, reply.text
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(reply.text)
        for sample in family.samples
    }


def value(found, name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


def test_requests_are_counted_by_the_template_of_their_route(rag, client):
    for name in ("a", "b", "c"):
        client.get(f"/v1/collections/{name}")
    for path in ("/v1/nothing", "/wp-login.php", "/../etc"):
        client.get(path)
    client.request("BREW", "/healthz")
    found = figures(client)
    shown = {"method": "GET", "route": "/v1/collections/{name}", "status": "404"}
    assert value(found, "recollect_http_request_seconds_count", **shown) == 3
    assert value(found, "recollect_http_request_seconds_count", method="GET", route="(none)", status="404") == 3
    routes = {dict(labels).get("route") for _, labels in found}
    assert not any(route and ("wp-login" in route or "nothing" in route) for route in routes)
    assert {dict(labels).get("method") for _, labels in found} <= {None, "GET", "other"}


def test_searches_and_answers_are_counted_by_mode_and_stage(rag, client):
    rag.ingest([Document(content=LEAVE, source="leave.md")])
    for _ in range(2):
        client.post("/v1/search", json={"query": "annual leave", "mode": "lexical"})
    for question in ("How many days of annual leave does an employee have?", *["Who decides about leave?"] * 2, "zyx?"):
        client.post("/v1/ask", json={"question": question})
    found = figures(client)
    assert value(found, "recollect_searches_total", mode="lexical", cached="false") == 1
    assert value(found, "recollect_searches_total", mode="lexical", cached="true") == 1
    assert value(found, "recollect_search_stage_seconds_count", mode="lexical", stage="total") == 1
    for outcome, count in {"answer": 1, "passages": 2, "none": 1}.items():
        assert value(found, "recollect_answers_total", mode="extractive", outcome=outcome) == count
    assert value(found, "recollect_result_cache_lookups_total", result="hit") == 2
    assert value(found, "recollect_database_connections", state="idle") >= 1
    assert value(found, "recollect_streams_open") == 0
    assert value(found, "process_resident_memory_bytes") > 1e6
    assert value(found, "process_open_fds") > 3
    assert value(found, "process_cpu_seconds_total") > 0


def test_an_open_stream_is_counted_until_it_ends(rag):
    rag.ingest([Document(content=LEAVE, source="leave.md")])
    seen: list[float] = []
    app = create_app(rag)
    gauge = app.state.service.metrics.registry.get_sample_value
    streams = app.state.service.streams
    stream = streams.stream

    def watched(make):
        def looking():
            for item in make():
                seen.append(gauge("recollect_streams_open") or 0.0)
                yield item

        return stream(looking)

    streams.stream = watched
    client = TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)
    asked = {"question": "How many days of annual leave?"}
    assert client.post("/v1/ask", json=asked, headers={"Accept": "text/event-stream"}).status_code == 200
    assert set(seen) == {1.0}
    assert gauge("recollect_streams_open") == 0


def test_models_are_counted_as_the_log_of_requests_knows_them(rag, client):
    made = RequestRecord(kind="embed", provider="openai", model="small", inputs=3, input_tokens=30, milliseconds=20)
    failed = RequestRecord(
        kind="embed", provider="openai", model="small", inputs=1, input_tokens=0, success=False, error="rate_limit"
    )
    for record in (made, failed):
        rag.standpoint.assembly.record_request(record)
    for number in range(100):
        rag.standpoint.assembly.record_request(
            RequestRecord(kind="answer", provider="p", model=f"m{number}", inputs=1, input_tokens=1, output_tokens=2)
        )
    found = figures(client)
    which = {"kind": "embed", "provider": "openai", "model": "small"}
    assert value(found, "recollect_model_requests_total", **which, error="") == 1
    assert value(found, "recollect_model_requests_total", **which, error="rate_limit") == 1
    assert value(found, "recollect_model_tokens_total", **which, direction="input") == 30
    models = {dict(labels)["model"] for name, labels in found if name == "recollect_model_requests_total"}
    assert "other" in models
    assert len(models) <= 65


def test_no_label_has_more_values_than_its_bound_whatever_is_sent(rag, client):
    status = 0
    for number in range(70):  # more than any label may have values
        client.get(f"/v1/nothing{number}")
        client.request(
            f"BREW{number}", "/healthz", headers={"Host": f"host{number}.example", "Origin": f"http://o{number}"}
        )
        client.get(f"/v1/collections/c{number}", headers={"Authorization": f"Bearer k{number}"})
        client.post("/v1/search", json={"query": f"q{number}", "collection": f"c{number}", "mode": f"mode{number}"})
        client.post(
            "/v1/chat/completions", json={"model": f"m{number}", "messages": [{"role": "user", "content": "x"}]}
        )
        status = client.post("/v1/tenants", json={"name": f"t{number}"}).status_code
        for provider, model, error in (f"p{number}", "m", None), ("p", f"m{number}", f"error{number}"):
            record = RequestRecord(kind="embed", provider=provider, model=model, inputs=1, input_tokens=1, error=error)
            rag.standpoint.assembly.record_request(record)
    assert status == 201
    values: dict[str, set[str]] = {}
    for _, labels in figures(client):
        for label, one in labels:
            values.setdefault(label, set()).add(one)
    assert {label: len(found) for label, found in values.items() if len(found) > 65} == {}
    assert all("other" in values[label] for label in ("provider", "model", "error", "method"))
    assert len(client.get("/metrics").content) < 1_000_000


def test_jobs_are_asked_of_the_database_and_not_at_every_look(rag, client, monkeypatch):
    calls: list[int] = []
    read = module.JobQueue.workload

    def counted(self):
        calls.append(1)
        return [
            *read(self),
            module.Workload(kind="ingest_url", status="pending", jobs=2, waited_seconds=7.5),
            module.Workload(kind="<of somebody else>", status="failed", jobs=1, waited_seconds=0.0),
        ]

    monkeypatch.setattr(module.JobQueue, "workload", counted)
    found = figures(client)
    figures(client)
    assert len(calls) == 1
    assert value(found, "recollect_jobs", kind="ingest_url", status="pending") == 2
    assert value(found, "recollect_jobs", kind="other", status="failed") == 1
    assert value(found, "recollect_queue_age_seconds") == 7.5


def test_a_database_that_is_away_leaves_the_figures_of_the_process(client, monkeypatch):
    def away(_):
        raise StoreUnavailableError("postgresql://ann:hunter2@db/x is away")

    monkeypatch.setattr(module.JobQueue, "workload", away)
    found = figures(client)
    assert value(found, "recollect_database_up") == 0
    assert not any(name == "recollect_jobs" for name, _ in found)


def test_who_may_read_them(rag):
    server = rag.config.server.model_copy(update={"host": "0.0.0.0", "authentication": "required"})
    rag.standpoint.assembly.config = rag.config.model_copy(update={"server": server})
    client = TestClient(create_app(rag), base_url="http://knowledge.example", raise_server_exceptions=False)
    assert client.get("/metrics").status_code == 401
    for scopes, status in ((["read", "write", "admin"], 403), (["operator"], 200)):
        key = rag.keys.create("prometheus", scopes=scopes).secret
        reply = client.get("/metrics", headers={"Authorization": f"Bearer {key}"})
        assert reply.status_code == status
        assert key not in reply.text
    assert re.search(r"^# TYPE recollect_http_request_seconds histogram$", reply.text, re.MULTILINE)


def test_each_application_counts_for_itself(rag, client):
    other = TestClient(create_app(rag), base_url="http://127.0.0.1", raise_server_exceptions=False)
    other.get("/healthz")
    found = figures(client)
    assert ("recollect_http_request_seconds_count", frozenset({"route": "/healthz"}.items())) not in found
    assert not any(dict(labels).get("route") == "/healthz" for _, labels in found)


def test_an_application_that_has_ended_is_told_nothing_more(rag):
    with TestClient(create_app(rag), base_url="http://127.0.0.1"):
        assert {type(one).__name__ for one in rag.standpoint.assembly.observers} == {"Metrics", "ActivityLog"}
    assert rag.standpoint.assembly.observers == ()
