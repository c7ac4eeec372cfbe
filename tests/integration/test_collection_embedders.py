"""Each collection is embedded by a model of its own, whatever is configured for new ones."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from pgvector import HalfVector

from contracts.wire_formats import openai
from contracts.wire_formats.server import DIMENSION, ModelServer
from recollect import Document, RAGConfig, RAGPipeline
from recollect.context import RetrievalWeights
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import UsageError
from recollect.model import RetrievalOptions, Scope
from recollect.model.memory import RecallOptions, Turn

PUMPS = [Document(content=f"The pump {number} leaked in May.", source=f"pump{number}.txt") for number in range(6)]
LEAVE = [
    Document(content=f"Leave of kind {number} takes five days.", source=f"leave{number}.txt") for number in range(6)
]


class Close(HashingEmbedder):
    """A model to which everything is near: unrelated texts have a cosine of about 0.9."""

    model_name = "close"

    @property
    def dimension(self):
        return super().dimension + 1

    def embed_documents(self, texts):
        own = super().embed_documents(texts) * np.sqrt(0.1)
        return np.hstack([own, np.full((len(own), 1), np.sqrt(0.9))]).astype(np.float32)


@pytest.fixture
def configured(dsn, tmp_path):
    def configured(**embedding):
        return RAGConfig.load(
            storage={"data_dir": tmp_path / "unused", "dsn": dsn}, embedding={"provider": "hashing", **embedding}
        )

    return configured


@pytest.fixture
def two_models(configured):
    """Pumps embedded in 32 dimensions, leave in 96; 64 are configured."""
    for name, documents, dimensions in (("pumps", PUMPS, 32), ("leave", LEAVE, 96)):
        with RAGPipeline(configured(dimensions=dimensions)) as rag:
            rag.view(collections=name).ingest(documents)
    with RAGPipeline(configured(dimensions=64)) as rag:
        yield rag


def model_server():
    """Gives any model's embeddings."""
    server = ModelServer(openai.Embeddings())
    server.wire.texts = lambda path, body: body["input"]
    return server


def sources(reply):
    return [passage.source for passage in reply.results]


def test_a_collection_is_searched_with_its_own_model(two_models):
    places = (("pumps", "pump 3 leaked", "pump3.txt"), ("leave", "leave of kind 4", "leave4.txt"))
    for mode, (name, question, best) in product(("hybrid", "dense", "lexical"), places):
        found = two_models.view(collections=name).search(question, RetrievalOptions(mode=mode))
        assert sources(found)[0] == best


def test_a_collection_is_written_with_its_own_model_and_new_ones_with_the_configured_one(two_models):
    two_models.view(collections="pumps").ingest(Document(content="The pump 9 was replaced.", source="pump9.txt"))
    two_models.view(collections="new").ingest(PUMPS[0])
    for name, dimensions in (("pumps", 32), ("new", 64)):
        place = two_models.store.collections.get(Scope(), name)
        assert place.embedding_model == f"hashing:{dimensions}" and place.embedding_dimension == dimensions
        assert place.embedding_spec["provider"] == "hashing"
        with two_models.store.database.transaction(Scope()) as connection:
            stored = connection.execute(
                "SELECT DISTINCT vector_dims(embedding) FROM chunk_vectors WHERE space_id = %s",
                [place.space_id],
            )
            assert list(stored) == [(dimensions,)]
    assert sources(two_models.view(collections="pumps").search("pump 9 replaced"))[0] == "pump9.txt"


def test_no_collection_is_left_out_of_a_search_of_several(two_models):
    views = (two_models.view(collections="*"), two_models.view(collections=("pumps", "leave")))
    for mode, view in product(("hybrid", "dense", "lexical"), views):
        options = RetrievalOptions(mode=mode, top_k=20, explain=True)
        for question, best in (("pump 3 leaked", "pump3.txt"), ("leave of kind 4 days", "leave4.txt")):
            assert sources(view.search(question, options))[0] == best
        everything = sources(view.search("the pump leaked; leave takes days", options))
        assert set(everything) == {one.source for one in (*PUMPS, *LEAVE)}


