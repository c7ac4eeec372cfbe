"""``/v1/search``, ``/v1/ask``, ``/v1/context``, ``/v1/why-not``: the commands' JSON, of what may be read."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from recollect import Document, Principal, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.config import RetrievalConfig
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import OutOfBoundsError

LEAVE = "Every employee has thirty days of annual leave. Leave is asked for two weeks ahead."
PAY = "Salaries are paid on the twenty-fifth of each month."


@pytest.fixture
def filled(rag):
    rag.ingest(
        [
            Document(content=LEAVE, source="leave.md", title="Leave"),
            Document(content=PAY, source="pay.md", title="Pay", permissions=("role:hr",)),
        ]
    )
    return rag


def events(text: str) -> list[tuple[str, str, dict]]:
    """Id, name and data of each event; comments are left out."""
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if line and not line.startswith(":"))
        if lines:
            found.append((lines["id"], lines["event"], json.loads(lines["data"])))
    return found


def test_a_key_that_there_is_not_is_refused_with_the_one_that_was_meant(client):
    for key, words in [
        ("k", "Did you mean 'top_k'?"),
        ("mod", "Did you mean 'mode'?"),
        ("score_threshold", "Did you mean 'min_similarity'? It is a cosine."),
        ("zzz", ""),
    ]:
        refused = client.post("/v1/search", json={"query": "annual leave", key: 3})
        assert refused.status_code == 422
        (error,) = refused.json()["errors"]
        assert error["location"] == ["body", key]
        assert error["message"].startswith("Extra inputs are not permitted") and error["message"].endswith(words)


TOO_MUCH = {"top_k": 1_001, "candidates": 10_001, "rerank_candidates": 1_001, "rrf_k": 0, "neighbours": 11}


def test_the_bounds_of_a_search_are_those_of_the_library(filled, client):
    for path, name in [
        ("/v1/search", "query"),
        ("/v1/context", "query"),
        ("/v1/ask", "question"),
        ("/v1/diff", "question"),
    ]:
        more = {"from": "7d"} if path == "/v1/diff" else {}
        long = ("x" * 20_001, {})
        wide = ("annual leave", {"top_k": 101, "neighbours": 10})
        for text, given in (*(("annual leave", {key: value}) for key, value in TOO_MUCH.items()), wide, long):
            with pytest.raises(OutOfBoundsError):
                filled.search(text, RetrievalOptions(**given))
            reply = client.post(path, json={name: text, **more, **given})
            assert (reply.status_code, reply.json()["type"]) == (422, "urn:recollect:problem:not-valid"), reply.text


def test_the_other_doors_have_the_same_bounds(filled, client):
    long = "x" * 20_001
    for path in ("/v1/recall", "/api/chat"):
        assert client.post(path, json={"query": long}).status_code == 422
    # OpenAI's API has no 422.
    chat = {"model": "*", "messages": [{"role": "user", "content": long}]}
    assert client.post("/v1/chat/completions", json=chat).status_code == 400
    assert client.post("/v1/vector_stores/default/search", json={"query": long}).status_code == 400
    with pytest.raises(OutOfBoundsError):
        filled.recall(long)
    with pytest.raises(ValidationError):
        RetrievalConfig(rrf_k=10_001)


def test_a_configured_top_k_counts_with_neighbours(dsn, tmp_path):
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        retrieval={"top_k": 200},
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag, pytest.raises(OutOfBoundsError, match="at most 100"):
        rag.search("leave", RetrievalOptions(neighbours=10))


def test_a_search_replies_as_the_command_does(filled, client):
    reply = client.post("/v1/search", json={"query": "annual leave", "top_k": 3})
    assert reply.status_code == 200, reply.text
    found = reply.json()
    assert list(found) == ["query", "collection", "mode", "results", "timings_ms", "paths", "exact", "reranked"]
    first = found["results"][0]
    assert first["source"] == "leave.md"
    assert first["content"] == LEAVE[first["start_offset"] : first["end_offset"]]


def test_options_are_those_of_the_command_and_others_are_refused(filled, client):
    given = {"query": "salaries", "mode": "lexical", "source": ["leave.md"], "explain": True}
    assert [one["source"] for one in client.post("/v1/search", json=given).json()["results"]] in ([], ["leave.md"])
    refused = client.post("/v1/search", json={"query": "x", "topk": 3})
    assert refused.status_code == 422
    assert refused.headers["content-type"] == "application/problem+json"
    told = refused.json()
    assert told["type"] == "urn:recollect:problem:not-valid"
    assert told["errors"][0]["location"] == ["body", "topk"]
    assert told["request_id"] == refused.headers["x-request-id"]


def test_a_body_that_is_no_json_says_what_to_send(client):
    for content, headers, words in (
        ('{"query": "x"}', {"Content-Type": "text/plain"}, "Content-Type: application/json; it was text/plain."),
        ('{"query": "x"}', {}, "Content-Type: application/json; it was none."),
        ('{"query": "x"', {"Content-Type": "application/json"}, "not JSON: it cannot be read from character 13 on"),
    ):
        refused = client.post("/v1/search", content=content, headers=headers)
        assert refused.status_code == 422
        assert words in refused.json()["detail"]


def test_an_address_that_is_none_says_where_they_are_described(client):
    assert "GET /v1/openapi.json" in client.get("/v1/serch").json()["detail"]
    assert client.delete("/v1/search").json()["detail"] == "This address takes POST alone."


def test_what_a_key_may_not_read_does_not_exist_for_it(filled, connect):
    key = filled.keys.create("reader", scopes=["read"], principal=Principal(user_id="ada", roles=("staff",))).secret
    both = {"query": "salaries leave", "mode": "lexical"}
    assert len(connect().post("/v1/search", json=both).json()["results"]) == 2
    ada = connect(key)
    assert [one["source"] for one in ada.post("/v1/search", json=both).json()["results"]] == ["leave.md"]
    as_hr = {**both, "as": {"user": "ada", "roles": ["hr"]}}
    refused = ada.post("/v1/search", json=as_hr)
    assert refused.status_code == 403
    assert len(connect().post("/v1/search", json=as_hr).json()["results"]) == 2


def test_a_past_moment_and_several_places(filled, client):
    past = client.post("/v1/search", json={"query": "leave", "as_of": "2001-01-01"})
    assert past.json()["results"] == []
    refused = client.post("/v1/search", json={"query": "leave", "collection": "default", "everywhere": True})
    assert refused.status_code == 400
    assert "several answers to where" in refused.json()["detail"]
    assert client.post("/v1/search", json={"query": "leave", "collection": "none"}).status_code == 404
    assert client.post("/v1/search", json={"query": "leave", "everywhere": True}).json()["results"]


def test_an_answer_is_whole_or_comes_as_it_is_written(filled, client):
    asked = {"question": "How many days of annual leave does an employee have?"}
    whole = client.post("/v1/ask", json=asked).json()
    assert "thirty days" in whole["answer"]
    assert whole["citations"][0]["source"] == "leave.md"
    with client.stream("POST", "/v1/ask", json=asked, headers={"Accept": "text/event-stream"}) as reply:
        assert reply.headers["content-type"].startswith("text/event-stream")
        found = events(reply.read().decode())
    assert [number for number, _, _ in found] == [str(n) for n in range(1, len(found) + 1)]
    names = [name for _, name, _ in found]
    assert names[:2] == ["outcome", "sources"] and found[0][2] == {"outcome": "answer"}
    assert names[-1] == "done"
    assert "".join(data["text"] for _, name, data in found if name == "token") == whole["answer"]
    assert [data for _, name, data in found if name == "citation"] == whole["citations"]
    assert found[1][2]["results"][0]["source"] == "leave.md"
    assert {**found[-1][2], "timings_ms": 0} == {**whole, "timings_ms": 0}


@pytest.mark.parametrize(
    ("question", "outcome"), [("Who decides about annual leave?", "passages"), ("What does ERR-9999 mean?", "none")]
)
def test_without_an_exact_answer_the_passages_that_may_help_are_shown(filled, client, question, outcome):
    asked = {"question": question}
    whole = client.post("/v1/ask", json=asked).json()
    assert (whole["outcome"], whole["refused"], whole["citations"]) == (outcome, True, [])
    assert bool(whole["passages"]) == (outcome == "passages")
    texts = {"leave.md": LEAVE, "pay.md": PAY}
    for number, passage in enumerate(whole["passages"], start=1):
        text = texts[passage["source"]]
        assert passage["marker"] == number
        assert passage["text"] == text[passage["start_offset"] : passage["end_offset"]]
        (marked,) = passage["highlights"]
        assert passage["start_offset"] <= marked["start_offset"] < marked["end_offset"] <= passage["end_offset"]
    reply = client.post("/v1/ask", json=asked, headers={"Accept": "text/event-stream"})
    found = [(name, data) for _, name, data in events(reply.text)]
    shown = [("passage", passage) for passage in whole["passages"]]
    assert found[0] == ("outcome", {"outcome": outcome})
    assert [name for name, _ in found[1:3]] == ["sources", "token"] and found[2][1] == {"text": whole["answer"]}
    assert found[3:-1] == shown
    assert {**found[-1][1], "timings_ms": 0} == {**whole, "timings_ms": 0}


def test_only_a_search_that_finds_nothing_says_why(filled, client):
    asked = {"question": "Who decides about annual leave?", "tag": ["no-such-tag"]}
    nothing = client.post("/v1/ask", json=asked).json()
    assert nothing["outcome"] == "none" and any("no-such-tag" in one for one in nothing["warnings"])
    assert "warnings" not in client.post("/v1/ask", json={"question": asked["question"]}).json()


def test_an_error_before_a_stream_is_a_problem_and_one_within_it_an_event(filled, client):
    stream = {"Accept": "text/event-stream"}
    assert client.post("/v1/ask", json={"question": "x", "as_of": "someday"}, headers=stream).status_code == 400
    reply = client.post("/v1/ask", json={"question": "x", "collection": "none"}, headers=stream)
    (told,) = events(reply.text)
    assert told[1] == "error"
    assert told[2]["status"] == 404


def test_contexts_and_what_a_search_misses(filled, client):
    context = client.post("/v1/context", json={"query": "annual leave", "token_budget": 200}).json()
    assert context["passages"][0]["source"] == "leave.md"
    assert context["collection"] == "default"
    missed = client.post("/v1/why-not", json={"query": "annual leave", "document": "pay.md"}).json()
    assert missed["document"]["source"] == "pay.md"
    assert missed["stages"]


def test_nothing_found_says_why(rag, client):
    assert client.post("/v1/search", json={"query": "anything"}).json()["warnings"] == [
        "The collection 'default' is empty."
    ]


def test_queries_that_are_none(client):
    for text in ["", "   ", "a\x00b", "\ud800"]:
        reply = client.post(
            "/v1/search", content=json.dumps({"query": text}), headers={"content-type": "application/json"}
        )
        assert reply.status_code in {400, 422}
        assert reply.headers["content-type"] == "application/problem+json"


def test_the_text_is_a_query_or_a_question_at_every_address(filled, client):
    for path in ("/v1/search", "/v1/ask", "/v1/context", "/api/chat"):
        for name in ("query", "question"):
            assert client.post(path, json={name: "annual leave"}).status_code == 200, (path, name)
        both = client.post(path, json={"query": "annual leave", "question": "pay"})
        assert both.status_code == 422 and len(both.json()["errors"]) == 1, path


@pytest.mark.parametrize("path", ["/v1/context", "/v1/context/assembly"])
def test_a_context_says_whether_its_search_was_cached_until_something_is_written(filled, client, path):
    def cached() -> bool:
        reply = client.post(path, json={"query": "days of annual leave"})
        assert "leave.md" in reply.text
        return reply.json()["cached"]

    assert [cached(), cached()] == [False, True]
    filled.ingest([Document(content="Annual leave of trainees is 35 days.", source="trainees.md")])
    assert [cached(), cached()] == [False, True]
    assert filled.context("days of annual leave again").cached is False
    assert filled.context("days of annual leave again").cached is True
    assert filled.memory.assembler().assemble("days of annual leave again").context.cached is False
