"""Contexts for prompts, and searches of the past, through the pipeline."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.answer.prompt import CLOSING, OPENING, SEPARATOR
from recollect.context import estimate_tokens
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import NotFoundError, UsageError
from recollect.llm.scripted import ScriptedChatModel

LEAVE = "Every employee has thirty days of leave. Leave expires in June. Ask the desk for a form. It is green."


@pytest.fixture
def office(pipeline):
    for number in range(6):
        document = Document(
            content=f"Rule {number}. {LEAVE}", source=f"hr/{number}.md", event_time=datetime(2026, 1, 31, tzinfo=UTC)
        )
        pipeline.ingest(document)
    return pipeline


def pieces(context):
    return [block.text for block in context.blocks]


def test_a_context_is_numbered_and_says_where_it_comes_from(office):
    context = office.context("leave", RetrievalOptions(top_k=2, collapse_duplicates=False))
    assert len(context.blocks) == 2
    assert context.text == "\n\n".join(pieces(context))
    for number, block in enumerate(context.blocks, start=1):
        assert block.text.startswith(f"[Source {number}: hr/")
        assert "Date: 2026-01-31]" in block.text
        document = office.documents.get(block.passage.document_id)
        assert document.content[block.passage.start_offset : block.passage.end_offset] == block.passage.content


def test_the_budget_given_is_kept(office):
    for budget in [1, 20, 40, 75, 150, 10_000]:
        options = RetrievalOptions(top_k=6, collapse_duplicates=False)
        by_tokens = office.context("leave", options, token_budget=budget)
        by_length = office.context("leave", options, max_context_length=budget)
        counted = office.context("leave", options, token_budget=budget, count_tokens=lambda text: len(text.split()))
        assert estimate_tokens(by_tokens.text) <= budget
        assert len(by_length.text) <= budget
        assert len(counted.text.split()) <= budget
        if budget == 10_000:
            assert len(by_tokens.blocks) == len(by_length.blocks) == len(counted.blocks) == 6
        if budget == 40:
            assert by_tokens.omitted == 6 - len(by_tokens.blocks) > 0
            assert by_tokens.text.endswith(".")


def test_the_configured_budget_holds_where_none_is_given(office):
    limits = {"token_budget": 60, "max_context_length": 500}
    config = RAGConfig.load(
        storage={"data_dir": office.config.storage.data_dir, "dsn": office.config.storage.dsn},
        embedding={"provider": "hashing"},
        context=limits,
    )
    prompts = ScriptedChatModel("Thirty days [1].")
    with RAGPipeline(config, embedder=HashingEmbedder(), chat_model=prompts) as rag:
        options = RetrievalOptions(top_k=6, collapse_duplicates=False)
        context = rag.context("leave", options)
        assert 0 < estimate_tokens(context.text) <= 60
        rag.ask("How much leave?", options)
        asked = prompts.calls[0][1].content
        shown = asked.removeprefix(f"{OPENING}\n\n").partition(f"\n\n{CLOSING}")[0]
        # Of a prompt the lines between two blocks count too.
        assert 0 < estimate_tokens(shown) <= 60
        first = rag.context("How much leave?", options).blocks[0].text
        assert shown.startswith(f"{first}{SEPARATOR}[Source 2")
        assert "[Source 3" not in asked


def test_a_language_model_counts_for_itself_where_it_can(office):
    class Counting(ScriptedChatModel):
        def count_tokens(self, text):
            return 10 * len(text)

    with RAGPipeline(office.config, embedder=HashingEmbedder(), chat_model=Counting("")) as rag:
        context = rag.context("leave", token_budget=900)
        assert context.token_count == 10 * len(context.text) > 0


def test_nothing_relevant_is_an_empty_context(office, pipeline):
    strict = RetrievalOptions(similarity_threshold=0.999)
    assert office.context("zebra crossing", strict) == office.context("zebra", RetrievalOptions(department=("none",)))
    assert office.context("zebra crossing", strict).text == ""
    assert office.context("zebra crossing", strict).blocks == ()
    assert office.context("zebra crossing", strict).token_count == 0


def test_an_empty_store_has_an_empty_context_and_another_collection_is_missing(pipeline):
    assert pipeline.context("anything").text == ""
    with pytest.raises(NotFoundError):
        pipeline.view(collections="nowhere").context("anything")


def test_a_limit_that_is_none_is_refused(office):
    for limits in [{"token_budget": 0}, {"max_context_length": -1}]:
        with pytest.raises(UsageError, match="must be at least 1"):
            office.context("leave", **limits)


def test_the_past_is_searched_as_it_was_known(pipeline):
    pipeline.ingest(Document(content="Leave is thirty days.", source="leave.md"))
    then = datetime.now(UTC)
    pipeline.ingest(Document(content="Leave is twenty days.", source="leave.md"))
    assert "twenty" in pipeline.context("leave").text
    assert "thirty" in pipeline.view(as_of=then).context("leave").text
    assert "thirty" in pipeline.view(as_of=then).search("leave").results[0].content
    # A time without a zone is UTC.
    assert "thirty" in pipeline.view(as_of=then.replace(tzinfo=None)).retrieve("leave")[0].content
    model = ScriptedChatModel("Thirty days [1].")
    with RAGPipeline(pipeline.config, embedder=HashingEmbedder(), chat_model=model) as rag:
        rag.view(as_of=then).ask("How long is leave?")
    assert "thirty" in model.calls[0][1].content
    assert "twenty" not in model.calls[0][1].content
    assert pipeline.view(as_of=datetime(2000, 1, 1, tzinfo=UTC)).search("leave").results == ()
