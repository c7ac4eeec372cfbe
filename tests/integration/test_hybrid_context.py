"""Documents and memory of a real store in one context."""

from __future__ import annotations

from recollect import ContextAssembler, Document, HybridRetriever, RAGPipeline, RecallOptions, Turn
from recollect.context import RetrievalWeights


def test_one_context_of_documents_and_memory(pipeline: RAGPipeline):
    pipeline.ingest(Document(content="Annual leave is 30 days. Ask your manager for it.", source="leave.md"))
    pipeline.view(session="chat", user="ada").remember(
        [Turn(role="Ada", content="I want to take annual leave in May.")]
    )
    pipeline.view(session="old", user="ada").remember(
        [Turn(role="Ada", content="My annual leave was in June last year.")]
    )

    found = HybridRetriever(pipeline, pipeline).retrieve_hybrid("annual leave", "chat", 500)
    assert set(found.sources) == {"leave.md", "memory:chat"}
    assert found.token_count <= 500

    assembler = pipeline.view(user="ada").memory.assembler(weights=RetrievalWeights.balanced())
    assert set(assembler.assemble("annual leave", "hybrid", 500, "chat").sources) == {
        "leave.md",
        "memory:chat",
        "memory:old",
    }
    for strategy, sources in (
        ("rag", {"leave.md", "memory:chat", "memory:old"}),
        ("documents", {"leave.md"}),
        ("episodic", {"memory:chat", "memory:old"}),
        ("semantic", {"leave.md", "memory:chat", "memory:old"}),
        ("bm25", {"leave.md", "memory:chat", "memory:old"}),
    ):
        assembly = assembler.assemble("annual leave", strategy, 500, "chat")
        assert set(assembly.sources) == sources
        assert assembly.token_count <= 500
    assert assembler.assemble("annual leave", "episodic", session_id="not begun").sources != ()


def test_without_documents_rag_is_memory(pipeline: RAGPipeline):
    pipeline.view(session="chat").remember("My sister lives in Lisbon.")
    assembly = ContextAssembler(None, pipeline).assemble("Where does my sister live?", "rag", 100, "chat")
    assert (assembly.used, assembly.sources) == ("episodic", ("memory:chat",))


def test_rag_is_documents_and_memory_in_one_budget_and_memory_alone_where_there_are_none(pipeline: RAGPipeline):
    pipeline.view(session="chat").remember("My locker number is 17.")
    assembler = pipeline.memory.assembler()
    alone = assembler.assemble("Which locker?", "rag", 200, "chat")
    assert (alone.strategy, alone.used, alone.sources) == ("rag", "episodic", ("memory:chat",))
    assert assembler.assemble("Which locker?", "documents", 200, "chat").sources == ()
    pipeline.ingest(Document(content="The locker hall opens at six.", source="lockers.md"))
    both = assembler.assemble("Which locker?", "rag", 200, "chat")
    assert (both.used, set(both.sources)) == ("rag", {"memory:chat", "lockers.md"})
    assert both.weights == RetrievalWeights.rag_focused()
    assert both.token_count <= 200
    chosen = pipeline.memory.assembler(weights=RetrievalWeights.balanced()).assemble("Which locker?", "rag", 200)
    assert chosen.weights == RetrievalWeights.balanced()


def test_an_empty_store_gives_an_empty_context(pipeline: RAGPipeline):
    found = pipeline.memory.retriever().retrieve_hybrid("anything", "chat")
    assert (found.text, found.passages, found.token_count) == ("", (), 0)


def test_facts_of_conversations_are_shown_beside_them(pipeline: RAGPipeline):
    pipeline.ingest(Document(content="The locker hall opens at six.", source="lockers.md"))
    pipeline.view(session="old", user="ada").remember(
        [Turn(role="Ada", content="My locker number is 17. So much snow today!")]
    )
    pipeline.view(session="old", user="ada").remember([Turn(role="Ben", content="Good to know.")])
    pipeline.recall("locker number", RecallOptions(top_k=1))
    pipeline.facts.consolidate(min_retrievals=1)
    assembler = pipeline.view(user="ada").memory.assembler()
    semantic = assembler.assemble("Which locker number is it?", "semantic", 500, "new chat")
    assert "fact:1" in semantic.sources
    assert "Ada: My locker number is 17. (old, turn 1)" in semantic.text
    assert semantic.text.count("My locker number is 17.") == 1
    for strategy in ("hybrid", "bm25"):
        assert "fact:1" in assembler.assemble("locker number 17", strategy, 500).sources
    assert "fact:1" not in assembler.assemble("locker number 17", "episodic", 500).sources
    before = pipeline.facts.get(1).evidence[0].at or pipeline.memory.turns("old")[0].known_from
    assert "fact:1" not in assembler.assemble("locker number 17", "semantic", 500, as_of=before).sources
