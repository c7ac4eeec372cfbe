"""Several collections searched as one find what one collection of all their documents would find."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostile import EFFORT
from recollect import Document, Principal, RAGConfig, RAGPipeline, RetrievalOptions, SessionRAG
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import NotFoundError, UsageError
from recollect.model import Scope
from recollect.model.scope import Target

NUMBERS = itertools.count(1)
WORDS = ["offer", "pump", "leave", "canteen", "budget", "audit", "server", "travel", "badge", "invoice"]
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)
COLLECTIONS = st.lists(st.lists(TEXTS, max_size=12), min_size=2, max_size=4)


def fill(pipeline: RAGPipeline, collections: list[list[str]]) -> tuple[list[str], str]:
    """Collections with these texts, and one with all of them; by name."""
    number = next(NUMBERS)
    names = [f"part {number}.{part}" for part in range(len(collections))]
    numbered = [
        [(f"{part}-{place}", text) for place, text in enumerate(texts)] for part, texts in enumerate(collections)
    ]
    whole = f"whole {number}"
    for name, texts in zip([*names, whole], [*numbered, list(itertools.chain(*numbered))], strict=True):
        pipeline.collections.create(name)
        pipeline.view(collections=name).ingest([Document(content=text, source=source) for source, text in texts])
    return names, whole


def together(pipeline: RAGPipeline, names, query, options, scope=None):
    return pipeline.standpoint.assembly.searcher.search(scope or Scope(), query, options, Target.of(*names))


@settings(max_examples=15 * EFFORT, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    collections=COLLECTIONS,
    query=TEXTS,
    mode=st.sampled_from(["hybrid", "dense", "lexical"]),
    rerank=st.sampled_from(["none", "consensus"]),
    candidates=st.sampled_from([3, 50]),
)
def test_parts_are_searched_as_the_whole(pipeline: RAGPipeline, collections, query, mode, rerank, candidates):
    names, whole = fill(pipeline, collections)
    options = RetrievalOptions(
        mode=mode, top_k=3, candidates=candidates, rerank=rerank, collapse_duplicates=False, explain=True
    )
    expected = pipeline.view(collections=whole).search(query, options)
    found = together(pipeline, names, query, options)
    # Equal texts may change places: of equal scores the smaller number comes first.
    assert [one.content for one in found.results] == [one.content for one in expected.results]
    assert [one.score for one in found.results] == pytest.approx([one.score for one in expected.results], abs=1e-4)
    for mine, theirs in zip(found.results, expected.results, strict=True):
        assert (mine.explain.lexical is None) == (theirs.explain.lexical is None)
        if mine.explain.lexical is not None:
            assert mine.explain.lexical.score == pytest.approx(theirs.explain.lexical.score, abs=1e-4)
    own = {name: set(texts) for name, texts in zip(names, collections, strict=True)}
    assert all(one.content in own[one.collection] for one in found.results)
    if mode != "dense":
        assert dict(found.explain.terms) == pytest.approx(dict(expected.explain.terms), abs=1e-4)


def test_a_word_that_is_rare_overall_counts_although_its_collection_is_full_of_it(pipeline: RAGPipeline):
    names, _ = fill(
        pipeline,
        [
            ["invoice server", "invoice pump", "invoice badge"],
            [f"server {word}" for word in WORDS if word != "invoice"],
        ],
    )
    options = RetrievalOptions(mode="lexical", top_k=20, explain=True)
    found = together(pipeline, names, "invoice server", options)
    assert found.results[0].content == "invoice server"
    assert {one.collection for one in found.results[:3]} == {names[0]}
    terms = dict(found.explain.terms)
    assert terms["invoic"] > terms["server"]


def test_everything_is_searched_as_one(pipeline: RAGPipeline):
    assert pipeline.view(collections="*").search("offer").results == ()
    fill(pipeline, [["offer pump", "offer leave"]])
    pipeline.collections.delete(next(one.name for one in pipeline.collections.list() if one.name.startswith("whole")))
    found = pipeline.view(collections="*").search("offer")
    assert {one.collection for one in found.results} == {one.name for one in pipeline.collections.list()}
    names, whole = fill(pipeline, [["invoice server"], ["server badge", "server leave"], ["pump"]])
    for place in pipeline.collections.list():
        if place.name not in names and place.name != whole:
            pipeline.collections.delete(place.name)
    expected = pipeline.view(collections=whole).search("invoice server")
    pipeline.collections.delete(whole)
    found = pipeline.view(collections="*").search("invoice server")
    assert found.collection == "*"
    assert [one.content for one in found.results] == [one.content for one in expected.results]
    assert [one.score for one in found.results] == pytest.approx([one.score for one in expected.results], abs=1e-4)


def test_filters_thresholds_and_duplicates_hold_over_all(pipeline: RAGPipeline):
    names, _ = fill(pipeline, [["offer pump", "offer leave"], ["offer pump", "offer badge"]])
    found = together(pipeline, names, "offer pump", RetrievalOptions(top_k=10))
    assert [one.content for one in found.results].count("offer pump") == 1
    assert found.results[0].duplicates
    found = together(pipeline, names, "offer", RetrievalOptions(top_k=10, source=("1-1",), explain=True))
    assert [one.content for one in found.results] == ["offer badge"]
    assert (found.explain.filter_kept, found.explain.filter_removed) == (1, 3)
    found = together(pipeline, names, "offer pump", RetrievalOptions(top_k=10, collapse_duplicates=False))
    similar = sorted((one.similarity for one in found.results), reverse=True)
    options = RetrievalOptions(top_k=10, collapse_duplicates=False, similarity_threshold=similar[1])
    assert len(together(pipeline, names, "offer pump", options).results) == 2


def test_collections_in_different_languages(pipeline: RAGPipeline):
    pipeline.collections.create("de", language="de")
    pipeline.collections.create("en", language="en")
    pipeline.view(collections="de").ingest("Die Häuser der Verwaltung")
    pipeline.view(collections="en").ingest("The houses of the administration")
    options = RetrievalOptions(mode="lexical", top_k=5)
    assert [one.collection for one in together(pipeline, ["de", "en"], "Haus", options).results] == ["de"]
    assert [one.collection for one in together(pipeline, ["de", "en"], "house", options).results] == ["en"]


def test_what_cannot_be_searched_together(pipeline: RAGPipeline):
    names, _ = fill(pipeline, [["offer"], []])
    options = RetrievalOptions()
    with pytest.raises(UsageError, match="at least one"):
        together(pipeline, [], "offer", options)
    with pytest.raises(NotFoundError, match="missing"):
        together(pipeline, [*names, "missing"], "offer", options)
    with pytest.raises(UsageError, match="query"):
        together(pipeline, names, " ", options)
    assert len(together(pipeline, [names[0], *names], "offer", options).results) == 1
    assert together(pipeline, [names[1]], "offer", options).results == ()


def test_a_session_is_searched_with_collections(pipeline: RAGPipeline):
    sessions = SessionRAG(pipeline)
    pipeline.view(collections="handbook").ingest(Document(content="Annual leave is 30 days.", source="leave"))
    pipeline.view(collections="machines").ingest(Document(content="The pump stands in hall C.", source="pump"))
    for name, text in (("mine", "My leave begins on Friday."), ("other", "Her leave begins on Monday.")):
        sessions.create_session(name)
        sessions.ingest_to_session(name, Document(content=text, source="note"))
    found = sessions.search_session("mine", "leave", collections="handbook")
    assert found.collection == "session:mine, handbook"
    assert {(one.collection, one.content) for one in found.results} == {
        ("session:mine", "My leave begins on Friday."),
        ("handbook", "Annual leave is 30 days."),
    }
    everywhere = sessions.search_session("mine", "leave", RetrievalOptions(top_k=50), collections="*")
    assert {one.collection for one in everywhere.results} == {"session:mine", "handbook", "machines"}
    assert {one.collection for one in sessions.session("mine", collections=["machines"]).retrieve("hall pump")} == {
        "session:mine",
        "machines",
    }
    # The default collection is empty, not missing, before its first document.
    assert len(sessions.search_session("mine", "leave", collections=["default"]).results) == 1
    with pytest.raises(NotFoundError, match="nowhere"):
        sessions.search_session("mine", "leave", collections=["nowhere"])
    answer = sessions.ask_session("mine", "How many days is annual leave?", collections=["handbook"])
    assert {citation.source for citation in answer.citations} == {"leave"}


def test_nothing_of_a_session_is_kept_for_equal_searches(pipeline: RAGPipeline):
    sessions = SessionRAG(pipeline)
    sessions.create_session("mine")
    sessions.ingest_to_session("mine", "An offer.")
    pipeline.ingest("Another offer.")
    for collections in ((), ["default"]):
        sessions.search_session("mine", "offer", collections=collections)
    assert pipeline.standpoint.assembly.searcher.cache_counts.entries == 0


class CountingEmbedder(HashingEmbedder):
    """Counts the questions that it is asked to embed."""

    questions = 0

    def embed_query(self, text):
        self.questions += 1
        return super().embed_query(text)


def test_what_is_remembered_of_one_tenants_question_serves_no_other(dsn: str, tmp_path):
    config = RAGConfig.load(storage={"data_dir": tmp_path / "unused", "dsn": dsn}, embedding={"provider": "hashing"})
    embedder = CountingEmbedder()
    with RAGPipeline(config, embedder=embedder) as rag:
        tenants = [1, rag.tenants.create("other").tenant_id]
        for tenant in tenants:
            for name in ("a", "b"):
                rag.view(tenant=tenant, collections=name).ingest("An offer.")
        # The first search of a model that is not known measures its scale of similarities.
        together(rag, ["a", "b"], "another", RetrievalOptions(), Scope(tenant_id=tenants[0]))
        before, asked = embedder.questions, []
        for tenant in (tenants[0], tenants[0], tenants[1]):
            together(rag, ["a", "b"], "offer", RetrievalOptions(), Scope(tenant_id=tenant))
            asked.append(embedder.questions - before)
        assert asked == [1, 1, 2]


def test_a_person_finds_what_may_be_read_in_each(dsn: str, tmp_path):
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        access={"mode": "enforce"},
    )
    ann = Principal(user_id="ann")
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        for source, permissions in (("open", None), ("hers", ("user:ann",)), ("his", ("user:bob",))):
            rag.ingest(Document(content=f"offer {source}", source=source, permissions=permissions))
        rag.view(collections="closed").ingest(Document(content="offer closed", source="closed"))
        rag.view(collections="closed").grants.set_collection(readers=["user:bob"])
        sessions = SessionRAG(rag, principal=ann)
        sessions.create_session("mine")
        sessions.ingest_to_session("mine", "offer of mine")
        found = sessions.search_session("mine", "offer", RetrievalOptions(top_k=20), collections="*")
        assert {one.content for one in found.results} == {"offer open", "offer hers", "offer of mine"}
        with pytest.raises(NotFoundError):
            sessions.search_session("mine", "offer", collections=["closed"])
        rag.grants.remove("user:ann", documents="hers")
        found = sessions.search_session("mine", "offer", RetrievalOptions(top_k=20), collections="*")
        assert {one.content for one in found.results} == {"offer open", "offer of mine"}
