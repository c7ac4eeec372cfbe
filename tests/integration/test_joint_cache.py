"""A search of several collections is remembered like one of a single one: for equal rights, until one changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest

from recollect import Document, MultiTenantRAG, Principal, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.embedding.cached import CachedEmbedder
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import StoreError
from recollect.model import Scope, SearchReply
from recollect.model.scope import Target
from recollect.retrieval.enhance.plan import EnhancementNote, QueryPlan
from recollect.retrieval.rerank.registry import make_reranker
from recollect.retrieval.search import Searcher
from recollect.store.collections import CollectionRepository
from recollect.store.search import SearchRepository

ANN, BOB = Principal(user_id="ann"), Principal(user_id="bob")
BOTH = Target.of("one", "two")
EVERYTHING = Target(collections=None)


@pytest.fixture
def rag(dsn: str):
    config = RAGConfig.load(storage={"dsn": dsn}, access={"mode": "enforce"})
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        for name in ("one", "two"):
            rag.view(collections=name).ingest(Document(content=f"An offer of {name}.", source="offer"))
            rag.view(collections=name).ingest(
                Document(content=f"An offer for Ann of {name}.", source="ann", permissions=("user:ann",))
            )
        yield rag


def search(rag: RAGPipeline, target: Target = BOTH, principal: Principal | None = None, **scope) -> SearchReply:
    return rag.standpoint.assembly.searcher.search(
        Scope(principal=principal, **scope), "offer", RetrievalOptions(top_k=50), target
    )


def texts(reply: SearchReply) -> set[tuple[str | None, str]]:
    return {(one.collection, one.content) for one in reply.results}


@pytest.mark.parametrize("target", [BOTH, EVERYTHING], ids=["named", "all"])
def test_an_equal_search_of_several_collections_is_answered_at_once(rag: RAGPipeline, target: Target):
    first = search(rag, target)
    again = search(rag, target)
    assert (first.cached, again.cached) == (False, True)
    assert (again.results, again.collection) == (first.results, first.collection)
    assert {name for name, _ in texts(again)} == {"one", "two"}


def test_what_is_asked_of_other_collections_is_another_search(rag: RAGPipeline):
    replies = [search(rag, target) for target in (BOTH, EVERYTHING, Target.of("two", "one"), Target.of("one"))]
    assert [reply.cached for reply in replies] == [False] * 4
    assert [reply.collection for reply in replies] == ["one, two", "*", "two, one", "one"]
    assert {name for name, _ in texts(replies[3])} == {None}


# In this order: each changes what those before have left.
CHANGES = {
    "ingest": lambda rag, name: rag.view(collections=name).ingest(
        Document(content=f"Another offer of {name}.", source="other")
    ),
    "delete": lambda rag, name: rag.view(collections=name).documents.delete([document(rag, name)]),
    "erase": lambda rag, name: rag.view(collections=name).documents.erase([document(rag, name, "other")]),
    "grant": lambda rag, name: rag.view(collections=name).grants.add("user:bob", documents=document(rag, name, "ann")),
    "revoke": lambda rag, name: rag.view(collections=name).grants.remove(
        "user:ann", documents=document(rag, name, "ann")
    ),
}


def document(rag: RAGPipeline, name: str, source: str = "offer") -> int:
    return next(one.document_id for one in rag.view(collections=name).documents.list() if one.source == source)


def test_a_change_of_any_of_them_makes_it_another_search(rag: RAGPipeline):
    for change, name in product(CHANGES, ("one", "two")):
        searches = [(target, principal) for target in (BOTH, EVERYTHING) for principal in (None, ANN, BOB)]
        before = [texts(search(rag, *one)) for one in searches]
        CHANGES[change](rag, name)
        found = [search(rag, *one) for one in searches]
        # What those without rights of their own may read is one reply for all of them.
        assert [reply.cached for reply in found].count(False) >= 4
        for (target, principal), reply, was in zip(searches, found, before, strict=True):
            alone = [(name, search(rag, Target.of(name), principal)) for name in ("one", "two")]
            assert texts(reply) == {(name, text) for name, one in alone for _, text in texts(one)}
            assert texts(search(rag, target, principal)) == texts(reply)
            concerned = {"grant": [BOB], "revoke": [ANN]}.get(change, [None, ANN, BOB])
            assert (texts(reply) != was) == (principal in concerned)


def test_a_collection_more_makes_every_collection_another_search(rag: RAGPipeline):
    search(rag, EVERYTHING)
    rag.view(collections="three").ingest("A third offer.")
    assert {name for name, _ in texts(search(rag, EVERYTHING))} == {"one", "two", "three"}
    rag.collections.delete("one")
    assert {name for name, _ in texts(search(rag, EVERYTHING))} == {"two", "three"}


def test_whoever_may_read_other_things_shares_no_reply(rag: RAGPipeline):
    owner, hers, his = (search(rag, BOTH, principal) for principal in (None, ANN, BOB))
    assert not (owner.cached or hers.cached or his.cached)
    assert len(owner.results) == len(hers.results) == 4
    assert len(his.results) == 2
    equal = Principal(user_id="carl")
    assert search(rag, BOTH, equal).cached
    # The same in one of them is not the same in both.
    rag.view(collections="two").grants.add("user:carl", documents=document(rag, "two", "ann"))
    assert [search(rag, BOTH, one).cached for one in (BOB, equal)] == [False, False]
    assert {len(search(rag, BOTH, one).results) for one in (BOB, equal)} == {2, 3}


def test_rights_that_change_during_a_joint_search_leave_nothing_behind(rag: RAGPipeline, monkeypatch):
    """Whoever loses a right before the passages are read sees nothing of them, neither now nor later."""
    revoked = []
    passages = SearchRepository.passages

    def revoke_first(self, *args, **kwargs):
        if not revoked:
            revoked.append(args)
            rag.view(collections="two").grants.remove("user:ann", documents=document(rag, "two", "ann"))
        return passages(self, *args, **kwargs)

    monkeypatch.setattr(SearchRepository, "passages", revoke_first)
    for _ in range(2):
        assert {text for _, text in texts(search(rag, BOTH, ANN))} == {
            "An offer of one.",
            "An offer for Ann of one.",
            "An offer of two.",
        }


def test_rights_that_change_all_the_time_end_in_an_error(rag: RAGPipeline, monkeypatch):
    passages = SearchRepository.passages

    def change_first(self, *args, **kwargs):
        rag.view(collections="one").ingest("Another offer.")
        return passages(self, *args, **kwargs)

    monkeypatch.setattr(SearchRepository, "passages", change_first)
    monkeypatch.setattr(CollectionRepository, "changed_rights", lambda self, scope, place: place)
    with pytest.raises(StoreError, match="changes all the time"):
        search(rag, BOTH, ANN)


def test_what_has_expired_in_one_of_them_is_found_no_more(rag: RAGPipeline):
    rag.view(collections="two").documents.set_ttl(document(rag, "two"), timedelta(hours=1))
    search(rag)
    assert search(rag).cached
    with rag.store.database.autocommit() as connection:
        connection.execute("UPDATE document_versions SET expires_at = now() WHERE expires_at < 'infinity'")
        connection.execute("UPDATE collection_state SET next_expiry = now() WHERE next_expiry < 'infinity'")
    assert {text for _, text in texts(search(rag))} == {
        "An offer of one.",
        "An offer for Ann of one.",
        "An offer for Ann of two.",
    }


def test_a_reply_that_an_enhancement_failed_for_is_not_kept(rag: RAGPipeline):
    class Failing:
        name = "failing"
        attempts = 0

        def enhance(self, plan: QueryPlan) -> QueryPlan:
            self.attempts += 1
            note = EnhancementNote(name=self.name, outcome="failed", detail="down")
            return replace(plan, notes=(note,)) if self.attempts < 3 else plan

    failing = Failing()
    searcher = Searcher(
        rag.store,
        lambda _: CachedEmbedder(HashingEmbedder(), None),
        rerankers=lambda name, *_: make_reranker(name),
        enhancers=lambda place: [failing] if place.name == "two" else [],
    )
    replies = [searcher.search(Scope(), "offer", RetrievalOptions(), BOTH) for _ in range(4)]
    assert [reply.cached for reply in replies] == [False, False, False, True]
    assert failing.attempts == 3


def test_what_tenants_share_is_searched_as_if_it_were_one_and_kept_while_it_is_shared(dsn: str):
    """Words are as rare as they are in all that is searched, whoever's it is."""
    config = RAGConfig.load(
        storage={"dsn": dsn},
        embedding={"provider": "hashing"},
        multi_tenant={"isolation_level": "shared", "collection_prefix": ""},
    )
    own = ["invoice server", "invoice pump", "invoice badge"]
    foreign = [f"server {word}" for word in ("pump", "badge", "canteen", "travel", "audit")]
    with MultiTenantRAG(config) as tenants:
        for name, contents in (("acme", own), ("globex", foreign), ("whole", own + foreign)):
            tenants.create_tenant(name)
            for content in contents:
                tenants.ingest(name, Document(content=content, source=content))
        tenants.pipeline.view(tenant="globex").collections.share("globex", "acme")
        for mode in ("hybrid", "lexical", "dense"):
            options = RetrievalOptions(mode=mode, top_k=20, neighbours=1, merge_adjacent=True, outline=True)
            expected = tenants.search("whole", "invoice server", options)
            found = tenants.search("acme", "invoice server", options)
            assert [one.content for one in found.results] == [one.content for one in expected.results]
            assert [one.score for one in found.results] == pytest.approx(
                [one.score for one in expected.results], abs=1e-4
            )
            assert {one.collection for one in found.results if one.content in own} == {"acme"}
            assert {one.collection for one in found.results if one.content in foreign} <= {"globex/globex"}
        assert tenants.search("acme", "invoice server", options).cached
        tenants.pipeline.tenants.suspend("globex")
        assert {one.content for one in tenants.search("acme", "server", options).results} <= set(own)
        tenants.pipeline.tenants.resume("globex")
        tenants.pipeline.view(tenant="globex").collections.unshare("globex", "acme")
        assert {one.collection for one in tenants.search("acme", "invoice server", options).results} == {None}
