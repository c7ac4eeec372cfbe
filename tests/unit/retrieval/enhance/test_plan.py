from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.embedding.hashing import HashingEmbedder
from recollect.llm.scripted import ScriptedChatModel
from recollect.retrieval import lexical
from recollect.retrieval.analysis import Analyzer, lexeme
from recollect.retrieval.enhance.generated import HydeEnhancer, MultiQueryEnhancer
from recollect.retrieval.enhance.plan import (
    EnhancementNote,
    Expansion,
    QueryPlan,
    enhance,
    expanded_weights,
    expansion_terms,
    fuse_alternatives,
    query_vector,
)
from recollect.retrieval.enhance.synonyms import SynonymEnhancer, parse_synonyms

ANALYZER = Analyzer("en")
SALT = 7


def number(word):
    (term,) = ANALYZER.query_terms(word)
    return lexeme(term, SALT)


def test_without_enhancements_the_plan_is_the_query():
    plan = enhance("how long is leave", [])
    assert plan == QueryPlan(query="how long is leave")
    assert not plan.degraded


def test_enhancements_combine_and_each_leaves_its_note():
    chain = [
        SynonymEnhancer(parse_synonyms("leave, vacation"), ANALYZER),
        MultiQueryEnhancer(ScriptedChatModel("holiday entitlement")),
        HydeEnhancer(ScriptedChatModel("Staff have thirty days of leave.")),
    ]
    plan = enhance("annual leave", chain)
    assert plan.query == "annual leave"
    assert [(e.text, e.weight) for e in plan.expansions] == [("vacation", 0.5)]
    assert plan.alternatives == ("holiday entitlement",)
    assert plan.hypothetical_answers == ("Staff have thirty days of leave.",)
    assert [(note.name, note.outcome) for note in plan.notes] == [
        ("synonyms", "applied"),
        ("multi-query", "applied"),
        ("hyde", "applied"),
    ]
    assert all(note.milliseconds > 0 for note in plan.notes)


@dataclass
class Failing:
    name: str = "failing"

    def enhance(self, plan):
        return replace(plan, notes=(*plan.notes, EnhancementNote(name=self.name, outcome="failed", detail="down")))


def test_a_failed_enhancement_marks_the_plan_as_degraded():
    assert enhance("q", [Failing()]).degraded


def test_an_expansion_of_words_that_the_collection_lacks_counts_by_its_own_rarity():
    idf = {number("dies"): 4.0}
    found = expanded_weights({}, [Expansion("incapacitated", "dies", 0.5)], analyzer=ANALYZER, salt=SALT, idf=idf)
    assert found == {number("dies"): 2.0}


def test_a_rare_expansion_is_held_below_the_common_word_that_it_stands_for():
    weights = {number("leave"): 1.0}
    idf = {number("sabbatical"): 8.0}
    found = expanded_weights(
        weights, [Expansion("leave", "sabbatical", 0.5)], analyzer=ANALYZER, salt=SALT, idf=weights | idf
    )
    assert found == {number("leave"): 1.0, number("sabbatical"): 0.5}


def test_a_word_that_the_query_has_already_keeps_its_weight():
    weights = {number("leave"): 1.0, number("holiday"): 3.0}
    found = expanded_weights(
        weights, [Expansion("leave", "holiday", 0.5)], analyzer=ANALYZER, salt=SALT, idf=dict(weights)
    )
    assert found == weights


WORDS = ["leave", "vacation", "holiday", "sabbatical", "absence", "furlough"]


@given(
    idfs=st.lists(st.floats(0.01, 15), min_size=6, max_size=6),
    lengths=st.tuples(st.integers(1, 2), st.integers(1, 4)),
    weight=st.floats(0.01, 1),
    length=st.integers(4, 300),
)
def test_the_original_words_win_over_their_expansion_however_rare_it_is(idfs, lengths, weight, length):
    originals, expansion = WORDS[: lengths[0]], WORDS[2 : 2 + lengths[1]]
    idf = {number(word): value for word, value in zip(WORDS, idfs, strict=True)}
    own = {number(word): idf[number(word)] for word in originals}
    rule = Expansion(" ".join(originals), " ".join(expansion), weight)
    weights = expanded_weights(own, [rule], analyzer=ANALYZER, salt=SALT, idf=idf)
    assert weights.items() >= own.items()

    def score(words):
        counts = {number(word): 1 for word in words}
        document = lexical.document_weights(counts, length=length, average_length=100)
        return sum(weights.get(key, 0.0) * value for key, value in document.items())

    assert 0 < score(expansion) <= weight * score(originals) * (1 + 1e-5)


def test_the_terms_of_expansions_are_looked_up_with_the_query():
    plan = QueryPlan(query="q", expansions=(Expansion("apr", "annual percentage rates", 1),))
    assert expansion_terms(plan, ANALYZER) == ["annual", "percentag", "rate"]


def test_without_hypothetical_answers_the_vector_is_the_query_s():
    embedder = HashingEmbedder(32)
    np.testing.assert_array_equal(query_vector(QueryPlan(query="leave"), embedder), embedder.embed_query("leave"))


def test_hypothetical_answers_move_the_vector_towards_themselves():
    embedder = HashingEmbedder(64)
    plan = QueryPlan(query="leave", hypothetical_answers=("thirty days a year", "thirty working days"))
    vector = query_vector(plan, embedder)
    answers = embedder.embed_documents(plan.hypothetical_answers)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
    assert vector.dtype == np.float32
    assert (answers @ vector > answers @ embedder.embed_query("leave")).all()


def test_vectors_that_cancel_out_leave_the_query_s():
    class Opposite(HashingEmbedder):
        def embed_documents(self, texts):
            return -np.stack([self.embed_query("leave")] * len(texts))

        def embed_query(self, text):
            return HashingEmbedder(16).embed_query(text)

    embedder = Opposite(16)
    plan = QueryPlan(query="leave", hypothetical_answers=("x",))
    np.testing.assert_array_equal(query_vector(plan, embedder), embedder.embed_query("leave"))


def test_the_original_ranking_outweighs_another_wording():
    original, other = [(1, 9.0), (2, 8.0)], [(3, 5.0), (4, 4.0)]
    fused = fuse_alternatives(original, [other])
    assert [chunk_id for chunk_id, _ in fused] == [1, 2, 3, 4]
    # What both find rises above what one of them finds.
    assert fuse_alternatives(original, [[(2, 1.0)]])[0][0] == 2
    assert fuse_alternatives(original, []) == original