def test_scores_of_a_model_to_which_everything_is_near_do_not_count_for_more(configured):
    with RAGPipeline(configured(), embedder=Close(64)) as rag:
        for name, documents in (("leave", LEAVE), ("pumps", PUMPS)):
            assembly = rag.standpoint.assembly
            assembly.embedders._given = Close(64) if name == "leave" else HashingEmbedder(64)
            rag.view(collections=name).ingest(documents)
        assembly.embedders._given = Close(64)
        view = rag.view(collections="*")
        for mode, rerank, feedback in product(
            ("hybrid", "dense"), ("none", "consensus", "best_sentence"), (False, True)
        ):
            options = RetrievalOptions(mode=mode, rerank=rerank, top_k=12, pseudo_relevance=feedback, min_relevance=0.0)
            found = view.search("which pump leaked in May?", options)
            assert all(source.startswith("pump") for source in sources(found)[:6]), options
            assert {source[:4] for source in sources(found)} == {"pump", "leav"}
            similarities = {passage.source[:4]: passage.similarity for passage in found.results}
            # Shown as the model measured them.
            assert similarities["leav"] > 0.8 > similarities["pump"]
            relevance = {passage.source[:4]: passage.relevance for passage in found.results}
            assert relevance["pump"] > relevance["leav"]


def test_another_wording_is_measured_in_every_space(configured, two_models):
    from recollect.embedding.cached import CachedEmbedder
    from recollect.model.scope import Target
    from recollect.retrieval.rerank.registry import make_reranker
    from recollect.retrieval.search import Searcher

    class Reworded:
        name = "reworded"

        def enhance(self, plan):
            return replace(
                plan, alternatives=("leave of kind 4 takes days",), hypothetical_answers=("The pump leaked.",)
            )

    searcher = Searcher(
        two_models.store,
        lambda place: CachedEmbedder(two_models.standpoint.assembly.embedder_for(place), None),
        rerankers=lambda name, *_: make_reranker(name),
        enhancers=lambda _: [Reworded()],
    )
    options = RetrievalOptions(candidates=6, top_k=12, min_relevance=0.0)
    found = searcher.search(Scope(), "pump 3 leaked", options, Target(collections=None))
    assert {source[:4] for source in sources(found)} == {"pump", "leav"}
    assert all(passage.similarity is not None for passage in found.results)


def test_a_question_is_embedded_once_for_each_model(configured, dsn, tmp_path):
    server = model_server()
    hosted = {"provider": "openai", "base_url": f"{server.base_url}/v1", "dimensions": DIMENSION, "max_retries": 0}
    try:
        for model, names in (("one", ("a", "b")), ("two", ("c",))):
            with RAGPipeline(configured(model=model, **hosted)) as rag:
                for name in names:
                    rag.view(collections=name).ingest(PUMPS[0])
        with RAGPipeline(configured()) as rag:
            rag.view(collections="d").ingest(PUMPS[0])
            server.requests.clear()
            options = RetrievalOptions(use_cache=False, top_k=10, collapse_duplicates=False)
            found = rag.view(collections="*").search("which pump?", options)
            assert {passage.collection for passage in found.results} == {"a", "b", "c", "d"}
            asked = [one.body["model"] for one in server.requests if one.body["input"] == ["which pump?"]]
            assert sorted(asked) == ["one", "two"]
    finally:
        server.close()


def test_what_a_row_does_not_tell_its_models_name_does(two_models):
    with two_models.store.database.autocommit() as connection:
        connection.execute("UPDATE collections SET embedding_spec = NULL")
    assert sources(two_models.view(collections="pumps").search("pump 3 leaked"))[0] == "pump3.txt"
    two_models.view(collections="leave").ingest(Document(content="Leave of kind 9.", source="leave9.txt"))


