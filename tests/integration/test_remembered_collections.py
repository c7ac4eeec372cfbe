"""A search takes a collection for what it was the last times, and shows nothing of it that has changed since."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from recollect import Document, Principal, RAGConfig, RAGPipeline, RetrievalOptions, View
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import NotFoundError, TenantSuspendedError
from recollect.store.database import Database

ANN = Principal(user_id="ann")
# With the cache of replies, without it, and with the other statement that reads passages.
OPTIONS = pytest.mark.parametrize(
    "options",
    [RetrievalOptions(), RetrievalOptions(use_cache=False), RetrievalOptions(use_cache=False, outline=True)],
    ids=["cached", "computed", "outlined"],
)


@pytest.fixture
def rag(dsn: str) -> Iterator[RAGPipeline]:
    config = RAGConfig.load(storage={"dsn": dsn}, access={"mode": "enforce"})
    with RAGPipeline(config, embedder=HashingEmbedder()) as opened:
        opened.tenants.create("acme")
        view = own(opened)
        view.collections.create("offers")
        view.ingest(Document(content="An offer of mortar.", source="mortar"))
        view.ingest(Document(content="An offer for Ann, of bricks.", source="bricks", permissions=("user:ann",)))
        yield opened


@pytest.fixture
def elsewhere(dsn: str, rag: RAGPipeline) -> Iterator[RAGPipeline]:
    """The same store, as another process has it open."""
    with RAGPipeline(RAGConfig.load(storage={"dsn": dsn}), embedder=HashingEmbedder()) as opened:
        yield opened


def own(rag: RAGPipeline, principal: Principal | None = None) -> View:
    tenant = rag.tenants.get("acme").tenant_id
    return rag.view(tenant=tenant, collections="offers", principal=principal)


def searching(
    rag: RAGPipeline, options: RetrievalOptions, principal: Principal | None = None
) -> Callable[[], set[str]]:
    """A search that has been made so often that its collection is remembered."""
    view = own(rag, principal)

    def search() -> set[str]:
        return {one.content for one in view.search("offer", options).results}

    for _ in range(4):
        search()
    return search


def add(rag: RAGPipeline) -> None:
    own(rag).ingest(Document(content="A new offer.", source="new"))


def delete(rag: RAGPipeline) -> None:
    own(rag).documents.delete(["mortar"])


def make_again(rag: RAGPipeline) -> None:
    own(rag).collections.delete("offers")
    own(rag).collections.create("offers")
    own(rag).ingest(Document(content="The only offer.", source="only"))


def expire(rag: RAGPipeline) -> None:
    own(rag).documents.set_ttl("mortar", timedelta(hours=1))
    with rag.store.database.autocommit() as connection:
        connection.execute("UPDATE document_versions SET expires_at = now() WHERE expires_at < 'infinity'")
        connection.execute("UPDATE collection_state SET next_expiry = now() WHERE next_expiry < 'infinity'")


BEFORE = {"An offer of mortar.", "An offer for Ann, of bricks."}
CHANGES = pytest.mark.parametrize(
    ("change", "after"),
    [
        (add, {*BEFORE, "A new offer."}),
        (delete, {"An offer for Ann, of bricks."}),
        (make_again, {"The only offer."}),
        (expire, {"An offer for Ann, of bricks."}),
    ],
)


@OPTIONS
@CHANGES
def test_the_next_search_shows_what_another_process_has_changed(
    rag: RAGPipeline,
    elsewhere: RAGPipeline,
    options: RetrievalOptions,
    change: Callable[[RAGPipeline], None],
    after: set[str],
):
    search = searching(rag, options)
    assert search() == BEFORE
    change(elsewhere)
    assert search() == after


@OPTIONS
def test_whoever_loses_a_right_finds_nothing_by_it(rag: RAGPipeline, elsewhere: RAGPipeline, options: RetrievalOptions):
    search = searching(rag, options, ANN)
    assert search() == BEFORE
    own(elsewhere).grants.remove("user:ann", documents="bricks")
    assert search() == {"An offer of mortar."}


@OPTIONS
def test_what_was_nowhere_to_be_found_is_found_once_it_is_there(
    rag: RAGPipeline, elsewhere: RAGPipeline, options: RetrievalOptions
):
    own(rag).documents.delete(["mortar", "bricks"])
    search = searching(rag, options)
    assert search() == set()
    add(elsewhere)
    assert search() == {"A new offer."}


@OPTIONS
def test_a_collection_that_is_gone_or_suspended_is_not_searched(
    rag: RAGPipeline, elsewhere: RAGPipeline, options: RetrievalOptions
):
    search = searching(rag, options)
    elsewhere.tenants.suspend("acme")
    with pytest.raises(TenantSuspendedError):
        search()
    elsewhere.tenants.resume("acme")
    assert search() == BEFORE
    own(elsewhere).collections.delete("offers")
    with pytest.raises(NotFoundError, match="offers"):
        search()


def test_searches_between_writes_show_each_of_them(rag: RAGPipeline, elsewhere: RAGPipeline):
    search = searching(rag, RetrievalOptions(use_cache=False, top_k=50))
    expected = set(BEFORE)
    for number in range(12):
        own(elsewhere).ingest(Document(content=f"The offer {number}.", source=str(number)))
        expected.add(f"The offer {number}.")
        for _ in range(number % 4 + 1):
            assert search() == expected


def test_a_search_of_what_has_not_changed_reads_what_it_found_and_looks_nothing_up(rag: RAGPipeline, monkeypatch):
    search = searching(rag, RetrievalOptions(use_cache=False))
    statements: list[str] = []
    read = Database.read

    def noted(self: Database, scope, query: str, params, **options):
        statements.append(query)
        return read(self, scope, query, params, **options)

    monkeypatch.setattr(Database, "read", noted)
    assert search() == BEFORE
    assert sum("FROM collections c" in one for one in statements) == 1
    assert any("FROM chunks" in one and "FROM collections c" in one for one in statements)
