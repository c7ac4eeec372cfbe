"""Tenants through the pipeline: made, suspended, limited, exported, erased; many of them behind one object."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostile import EFFORT
from recollect import Document, MultiTenantRAG, Principal, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import (
    ConfigurationError,
    ConflictError,
    NotFoundError,
    QuotaExceededError,
    TenantSuspendedError,
    UsageError,
)
from recollect.memory.turn_files import read_turns
from recollect.model import Scope
from recollect.model.page import every
from recollect.model.tenant import TenantQuota
from recollect.store.tenants import tables_in_order


def documents(count: int, *, first: int = 0) -> list[Document]:
    return [Document(content=f"Document number {first + n}.", source=f"{first + n}.txt") for n in range(count)]


# Made and found


def test_a_tenant_is_made_once_and_found_by_name_and_by_number(pipeline: RAGPipeline):
    made = pipeline.tenants.create("acme", quota=TenantQuota(max_documents=3))
    assert made == pipeline.tenants.get("acme") == pipeline.tenants.get(made.tenant_id)
    assert made == pipeline.tenants.get(str(made.tenant_id))
    assert (made.status, made.documents, made.chunks, made.bytes) == ("active", 0, 0, 0)
    assert made.quota == TenantQuota(max_documents=3)
    with pytest.raises(ConflictError, match="acme"):
        pipeline.tenants.create("acme")
    for unknown in ("nobody", 77, "77", 2**40, -(2**40), "\u0663"):
        with pytest.raises(NotFoundError, match="tenants list"):
            pipeline.tenants.get(unknown)


def test_a_name_that_could_be_mistaken_is_refused(pipeline: RAGPipeline):
    for name in ["", "  ", " a", "a\n", "12", "\u0663", "x" * 101, "a\x00b", "\u202eabc"]:
        with pytest.raises(UsageError):
            pipeline.tenants.create(name)
        assert [tenant.name for tenant in pipeline.tenants.list()] == ["default"]


@pytest.mark.parametrize("limit", [-1, 2**63, "many"])
def test_a_quota_that_is_none_is_refused(pipeline: RAGPipeline, limit: Any):
    for quota in (TenantQuota(max_documents=limit), TenantQuota(max_chunks=limit), TenantQuota(max_bytes=limit)):
        with pytest.raises(UsageError, match="max_"):
            pipeline.tenants.create("acme", quota=quota)
        with pytest.raises(UsageError, match="max_"):
            pipeline.tenants.set_quota("default", quota)


def test_tenants_are_listed_page_by_page(pipeline: RAGPipeline):
    names = sorted(["default", "b", "a", "Ä", "'; DROP TABLE tenants; --", "שלום"], key=lambda name: name.encode())
    for name in names:
        if name != "default":
            pipeline.tenants.create(name)
    assert [tenant.name for tenant in every(pipeline.tenants.list, limit=2)] == names


def test_a_number_is_never_given_again(pipeline: RAGPipeline):
    numbers = []
    for _ in range(3):
        numbers.append(pipeline.tenants.create("acme").tenant_id)
        pipeline.tenants.erase("acme")
    assert len(set(numbers)) == 3


def test_of_many_who_make_the_same_tenant_one_does(pipeline: RAGPipeline):
    outcomes = _at_once(8, lambda _: pipeline.tenants.create("acme"))
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["ConflictError"] * 7 + ["Tenant"]


def _at_once(workers: int, work) -> list[object]:
    """What each of some threads that begin together returned or raised."""
    barrier = threading.Barrier(workers)
    outcomes: list[object] = [None] * workers

    def run(number: int) -> None:
        barrier.wait()
        try:
            outcomes[number] = work(number)
        except Exception as exc:  # noqa: BLE001 - it is what the test looks at
            outcomes[number] = exc

    threads = [threading.Thread(target=run, args=(number,)) for number in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


# Suspended


def test_a_suspended_tenant_neither_searches_nor_writes_and_the_others_do(pipeline: RAGPipeline):
    tenant = pipeline.tenants.create("acme").tenant_id
    pipeline.view(tenant=tenant).ingest("The zebrafish merger.")
    pipeline.view(session="chat", tenant=tenant).remember("Zebrafish.")
    pipeline.tenants.suspend("acme")
    for attempt in (
        lambda: pipeline.view(tenant=tenant).search("zebrafish"),
        lambda: pipeline.view(tenant=tenant).ask("Which merger?"),
        lambda: pipeline.view(tenant=tenant).context("zebrafish"),
        lambda: pipeline.view(tenant=tenant).recall("zebrafish"),
        lambda: pipeline.view(session="chat", tenant=tenant).remember("More."),
        lambda: pipeline.view(tenant=tenant).ingest("More."),
        lambda: pipeline.view(tenant=tenant).documents.list(),
        lambda: pipeline.view(tenant=tenant).collections.list(),
        lambda: list(pipeline.view(tenant=tenant).collections.export_lines()),
        lambda: pipeline.view(tenant=tenant).collections.delete("default"),
    ):
        with pytest.raises(TenantSuspendedError, match="'acme' is suspended"):
            attempt()
    assert pipeline.tenants.get("acme").status == "suspended"
    pipeline.ingest("The zebrafish merger of another.")
    assert len(pipeline.search("zebrafish").results) == 1
    pipeline.tenants.resume("acme")
    assert len(pipeline.view(tenant=tenant).search("zebrafish").results) == 1


def test_a_suspended_tenants_store_is_verified_like_any_other(pipeline: RAGPipeline):
    pipeline.view(tenant=pipeline.tenants.create("acme").tenant_id).ingest("The zebrafish merger.")
    pipeline.tenants.suspend("acme")
    report = pipeline.maintenance.verify()
    assert report.clean and report.chunks == 1


# Quotas


@pytest.mark.parametrize(
    ("quota", "name", "fits"),
    [
        (TenantQuota(max_documents=2), "documents", 2),
        (TenantQuota(max_chunks=2), "chunks", 2),
        (TenantQuota(max_bytes=len("Document number 0.") * 2), "bytes", 2),
        (TenantQuota(max_documents=0), "documents", 0),
    ],
)
def test_what_is_beyond_a_quota_is_refused_and_nothing_of_it_stored(pipeline: RAGPipeline, quota, name, fits):
    tenant = pipeline.tenants.create("the 'best'", quota=quota).tenant_id
    for document in documents(fits):
        pipeline.view(tenant=tenant).ingest(document)
    with pytest.raises(QuotaExceededError) as caught:
        pipeline.view(tenant=tenant).ingest(documents(2, first=fits))
    error = caught.value
    assert error.quota == name and error.limit == getattr(quota, f"max_{name}") < error.used
    assert f"{error.used:,}" in str(error) and f"--max-{name} {error.used}" in str(error)
    assert pipeline.tenants.get(tenant).documents == fits
    assert pipeline.view(tenant=tenant).maintenance.check() == []
    # As the message says.
    pipeline.tenants.set_quota(tenant, TenantQuota(**{f"max_{name}": error.used}))
    pipeline.view(tenant=tenant).ingest(documents(2, first=fits))
    assert pipeline.tenants.get(tenant).documents == fits + 2


def test_deleting_makes_room_and_a_replaced_document_counts_once(pipeline: RAGPipeline):
    tenant = pipeline.tenants.create("acme", quota=TenantQuota(max_documents=1)).tenant_id
    for text in ("First.", "Second.", "Third."):
        pipeline.view(tenant=tenant).ingest(Document(content=text, source="one.txt"))
    pipeline.view(tenant=tenant).documents.delete(["one.txt"])
    pipeline.view(tenant=tenant).ingest(Document(content="Another.", source="two.txt"))
    with pytest.raises(QuotaExceededError):
        pipeline.view(tenant=tenant).documents.restore("one.txt", 1)
    assert [one.source for one in pipeline.view(tenant=tenant).documents.list()] == ["two.txt"]


@settings(max_examples=5 * EFFORT, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    limit=st.integers(0, 12),
    batches=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4)), min_size=2, max_size=6),
)
def test_writers_at_the_same_time_do_not_go_beyond_a_quota_together(pipeline: RAGPipeline, limit, batches):
    tenant = pipeline.tenants.create(f"t{len(list(every(pipeline.tenants.list)))}", quota=TenantQuota(max_chunks=limit))
    for number in range(3):
        pipeline.view(tenant=tenant.tenant_id).collections.create(f"c{number}")

    def write(number: int):
        collection, count = batches[number]
        batch = documents(count, first=100 * number)
        return pipeline.view(tenant=tenant.tenant_id, collections=f"c{collection}").ingest(batch)

    outcomes = _at_once(len(batches), write)
    stored = sum(len(outcome) for outcome in outcomes if isinstance(outcome, list))
    refused = [count for outcome, (_, count) in zip(outcomes, batches, strict=True) if not isinstance(outcome, list)]
    assert all(isinstance(outcome, list | QuotaExceededError) for outcome in outcomes), outcomes
    assert pipeline.tenants.get(tenant.tenant_id).chunks == stored <= limit
    # Whoever was refused would indeed have gone beyond it with all that was stored in the end, or before.
    assert all(stored + count > limit for count in refused)
    assert pipeline.view(tenant=tenant.tenant_id).maintenance.check() == []


# Exported and erased


@pytest.fixture
def full(pipeline: RAGPipeline) -> tuple[RAGPipeline, int]:
    tenant = pipeline.tenants.create("acme").tenant_id
    for text in ("The zebrafish merger (ZMP).", "The zebrafish merger (ZMP), changed."):
        pipeline.view(tenant=tenant).ingest(Document(content=text, source="plan.txt", metadata={"who": "board"}))
    pipeline.view(tenant=tenant, collections="../weird / name").ingest(
        Document(content="Pay day is the 25th.", source="pay.txt")
    )
    pipeline.view(session="chat", user="ann", tenant=tenant).remember("I told you of the zebrafish.")
    pipeline.view(session="chat", tenant=tenant).remember("So you did.", role="assistant")
    pipeline.view(tenant=tenant).recall("zebrafish")
    pipeline.ingest("The default tenant's own zebrafish.")
    return pipeline, tenant


def test_an_export_can_be_imported_and_holds_nothing_of_anybody_else(full, tmp_path: Path):
    rag, tenant = full
    rag.tenants.suspend(tenant)
    done = rag.tenants.export("acme", tmp_path / "out")
    assert done.documents == {"../weird / name": 1, "default": 1} and done.turns == {"chat": 2}
    assert done.rows["document_versions"] == 3 and done.rows["documents"] == 2 and done.rows["episodes"] == 2
    texts = {path: path.read_text(encoding="utf-8") for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert not any("default tenant's" in text for text in texts.values())
    manifest = json.loads((tmp_path / "out" / "tenant.json").read_text(encoding="utf-8"))
    assert manifest["tenant"]["name"] == "acme" and manifest["tenant"]["status"] == "suspended"
    copy = rag.tenants.create("copy").tenant_id
    for place in manifest["collections"]:
        assert (tmp_path / "out" / place["file"]).resolve().is_relative_to(tmp_path / "out")
        report = rag.view(tenant=copy, collections=place["name"]).collections.import_file(
            tmp_path / "out" / place["file"]
        )
        assert not report.failed
    for talk in manifest["conversations"]:
        lines = (tmp_path / "out" / talk["file"]).read_bytes().splitlines()
        rag.view(session=talk["session"], tenant=copy).remember(read_turns(lines, where="x"))
    rag.tenants.resume(tenant)
    for of in (tenant, copy):
        assert rag.view(tenant=of).search("zebrafish").results[0].content == "The zebrafish merger (ZMP), changed."
        assert len(rag.view(tenant=of).recall("zebrafish")) == 2
        assert {one.name for one in rag.view(tenant=of).collections.list()} == {"default", "../weird / name"}
    for table in manifest["tables"]:
        for line in texts[tmp_path / "out" / table["file"]].splitlines():
            assert json.loads(line)["tenant_id"] == tenant


def test_an_export_overwrites_nothing(full, tmp_path: Path):
    rag, _ = full
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    for folder in (tmp_path, tmp_path / "file"):
        with pytest.raises(ConflictError, match="empty folder"):
            rag.tenants.export("acme", folder)
    with pytest.raises(UsageError, match="Cannot write"):
        rag.tenants.export("acme", tmp_path / "file" / "below")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


def test_of_an_erased_tenant_the_receipt_alone_is_left(full):
    rag, tenant = full
    before = _rows(rag)
    receipt = rag.view(actor="ann").tenants.erase("acme", reason="contract ended")
    assert (receipt.name, receipt.tenant_id, receipt.erased_by) == ("acme", tenant, "ann")
    gone = {table: count for (table, of), count in before.items() if of == tenant}
    assert {table: count for table, count in receipt.rows.items() if count} == gone
    after = _rows(rag)
    left = {("audit", tenant): 1, ("audit_heads", tenant): 1}
    assert {key: count for key, count in after.items() if key[1] == tenant} == left
    assert {k: c for k, c in after.items() if k[1] != tenant} == {k: c for k, c in before.items() if k[1] != tenant}
    (record,) = rag.view(tenant=tenant).audit.list()
    assert (record.action, record.actor, record.audit_id) == ("erase_tenant", "ann", receipt.receipt_id)
    assert record.details == {"name": "acme", "reason": "contract ended", "rows": dict(receipt.rows)}
    with pytest.raises(NotFoundError):
        rag.tenants.get("acme")
    assert len(rag.search("zebrafish").results) == 1
    assert rag.maintenance.verify().clean


def _rows(rag: RAGPipeline) -> dict[tuple[str, int], int]:
    """Rows by table and tenant, of every table of the catalogue."""
    with rag.store.database.autocommit() as connection:
        return {
            (table, tenant): count
            for table in tables_in_order(connection)
            for tenant, count in connection.execute(f"SELECT tenant_id, count(*) FROM {table} GROUP BY tenant_id")
        }


def test_the_vector_indexes_of_an_erased_tenant_are_dropped(full):
    rag, tenant = full
    rag.store.dense_indexer.build(Scope(tenant_id=tenant), "default")
    rag.store.dense_indexer.build(Scope(), "default")
    assert rag.tenants.erase(tenant).indexes == 1
    with rag.store.database.autocommit() as connection:
        left = connection.execute("SELECT count(*) FROM pg_class WHERE relname ~ '^chunk_vectors_hnsw_'").fetchone()
    assert left == (1,)


def test_the_default_tenant_stays(pipeline: RAGPipeline):
    pipeline.ingest("Something.")
    with pytest.raises(UsageError, match="collections delete"):
        pipeline.tenants.erase("default")
    assert len(pipeline.documents.list()) == 1 and pipeline.tenants.get(1).status == "active"


def test_an_erasure_waits_for_what_is_under_way_and_lets_nothing_new_begin(pipeline: RAGPipeline):
    tenant = pipeline.tenants.create("acme").tenant_id
    pipeline.view(tenant=tenant).ingest(documents(1)[0])
    stop = threading.Event()

    def write(number: int):
        if number == 0:
            stop.wait(0.3)
            try:
                return pipeline.tenants.erase(tenant)
            finally:
                stop.set()
        for count in range(10_000):
            pipeline.view(tenant=tenant).ingest(documents(1, first=1000 * number + count)[0])
        return None

    erased, *writers = _at_once(4, write)
    assert erased.rows["documents"] >= 1
    assert {type(one) for one in writers} <= {TenantSuspendedError, NotFoundError}, writers
    assert {key for key in _rows(pipeline) if key[1] == tenant} == {("audit", tenant), ("audit_heads", tenant)}


# Many behind one object


def config_of(dsn: str, **multi_tenant) -> RAGConfig:
    return RAGConfig.load(storage={"dsn": dsn}, embedding={"provider": "hashing"}, multi_tenant=multi_tenant)


@pytest.fixture
def strict(dsn: str):
    with RAGPipeline(config_of(dsn), embedder=HashingEmbedder()) as pipeline, MultiTenantRAG(pipeline) as rag:
        for name in ("acme", "globex"):
            rag.create_tenant(name)
        yield rag


@pytest.fixture
def shared(dsn: str):
    config = config_of(dsn, isolation_level="shared", collection_prefix="of ")
    with RAGPipeline(config, embedder=HashingEmbedder()) as pipeline, MultiTenantRAG(pipeline) as rag:
        for name in ("acme", "globex"):
            rag.create_tenant(name)
        yield rag


def found(reply) -> list[str]:
    return [one.content for one in reply.results]


def test_each_finds_its_own_by_name_and_by_number(strict: MultiTenantRAG):
    for name in ("acme", "globex"):
        strict.ingest(name, Document(content=f"The zebrafish merger of {name}.", source="plan.txt"))
    for name in ("acme", "globex"):
        number = strict.pipeline.tenants.get(name).tenant_id
        for tenant in (name, number):
            assert found(strict.search(tenant, "zebrafish merger")) == [f"The zebrafish merger of {name}."]
        assert name in strict.ask(name, "Which zebrafish merger?").text
        assert strict.collection_of(number) == f"tenant_{name}"
        assert [one.name for one in strict.pipeline.view(tenant=number).collections.list()] == [f"tenant_{name}"]
    assert strict.pipeline.search("zebrafish").results == ()


def test_who_has_nothing_finds_nothing_and_who_does_not_exist_is_an_error(strict: MultiTenantRAG):
    assert found(strict.search("acme", "anything")) == []
    with pytest.raises(NotFoundError, match="no collection"):
        strict.search("acme", "anything", collection="missing")
    for attempt in (strict.search, strict.ingest, strict.ask):
        with pytest.raises(NotFoundError, match="no tenant"):
            attempt("nobody", "anything")
    with pytest.raises(UsageError):
        strict.search("acme", "")


def test_one_name_for_all_and_collections_of_their_own(dsn: str):
    config = config_of(dsn, per_tenant_collections=False)
    with MultiTenantRAG(config) as rag:
        for name in ("acme", "globex"):
            rag.create_tenant(name)
            rag.ingest(name, f"The zebrafish merger of {name}.")
            rag.ingest(name, f"A zebrafish note of {name}.", collection="notes")
        assert rag.collection_of("acme") == "default"
        assert found(rag.search("acme", "zebrafish")) == ["The zebrafish merger of acme."]
        assert found(rag.search("globex", "zebrafish", collection="notes")) == ["A zebrafish note of globex."]


def test_strictly_kept_apart_tenants_share_nothing(strict: MultiTenantRAG, dsn: str):
    strict.ingest("acme", "The zebrafish merger.")
    with pytest.raises(UsageError, match='isolation_level = "shared"'):
        strict.pipeline.view(tenant="acme").collections.share("tenant_acme", "globex")
    with RAGPipeline(config_of(dsn, isolation_level="shared")) as open_handed:
        open_handed.view(tenant="acme").collections.share("tenant_acme", "globex")
    assert found(strict.search("globex", "zebrafish")) == []


def test_strict_isolation_needs_a_database_that_keeps_it(dsn: str):
    with RAGPipeline(config_of(dsn), embedder=HashingEmbedder()) as pipeline:
        pipeline.tenants.create("acme")
        with pipeline.store.database.autocommit() as connection:
            connection.execute("ALTER TABLE chunks DISABLE ROW LEVEL SECURITY")
        with pytest.raises(ConfigurationError, match="row-level security"):
            MultiTenantRAG(pipeline).search("acme", "anything")
        assert pipeline.tenants.isolation().unguarded == ("chunks",)


def test_what_is_shared_is_found_beside_ones_own_and_can_be_taken_back(shared: MultiTenantRAG):
    shared.ingest("acme", "The zebrafish merger of acme.")
    shared.ingest("globex", "A zebrafish note of globex.")
    rag = shared.pipeline
    assert found(shared.search("globex", "zebrafish merger")) == ["A zebrafish note of globex."]
    assert rag.view(tenant="acme").collections.share("of acme", "globex")
    assert not rag.view(tenant="acme").collections.share("of acme", "globex")
    reply = shared.search("globex", "zebrafish merger")
    assert {(one.collection, one.content) for one in reply.results} == {
        ("of globex", "A zebrafish note of globex."),
        ("acme/of acme", "The zebrafish merger of acme."),
    }
    assert reply.results[0].content == "The zebrafish merger of acme."
    assert found(shared.search("acme", "zebrafish")) == ["The zebrafish merger of acme."]
    assert [(one.tenant_name, one.collection) for one in rag.view(tenant="globex").collections.shared()] == [
        ("acme", "of acme")
    ]
    rag.tenants.suspend("acme")
    assert found(shared.search("globex", "zebrafish merger")) == ["A zebrafish note of globex."]
    rag.tenants.resume("acme")
    rag.view(tenant="acme").collections.unshare("of acme", "globex")
    assert found(shared.search("globex", "zebrafish merger")) == ["A zebrafish note of globex."]
    with pytest.raises(NotFoundError, match="not shared"):
        rag.view(tenant="acme").collections.unshare("of acme", "globex")
    for owner, name, reader in (("acme", "missing", "globex"), ("acme", "of acme", "nobody"), ("nobody", "x", "acme")):
        with pytest.raises(NotFoundError):
            rag.view(tenant=owner).collections.share(name, reader)
    with pytest.raises(UsageError, match="its own"):
        rag.view(tenant="acme").collections.share("of acme", "acme")


def test_of_what_is_shared_only_what_everybody_or_the_reader_may_read_is_found(shared: MultiTenantRAG):
    grants = {"open.txt": ("*",), "board.txt": ("role:board",), "globex.txt": ("group:tenant:globex",)}
    for source, permissions in grants.items():
        shared.ingest("acme", Document(content=f"Zebrafish of {source}", source=source, permissions=permissions))
    shared.pipeline.view(tenant="acme").collections.share("of acme", "globex")
    reply = shared.search("globex", "zebrafish", principal=Principal(roles=("board",), groups=("x",)))
    assert {one.source for one in reply.results} == {"open.txt", "globex.txt"}
    assert {one.source for one in shared.search("acme", "zebrafish").results} == set(grants)
