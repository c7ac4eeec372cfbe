"""Every reply is what its shape says: all keys that are required, none that is not named, and values of their types."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import types
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError
from pydantic import TypeAdapter

import recollect.replies
from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions, Turn, View
from recollect.embedding.hashing import HashingEmbedder
from recollect.ingest.report import FileError, IngestReport
from recollect.model import Citation
from recollect.model.answer import Answer, UnsupportedSentence
from recollect.model.job import JOB_STATUSES, JobStage
from recollect.model.original import Original
from recollect.model.scrub import ScrubReport
from recollect.model.usage import TokenUsage
from recollect.replies import answers, collections, contexts, documents, erasure, history, ingest, jobs, sources, status
from recollect.replies.passages import passage_notes_json, passage_place_json
from recollect.replies.search import search_reply_json
from recollect.replies.why_not import why_not_json

EXPLAINED = RetrievalOptions(explain=True, outline=True, department=("hr",), rerank="bm25")
QUERY = "how many days of annual leave"

_formats = FormatChecker(formats=())


@_formats.checks("date-time", raises=ValueError)
def _is_moment(value: object) -> bool:
    return not isinstance(value, str) or datetime.fromisoformat(value).tzinfo is not None


@cache
def validator_of(shape: Any) -> Draft202012Validator:
    """Of the schema that the shape has in an OpenAPI document, but with no key that it does not name."""

    def closed(node: Any) -> Any:
        if isinstance(node, list):
            return [closed(one) for one in node]
        if not isinstance(node, dict):
            return node
        return {key: closed(one) for key, one in node.items()} | (
            {"additionalProperties": False} if "properties" in node else {}
        )

    return Draft202012Validator(closed(TypeAdapter(shape).json_schema()), format_checker=_formats)


def checked(shape: Any, reply: Any) -> Any:
    read = json.loads(json.dumps(reply))  # nothing that JSON has no word for
    validator_of(shape).validate(read)
    assert TypeAdapter(shape).validate_python(reply) == reply
    return read


FUNCTIONS = {
    f"{module.name}.{name}": function
    for module in pkgutil.iter_modules(recollect.replies.__path__)
    if not module.name.startswith("_")
    for name, function in inspect.getmembers(
        importlib.import_module(f"recollect.replies.{module.name}"), inspect.isfunction
    )
    if function.__module__ == f"recollect.replies.{module.name}" and not name.startswith("_")
}


def shape_of(function: Callable[..., Any]) -> Any:
    """What a function of the package returns; the types of its arguments are there for type checkers alone."""
    home = vars(importlib.import_module(function.__module__))
    returns = types.FunctionType((lambda: None).__code__, home)
    returns.__annotations__ = {"return": function.__annotations__["return"]}
    return get_type_hints(returns, include_extras=True)["return"]


@pytest.fixture(scope="module")
def view(clone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RAGPipeline]:
    with clone() as dsn:
        config = RAGConfig.load(
            storage={"data_dir": tmp_path_factory.mktemp("data") / "unused", "dsn": dsn},
            embedding={"provider": "hashing"},
        )
        with RAGPipeline(config, embedder=HashingEmbedder()) as opened:
            yield filled(opened)


def filled(rag: RAGPipeline) -> RAGPipeline:
    leave = "# Leave\n\n## Annual leave\n\nAnnual leave is thirty days a year. Ask for it two weeks ahead."
    facts: dict[str, Any] = {"department": "hr", "tags": ("rules",), "metadata": {"year": 2024}}
    rag.ingest(Document(content="Annual leave is 25 days a year.", source="hr/leave.md", title="Leave", **facts))
    rag.ingest(
        Document(content=leave, source="hr/leave.md", title="Leave", event_time=datetime(2026, 1, 1, tzinfo=UTC))
    )
    rag.ingest(Document(content=leave, source="archive/leave.md", title="Leave", **facts))
    rag.ingest(Document(content="Pumps are greased every month.", source="plant/pump.md", title="Pump"))
    turns = [Turn(content="I have taken eight days of annual leave.", at=datetime.now(UTC))]
    rag.view(session="talk").remember(turns)
    return rag


def replies_of(view: RAGPipeline, folder: Path) -> Iterator[tuple[Callable[..., Any], Any]]:
    """Each function with what it made, of real results as far as they can be had here."""
    yield from searches(view)
    yield from answered(view)
    yield from of_contexts(view)
    yield from of_documents(view)
    yield from of_jobs(view, folder)
    yield from of_reports(view)


def searches(view: View) -> Iterator[tuple[Callable[..., Any], Any]]:
    past = view.view(as_of=datetime.now(UTC) - timedelta(days=1))
    for reply in (
        view.search(QUERY, EXPLAINED),
        view.search(QUERY),
        view.search(QUERY, RetrievalOptions(collapse_duplicates=True, mode="lexical")),
        view.view(collections="*").search(QUERY, EXPLAINED),
        past.search(QUERY),
    ):
        yield search_reply_json, search_reply_json(reply)
    yield search_reply_json, search_reply_json(view.search("zyx", RetrievalOptions(tags=("no",))), warnings=["None."])
    for result in view.search(QUERY).results:
        yield passage_place_json, passage_place_json(result)
        yield passage_notes_json, passage_notes_json(result.notes)
    for options in (EXPLAINED, replace(EXPLAINED, mmr_lambda=0.5, min_relevance=0.1), RetrievalOptions(min_score=0.9)):
        for source in ("hr/leave.md", "plant/pump.md"):
            yield why_not_json, why_not_json(view.why_not(QUERY, source, options))


def answered(view: View) -> Iterator[tuple[Callable[..., Any], Any]]:
    answer = view.ask("How many days of annual leave are there a year?")
    assert answer.citations
    refused = view.ask("What does ERR-9999 mean?")
    assert refused.refused
    written = replace(
        answer,
        model="scripted/one",
        usage=TokenUsage(input_tokens=10, output_tokens=5),
        unsupported=(
            UnsupportedSentence(
                text="No.", start_offset=None, end_offset=None, reason="uncited", detail="cites nothing"
            ),
        ),
        citations=tuple(replace(one, support=0.5, collection="default") for one in answer.citations),
    )
    for one in (answer, refused, written):
        for explain in (False, True):
            yield answers.answer_json, answers.answer_json(one, explain=explain)
    yield answers.answer_json, answers.answer_json(refused, warnings=["There are no documents."])
    yield from ((answers.citation_json, answers.citation_json(one)) for one in written.citations)
    assert written.usage is not None
    yield answers.token_usage_json, answers.token_usage_json(written.usage)


def of_contexts(view: View) -> Iterator[tuple[Callable[..., Any], Any]]:
    context = view.context(QUERY, token_budget=200)
    assert context.blocks
    yield contexts.assembled_context_json, contexts.assembled_context_json(QUERY, context, collection="default")
    nothing = view.context("zyx", RetrievalOptions(tags=("no",)))
    told = contexts.assembled_context_json("zyx", nothing, collection="default", warnings=["None."])
    yield contexts.assembled_context_json, told
    for strategy in ("hybrid", "rag", "documents", "episodic", "semantic", "bm25"):
        found = view.memory.assembler().assemble(QUERY, strategy, 500, "talk")
        made = contexts.context_assembly_json(QUERY, found, explain=strategy == "hybrid", warnings=["Told."])
        yield contexts.context_assembly_json, made
        yield contexts.context_explain_json, contexts.context_explain_json(found)
        yield contexts.weights_json, contexts.weights_json(found.found.weights)


def of_documents(view: RAGPipeline) -> Iterator[tuple[Callable[..., Any], Any]]:
    records = view.documents.list()
    yield from ((documents.document_json, documents.document_json(one)) for one in records)
    listed = documents.document_list_json(records[:1], collection="default", more=True)
    assert listed["next_after"] == records[0].document_id
    yield documents.document_list_json, listed
    nothing = documents.document_list_json([], collection="default", more=False, warnings=["None."])
    yield documents.document_list_json, nothing
    (leave,) = (one.document_id for one in records if one.source == "hr/leave.md")
    copies = view.documents.duplicates(leave)
    assert copies.same
    yield documents.document_content_json, documents.document_content_json(view.documents.get(leave), copies)
    yield documents.same_document_json, documents.same_document_json(copies.same[0])
    yield documents.duplicate_groups_json, documents.duplicate_groups_json(view.documents.list_duplicates())
    original = Original.of_bytes(b"leave", name="leave.md", mime_type="text/markdown")
    yield documents.original_json, documents.original_json(original)
    told = view.documents.history(leave)
    yield history.document_history_json, history.document_history_json(told)
    yield from ((history.version_json, history.version_json(one)) for one in told.versions)
    yield history.version_diff_json, history.version_diff_json(view.documents.diff(leave))
    for first, second in (("1d", None), (None, "1d")):
        diff = view.documents.diff_evidence(QUERY, from_time=first or datetime.now(UTC), to_time=second)
        yield history.evidence_diff_json, history.evidence_diff_json(diff)
    (result,) = view.ingest([Document(content="Soon gone.", source="gone.md")])
    yield ingest.ingest_result_json, ingest.ingest_result_json(result)
    view.ingest(Document(content="Soon gone, too.", source="gone.md"))
    restored = view.documents.restore(result.document_id, 1)
    yield history.restored_version_json, history.restored_version_json(restored, department=None)
    receipt = view.documents.erase([result.document_id], actor="test", reason="test")
    yield erasure.erasure_receipt_json, erasure.erasure_receipt_json(receipt)
    scrub = ScrubReport(
        relations=1, kept=("t",), log_segments=None, proven=True, files=1, bytes=1, strings=1, held=0, found={"f": 1}
    )
    yield erasure.scrub_json, erasure.scrub_json(scrub)
    yield erasure.erasure_receipt_json, erasure.erasure_receipt_json(replace(receipt, scrub=scrub))
    found = view.collections.list()
    yield from ((collections.collection_json, collections.collection_json(one)) for one in found)
    yield collections.collection_list_json, collections.collection_list_json(found)
    yield status.status_json, status.status_json(view.maintenance.status())


def of_jobs(view: View, folder: Path) -> Iterator[tuple[Callable[..., Any], Any]]:
    pending = view.jobs.ingest([folder])
    cancelled = view.jobs.cancel(pending.job_id)
    done = view.jobs.wait(view.jobs.ingest([folder]).job_id)
    assert done.status == "succeeded" and done.result and done.stages
    failed = replace(done, status="failed", result=None, error="It failed.", due_at=done.finished_at)
    running = replace(done, status="running", stages=(JobStage(name="fetch", done=1, total=2),), finished_at=None)
    assert {one.status for one in (pending, cancelled, done, failed, running)} == set(JOB_STATUSES)
    yield from ((jobs.job_json, jobs.job_json(one)) for one in (pending, cancelled, done, failed, running))
    yield jobs.job_list_json, jobs.job_list_json([cancelled], more=True)
    yield jobs.job_list_json, jobs.job_list_json([], more=False)


def of_reports(view: View) -> Iterator[tuple[Callable[..., Any], Any]]:
    report = IngestReport(
        added=1,
        updated=0,
        unchanged=0,
        removed=0,
        failed=1,
        skipped=1,
        skip_reasons={"too_large": 1},
        too_large=(FileError("a.txt", "too large"),),
        chunks=1,
        seconds=0.1234,
        errors=(FileError("b.txt", "not text"),),
    )
    yield ingest.ingest_report_json, ingest.ingest_report_json(report)
    yield ingest.ingest_report_json, ingest.ingest_report_json(replace(report, too_large=()))
    yield sources.source_refresh_json, sources.source_refresh_json("docs", report)
    records = view.sources.list()
    yield from ((sources.source_json, sources.source_json(one)) for one in records)
    yield sources.source_list_json, sources.source_list_json(records)


def test_every_function_makes_what_its_shape_says(view: RAGPipeline, tmp_path: Path):
    (tmp_path / "note.md").write_text("Keys are at the desk.")
    called = set()
    for function, reply in replies_of(view, tmp_path):
        checked(shape_of(function), reply)
        called.add(f"{function.__module__.removeprefix('recollect.replies.')}.{function.__name__}")
    assert called == set(FUNCTIONS)


def test_a_key_that_the_shape_does_not_name_is_noticed():
    answer = Answer(question="q", text="a", refused=False, citations=())
    reply = checked(answers.AnswerJson, answers.answer_json(answer))
    with pytest.raises(ValidationError, match="Additional properties"):
        checked(answers.AnswerJson, {**reply, "new": 1})
    citation = Citation(
        marker=1, document_id=1, source="a", section=None, page=None, start_offset=0, end_offset=1, quote="q"
    )
    with pytest.raises(ValidationError, match="Additional properties"):
        checked(answers.AnswerJson, {**reply, "citations": [{**answers.citation_json(citation), "new": 1}]})
