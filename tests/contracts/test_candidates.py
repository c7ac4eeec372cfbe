"""What every source of candidates keeps: the best by meaning and by words, each with both scores, and nothing else."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import pytest

from recollect import Document, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import ModelChangedError
from recollect.model import Scope
from recollect.model.collection import Collection
from recollect.retrieval.candidates import (
    CandidateRequest,
    Candidates,
    CandidateSource,
    PooledStatistics,
    Stopwatch,
    analyzer_of,
)
from recollect.retrieval.enhance.plan import Expansion, QueryPlan
from recollect.retrieval.lexical import K1, B
from recollect.retrieval.resident.collections import ResidentCollections
from recollect.retrieval.resident.source import ResidentCandidates
from recollect.retrieval.sql_candidates import SqlCandidates
from recollect.store.filters import MatchingVersions
from recollect.store.store import Store
from resident import loaded


def by_sql(store: Store) -> CandidateSource:
    return SqlCandidates(store.search, lexical_budget=2_000)


def from_memory(store: Store) -> CandidateSource:
    held = ResidentCollections(store.resident, budget=2**30)
    assert loaded(held, Scope(), store.collections.get(Scope(), "default"))
    return ResidentCandidates(held.find, by_sql(store))


SOURCES = {"exact": by_sql, "resident": from_memory}
EMBEDDER = HashingEmbedder()
WORDS = ["offer", "pump", "leave", "canteen", "budget", "audit", "server"]
TEXTS = [f"{first} {second} {first} {number}" for number, first in enumerate(WORDS) for second in WORDS]
QUERY = "offer of a pump"
MODES = ("dense", "lexical", "hybrid")


@dataclass(frozen=True)
class World:
    """A filled collection, and what is stored of each of its current chunks."""

    store: Store
    path: str
    source: CandidateSource
    collection: Collection
    then: datetime
    versions: dict[int, int]
    vectors: dict[int, np.ndarray]
    texts: dict[int, str]

    def request(self, mode: str, **changes) -> CandidateRequest:
        given = {"top_k": 5, "limit": 12, "embedding": EMBEDDER.embed_query(QUERY), **changes}
        return CandidateRequest(
            **{"collection": self.collection, "plan": QueryPlan(query=QUERY), "mode": mode, "limit": 12} | given
        )

    def find(self, mode: str, scope: Scope | None = None, **changes) -> Candidates:
        return self.source.candidates(scope or Scope(), self.request(mode, **changes), Stopwatch())

    def similarities(self) -> dict[int, float]:
        query = EMBEDDER.embed_query(QUERY)
        return {chunk_id: float(vector @ query) for chunk_id, vector in self.vectors.items()}

    def bm25(self) -> dict[int, float]:
        analyzer = analyzer_of("en")
        terms = {chunk_id: Counter(analyzer.terms(text)) for chunk_id, text in self.texts.items()}
        average = sum(sum(counts.values()) for counts in terms.values()) / len(terms)
        scores = dict.fromkeys(terms, 0.0)
        for chunk_id, counts in terms.items():
            for term in analyzer.query_terms(QUERY):
                df = sum(term in other for other in terms.values())
                saturation = K1 * (1 - B + B * sum(counts.values()) / average)
                idf = math.log(1 + (len(terms) - df + 0.5) / (df + 0.5))
                scores[chunk_id] += idf * counts[term] * (K1 + 1) / (counts[term] + saturation)
        return scores


@pytest.fixture(params=SOURCES)
def world(request: pytest.FixtureRequest, pipeline: RAGPipeline) -> World:
    store = pipeline.store
    pipeline.ingest(Document(content="An offer that was withdrawn.", source="0"))
    (then,) = _rows(store, "SELECT clock_timestamp()")[0]
    pipeline.ingest([Document(content=text, source=str(number)) for number, text in enumerate(TEXTS)])
    collection = store.collections.get(Scope(), "default")
    store.collections.refresh_term_stats(Scope(), collection)
    found = _rows(
        store,
        "SELECT v.chunk_id, v.version_id, v.embedding, c.text FROM chunk_vectors v "
        "JOIN chunks c USING (tenant_id, chunk_id) WHERE v.known_to = 'infinity'",
    )
    return World(
        store,
        request.param,
        SOURCES[request.param](store),
        store.collections.get(Scope(), "default"),
        then,
        {row[0]: row[1] for row in found},
        {row[0]: np.asarray(row[2].to_numpy(), np.float32) for row in found},
        {row[0]: row[3] for row in found},
    )


def _rows(store: Store, query: str) -> list[tuple]:
    with store.database.single_reads(Scope()) as connection:
        return connection.execute(query).fetchall()


def best(scores: dict[int, float], count: int) -> list[float]:
    return sorted((score for score in scores.values() if score), reverse=True)[:count]


def test_the_nearest_by_meaning_come_first(world: World):
    for mode in ("dense", "hybrid"):
        found = world.find(mode)
        assert [score for _, score in found.dense] == pytest.approx(best(world.similarities(), 12), abs=2e-3)
        assert found.dense == sorted(found.dense, key=lambda item: (-item[1], item[0]))
        assert found.dense_exact and found.paths["dense"] == world.path


def test_the_best_by_words_come_first(world: World):
    for mode in ("lexical", "hybrid"):
        found = world.find(mode)
        assert [score for _, score in found.lexical[:5]] == pytest.approx(best(world.bm25(), 5), rel=1e-4)
        assert found.lexical == sorted(found.lexical, key=lambda item: (-item[1], item[0]))
        # Of both ways at once no proof is asked for; whoever says exact has one.
        assert found.lexical_exact or mode == "hybrid"
        assert found.paths["lexical"] == (world.path if found.lexical_exact else "approximate")
        assert len(found.lexical) == 12


def test_each_candidate_has_both_scores(world: World):
    similarities, bm25 = world.similarities(), world.bm25()
    found = world.find("hybrid", needs_vectors=True)
    everything = {chunk_id for chunk_id, _ in (*found.dense, *found.lexical)}
    assert found.known == everything == found.similarities.keys() == found.bm25.keys() == found.coverage.keys()
    assert found.similarities == pytest.approx({one: similarities[one] for one in everything}, abs=2e-3)
    assert found.bm25 == pytest.approx({one: bm25[one] for one in everything}, rel=1e-4)
    assert all(np.allclose(found.vectors[one], world.vectors[one], atol=1e-3) for one in everything)
    by_words = world.find("lexical")
    assert by_words.similarities.keys() == by_words.bm25.keys()
    assert world.find("lexical", embedding=None).similarities == {}


@pytest.mark.parametrize("mode", MODES)
def test_nothing_but_what_the_filter_leaves_is_found(world: World, mode: str):
    kept = list(world.versions.values())[::7]
    found = world.find(mode, versions=MatchingVersions(kept, len(kept)), limit=len(TEXTS))
    assert found.known
    assert {world.versions[chunk_id] for chunk_id in found.known} <= set(kept)
    if mode != "lexical":
        assert len(found.dense) == len(kept)
    assert world.find(mode, versions=MatchingVersions([], 0)).known == set()


@pytest.mark.parametrize("mode", MODES)
def test_nothing_but_what_may_be_read_is_found(world: World, mode: str):
    readable = [row[0] for row in _rows(world.store, "SELECT DISTINCT access_id FROM chunk_vectors")]
    everything = world.find(mode)
    confined = replace(world.collection, access_ids=tuple(readable))
    assert world.find(mode, collection=confined).known == everything.known
    assert world.find(mode, collection=replace(confined, access_ids=())).known == set()
    assert world.find(mode, collection=replace(confined, access_ids=(max(readable) + 1,))).known == set()


@pytest.mark.parametrize("mode", MODES)
def test_a_moment_of_the_past_is_searched_as_it_was(world: World, mode: str):
    found = world.find(mode, Scope(as_of=world.then), limit=len(TEXTS))
    assert len(found.known) == 1
    assert not found.known & world.texts.keys()


@pytest.mark.parametrize("mode", MODES)
def test_no_other_collection_and_no_other_tenant_is_met(world: World, mode: str):
    nobodys = replace(world.collection, collection_id=99_999, space_id=99_999)
    for find in (
        lambda: world.find(mode, collection=nobodys),
        lambda: world.source.candidates(Scope(tenant_id=2), world.request(mode), Stopwatch()),
    ):
        if mode == "lexical":
            assert find().known == set()
        else:  # a space that is nobody's, or somebody else's, is no empty one: whoever searched it begins anew
            with pytest.raises(ModelChangedError):
                find()
    chunk_ids, spaces = list(world.texts)[:3], [world.collection.space_id]
    embedding = EMBEDDER.embed_query(QUERY)
    with pytest.raises(ModelChangedError):
        world.source.similarities(Scope(tenant_id=2), embedding, chunk_ids, space_ids=spaces)
    assert world.source.similarities(Scope(), embedding, chunk_ids, space_ids=spaces).keys() == set(chunk_ids)


def test_words_are_counted_and_weighed_by_all_that_is_searched(world: World):
    known = world.source.frequencies(Scope(), world.request("hybrid"))
    held = {text: sum(text in one for one in world.texts.values()) for text in ("offer", "pump")}
    assert dict(known) == held
    assert not world.source.frequencies(Scope(), world.request("dense"))
    alone = world.find("lexical")
    pooled = PooledStatistics(dict.fromkeys(alone.weights, 0), 10 * len(TEXTS), world.collection.average_length, 0.0)
    among_others = world.find("lexical", pooled=pooled)
    assert all(among_others.weights[lexeme] > weight for lexeme, weight in alone.weights.items())
    assert among_others.coverage == alone.coverage


def test_words_that_the_plan_adds_are_found_and_cover_nothing(world: World):
    plan = QueryPlan(query="offer", expansions=(Expansion("offer", "canteen", 0.5),))
    found = world.find("lexical", plan=plan, limit=len(TEXTS))
    assert {"offer" in world.texts[one] or "canteen" in world.texts[one] for one in found.bm25} == {True}
    assert {found.coverage[one] > 0 for one in found.bm25 if "offer" not in world.texts[one]} == {False}


@pytest.mark.parametrize("mode", MODES)
def test_a_query_without_words_finds_by_meaning_alone(world: World, mode: str):
    found = world.find(mode, plan=QueryPlan(query="?"))
    assert found.lexical == []
    assert bool(found.dense) == (mode != "lexical")
    assert found.paths.get("lexical") == (None if mode == "dense" else "no terms")
