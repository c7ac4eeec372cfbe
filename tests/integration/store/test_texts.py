"""What documents say is stored once a tenant, by its hash: whoever stores it, and until the last of them has gone."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from recollect import Document, Principal, RAGPipeline
from recollect.errors import PermissionDeniedError
from recollect.model import Scope
from recollect.model.tenant import TenantQuota

SAME = "# The garage\n\nIt opens at seven, and the barrier is down at night.\n"
OTHER = "# The canteen\n\nIt opens at noon.\n"


def stored(rag: RAGPipeline) -> list[str]:
    with rag.store.database.autocommit() as connection:
        return [row[0] for row in connection.execute("SELECT content FROM texts ORDER BY tenant_id, content")]


def put(rag: RAGPipeline, content: str, source: str, **more) -> int:
    return rag.ingest(Document(content=content, source=source, **more)).document_id


def test_equal_texts_are_stored_once_and_each_document_keeps_what_is_its_own(pipeline: RAGPipeline):
    put(pipeline, SAME, "a.md", title="Parking", mime_type="text/markdown", language="en", tags=("cars",))
    put(pipeline, SAME, "b.txt", title="Garage", mime_type="text/plain", language="de", metadata={"floor": 2})
    put(pipeline.view(collections="other"), SAME, "c.md", mime_type="text/markdown")
    assert stored(pipeline) == [SAME]
    found = {one: pipeline.documents.get(one) for one in ("a.md", "b.txt")}
    assert {one.content for one in found.values()} == {SAME}
    assert [(one.title, one.language, one.tags) for one in found.values()] == [
        ("Parking", "en", ("cars",)), ("Garage", "de", ()),
    ]  # fmt: skip
    assert pipeline.maintenance.verify(deep=True).clean


def test_a_text_goes_with_the_last_version_that_has_it(pipeline: RAGPipeline):
    put(pipeline, SAME, "a.md")
    put(pipeline, OTHER, "a.md")
    put(pipeline, SAME, "b.md")
    put(pipeline, OTHER, "c.md")
    assert stored(pipeline) == [OTHER, SAME]
    receipt = pipeline.documents.erase(["a.md"])
    assert receipt.complete and receipt.counts["texts"] == 0 and len(receipt.copies) == 2
    assert stored(pipeline) == [OTHER, SAME]
    assert [pipeline.documents.get(one).content for one in ("b.md", "c.md")] == [SAME, OTHER]
    receipt = pipeline.documents.erase(["b.md"])
    assert receipt.complete and receipt.counts["texts"] == 1 and receipt.copies == ()
    assert stored(pipeline) == [OTHER]
    # Closed is not erased: its history has the text.
    pipeline.documents.delete(["c.md"])
    assert stored(pipeline) == [OTHER]
    assert pipeline.documents.erase(["c.md"]).counts["texts"] == 1
    assert stored(pipeline) == [] and pipeline.maintenance.verify().clean


def test_a_version_that_is_restored_has_the_text_of_then(pipeline: RAGPipeline):
    number = put(pipeline, SAME, "a.md")
    put(pipeline, OTHER, "a.md")
    pipeline.documents.restore("a.md", version=1)
    assert stored(pipeline) == [OTHER, SAME]
    assert pipeline.documents.get(number).content == SAME
    assert [one.character_count for one in pipeline.documents.history(number).versions] == [
        len(SAME),
        len(OTHER),
        len(SAME),
    ]


def test_collections_sessions_and_tenants_take_what_only_they_have(pipeline: RAGPipeline):
    put(pipeline, SAME, "a.md")
    put(pipeline.view(collections="other"), SAME, "a.md")
    put(pipeline.view(collections="other"), OTHER, "b.md")
    second = pipeline.tenants.create("second")
    theirs = pipeline.view(tenant=second.tenant_id)
    put(theirs, SAME, "a.md")
    # Never across tenants: what one has is nothing to another.
    assert stored(pipeline) == [OTHER, SAME, SAME]
    pipeline.collections.delete("other")
    assert stored(pipeline) == [SAME, SAME]
    pipeline.tenants.erase("second")
    assert stored(pipeline) == [SAME]
    assert pipeline.documents.get("a.md").content == SAME


def test_many_equal_ones_in_one_batch_and_empty_ones(pipeline: RAGPipeline):
    pipeline.ingest(Document(content=SAME, source=f"{number}.md") for number in range(40))
    assert stored(pipeline) == [SAME]
    assert len(pipeline.documents.erase([f"{number}.md" for number in range(39)]).copies) == 1
    assert stored(pipeline) == [SAME]


def test_a_damaged_text_is_mended_by_whoever_stores_it_anew(pipeline: RAGPipeline, dsn: str):
    put(pipeline, SAME, "a.md")
    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE recollect.texts SET content = 'damaged'")
    put(pipeline, SAME, "b.md")
    assert stored(pipeline) == [SAME]
    assert pipeline.maintenance.verify().clean


# Many at once


def test_who_stores_and_who_erases_the_same_text_at_once_agree(pipeline: RAGPipeline):
    """In batches whose order of names is not that of hashes."""
    texts = [f"{SAME}\nFloor {number}.\n" for number in range(6)]
    keep = [put(pipeline, text, f"kept/{number}.md") for number, text in enumerate(texts[:3])]
    begin = threading.Barrier(3)

    def work(name: int) -> None:
        begin.wait()
        ordered = texts if name % 2 else texts[::-1]
        for _ in range(2):
            pipeline.ingest(Document(content=text, source=f"{name}/{n}.md") for n, text in enumerate(ordered))
            pipeline.documents.erase([f"{name}/{n}.md" for n in range(len(ordered))])

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(work, name) for name in range(3)]:
            done.result()
    assert stored(pipeline) == texts[:3]
    assert [pipeline.documents.get(one).content for one in keep] == texts[:3]
    assert pipeline.maintenance.verify(deep=True).clean


def test_a_writer_waits_for_who_removes_the_same_text_and_stores_it_anew(pipeline: RAGPipeline):
    number = put(pipeline, SAME, "a.md")
    begun = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        with pipeline.store.database.transaction(Scope()) as connection:
            connection.execute("DELETE FROM documents WHERE document_id = %s", (number,))

            def write() -> int:
                begun.set()
                return put(pipeline, SAME, "b.md")

            writing = pool.submit(write)
            begun.wait()
        assert writing.result(60)
    assert stored(pipeline) == [SAME]
    assert pipeline.documents.get("b.md").content == SAME


# What others have must not show


def test_what_others_have_does_not_show_in_quotas(pipeline: RAGPipeline):
    """Who may not read a document is not told, by room that its text does not take, that it is there."""
    secret, other = "The merger is called Quelltal.", "The merger is called Bergdorf."
    put(pipeline, secret, "secret.md", permissions=("user:boss",))
    size = len(secret.encode())
    pipeline.tenants.set_quota("default", TenantQuota(max_bytes=2 * size - 1))
    pipeline.grants.set_collection(writers=["user:ann"])
    ann = pipeline.view(principal=Principal(user_id="ann"))
    refused = []
    for text in (secret, other):
        with pytest.raises(PermissionDeniedError) as caught:
            put(ann, text, "mine.md")
        refused.append(str(caught.value))
    assert refused[0] == refused[1]
    pipeline.tenants.set_quota("default", TenantQuota(max_bytes=2 * size))
    assert put(ann, secret, "mine.md")
    assert pipeline.tenants.get("default").bytes == 2 * size
