"""Questions about financial measures find statements that name none of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recollect import Document, Principal, RAGPipeline, RetrievalOptions

BALANCE = Document(
    source="balance.txt",
    content="Consolidated Balance Sheets\n\n| At December 31 | 2018 |\n|---|---|\n| Total current assets | 13,709 |\n"
    "| Inventories | 4,366 |\n| Total current liabilities | 7,244 |\n| Total equity | 9,848 |\n",
)
FLOWS = Document(
    source="flows.txt",
    content="Consolidated Statements of Cash Flows\n\n| Years ended December 31 | 2018 |\n|---|---|\n"
    "| Purchases of property, plant and equipment | (1,577) |\n",
)
OTHER = Document(source="other.txt", content="The ratio of quick answers rose. Nobody expected it in that year.")
HANDBOOK = Document(source="handbook.txt", content="The board approves capital expenditure above 5,000.")
WORDS = RetrievalOptions(mode="lexical", explain=True)


@pytest.fixture
def rag(pipeline: RAGPipeline) -> RAGPipeline:
    pipeline.ingest([BALANCE, FLOWS, OTHER])
    return pipeline


def test_measures_and_fiscal_years_find_the_statement(rag: RAGPipeline):
    reply = rag.search("What is the quick ratio?", WORDS)
    assert "balance.txt" in {one.source for one in reply.results}
    assert reply.explain.enhancements[-1].startswith("accounting: applied (quick ratio → cash and cash equivalents")
    assert rag.search("capex", WORDS).results[0].source == "flows.txt"
    assert {one.source for one in rag.search("FY18", WORDS).results} == {"balance.txt", "flows.txt"}


@pytest.mark.parametrize("mode", ["hybrid", "dense"])
def test_the_vector_of_the_question_moves_towards_the_lines(rag: RAGPipeline, mode):
    def similarity(enhance: bool) -> float:
        options = RetrievalOptions(mode=mode, enhance=enhance, min_relevance=0.0)
        return {one.source: one.similarity for one in rag.search("What is the capex?", options).results}["flows.txt"]

    assert similarity(True) > similarity(False)


def test_they_can_be_left_out(rag: RAGPipeline):
    assert rag.search("capex", RetrievalOptions(mode="lexical", enhance=False)).results == ()


def test_a_collection_without_statements_is_searched_as_asked(pipeline: RAGPipeline):
    pipeline.ingest([HANDBOOK, Document(source="b.txt", content="Purchases of property need two signatures.")])
    reply = pipeline.search("Who approves capital expenditure?", WORDS)
    assert [one.source for one in reply.results] == ["handbook.txt"]
    assert not any("accounting" in note for note in reply.explain.enhancements)


def test_statements_that_a_caller_may_not_read_tell_them_nothing(pipeline: RAGPipeline):
    pipeline.ingest([replace(one, permissions=("department:finance",)) for one in (BALANCE, FLOWS)])
    pipeline.ingest(HANDBOOK)
    told = {
        department: pipeline.view(principal=Principal(user_id="kim", department=department)).search(
            "capital expenditure", WORDS
        )
        for department in ("finance", "hr")
    }
    assert "flows.txt" in {one.source for one in told["finance"].results}
    assert [one.source for one in told["hr"].results] == ["handbook.txt"]
    assert any("accounting" in note for note in told["finance"].explain.enhancements)
    assert not any("accounting" in note for note in told["hr"].explain.enhancements)
