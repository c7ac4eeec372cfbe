"""Retrievers for other frameworks, in the frameworks themselves."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from recollect import Document, Principal, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import UsageError

ROOT = Path(__file__).resolve().parents[2]
QUESTION = "How long is annual leave?"
CONTENT = "# Leave\n\n## Annual leave\n\nAnnual leave is 30 days."

# Before any of them is imported: nothing is reported to anybody.
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
os.environ.pop("LANGSMITH_TRACING", None)


@pytest.fixture(scope="module")
def rag(clone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RAGPipeline]:
    with clone() as dsn:
        storage = {"data_dir": tmp_path_factory.mktemp("data") / "unused", "dsn": dsn}
        config = RAGConfig.load(storage=storage, embedding={"provider": "hashing"})
        with RAGPipeline(config, embedder=HashingEmbedder()) as opened:
            opened.ingest(
                Document(
                    content=CONTENT,
                    source="leave.md",
                    title="Leave",
                    department="hr",
                    tags=("rules",),
                    metadata={"year": 2026, "authors": ["ann", "bob"], "place": {"city": "Bremen"}},
                    event_time=datetime(2026, 1, 1, tzinfo=UTC),
                )
            )
            opened.ingest(Document(content="Annual leave was 28 days.", source="old.md", metadata={"year": 2024}))
            opened.ingest(
                Document(content="The board's annual leave is secret.", source="board.md", permissions=("role:board",))
            )
            opened.tenants.create("acme")
            opened.view(tenant="acme").ingest(Document(content="Annual leave at Acme is 20 days.", source="acme.md"))
            yield opened


def views(rag: RAGPipeline) -> Iterator[tuple[Any, set[str]]]:
    """Views, and what is found through each."""
    yield rag, {"leave.md", "old.md", "board.md"}
    yield rag.view(principal=Principal(user_id="kim")), {"leave.md", "old.md"}
    yield rag.view(principal=Principal(user_id="kim", roles=("board",))), {"leave.md", "old.md", "board.md"}
    yield rag.view(tenant="acme"), {"acme.md"}
    yield rag.view(as_of="1d"), set()


def require_place(told: dict[str, Any], text: str) -> None:
    json.dumps(told)
    assert CONTENT[told["start_offset"] : told["end_offset"]] == text
    assert (told["source"], told["title"], told["section"]) == ("leave.md", "Leave", "Leave > Annual leave")
    assert (told["department"], told["tags"], told["year"]) == ("hr", ["rules"], 2026)
    assert told["place"] == {"city": "Bremen"} and told["event_time"].startswith("2026-01-01")
    assert 0 <= told["relevance"] <= 1 and {"document_id", "chunk_id", "similarity"} <= told.keys()


def test_langchain(rag: RAGPipeline):
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnablePassthrough

    from recollect.integrations.langchain import RecollectRetriever

    for view, sources in views(rag):
        retriever = RecollectRetriever(view=view)
        assert isinstance(retriever, BaseRetriever)
        found = retriever.invoke(QUESTION)
        assert {one.metadata["source"] for one in found} == sources
        assert asyncio.run(retriever.ainvoke(QUESTION)) == found
    retriever = RecollectRetriever(view=rag, top_k=2)
    found = retriever.invoke(QUESTION)
    expected = rag.retrieve(QUESTION, RetrievalOptions(top_k=2))
    assert [(one.id, one.metadata["score"]) for one in found] == [(str(one.chunk_id), one.score) for one in expected]
    place = next(one for one in retriever.invoke(QUESTION, filters={"source": "leave.md"}))
    require_place(place.metadata, place.page_content)
    assert len(retriever.invoke(QUESTION, top_k=1)) == 1
    old = RecollectRetriever(view=rag, filters={"metadata.year": 2024}, options=RetrievalOptions(mode="lexical"))
    assert [one.metadata["source"] for one in old.invoke(QUESTION)] == ["old.md"]
    assert old.invoke(QUESTION, filters={"department": "hr"}) == []
    both = asyncio.run(retriever.abatch([QUESTION, "board"], top_k=1))
    assert [len(one) for one in both] == [1, 1]
    chain = (
        {"context": retriever | (lambda some: some[0].page_content), "question": RunnablePassthrough()}
        | ChatPromptTemplate.from_template("{context} {question}")
        | FakeListChatModel(responses=["30 days."])
        | StrOutputParser()
    )
    assert chain.invoke(QUESTION) == "30 days." == asyncio.run(chain.ainvoke(QUESTION))
    with pytest.raises(UsageError, match="top_k"):
        retriever.invoke(QUESTION, top_k=0)
    with pytest.raises(ValueError, match="View"):
        RecollectRetriever(view="rag")


def test_llama_index(rag: RAGPipeline, monkeypatch: pytest.MonkeyPatch):
    from llama_index.core import Settings
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.schema import MetadataMode, NodeRelationship
    from llama_index.core.vector_stores import FilterCondition, MetadataFilter, MetadataFilters

    from recollect.integrations.llama_index import RecollectRetriever

    for view, sources in views(rag):
        retriever = RecollectRetriever(view)
        found = retriever.retrieve(QUESTION)
        assert {one.metadata["source"] for one in found} == sources
        again = asyncio.run(retriever.aretrieve(QUESTION))
        assert [(one.node_id, one.score) for one in again] == [(one.node_id, one.score) for one in found]

    def filtered(*filters: Any, condition: str = "and") -> list[str]:
        given = MetadataFilters(filters=list(filters), condition=FilterCondition(condition))
        return sorted(one.metadata["source"] for one in RecollectRetriever(rag, filters=given).retrieve(QUESTION))

    def one(key: str, value: Any, operator: str = "==") -> MetadataFilter:
        return MetadataFilter(key=key, value=value, operator=operator)

    assert filtered(one("year", 2026)) == ["leave.md"]
    assert filtered(one("year", 2025, "<")) == ["old.md"]
    assert filtered(one("year", [2024, 2026], "in")) == ["leave.md", "old.md"]
    assert filtered(one("department", "hr"), one("year", 2024), condition="or") == ["leave.md", "old.md"]
    assert filtered(one("tags", "rules", "contains"), one("year", 2024)) == []
    assert filtered(one("authors", ["bob", "eve"], "any")) == ["leave.md"]
    assert filtered(one("authors", ["bob", "eve"], "all")) == []
    assert filtered(one("year", None, "is_empty")) == ["board.md"]
    assert filtered(MetadataFilters(filters=[one("year", 2024)], condition="not")) == ["board.md", "leave.md"]
    for wrong in ([one("title", "x", "text_match")], []):
        with pytest.raises(UsageError, match="filter"):
            filtered(*wrong)

    (found,) = RecollectRetriever(rag, filters={"source": "leave.md"}, similarity_top_k=1).retrieve(QUESTION)
    require_place(found.metadata, found.node.text)
    (expected,) = rag.retrieve(QUESTION, RetrievalOptions(top_k=1, source=("leave.md",)))
    assert (found.node_id, found.score) == (str(expected.chunk_id), expected.score)
    assert (found.node.start_char_idx, found.node.end_char_idx) == (expected.start_offset, expected.end_offset)
    assert found.node.relationships[NodeRelationship.SOURCE].node_id == str(expected.document_id)
    shown = found.node.get_content(MetadataMode.LLM)
    assert "source: leave.md" in shown and "chunk_id" not in shown
    monkeypatch.setattr(Settings, "_llm", MockLLM())  # the framework wants one, also where it is not asked
    engine = RetrieverQueryEngine.from_args(RecollectRetriever(rag, similarity_top_k=2), response_mode="no_text")
    assert len(engine.query(QUESTION).source_nodes) == 2


def test_haystack(rag: RAGPipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from haystack import Pipeline
    from haystack.components.builders import PromptBuilder

    from recollect.integrations.haystack import RecollectRetriever

    for view, sources in views(rag):
        found = RecollectRetriever(view).run(query=QUESTION)["documents"]
        assert {one.meta["source"] for one in found} == sources
        assert asyncio.run(RecollectRetriever(view).run_async(query=QUESTION))["documents"] == found

    def filtered(filters: dict[str, Any]) -> list[str]:
        return sorted(one.meta["source"] for one in RecollectRetriever(rag).run(QUESTION, filters)["documents"])

    def one(field: str, operator: str, value: Any) -> dict[str, Any]:
        return {"field": field, "operator": operator, "value": value}

    assert filtered(one("meta.year", "==", 2026)) == ["leave.md"]
    assert filtered(one("meta.year", ">=", 2024)) == ["leave.md", "old.md"]
    assert filtered(one("meta.year", "not in", [2024])) == ["board.md", "leave.md"]
    assert filtered(one("meta.year", "==", None)) == ["board.md"]
    both = [one("meta.department", "==", "hr"), one("meta.year", "==", 2024)]
    assert [filtered({"operator": how, "conditions": both}) for how in ("AND", "OR", "NOT")] == [
        [], ["leave.md", "old.md"], ["board.md", "leave.md", "old.md"],
    ]  # fmt: skip
    assert filtered({"metadata.place.city": "Bremen"}) == ["leave.md"]
    for wrong in (one("meta.year", "~", 1), {"operator": "XOR", "conditions": []}, {"operator": "=="}):
        with pytest.raises(UsageError):
            filtered(wrong)
        with pytest.raises(UsageError):
            RecollectRetriever(rag, filters=wrong)

    (found,) = RecollectRetriever(rag, top_k=1, filters={"source": "leave.md"}).run(QUESTION)["documents"]
    require_place(found.meta, found.content)
    (expected,) = rag.retrieve(QUESTION, RetrievalOptions(top_k=1, source=("leave.md",)))
    assert (found.id, found.score) == (str(expected.chunk_id), expected.score)
    assert len(RecollectRetriever(rag, top_k=1).run(QUESTION, top_k=2)["documents"]) == 2

    # Written down and read again, in a pipeline of Haystack's, which opens one of its own.
    dsn = rag.config.storage.dsn.get_secret_value()
    monkeypatch.setenv("RECOLLECT_DSN", dsn)
    settings = tmp_path / "recollect.toml"
    settings.write_text('[rag.embedding]\nprovider = "hashing"\n', encoding="utf-8")
    retriever = RecollectRetriever(
        config_file=str(settings), principal=Principal(user_id="kim", roles=("clerk",)), collections=["default"],
        as_of="2999-01-01", top_k=2, filters=one("meta.year", ">", 2000),
    )  # fmt: skip
    made = Pipeline()
    made.add_component("retriever", retriever)
    made.add_component("prompt", PromptBuilder("{% for one in documents %}{{ one.meta.source }} {% endfor %}"))
    made.connect("retriever.documents", "prompt.documents")
    written = made.dumps()
    assert dsn not in written and "kim" in written
    again = Pipeline.loads(written, allowed_modules=["recollect.*"])
    assert again.to_dict() == made.to_dict()
    own = again.get_component("retriever")
    own.warm_up()
    for one_run in (again.run, lambda data: asyncio.run(again.run_async(data))):
        done = one_run({"retriever": {"query": QUESTION}})
        assert sorted(done["prompt"]["prompt"].split()) == ["leave.md", "old.md"]
    own.close()
    for unwritable in (RecollectRetriever(rag), RecollectRetriever(options=RetrievalOptions())):
        with pytest.raises(UsageError, match="written down"):
            unwritable.to_dict()
    with pytest.raises(UsageError, match="not both"):
        RecollectRetriever(rag, tenant="acme")


@pytest.mark.parametrize("page", ["langchain", "llama-index", "haystack"])
def test_the_python_of_a_page_runs(dsn: str, page: str, monkeypatch: pytest.MonkeyPatch):
    # In this process, which has the framework already: importing one takes seconds.
    monkeypatch.setenv("RECOLLECT_DSN", dsn)
    text = (ROOT / f"docs/how-to/{page}.md").read_text(encoding="utf-8")
    codes = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert codes
    for code in codes:
        exec(compile(code, page, "exec"), {"__name__": page})  # noqa: S102 - it is ours


def test_a_framework_that_is_missing_is_named_with_its_extra_and_none_is_imported_otherwise():
    code = """
import importlib, sys
import recollect, recollect.integrations
assert not {"langchain_core", "llama_index", "haystack"} & sys.modules.keys()
for module, framework, extra in (
    ("langchain", "langchain_core", "langchain"),
    ("llama_index", "llama_index", "llama-index"),
    ("haystack", "haystack", "haystack"),
):
    sys.modules[framework] = None
    try:
        importlib.import_module(f"recollect.integrations.{module}")
    except ImportError as error:
        assert f"pip install '.[{extra}]'" in str(error), error
    else:
        raise AssertionError(module)
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
