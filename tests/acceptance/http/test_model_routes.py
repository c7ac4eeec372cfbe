"""``/v1/collections/{name}/spaces`` and ``…/contexts``: what models say of every chunk, over HTTP, and attacks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from fastapi.testclient import TestClient

from recollect import Document, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.llm.scripted import ScriptedChatModel
from recollect.model import Scope
from recollect.pipeline.working import worker_of
from recollect.server.app import create_app

WORD = "zebrafinch"
SPACES = "/v1/collections/default/spaces"
CONTEXTS = "/v1/collections/default/contexts"


@pytest.fixture
def model() -> ScriptedChatModel:
    return ScriptedChatModel(f"The {WORD} of a page sings.")


@pytest.fixture
def rag(dsn: str, tmp_path, model, monkeypatch) -> Iterator[RAGPipeline]:
    """A server for others, with a tenant that has the same names."""
    monkeypatch.setattr("recollect.ingest.reembedding.BATCH_CHUNKS", 2)
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        ingest={"contextualise": "openai/some-model"},
        server={"host": "0.0.0.0"},
    )
    with RAGPipeline(config, embedder=HashingEmbedder(), chat_model=model) as opened:
        opened.ingest([Document(content=f"The {WORD} of page {n} sings.", source=f"{n}.md") for n in range(6)])
        opened.tenants.create("acme")
        opened.view(tenant="acme").ingest(Document(content="Nothing of that.", source="own.md"))
        yield opened


@pytest.fixture
def caller(rag) -> Iterator[Callable[..., TestClient]]:
    app, made = create_app(rag), []

    def of(*scopes: str, tenant: str | None = None) -> TestClient:
        key = rag.view(tenant=tenant).keys.create("test", scopes=scopes).secret
        client = TestClient(app, base_url="http://knowledge.example", raise_server_exceptions=False)
        client.headers["Authorization"] = f"Bearer {key}"
        made.append(client)
        return client

    yield of
    for client in made:
        client.close()


@pytest.fixture
def operator(caller) -> TestClient:
    return caller("read", "write", "admin", "operator")


def model_of(rag: RAGPipeline, tenant: str | None = None) -> str:
    return rag.view(tenant=tenant).collections.get("default").embedding_model


def ended(rag: RAGPipeline, client: TestClient, reply) -> dict:
    """The job that a reply names, when a worker has been at it."""
    assert reply.status_code == 202, reply.text
    worker_of(rag.standpoint.assembly, ends="empty").run()
    return client.get(reply.headers["location"]).json()


def test_a_model_is_changed_and_changed_back(rag, operator):
    asked = operator.post(SPACES, json={"model": "hashing:96", "samples": 0, "pause": 0})
    assert (asked.json()["kind"], asked.json()["status"]) == ("reembed", "pending")
    assert model_of(rag) == "hashing:64"
    job = ended(rag, operator, asked)
    assert (job["status"], job["result"]["embedded"], job["result"]["switched"]) == ("succeeded", 6, True)
    told = operator.get(SPACES).json()
    assert (told["used"]["model"], [one["status"] for one in told["beside"]]) == ("hashing:96", ["kept"])
    assert rag.audit.list(action="reembed")[0].actor.startswith("key:")
    back = ended(rag, operator, operator.post(SPACES + "/rollback", json={}))
    assert (back["result"]["to"]["model"], model_of(rag)) == ("hashing:64", "hashing:64")
    dropped = operator.delete(SPACES).json()
    assert [one["model"] for one in dropped["items"]] == ["hashing:96"]
    assert operator.get(SPACES).json()["beside"] == []
    assert operator.post(SPACES + "/rollback", json={}).status_code == 404


def test_chunks_are_situated_by_a_job_that_is_estimated_first(rag, operator, model):
    needed = operator.get(CONTEXTS).json()
    assert (needed["chunks"], needed["model"], needed["cost"]) == (6, "openai/some-model", None)
    assert model.calls == []
    job = ended(rag, operator, operator.post(CONTEXTS))
    assert (job["status"], job["result"]) == ("succeeded", {"documents": 6, "chunks": 6, "without": 0})
    assert operator.get(CONTEXTS).json()["chunks"] == 0
    # Asked for again, nothing is asked of the model.
    asked = len(model.calls)
    assert ended(rag, operator, operator.post(CONTEXTS))["result"]["chunks"] == 0
    assert len(model.calls) == asked


def test_what_cannot_be_done_is_refused_at_once(rag, operator):
    for body in (
        {},
        {"model": "hashing:96", "cases": "/etc/passwd"},
        {"model": "hashing:96", "samples": -1},
        {"model": "hashing:96", "pause": 1001},
        {"model": "hashing:96", "dimensions": 0},
        {"model": "hashing:96", "minimum": {"recall": "much"}},
    ):
        assert operator.post(SPACES, json=body).status_code == 422, body
    for body in (
        {"model": "hashing:64"},
        {"model": "hashing:96", "provider": "no-such"},
        {"model": "hashing:96", "samples": 0, "minimum": {"recall": 0.5}},
    ):
        assert 400 <= operator.post(SPACES, json=body).status_code < 500, body
    for method, path in (
        ("GET", "spaces"), ("POST", "spaces"), ("POST", "spaces/rollback"), ("DELETE", "spaces"),
        ("GET", "contexts"), ("POST", "contexts"),
    ):  # fmt: skip
        body = {"model": "hashing:96"} if path == "spaces" else {}
        reply = operator.request(
            method, f"/v1/collections/absent/{path}", **({"json": body} if method == "POST" else {})
        )
        assert reply.status_code == 404, (method, path, reply.text)
    assert not rag.jobs.list()
    assert [one.name for one in rag.collections.list()] == ["default"], "nothing was made by asking"


def test_without_a_model_for_it_nothing_is_situated(dsn, tmp_path):
    config = RAGConfig.load(storage={"data_dir": tmp_path / "unused", "dsn": dsn}, embedding={"provider": "hashing"})
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        rag.ingest(Document(content="One.", source="1.md"))
        client = TestClient(create_app(rag), base_url="http://127.0.0.1:8321", raise_server_exceptions=False)
        for reply in (client.get(CONTEXTS), client.post(CONTEXTS)):
            assert 400 <= reply.status_code < 500 and "contextualise" in reply.json()["detail"]
        assert not rag.jobs.list()


def test_whoever_may_not_changes_nothing(rag, caller):
    """A reader and a writer nothing at all, an administrator no model that the server would load and pay for."""
    for scopes, refused in (
        (("read",), ("GET", "POST", "DELETE", "rollback", "contexts")),
        (("read", "write"), ("GET", "POST", "DELETE", "rollback", "contexts")),
        (("read", "write", "admin"), ("POST",)),
    ):
        client = caller(*scopes)
        replies = {
            "GET": client.get(SPACES),
            "POST": client.post(SPACES, json={"model": "hashing:96"}),
            "DELETE": client.delete(SPACES),
            "rollback": client.post(SPACES + "/rollback", json={}),
            "contexts": client.get(CONTEXTS),
        }
        assert {name for name, reply in replies.items() if reply.status_code == 403} == set(refused), scopes
    assert client.post(CONTEXTS).status_code == 202, "the configured model is an administrator's to ask"
    assert [one.kind for one in rag.jobs.list()] == ["contextualise"] and model_of(rag) == "hashing:64"


def test_another_tenant_reaches_its_own_collection_alone(rag, caller, operator):
    other = caller("read", "write", "admin", "operator", tenant="acme")
    asked = operator.post(SPACES, json={"model": "hashing:96", "samples": 0, "pause": 0})
    number = asked.json()["job_id"]
    for reply in (
        other.get(f"/v1/jobs/{number}"),
        other.post(f"/v1/jobs/{number}/cancel"),
        other.post(f"/v1/jobs/{number}/retry"),
        other.get(f"/v1/jobs/{number}/events"),
    ):
        assert reply.status_code == 404 and WORD not in reply.text
    # The same name is its own collection.
    theirs = other.post(SPACES, json={"model": "hashing:128", "samples": 0, "pause": 0})
    worker_of(rag.standpoint.assembly, ends="empty").run()
    assert other.get(theirs.headers["location"]).json()["result"]["embedded"] == 1
    assert (model_of(rag), model_of(rag, "acme")) == ("hashing:96", "hashing:128")
    assert "hashing:96" not in json.dumps(other.get(SPACES).json())
    assert [one["model"] for one in other.delete(SPACES).json()["items"]] == ["hashing:64"]
    assert len(operator.get(SPACES).json()["beside"]) == 1, "what another drops is not this one's"
    rag.collections.create("private")
    for path in ("spaces", "contexts"):
        assert other.get(f"/v1/collections/private/{path}").status_code == 404
    assert other.get(CONTEXTS).json()["documents"] == 1


def test_a_job_that_is_cancelled_ends_and_is_gone_on_with(rag, operator, monkeypatch):
    monkeypatch.setattr("recollect.jobs.progress.WRITE_SECONDS", 0.0)
    asked = operator.post(SPACES, json={"model": "hashing:96", "samples": 0, "pause": 0})
    where = asked.headers["location"]
    add = rag.store.spaces.add

    def cancelling(*given, **how):
        # What is stored stays; a batch that is being stored when the job is cancelled may be given up.
        added = add(*given, **how)
        operator.post(f"{where}/cancel")
        return added

    monkeypatch.setattr(rag.store.spaces, "add", cancelling)
    worker_of(rag.standpoint.assembly, ends="empty").run()
    assert operator.get(where).json()["status"] == "cancelled" and model_of(rag) == "hashing:64"
    (half,) = operator.get(SPACES).json()["beside"]
    assert (half["status"], 0 < half["filled"] < half["total"]) == ("filling", True)
    monkeypatch.setattr(rag.store.spaces, "add", add)
    done = ended(rag, operator, operator.post(SPACES, json={"model": "hashing:96", "samples": 0, "pause": 0}))
    assert (done["status"], done["result"]["embedded"]) == ("succeeded", half["total"] - half["filled"])
    assert rag.maintenance.verify(deep=True).clean


def test_what_is_searched_and_written_meanwhile_is_whole(rag, operator, monkeypatch):
    """Between two batches, as at any moment: searches answer, what comes is in the new space, what is erased is not."""
    add, seen = rag.store.spaces.add, []

    def meanwhile(*given, **how):
        if not seen:
            seen.append(operator.post("/v1/search", json={"query": WORD}).json()["results"])
            late = operator.post(
                "/v1/collections/default/documents", json={"content": "A late heron.", "source": "late"}
            )
            assert late.status_code == 201
            gone = rag.documents.get("5.md").document_id
            assert operator.post(f"/v1/documents/{gone}/erase", json={}).status_code == 200
        return add(*given, **how)

    monkeypatch.setattr(rag.store.spaces, "add", meanwhile)
    job = ended(rag, operator, operator.post(SPACES, json={"model": "hashing:96", "samples": 0, "pause": 0}))
    assert job["status"] == "succeeded" and len(seen[0]) == 6
    found = {one["source"] for one in operator.post("/v1/search", json={"query": "late heron"}).json()["results"]}
    assert "late" in found and "5.md" not in found
    (used,) = {one.space_id for one in [rag.store.collections.get(Scope(), "default")]}
    with rag.store.database.transaction(Scope()) as connection:
        (count,) = connection.execute("SELECT count(*) FROM chunk_vectors WHERE space_id = %s", [used]).fetchone()
    assert count == 6 and rag.maintenance.verify(deep=True).clean