def test_documents_of_a_session_keep_its_model(configured):
    with RAGPipeline(configured(dimensions=32)) as rag:
        rag.view().sessions.create("s")
        rag.view(session="s").ingest(PUMPS[1])
    with RAGPipeline(configured(dimensions=64)) as rag:
        rag.view(collections="leave").ingest(LEAVE[1])
        rag.view(session="s").ingest(PUMPS[2])
        found = rag.view(session="s", collections=("leave",)).search("pump leave", RetrievalOptions(top_k=10))
        assert set(sources(found)) == {"pump1.txt", "pump2.txt", "leave1.txt"}


def test_a_document_is_missed_for_the_reasons_of_its_own_model(two_models):
    told = two_models.view(collections="pumps").why_not("pump 3 leaked", "pump3.txt")
    assert told.found and told.rank == 1


def test_a_model_that_cannot_be_made_is_told_with_what_to_do(configured):
    with RAGPipeline(configured(), embedder=Close(64)) as rag:
        rag.view(collections="near").ingest(PUMPS[0])
    with RAGPipeline(configured()) as rag:
        rag.view(collections="other").ingest(LEAVE[0])
        rag.store.collections.create(
            Scope(),
            "hosted",
            embedding_model="cohere/embed-v4.0:1536",
            embedding_dimension=1536,
            embedding_spec={"provider": "cohere", "model": "embed-v4.0", "dimensions": 1536},
        )
        for name, why in (("near", "handed to"), ("hosted", "CO_API_KEY")):
            view = rag.view(collections=name)
            for act in (lambda view=view: view.ingest(PUMPS[1]), lambda view=view: view.search("pump")):
                with pytest.raises(
                    UsageError, match=rf"'{name}'.*{why}.*recollect reembed --collection {name} --model"
                ):
                    act()
        for view in (rag.view(collections="*"), rag.view(collections=("other", "near"))):
            with pytest.raises(UsageError, match=r"'(near|hosted)'"):
                view.search("pump leave")
        words = RetrievalOptions(mode="lexical", top_k=10)
        assert set(sources(rag.view(collections="*").search("pump leave", words))) == {"pump0.txt", "leave0.txt"}
        assert rag.view(collections="near").ask("Which pump leaked?", words).text


def test_a_model_is_asked_where_it_was_and_keys_stay_where_they_are_configured(configured, monkeypatch):
    """Another provider's key, or one for another address, is not sent to the server of a collection."""
    server, elsewhere = model_server(), model_server()
    hosted = {"provider": "openai", "dimensions": DIMENSION, "max_retries": 0}
    here, there = (f"{one.base_url}/v1" for one in (server, elsewhere))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment")
    try:
        with RAGPipeline(configured(**hosted, model="m", base_url=here, api_key="sk-here")) as rag:
            rag.view(collections="a").ingest(PUMPS[0])
        for others, key in (
            ({**hosted, "model": "n", "base_url": there, "api_key": "sk-there"}, set()),
            ({"provider": "cohere", "api_key": "sk-cohere"}, set()),
            ({"provider": "hashing"}, set()),
            ({**hosted, "model": "n", "base_url": here, "api_key": "sk-here-now"}, {"sk-here-now"}),
        ):
            server.requests.clear()
            with RAGPipeline(configured(**others)) as rag:
                assert sources(rag.view(collections="a").search("pump")) == ["pump0.txt"]
            assert {one.body["model"] for one in server.requests} == {"m"}
            sent = {word for one in server.requests for value in one.headers.values() for word in value.split()}
            assert sent & {"sk-from-the-environment", "sk-here", "sk-there", "sk-cohere", "sk-here-now"} == key
        assert elsewhere.requests == []
    finally:
        server.close()
        elsewhere.close()


