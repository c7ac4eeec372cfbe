"""Arguments as models write them, and definitions as providers want them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

import recollect
from recollect.errors import UsageError
from recollect.tools import KNOWLEDGE_SEARCH, TOOLS, Tool, ToolResult
from recollect.tools.toolbox import read_arguments

EVERY_TOOL = {one.name: one for one in (KNOWLEDGE_SEARCH, *TOOLS)}
GREP, SEARCH = EVERY_TOOL["grep"], EVERY_TOOL["search"]


def schemas(schema: dict[str, Any]) -> Iterable[dict[str, Any]]:
    yield schema
    for inner in schema.get("properties", {}).values():
        yield from schemas(inner)
    if "items" in schema:
        yield from schemas(schema["items"])


def test_the_tools_are_those_of_the_issue():
    names = ["search", "grep", "list_documents", "outline", "read", "ask", "recall", "remember", "add"]
    assert list(EVERY_TOOL) == ["knowledge_search", *names]
    assert [one.name for one in TOOLS if one.writes] == ["remember", "add"]
    assert recollect.RAGTool.__module__ == "recollect.tools.toolbox"


@pytest.mark.parametrize("tool", EVERY_TOOL.values(), ids=lambda tool: tool.name)
def test_definitions_are_what_the_providers_take(tool: Tool):
    # Not with the module: every worker that collects tests would import them.
    from anthropic.types import ToolParam
    from openai.types.chat import ChatCompletionFunctionToolParam
    from openai.types.responses import FunctionToolParam

    chat = tool.definition("openai")
    TypeAdapter(ChatCompletionFunctionToolParam).validate_python(chat, extra="forbid")
    responses = tool.definition("openai-responses")
    TypeAdapter(FunctionToolParam).validate_python(responses, extra="forbid")
    assert {"type": "function", **chat["function"]} == responses
    anthropic = tool.definition("anthropic")
    TypeAdapter(ToolParam).validate_python(anthropic, extra="forbid")
    Draft202012Validator.check_schema(anthropic["input_schema"])
    Draft202012Validator.check_schema(responses["parameters"])
    assert anthropic.keys() == {"name", "description", "input_schema"}
    assert len(tool.description) > 80 and tool.name.isidentifier()
    for schema in (responses["parameters"], anthropic["input_schema"]):
        json.dumps(schema)
        assert schema["additionalProperties"] is False and schema["type"] == "object"
        assert all(len(one["description"]) > 15 for one in schema["properties"].values())
    # Strict mode: every argument is named, what may be left out is null, and no word that the mode does not know.
    strict = responses["parameters"]
    assert responses["strict"] is True and strict["required"] == list(strict["properties"])
    for name, one in strict["properties"].items():
        assert ("null" in one["type"]) == (name not in tool.schema["required"])
        assert "enum" not in one or None in one["enum"]
    known = {"type", "description", "enum", "minimum", "maximum", "items", "maxItems", "properties", "required",
             "additionalProperties"}  # fmt: skip
    assert {key for one in schemas(strict) for key in one} <= known


@pytest.mark.parametrize("tool", EVERY_TOOL.values(), ids=lambda tool: tool.name)
def test_what_is_not_given_and_what_is_null_is_the_default(tool: Tool):
    required = {name: "x" if one["type"] == "string" else 1 for name, one in tool.schema["properties"].items()
                if name in tool.schema["required"]}  # fmt: skip
    everything = dict.fromkeys(tool.schema["properties"]) | required
    bare = read_arguments(tool, required)
    assert bare == read_arguments(tool, json.dumps(everything)) == read_arguments(tool, everything)
    assert bare.keys() == tool.schema["properties"].keys()
    for name, one in tool.schema["properties"].items():
        assert name in required or bare[name] == one.get("default")


@pytest.mark.parametrize(
    ("tool", "given", "message"),
    [
        (SEARCH, {}, "query is missing"),
        (SEARCH, None, "query is missing"),
        (SEARCH, "", "query is missing"),
        (SEARCH, {"query": 5}, "query must be a text, not 5"),
        (SEARCH, {"query": " "}, "query is empty"),
        (SEARCH, {"query": "x" * 20_001}, "query is 20,001 characters long: 20,000 at most"),
        (SEARCH, {"query": "x", "limit": "5"}, "limit must be a whole number, not '5'"),
        (SEARCH, {"query": "x", "limit": True}, "limit must be a whole number, not True"),
        (SEARCH, {"query": "x", "limit": 2.5}, "limit must be a whole number"),
        (SEARCH, {"query": "x", "limit": float("inf")}, "limit must be a whole number"),
        (SEARCH, {"query": "x", "limit": 0}, "limit must lie between 1 and 50, not 0"),
        (SEARCH, {"query": "x", "limit": 10**5_000}, "limit must lie between 1 and 50"),
        (SEARCH, {"query": "x", "mode": "magic"}, "mode must be one of hybrid, dense and lexical, not 'magic'"),
        (SEARCH, {"query": "x", "tags": "hr"}, "tags must be a list of texts, not 'hr'"),
        (SEARCH, {"query": "x", "tags": [1]}, r"tags\[0\] must be a text"),
        (SEARCH, {"query": "x", "tags": ["a"] * 21}, "tags has 21 items: 20 at most"),
        (SEARCH, {"query": "x", "top_k": 5}, "no argument 'top_k'. It takes query, limit, skip"),
        (SEARCH, {"query": "x", 5: 5}, "no argument 5"),
        (SEARCH, ["query"], "must be a JSON object"),
        (SEARCH, "[]", "must be a JSON object"),
        (SEARCH, '{"query": ', "no JSON object"),
        (SEARCH, '{"query": NaN}', "NaN is no number"),
        (SEARCH, '{"query":' * 30_000, "characters long|nested too deep"),
        (SEARCH, "[" * 90_000, "nested too deep"),
        (SEARCH, '{"query": ' + "9" * 5_000 + "}", "no JSON object"),
        (SEARCH, "x" * 100_001, "characters long"),
        (GREP, {"pattern": "a\0b"}, "no document holds"),
        (GREP, {"pattern": "a\ud800b"}, "no document holds"),
        (GREP, {"pattern": "x", "regex": "true"}, "regex must be true or false, not 'true'"),
        (GREP, {"pattern": "x", "regex": 1}, "regex must be true or false"),
    ],
)
def test_a_wrong_argument_is_named_with_what_is_allowed(tool: Tool, given: Any, message: str):
    with pytest.raises(UsageError, match=message):
        read_arguments(tool, given)


def test_prose_that_nothing_can_store_is_mended():
    assert read_arguments(SEARCH, '{"query": "a\\u0000b\\ud800"}')["query"] == "a\ufffdb\ufffd"
    assert read_arguments(SEARCH, {"query": "x", "limit": 3.0})["limit"] == 3


def test_a_result_is_written_as_each_provider_wants_it():
    from anthropic.types import ToolResultBlockParam
    from openai.types.chat import ChatCompletionToolMessageParam
    from openai.types.responses.response_input_item_param import FunctionCallOutput

    result = ToolResult(value={"error": {"kind": "x", "message": "half \ud800 ä"}}, is_error=True)
    assert str(result) == result.text == '{"error": {"kind": "x", "message": "half ? ä"}}'
    assert result.message("1") == {"role": "tool", "tool_call_id": "1", "content": result.text}
    assert result.message("1", "openai-responses") == {
        "type": "function_call_output", "call_id": "1", "output": result.text,
    }  # fmt: skip
    assert result.message("1", "anthropic") == {
        "type": "tool_result", "tool_use_id": "1", "content": result.text, "is_error": True,
    }  # fmt: skip
    for style, kind in (
        ("openai", ChatCompletionToolMessageParam),
        ("openai-responses", FunctionCallOutput),
        ("anthropic", ToolResultBlockParam),
    ):
        TypeAdapter(kind).validate_python(result.message("1", style), extra="forbid")


_VALUES = st.one_of(
    st.sampled_from(
        ["leave", "hybrid", "x" * 501, "", 0, 1, 5, 51, -1, 2.0, 2.5, True, None, [], ["hr"], ["a"] * 21, [""], [1], {}]
    ),
    st.integers(-3, 300),
)


@pytest.mark.parametrize("tool", EVERY_TOOL.values(), ids=lambda tool: tool.name)
def test_what_the_schema_allows_is_taken_and_nothing_else(tool: Tool):
    """The schema is what a model is told; an independent validator says what that means."""
    names = st.sampled_from([*tool.schema["properties"], "unknown"])
    validators = [
        Draft202012Validator(tool.schema),
        Draft202012Validator(tool.definition("openai")["function"]["parameters"]),
    ]

    @settings(max_examples=60, deadline=None)
    @given(arguments=st.dictionaries(names, _VALUES, max_size=4))
    def check(arguments):
        # Null leaves a known argument out; an unknown one is refused whatever it holds.
        given_ones = {name: value for name, value in arguments.items() if value is not None or name == "unknown"}
        try:
            read_arguments(tool, arguments)
        except UsageError:
            assert not validators[0].is_valid(given_ones), arguments
        else:
            assert validators[0].is_valid(given_ones), arguments
            complete = {**dict.fromkeys(tool.schema["properties"]), **arguments}
            assert validators[1].is_valid(complete), arguments

    check()
