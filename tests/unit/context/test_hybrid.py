"""Documents and memory in one context: shares, order, what is shown once, and the budget."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import ContextAssembler, HybridRetriever, RAGConfig
from recollect.context import RetrievalWeights, estimate_tokens
from recollect.context.hybrid import _said
from recollect.errors import NotFoundError, UsageError
from recollect.model import RetrievedContext, SearchReply
from recollect.model.facts import FactEvidence, RecalledFact
from recollect.model.memory import Episode, Recollection
from recollect.model.record import fields_of
from recollect.pipeline.standpoint import Standpoint
from recollect.retrieval.rerank.apply import Bm25Reranker
from recollect.retrieval.rerank.base import Candidate

KNOWN = datetime(2024, 1, 1, tzinfo=UTC)


def document(number: int, content: str, *, similarity: float | None = 0.5) -> RetrievedContext:
    return RetrievedContext(
        rank=number,
        score=1 / number,
        content=content,
        chunk_id=number,
        document_id=number,
        title="",
        source=f"doc{number}.md",
        section=None,
        page=None,
        start_offset=0,
        end_offset=len(content),
        metadata={},
        similarity=similarity,
    )


def episode(number: int, content: str, session: str = "chat") -> Episode:
    return Episode(
        episode_id=number,
        session=session,
        position=number,
        role="Ada",
        content=content,
        at=KNOWN,
        turn_id=None,
        known_from=KNOWN,
    )


def turn(rank: int, content: str, *, similarity: float | None = 0.5, before: tuple[Episode, ...] = ()) -> Recollection:
    said = fields_of(episode(rank, content))
    return Recollection(**said, rank=rank, score=1 / rank, similarity=similarity, before=before)


class Knowledge:
    """The parts behind a view of what it holds: they give the first of it, and remember how they were asked."""

    config, default_tenant, remotes = RAGConfig(), 1, ()

    def __init__(self, documents=(), turns=(), facts=(), *, missing: bool = False) -> None:
        self.passages, self.said, self.known, self.missing = list(documents), list(turns), list(facts), missing
        self.asked: dict[str, object] = {}
        self.search = self._search
        self.standpoint = Standpoint(assembly=self)

    def memory(self, tenant_id):
        return SimpleNamespace(turns=SimpleNamespace(recall=self._recall), facts=SimpleNamespace(recall=self._facts))

    def _search(self, scope, query, options, target):
        self.asked["documents"] = (options.top_k, options.mode)
        results = tuple(self.passages[: options.top_k])
        return SearchReply(query=query, collection="c", mode=options.mode, results=results, timings_ms={})

    def _recall(self, scope, query, options, *, session, user):
        self.asked["memory"] = (options.top_k, options.mode, session, user)
        if self.missing and session is not None:
            raise NotFoundError("no session")
        return self.said[: options.top_k]

    def _facts(self, scope, query, options, *, session, user):
        if self.known:
            self.asked["facts"] = (options.top_k, options.mode, session, user)
        return self.known[: options.top_k]


def fact(number: int, statement: str, *, of: int, rank: int = 1, similarity: float | None = 0.5) -> RecalledFact:
    """A fact drawn from the turn with the number ``of``."""
    evidence = FactEvidence(
        kind="source",
        episode_id=of,
        session="chat",
        position=of,
        role="Ada",
        at=KNOWN,
        start_offset=0,
        end_offset=len(statement),
        quote=statement,
    )
    return RecalledFact(
        fact_id=number,
        chain_id=number,
        statement=statement,
        subject=None,
        attribute=None,
        value=None,
        session="chat",
        user=None,
        role="Ada",
        at=KNOWN,
        said_at=KNOWN,
        known_from=KNOWN,
        made_by="extractive",
        evidence=(evidence,),
        rank=rank,
        score=1 / rank,
        similarity=similarity,
    )


def sentences(word: str, count: int) -> str:
    return " ".join(f"The {word} is number {number}." for number in range(count))


@pytest.mark.parametrize(
    ("made", "rag", "memory"),
    [
        (RetrievalWeights.balanced(), 0.5, 0.5),
        (RetrievalWeights.rag_focused(), 0.7, 0.3),
        (RetrievalWeights.memory_focused(), 0.4, 0.6),
        (RetrievalWeights(0.51, 0.5), 0.51, 0.5),
    ],
)
def test_weights(made: RetrievalWeights, rag: float, memory: float):
    assert (made.rag, made.memory) == (rag, memory)


@pytest.mark.parametrize(("rag", "memory"), [(0.5, 0.52), (0.5, 0.48), (1.2, -0.2), (math.nan, 0.5), (0, 0)])
def test_weights_that_make_no_sense_are_refused(rag: float, memory: float):
    with pytest.raises(UsageError, match="weight"):
        RetrievalWeights(rag, memory)


@pytest.mark.parametrize("weight", [None, "half", True])
def test_a_weight_that_is_no_number_is_refused_by_name(weight: object):
    with pytest.raises(UsageError, match="rag"):
        RetrievalWeights(weight, 0.5)


def test_both_sides_are_asked_and_named():
    knowledge = Knowledge([document(1, "Leave is 30 days.")], [turn(1, "I took leave in May.")])
    found = HybridRetriever(knowledge, knowledge).retrieve_hybrid("When is leave?", "chat", 2_000)
    assert set(found.sources) == {"doc1.md", "memory:chat"}
    assert found.weights == RetrievalWeights.memory_focused()
    assert "Ada: I took leave in May." in found.text
    assert "Date: 2024-01-01" in found.text
    assert found.token_count == estimate_tokens(found.text)
    # None: documents are searched as configured.
    assert knowledge.asked == {"documents": (40, None), "memory": (40, "hybrid", "chat", None)}
    assert [passage.score for passage in found.passages] == sorted(
        (passage.score for passage in found.passages), reverse=True
    )


def test_weights_move_the_order():
    knowledge = Knowledge([document(1, "leave rules")], [turn(1, "leave talk")])
    first = {
        weights: HybridRetriever(knowledge, knowledge, weights=weights).retrieve_hybrid("holidays").passages[0].kind
        for weights in (RetrievalWeights.rag_focused(), RetrievalWeights.memory_focused())
    }
    assert first[RetrievalWeights.rag_focused()] == "document"
    assert first[RetrievalWeights.memory_focused()] == "memory"


def test_words_count_alike_on_both_sides():
    knowledge = Knowledge(
        [document(1, "Nothing of the kind."), document(2, "The castle is in Alfama.")], [turn(1, "Hello there.")]
    )
    found = HybridRetriever(knowledge, knowledge).retrieve_hybrid("Where is the castle in Alfama?")
    assert found.passages[0].source == "doc2.md"


def test_a_turn_is_shown_once_and_the_question_not_at_all():
    first = episode(5, "We met in Lisbon.")
    hits = [
        turn(1, "It was sunny.", before=(first,)),
        Recollection(**fields_of(first), rank=2, score=0.5, similarity=0.4),
        Recollection(**fields_of(episode(9, "where did we meet? ")), rank=3, score=0.4, similarity=1.0),
    ]
    found = HybridRetriever(None, Knowledge((), hits)).retrieve_hybrid("Where did we meet?")
    assert found.text.count("We met in Lisbon.") == 1
    assert len(found.passages) == 1


def test_what_was_said_twice_in_the_same_words_leaves_room_for_documents():
    hits = [turn(number, "Probation lasts six months.") for number in (1, 2)]
    documents = [document(1, "During probation the notice is two weeks.")]
    found = HybridRetriever(Knowledge(documents), Knowledge((), hits)).retrieve_hybrid("probation")
    assert [one.kind for one in found.passages].count("memory") == 1
    assert found.text.count("Probation lasts six months.") == 1
    assert "the notice is two weeks" in found.text


def test_each_side_keeps_its_share_when_both_have_plenty():
    long = [document(number, sentences("leave", 10)) for number in range(1, 60)]
    turns = [turn(number, f"{number}: {sentences('holiday', 10)}") for number in range(1, 60)]
    found = HybridRetriever(Knowledge(long), Knowledge((), turns)).retrieve_hybrid("leave holiday", None, 3_000)
    spent = {"document": 0, "memory": 0}
    for passage in found.passages:
        spent[passage.kind] += estimate_tokens(passage.content)
    assert 0.3 < spent["document"] / (spent["document"] + spent["memory"]) < 0.5


@pytest.mark.parametrize("kind", ["document", "memory"])
def test_what_one_side_leaves_is_the_others(kind: str):
    long = [document(number, sentences("leave", 10)) for number in range(1, 60)]
    turns = [turn(number, f"{number}: {sentences('holiday', 10)}") for number in range(1, 60)]
    alone = Knowledge(long) if kind == "document" else Knowledge((), turns)
    found = HybridRetriever(alone, alone).retrieve_hybrid("leave", "chat", 3_000)
    assert {passage.kind for passage in found.passages} == {kind}
    assert found.token_count > 2_500


def test_a_conversation_that_has_not_begun_is_empty():
    knowledge = Knowledge([document(1, "Leave is 30 days.")], [turn(1, "Leave in May.")], missing=True)
    found = HybridRetriever(knowledge, knowledge).retrieve_hybrid("leave", "new")
    assert found.sources == ("doc1.md",)
    found = HybridRetriever(knowledge, knowledge, user="ada").retrieve_hybrid("leave", "new")
    assert set(found.sources) == {"doc1.md", "memory:chat"}


def test_one_passage_that_is_too_long_is_shortened_to_sentences():
    knowledge = Knowledge([document(1, sentences("leave", 200))])
    found = HybridRetriever(knowledge, None).retrieve_hybrid("leave", None, 60)
    assert 0 < found.token_count <= 60
    assert found.passages[0].content.endswith(".")


texts = st.text(min_size=0, max_size=400) | st.integers(1, 60).map(lambda count: sentences("leave", count))
similarities = st.none() | st.floats(-1, 1)


@given(
    st.lists(st.tuples(texts, similarities), max_size=8),
    st.lists(st.tuples(texts.filter(str.strip), similarities), max_size=8),
    st.lists(st.tuples(texts.filter(str.strip), similarities, st.integers(1, 10)), max_size=8),
    st.integers(1, 500),
    st.sampled_from([estimate_tokens, len, lambda text: len(text.split()) + 3]),
    st.sampled_from(["rag", "documents", "hybrid", "episodic", "semantic", "bm25"]),
    st.floats(0, 1),
)
def test_the_budget_is_never_exceeded(documents, turns, facts, budget, count_tokens, strategy, share):
    passages = [document(n, text, similarity=similarity) for n, (text, similarity) in enumerate(documents, 1)]
    found = [turn(n, text, similarity=similarity) for n, (text, similarity) in enumerate(turns, 1)]
    known = [fact(n, text, of=of, rank=n, similarity=one) for n, (text, one, of) in enumerate(facts, 1)]
    assembler = ContextAssembler(
        Knowledge(passages),
        Knowledge((), found, known),
        weights=RetrievalWeights(share, 1 - share),
        count_tokens=count_tokens,
    )
    assembly = assembler.assemble("What is the leave?", strategy, budget)
    assert count_tokens(assembly.text) <= budget or not assembly.text
    assert assembly.token_count <= budget
    kinds = {passage.kind for passage in assembly.passages}
    assert kinds <= {"documents": {"document"}, "episodic": {"memory"}}.get(strategy, {"document", "memory", "fact"})
    assert len({passage.passage.chunk_id for passage in assembly.passages}) == len(assembly.passages)


def test_strategies_search_as_they_say():
    knowledge = Knowledge([document(1, "Leave is 30 days.")], [turn(1, "Leave in May.")])
    assembler = ContextAssembler(knowledge, knowledge, user="ada")
    for strategy, mode in (("hybrid", None), ("semantic", "dense"), ("bm25", "lexical")):
        knowledge.asked.clear()
        assert assembler.assemble("leave", strategy).used == strategy
        assert knowledge.asked == {"documents": (40, mode), "memory": (40, mode or "hybrid", None, "ada")}
    knowledge.asked.clear()
    assert assembler.assemble("leave", "documents").sources == ("doc1.md",)
    assert set(knowledge.asked) == {"documents"}
    knowledge.asked.clear()
    assert assembler.assemble("leave", "rag").sources == ("doc1.md", "memory:chat")
    assert set(knowledge.asked) == {"documents", "memory"}
    knowledge.asked.clear()
    assert assembler.assemble("leave", "episodic", session_id="chat").sources == ("memory:chat",)
    assert knowledge.asked == {"memory": (40, "hybrid", "chat", "ada")}


def test_without_documents_rag_is_memory():
    assembly = ContextAssembler(None, Knowledge((), [turn(1, "Leave in May.")])).assemble("leave", "rag")
    assert (assembly.strategy, assembly.used, assembly.sources) == ("rag", "episodic", ("memory:chat",))
    assert ContextAssembler().assemble("leave").text == ""


@pytest.mark.parametrize(
    ("query", "strategy", "budget", "message"),
    [("leave", "magic", 100, "strategy"), (" ", "rag", 100, "empty"), ("leave", "rag", 0, "token_budget")],
)
def test_mistakes_are_explained(query: str, strategy: str, budget: int, message: str):
    with pytest.raises(UsageError, match=message):
        ContextAssembler(Knowledge(), Knowledge()).assemble(query, strategy, budget)


def test_facts_are_a_third_source_that_cites_its_turns():
    knowledge = Knowledge(
        [document(1, "Rent is due monthly.")], [turn(1, "Rain again.")], [fact(7, "Rent is 400.", of=9)]
    )
    found = HybridRetriever(knowledge, knowledge).retrieve_hybrid("rent", "chat", 2_000)
    assert set(found.sources) == {"doc1.md", "memory:chat", "fact:7"}
    assert "Ada: Rent is 400. (chat, turn 9)" in found.text
    shown = next(passage for passage in found.passages if passage.kind == "fact")
    assert shown.passage.metadata["evidence"] == [
        {"session": "chat", "position": 9, "start_offset": 0, "end_offset": 12, "quote": "Rent is 400."}
    ]
    without = HybridRetriever(knowledge, knowledge, facts=False).retrieve_hybrid("rent", "chat", 2_000)
    assert "fact:7" not in without.sources


def test_a_turn_and_the_fact_drawn_from_it_are_one():
    """What ranks better is shown; where semantic memory is asked for, the fact."""
    said = turn(1, "Rent is 400. It is due monthly, by the way, and rent includes water.", similarity=0.9)
    knowledge = Knowledge((), [said], [fact(7, "Rent is 400.", of=1, similarity=0.1)])
    assembler = ContextAssembler(knowledge, knowledge)
    assert assembler.assemble("rent due monthly water", "hybrid").sources == ("memory:chat",)
    assert assembler.assemble("rent due monthly water", "semantic").sources == ("fact:7",)
    assert assembler.assemble("rent due monthly water", "episodic").sources == ("memory:chat",)
    knowledge.known = [fact(7, "Rent is 400.", of=1, similarity=0.99)]
    assert assembler.assemble("rent is 400", "hybrid").sources == ("fact:7",)


def test_semantic_memory_is_facts_before_turns():
    turns = [turn(number, sentences("rent", 8), similarity=0.9) for number in range(1, 20)]
    facts = [fact(n, f"Rent number {n} is due.", of=100 + n, rank=n, similarity=0.2) for n in range(1, 5)]
    knowledge = Knowledge((), turns, facts)
    shown = ContextAssembler(None, knowledge).assemble("rent", "semantic", 400).sources
    assert {f"fact:{n}" for n in range(1, 4)} <= set(shown)
    assert knowledge.asked["facts"][1] == "dense"


@given(st.text(max_size=60), st.lists(st.text(max_size=200), min_size=1, max_size=6))
def test_words_are_weighed_as_the_reranker_weighs_them(query: str, passages: list[str]):
    candidates = [Candidate(chunk_id=number, text=text, score=0.0) for number, text in enumerate(passages)]
    assert _said(query, passages, "en") == pytest.approx(Bm25Reranker("en").rerank(query, candidates))
