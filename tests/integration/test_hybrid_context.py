"""Documents and memory of a real store in one context."""

from __future__ import annotations

from recollect import ContextAssembler, Document, HybridRetriever, RAGPipeline, RetrievalWeights, Turn


def test_one_context_of_documents_and_memory(pipeline: RAGPipeline):
    pipeline.ingest(Document(content="Annual leave is 30 days. Ask your manager for it.", source="leave.md"))
    pipeline.remember("chat", [Turn(role="Ada", content="I want to take annual leave in May.")], user="ada")
    pipeline.remember("old", [Turn(role="Ada", content="My annual leave was in June last year.")], user="ada")

    found = HybridRetriever(pipeline, pipeline).retrieve_hybrid("annual leave", "chat", 500)
    assert set(found.sources) == {"leave.md", "memory:chat"}
    assert found.token_count <= 500

    assembler = pipeline.context_assembler(user="ada", weights=RetrievalWeights.balanced())
    assert set(assembler.assemble("annual leave", "hybrid", 500, "chat").sources) == {
        "leave.md",
        "memory:chat",
        "memory:old",
    }
    for strategy, sources in (
        ("rag", {"leave.md"}),
        ("episodic", {"memory:chat", "memory:old"}),
        ("semantic", {"leave.md", "memory:chat", "memory:old"}),
        ("bm25", {"leave.md", "memory:chat", "memory:old"}),
    ):
        assembly = assembler.assemble("annual leave", strategy, 500, "chat")
        assert set(assembly.sources) == sources
        assert assembly.token_count <= 500
    assert assembler.assemble("annual leave", "episodic", session_id="not begun").sources != ()


def test_without_documents_rag_is_memory(pipeline: RAGPipeline):
    pipeline.remember("chat", "My sister lives in Lisbon.")
    assembly = ContextAssembler(None, pipeline).assemble("Where does my sister live?", "rag", 100, "chat")
    assert (assembly.used, assembly.sources) == ("episodic", ("memory:chat",))


def test_an_empty_store_gives_an_empty_context(pipeline: RAGPipeline):
    found = pipeline.hybrid_retriever().retrieve_hybrid("anything", "chat")
    assert (found.text, found.passages, found.token_count) == ("", (), 0)
