"""Every cached embedding has a chunk that takes it along, whatever becomes of documents and collections."""

from __future__ import annotations

import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostile import EFFORT
from recollect import Document, RAGPipeline
from recollect.errors import QuotaExceededError
from recollect.model import Scope
from recollect.model.tenant import TenantQuota
from recollect.store.embedding_cache import EmbeddingCacheRepository

TEXTS = ["The pump leaked.", "Leave is thirty days.", "The office closes at six.", "Lockers are downstairs."]


def cached(rag: RAGPipeline) -> int:
    with rag.store.database.autocommit() as connection:
        return connection.execute("SELECT count(*) FROM embedding_cache").fetchone()[0]


def unowned(rag: RAGPipeline) -> int:
    with rag.store.database.autocommit() as connection:
        return connection.execute(
            "SELECT count(*) FROM embedding_cache e WHERE NOT EXISTS (SELECT FROM chunks c "
            "WHERE c.tenant_id = e.tenant_id AND c.content_hash = e.content_hash)"
        ).fetchone()[0]


def test_what_a_quota_refuses_leaves_no_embedding(pipeline: RAGPipeline):
    tenant = pipeline.tenants.create("acme", quota=TenantQuota(max_documents=1)).tenant_id
    pipeline.view(tenant=tenant).ingest(Document(content=TEXTS[0], source="a"))
    before = cached(pipeline)
    assert before
    with pytest.raises(QuotaExceededError):
        pipeline.view(tenant=tenant).ingest(Document(content=TEXTS[1], source="b"))
    assert cached(pipeline) == before


def test_a_deleted_collection_takes_its_embeddings_along_and_no_others(pipeline: RAGPipeline):
    pipeline.view(collections="gone").ingest([Document(content=TEXTS[n], source=str(n)) for n in (0, 1)])
    pipeline.view(collections="kept").ingest([Document(content=TEXTS[n], source=str(n)) for n in (1, 2)])
    assert cached(pipeline) == 3
    pipeline.collections.delete("gone")
    assert (cached(pipeline), unowned(pipeline)) == (2, 0)
    assert pipeline.maintenance.verify().clean


def test_texts_that_are_known_are_not_embedded_again(pipeline: RAGPipeline):
    pipeline.ingest(Document(content=TEXTS[0], source="a"))
    embedded: list[str] = []
    inner = pipeline.embedder
    real = inner.embed_documents
    inner.embed_documents = lambda texts: (embedded.extend(texts), real(texts))[1]  # type: ignore[method-assign]
    try:
        pipeline.ingest(Document(content=TEXTS[0], source="b", title="a"))
        pipeline.ingest(Document(content=TEXTS[1], source="c"))
    finally:
        inner.embed_documents = real  # type: ignore[method-assign]
    assert len(embedded) == 1 and TEXTS[1] in embedded[0]


def test_of_two_who_erase_the_last_two_copies_at_once_one_takes_the_embedding(pipeline: RAGPipeline):
    for _ in range(3):
        copies = [pipeline.ingest(Document(content=TEXTS[0], source=name, title="x")).document_id for name in "ab"]
        barrier = threading.Barrier(2)

        def erase(document_id: int, barrier: threading.Barrier = barrier) -> None:
            barrier.wait()
            pipeline.store.erasure.erase(Scope(), [document_id], actor="x")

        threads = [threading.Thread(target=erase, args=(one,)) for one in copies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert cached(pipeline) == 0


def test_what_was_left_without_a_chunk_is_found_mended_and_cleaned_up(pipeline: RAGPipeline):
    pipeline.ingest(Document(content=TEXTS[0], source="a"))
    stray = EmbeddingCacheRepository(pipeline.store.database, Scope())
    stray.put_many(pipeline.embedder.model_name, {bytes(32): pipeline.embedder.embed_documents(["x"])[0]})
    assert {check.name: check.found for check in pipeline.maintenance.verify().checks if check.found} == {
        "embedding_cache": 1
    }
    assert pipeline.maintenance.verify(repair=True).clean and cached(pipeline) == 1
    stray.put_many(pipeline.embedder.model_name, {bytes(32): pipeline.embedder.embed_documents(["x"])[0]})
    pipeline.maintenance.cleanup()
    assert (cached(pipeline), unowned(pipeline)) == (1, 0)


ACTIONS = st.tuples(
    st.sampled_from(["ingest", "delete", "erase", "drop", "refused"]), st.sampled_from("ab"), st.integers(0, 3)
)


@settings(max_examples=8 * EFFORT, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ACTIONS, max_size=8))
def test_no_embedding_is_ever_without_a_chunk(pipeline: RAGPipeline, actions):
    for action, collection, number in actions:
        pipeline.collections.ensure(collection)
        view = pipeline.view(collections=collection)
        there = [one.document_id for one in view.documents.list()]
        if action == "ingest":
            view.ingest(Document(content=TEXTS[number], source=str(number % 2)))
        elif action == "refused":
            pipeline.tenants.set_quota(1, TenantQuota(max_chunks=0))
            with pytest.raises(QuotaExceededError):
                view.ingest(Document(content=f"refused {number}", source="refused"))
            pipeline.tenants.set_quota(1, TenantQuota())
        elif action == "drop":
            pipeline.collections.delete(collection)
        elif there and action == "delete":
            view.documents.delete(there[:1])
        elif there:
            view.documents.erase(there[:1])
        assert unowned(pipeline) == 0