def test_passages_of_several_models_are_varied_together(configured, two_models):
    options = RetrievalOptions(top_k=8, mmr_lambda=0.3, min_relevance=0.0, neighbours=1, merge_adjacent=True)
    found = two_models.view(collections="*").search("pump leave", options)
    assert {source[:4] for source in sources(found)} == {"pump", "leav"}


def test_few_models_are_kept_at_hand(configured):
    with RAGPipeline(configured()) as rag:
        embedders = rag.standpoint.assembly.embedders
        for dimensions in range(2, 30):
            name = f"hashing:{dimensions}"
            made = embedders.named(name, refused=str)
            assert made.model_name == name and embedders.named(name, refused=str) is made
        assert len(embedders._others) == 8


# Conversations


def said(found):
    return [one.episode.content for one in found]


def test_conversations_keep_their_models_and_are_recalled_together(configured):
    for dimensions, session in ((32, "old"), (96, "new")):
        with RAGPipeline(configured(dimensions=dimensions)) as rag:
            view = rag.view(session=session, user="ada")
            view.remember([Turn(content=f"My pump of {session} is number {number}.") for number in range(3)])
    with RAGPipeline(configured(dimensions=64)) as rag:
        old = rag.view(session="old", user="ada")
        old.remember([Turn(content="My badge is green.")])
        assert said(old.recall("which colour has the badge?"))[0] == "My badge is green."
        everything = rag.view(user="ada")
        for mode in ("hybrid", "dense", "lexical"):
            found = everything.recall("pump number badge", RecallOptions(mode=mode, top_k=10))
            assert {one.episode.session for one in found} == {"old", "new"} and len(found) == 7
            best, *_ = everything.recall("which pump is the new one?", RecallOptions(mode=mode))
            assert best.episode.session == "new"
        with rag.store.database.transaction(Scope()) as connection:
            stored = connection.execute(
                "SELECT s.name, array_agg(DISTINCT vector_dims(v.embedding)) "
                "FROM episode_vectors v JOIN sessions s USING (tenant_id, session_id) GROUP BY 1"
            )
            assert dict(stored) == {"old": [32], "new": [96]}
        assert old.memory.forget("old", [1]) == 1
        assert len(everything.recall("pump number badge", RecallOptions(top_k=10))) == 6


def test_facts_are_drawn_and_recalled_with_the_models_of_their_conversations(configured):
    for dimensions, session, color in ((32, "old", "green"), (96, "new", "blue")):
        with RAGPipeline(configured(dimensions=dimensions)) as rag:
            view = rag.view(session=session, user="ada")
            view.remember([Turn(content=f"My badge of {session} is {color}.", role="user")])
    with RAGPipeline(configured(dimensions=64)) as rag:
        everything = rag.view(user="ada")
        for mode in ("hybrid", "dense", "lexical"):
            everything.recall("badge green blue", RecallOptions(mode=mode))
        assert everything.facts.consolidate(min_retrievals=1).added == 2
        for mode in ("hybrid", "dense", "lexical"):
            found = everything.facts.search("badge green blue", RecallOptions(mode=mode, top_k=5))
            assert {one.fact.session for one in found} == {"old", "new"}


