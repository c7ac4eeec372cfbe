"""Whatever a model hands to a tool, the tool answers: within its room, in words, and changing nothing else."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hostile
from recollect.errors import RecollectError
from recollect.tools import KNOWLEDGE_SEARCH, TOOLS, Tool, Toolbox
from tool_results import require_declared

ROOM = 4_000


def values(tool: Tool) -> st.SearchStrategy[object]:
    """Of the right kind mostly, some of them missing, unknown or anything at all; or their JSON."""
    kinds = {"string": hostile.texts, "integer": hostile.whole_numbers, "boolean": st.booleans(),
             "array": st.lists(hostile.texts, max_size=3)}  # fmt: skip
    fitting = {one.name: kinds[one.type] for one in tool.parameters}
    right = st.fixed_dictionaries(
        {}, optional={name: st.one_of(one, one, hostile.junk) for name, one in fitting.items()}
    )
    plausible = right.map(lambda some: {**_PLAUSIBLE.get(tool.name, {}), **some})
    wrong = st.one_of(hostile.junk, st.dictionaries(hostile.texts, hostile.junk, max_size=2))
    return st.one_of(plausible, plausible, right, right.map(_as_json), wrong)


_QUERY = {"query": "How long is annual leave?"}
_PLAUSIBLE: dict[str, dict[str, object]] = {
    "knowledge_search": _QUERY,
    "search": _QUERY,
    "recall": _QUERY,
    "outline": {"document_id": 1},
    "read": {"document_id": 1},
    "grep": {"pattern": "leave"},
    "remember": {"text": "My locker is 17."},
    "ask": {"question": "How long is annual leave?"},
    "add": {"text": "Lockers are in the basement.", "source": "lockers.md"},
}

# What only some tools refuse.
_OWN_ERRORS = {"add": {"conflict"}}


def _as_json(some: object) -> object:
    try:
        return json.dumps(some)
    except (TypeError, ValueError, RecursionError):
        return "{"


@pytest.mark.parametrize("tool", (KNOWLEDGE_SEARCH, *TOOLS), ids=lambda tool: tool.name)
def test_a_tool_answers_whatever_it_is_given(peopled, stored, tool: Tool):
    tools = Toolbox(peopled.view(session="chat", user="ada", collections="default"), [tool], max_characters=ROOM)

    @settings(max_examples=25 * hostile.EFFORT, suppress_health_check=list(HealthCheck), deadline=None)
    @given(arguments=values(tool))
    def call(arguments):
        before = stored.rows()
        result = tools.execute(tool.name, arguments)
        assert len(result.text) <= ROOM and json.loads(result.text) and "Traceback" not in result.text
        result.text.encode()
        require_declared(tool, result)
        if result.is_error:
            told = json.loads(result.text)["error"]
            assert told["kind"] in {"invalid_arguments", "not_found"} | _OWN_ERRORS.get(tool.name, set()), told
            assert told["message"].strip() and isinstance(result.error, RecollectError)
        if result.is_error or not tool.writes:
            assert stored.rows() == before

    call()
