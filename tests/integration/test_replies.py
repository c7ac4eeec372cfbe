"""Every reply is what its shape says: all keys that are required, none that is not named, and values of their types."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import types
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
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
from recollect.model import Citation
from recollect.model.answer import Answer, UnsupportedSentence
from recollect.model.document_session import SessionConfig
from recollect.model.history import EvidenceDiff
from recollect.model.outline import PageBox
from recollect.model.passage import SearchReply, TokenUsage
from recollect.model.record import json_of
from recollect.replies import contexts, conversations, me
from recollect.replies.retrieval import PassagePlaceJson, passage_json, shown_answer, why_not_json

EXPLAINED = RetrievalOptions(explain=True, outline=True, department=("hr",), rerank="bm25")
QUERY = "how many days of annual leave"

_formats = FormatChecker(formats=())


@_formats.checks("date-time", raises=ValueError)
def _is_moment(value: object) -> bool:
    return not isinstance(value, str) or datetime.fromisoformat(value).tzinfo is not None


adapter_of = cache(TypeAdapter)


@cache
def schema_of(shape: Any) -> dict[str, Any]:
    return adapter_of(shape).json_schema(mode="serialization")


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

    return Draft202012Validator(closed(schema_of(shape)), format_checker=_formats)


def checked(shape: Any, reply: Any) -> Any:
    read = json.loads(json.dumps(json_of(reply)))  # nothing that JSON has no word for
    validator_of(shape).validate(read)
    shaped = adapter_of(shape).validate_python(reply)
    # A record in it makes the same JSON again.
    assert adapter_of(shape).dump_python(shaped, mode="json", by_alias=True) == read
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
    given: dict[str, Any] = {"department": "hr", "tags": ("rules",), "metadata": {"year": 2024}}
    rag.ingest(
        Document(content="Annual leave is 25 days a year.", source="hr/leave.md", id="leave", title="Leave", **given)
    )
    rag.ingest(
        Document(
            content=leave, source="hr/leave.md", id="leave", title="Leave", event_time=datetime(2026, 1, 1, tzinfo=UTC)
        )
    )
    rag.ingest(Document(content=leave, source="archive/leave.md", id="old leave", title="Leave", **given))
    rag.ingest(Document(content="Pumps are greased every month.", source="plant/pump.md", title="Pump"))
    turns = [Turn(content="I have taken eight days of annual leave.", at=datetime.now(UTC))]
    rag.view(session="talk").remember(turns)
    return rag


def replies_of(view: RAGPipeline) -> Iterator[tuple[Callable[..., Any], Any]]:
    """Each function with what it made, of real results as far as they can be had here."""
    yield from searches(view)
    yield from answered(view)
    yield from of_contexts(view)
    yield from of_servers()
    yield from of_conversations(view)
    yield from of_facts(view)


def before_the_second_version(view: View) -> View:
    return view.view(as_of=view.documents.history("hr/leave.md").versions[0].known_from)


def searches(view: View) -> Iterator[tuple[Callable[..., Any], Any]]:
    past = before_the_second_version(view)
    (best, *_) = view.search(QUERY, EXPLAINED).results
    preferred = replace(best, explain=replace(best.explain, preference=1.1))
    for reply in (
        # As a piece of a long table has it.
        replace(past.search(QUERY), results=(replace(preferred, metadata={"table_header": "| What | Days |"}),)),
        replace(past.search(QUERY), results=(replace(preferred, metadata={"generated_by": "openai/seeing"}),)),
        replace(past.search(QUERY), results=(preferred,)),
        replace(past.search(QUERY), results=(replace(preferred, server="north"),)),
        view.search(QUERY, EXPLAINED),
        view.search(QUERY),
        view.search(QUERY, RetrievalOptions(collapse_duplicates=True, mode="lexical")),
        view.view(collections="*").search(QUERY, EXPLAINED),
        past.search(QUERY),
    ):
        checked(SearchReply, reply)
    checked(SearchReply, replace(view.search("zyx", RetrievalOptions(tags=("no",))), warnings=("None.",)))
    yield passage_json, passage_json(best, PassagePlaceJson)
    collapsed = RetrievalOptions(collapse_duplicates=True, mode="lexical")
    for options in (EXPLAINED, replace(EXPLAINED, mmr_lambda=0.5, min_relevance=0.1), collapsed):
        for source in ("hr/leave.md", "archive/leave.md", "plant/pump.md"):
            yield why_not_json, why_not_json(view.why_not(QUERY, source, options))


def answered(view: View) -> Iterator[tuple[Callable[..., Any], Any]]:
    answer = view.ask("How many days of annual leave are there a year?")
    assert answer.citations
    superseded = before_the_second_version(view).ask("Is annual leave 25 days a year?")
    assert any(one.notes for one in superseded.citations)
    refused = view.ask("How many days of annual leave a year does ERR-9999 give?")
    assert refused.outcome == "passages"
    nothing = view.ask("What does ERR-9999 mean?")
    assert (nothing.outcome, nothing.passages) == ("none", ())
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
    for one in (answer, superseded, refused, nothing, written):
        for explain in (False, True):
            yield shown_answer, shown_answer(one, explain=explain)
    yield shown_answer, shown_answer(refused, warnings=["There are no documents."])
    boxed = replace(written.citations[0], boxes=(PageBox(3, 0.1, 0.2, 0.9, 0.25),), server="north")
    yield shown_answer, shown_answer(replace(written, citations=(boxed,)))
    notes = next(one.notes for one in superseded.citations if one.notes)
    remote = [replace(one, notes=notes, collection="default", server="north", id="leave") for one in refused.passages]
    yield shown_answer, shown_answer(replace(refused, passages=tuple(remote)))
    assert refused.nearest is not None
    nearest = replace(refused.nearest, evidence=replace(refused.nearest.evidence, boxes=boxed.boxes, id="leave"))
    yield shown_answer, shown_answer(replace(refused, nearest=nearest), explain=True)


def of_contexts(view: View) -> Iterator[tuple[Callable[..., Any], Any]]:
    context = view.context(QUERY, token_budget=200)
    assert context.blocks
    yield contexts.assembled_context_json, contexts.assembled_context_json(QUERY, context, collection="default")
    (first, *_) = context.blocks
    elsewhere = replace(first, passage=replace(first.passage, collection="policies", server="north"))
    remote = replace(context, blocks=(elsewhere,))
    yield contexts.assembled_context_json, contexts.assembled_context_json(QUERY, remote, collection="default")
    noted = before_the_second_version(view).context(QUERY, token_budget=200)
    yield contexts.assembled_context_json, contexts.assembled_context_json(QUERY, noted, collection="default")
    nothing = view.context("zyx", RetrievalOptions(tags=("no",)))
    told = contexts.assembled_context_json("zyx", nothing, collection="default", warnings=["None."])
    yield contexts.assembled_context_json, told
    for strategy in ("hybrid", "rag", "documents", "episodic", "semantic", "bm25"):
        found = view.memory.assembler().assemble(QUERY, strategy, 500, "talk")
        made = contexts.context_assembly_json(QUERY, found, explain=strategy == "hybrid", warnings=["Told."])
        yield contexts.context_assembly_json, made
        if found.passages:
            (leading, *_) = found.passages
            leading = replace(leading, passage=replace(leading.passage, server="north"))
            of_remote = replace(found, passages=(leading,))
            yield contexts.context_assembly_json, contexts.context_assembly_json(QUERY, of_remote)
        yield contexts.context_explain_json, contexts.context_explain_json(found)


def of_servers() -> Iterator[tuple[Callable[..., Any], Any]]:
    for ttl in ("1h", None):
        yield me.server_settings_json, me.server_settings_json(RAGConfig.load(session={"ttl": ttl}))


def of_conversations(view: RAGPipeline) -> Iterator[tuple[Callable[..., Any], Any]]:
    view.view(session="talk", user="ann").remember(Turn(content="The gate code is changed on Mondays."))
    view.sessions.create("desk", SessionConfig(ttl="1h"))
    view.view(session="desk").ingest(Document(content="Desk notes.", source="desk.md", id="desk"))
    document, desk = view.view(session="desk").documents.list()[0], view.sessions.get("desk")
    talk = (view.memory.get("talk"), view.memory.turns("talk"))
    for parts in ((talk, None), (None, (desk, [document])), (talk, (desk, [document]))):
        yield conversations.session_content_json, json_of(conversations.session_content_json(*parts))
    yield conversations.deleted_session_json, conversations.deleted_session_json("talk", turns=1)
    yield conversations.deleted_session_json, conversations.deleted_session_json("talk", turns=1, documents=2)
    yield conversations.forgotten_turns_json, conversations.forgotten_turns_json("talk", removed=1)
    yield conversations.ended_session_json, conversations.ended_session_json("desk", documents=1)


def of_facts(view: View) -> Iterator[tuple[Callable[..., Any], Any]]:
    view.view(session="facts").remember("My office is in Hamburg.")
    assert view.recall("Where is my office?")
    view.facts.consolidate(min_retrievals=1)
    assembler = view.memory.assembler()
    with_facts = contexts.context_assembly_json("office", assembler.assemble("Where is my office?", "semantic", 300))
    assert {one["kind"] for one in with_facts["passages"]} & {"fact"}
    yield contexts.context_assembly_json, with_facts


def optional_keys(schema: dict[str, Any]) -> set[str]:
    """The keys that a shape or one within it has sometimes, as ``Shape.key``."""
    return {
        f"{one['title']}.{key}"
        for one in (schema, *schema.get("$defs", {}).values())
        for key in one.get("properties", {})
        if key not in one.get("required", ())
    }


def keys_of(schema: dict[str, Any], reply: Any) -> set[str]:
    """The keys that a reply has, as ``Shape.key``."""
    found: set[str] = set()

    def walk(node: dict[str, Any], value: Any) -> None:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
        for choice in node.get("anyOf", ()):
            walk(choice, value)
        if isinstance(value, list):
            for one in value:
                walk(node.get("items", {}), one)
        if isinstance(value, dict):
            for key, one in value.items():
                if key in node.get("properties", {}):
                    found.add(f"{node['title']}.{key}")
                    walk(node["properties"][key], one)
                elif isinstance(node.get("additionalProperties"), dict):
                    walk(node["additionalProperties"], one)

    walk(schema, reply)
    return found


def test_every_function_makes_what_its_shape_says(view: RAGPipeline, tmp_path: Path):
    (tmp_path / "note.md").write_text("Keys are at the desk.")
    called, optional, seen = set(), set(), set()
    for function, reply in replies_of(view):
        shape = shape_of(function)
        read = checked(shape, reply)
        called.add(f"{function.__module__.removeprefix('recollect.replies.')}.{function.__name__}")
        schema = schema_of(shape)
        optional |= optional_keys(schema)
        seen |= keys_of(schema, read)
    assert called == set(FUNCTIONS)
    assert optional - seen == set()


def test_a_key_that_the_shape_does_not_name_is_noticed():
    answer = Answer(question="q", text="a", outcome="answer", citations=())
    reply = checked(Answer, answer)
    with pytest.raises(ValidationError, match="Additional properties"):
        checked(Answer, {**reply, "new": 1})
    citation = Citation(
        marker=1, document_id=1, source="a", section=None, page=None, start_offset=0, end_offset=1, quote="q"
    )
    with pytest.raises(ValidationError, match="Additional properties"):
        checked(Answer, {**reply, "citations": [{**json_of(citation), "new": 1}]})


def test_keys_are_described_where_they_are_inherited_too():
    block = schema_of(contexts.ContextBlockJson)["properties"]
    assert {key for key, one in block.items() if "description" in one} >= {"section", "page", "parts", "number"}
    assert block["section"] == schema_of(PassagePlaceJson)["properties"]["section"]
    assert schema_of(EvidenceDiff)["properties"]["from"]["format"] == "date-time"