def test_facts_of_another_models_vectors_are_found_by_words_and_embedded_anew(configured):
    """As a configured model drew them in conversations of another one, before facts kept to their conversation's."""
    with RAGPipeline(configured(dimensions=32)) as rag:
        view = rag.view(session="old", user="ada")
        view.remember([Turn(content=f"My badge of {color} opens gate {color}.") for color in ("green", "blue", "red")])
        view.recall("badge gate", RecallOptions(top_k=10))
        assert view.facts.consolidate(min_retrievals=1).added == 3
        right = [one.similarity for one in view.facts.search("badge green gate")]
        wrong = HashingEmbedder(96).embed_documents(["user: My badge of green opens gate green."])[0]
        with rag.store.database.transaction(Scope()) as connection:
            connection.execute(
                "UPDATE fact_index SET embedding = %s WHERE fact_id = (SELECT fact_id FROM facts WHERE statement ~ %s)",
                (HalfVector(wrong), "green"),
            )
        for mode in ("hybrid", "dense", "lexical"):
            found = view.facts.search("badge green gate", RecallOptions(mode=mode))
            green = [one for one in found if "green" in one.fact.statement]
            assert len(found) == (2 if mode == "dense" else 3)
            assert [one.similarity for one in green] == ([] if mode == "dense" else [None])
    with RAGPipeline(configured(dimensions=64)) as rag:
        checked = {one.name: one for one in rag.maintenance.verify().checks}["fact_vectors"]
        assert (checked.found, checked.repaired) == (1, 0) and "for instance fact" in checked.detail
        mended = {one.name: one for one in rag.maintenance.verify(repair=True).checks}["fact_vectors"]
        assert (mended.found, mended.repaired) == (1, 1)
        assert rag.maintenance.verify().clean
        view = rag.view(session="old", user="ada")
        assert [one.similarity for one in view.facts.search("badge green gate")] == pytest.approx(right)


def test_facts_whose_model_cannot_be_made_are_left_and_said_why(configured):
    with RAGPipeline(configured(), embedder=Close(64)) as rag:
        view = rag.view(session="s")
        view.remember([Turn(content="My badge is green.")])
        view.recall("badge")
        assert view.facts.consolidate(min_retrievals=1).added == 1
        with rag.store.database.transaction(Scope()) as connection:
            connection.execute("UPDATE fact_index SET embedding = '[1,0]'")
    with RAGPipeline(configured()) as rag:
        left = {one.name: one for one in rag.maintenance.verify(repair=True).checks}["fact_vectors"]
        assert (left.found, left.repaired) == (1, 0) and "'close'" in left.detail


def test_a_conversation_whose_model_cannot_be_made_is_recalled_by_words(configured):
    with RAGPipeline(configured(), embedder=Close(64)) as rag:
        rag.view(session="s").remember([Turn(content="The pump leaked.")])
    with RAGPipeline(configured()) as rag:
        view = rag.view(session="s")
        for act in (lambda: view.recall("pump"), lambda: view.remember([Turn(content="It was mended.")])):
            with pytest.raises(UsageError, match=r"'close'.*mode lexical"):
                act()
        assert said(view.recall("pump", RecallOptions(mode="lexical"))) == ["The pump leaked."]


@pytest.mark.parametrize("near", ["documents", "conversations"])
def test_contexts_compare_models_on_their_own_scales(configured, near):
    """What a model to which everything is near finds of no relevance does not come before what answers."""

    class Synonyms:
        """No word of the question stands in any text: what it means is all that tells."""

        def embed_query(self, text):
            return super().embed_query(text.replace("Was tropft?", "the pump leaked"))

    class Far(Synonyms, HashingEmbedder):
        pass

    class Near(Synonyms, Close):
        pass

    models = {"documents": Far(64), "conversations": Far(64), near: Near(64)}
    found = {"documents": PUMPS, "conversations": PUMPS, near: LEAVE}
    with RAGPipeline(configured(), embedder=models["documents"]) as rag:
        embedders = rag.standpoint.assembly.embedders
        rag.view().ingest(found["documents"])
        embedders._given = models["conversations"]
        rag.view(session="s").remember([Turn(content=one.content) for one in found["conversations"]])
        embedders.named = lambda name, **_: next(one for one in models.values() if one.model_name == name)
        assembler = rag.memory.assembler(weights=RetrievalWeights(rag=0.5, memory=0.5), min_relevance=0.0)
        made = assembler.assemble("Was tropft?", "semantic", 2_000, "s")
        shown = ["pump" if "pump" in one.content else "leave" for one in made.passages]
        assert set(shown) == {"pump", "leave"} and shown == sorted(shown, reverse=True)
        assert {one.passage.embedding_model for one in made.passages} == {"close", "hashing:64"}
