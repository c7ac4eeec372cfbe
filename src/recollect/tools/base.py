"""A tool as data: its name, what it is for, what it takes, and the function that does it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, assert_never

from recollect.tools.results import schema_of

if TYPE_CHECKING:
    from recollect.pipeline.view import View
    from recollect.tools.results import Room


#: Whose way of writing tools and their results: OpenAI's chat completions, its Responses API, Anthropic's Messages.
ToolFormat = Literal["openai", "openai-responses", "anthropic"]


ParameterType = Literal["string", "integer", "boolean", "array"]


#: What a tool does: with a view, a room that its result must fit, and checked arguments by name.
ToolFunction: TypeAlias = "Callable[..., dict[str, Any]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One argument of a tool.

    Attributes:
        name: Of the argument.
        type: Its kind in JSON; an ``array`` is of strings.
        description: For the model that fills it in.
        required: Whether it must be given.
        default: What it is where it is not given; None: nothing in particular.
        choices: The only values that are allowed; empty: all.
        minimum: The least number.
        maximum: The greatest number.
        max_length: Characters of a text, or of each text of an array, at most.
        max_items: Of an array.
        free: Whether a text is searched for or stored as prose, in which characters that nothing stored can hold are
            replaced; otherwise they are refused.
    """

    name: str
    type: ParameterType
    description: str
    required: bool = False
    default: str | int | bool | None = None
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    max_length: int = 500
    max_items: int = 20
    free: bool = False

    def schema(self) -> dict[str, Any]:
        """Its JSON schema."""
        told: dict[str, Any] = {"type": self.type, "description": self.description}
        if self.choices:
            told["enum"] = list(self.choices)
        elif self.type == "string":
            told |= {"minLength": 1, "maxLength": self.max_length}
        if self.type == "array":
            told |= {"items": {"type": "string", "minLength": 1, "maxLength": self.max_length}}
            told |= {"maxItems": self.max_items}
        if self.minimum is not None:
            told["minimum"] = self.minimum
        if self.maximum is not None:
            told["maximum"] = self.maximum
        if self.default is not None:
            told["default"] = self.default
        return told

    def strict_schema(self) -> dict[str, Any]:
        """Its JSON schema in the part of the language that OpenAI's strict mode knows: what may be left out is null."""
        told = {key: value for key, value in self.schema().items() if key not in {"default", "minLength", "maxLength"}}
        if self.type == "array":
            told["items"] = {"type": "string"}
        if not self.required:
            told["type"] = [self.type, "null"]
            if self.choices:
                told["enum"] = [*self.choices, None]
            told["description"] += f" Null: {json.dumps(self.default)}." if self.default is not None else " Or null."
        return told


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool replies, whether it could do what it was asked or not.

    Attributes:
        value: An object that can be written as JSON; of an error ``{"error": {"kind", "message"}}``.
        is_error: Whether it is an error, which says what to do differently.
        error: What went wrong, for the program: the model is told no more than it can act on.
    """

    value: Mapping[str, Any]
    is_error: bool = False
    error: Exception | None = None

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """The value as JSON: what the model reads."""
        # What names something in a message may be what no encoding can write.
        return json.dumps(self.value, ensure_ascii=False).encode("utf-8", "replace").decode()

    def message(self, call_id: str, style: ToolFormat = "openai") -> dict[str, Any]:
        """The message, item or block of content that answers a model's call.

        Args:
            call_id: The call's id, as the model gave it.
            style: Whose.
        """
        match style:
            case "openai":
                return {"role": "tool", "tool_call_id": call_id, "content": self.text}
            case "openai-responses":
                return {"type": "function_call_output", "call_id": call_id, "output": self.text}
            case "anthropic":
                return {
                    "type": "tool_result",
                    "tool_use_id": call_id,
                    "content": self.text,
                    "is_error": self.is_error,
                }
            case _:
                assert_never(style)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool as data.

    Attributes:
        name: That a model calls it by.
        description: When to use it, what it gives, and what to do with that; for the model.
        parameters: What it takes.
        function: What it does: ``function(view, room, **arguments)``, the arguments checked and complete.
        title: For people who choose tools; empty: the name.
        result: What it replies with, as a typed dictionary; None: it is not said.
        writes: Whether it changes something.
        replaces: Whether that may take the place of what was there.
        repeatable: Whether doing the same again changes nothing more.
    """

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    function: Callable[..., dict[str, Any]]
    title: str = ""
    result: type | None = None
    writes: bool = False
    replaces: bool = False
    repeatable: bool = True

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of its arguments, which allows no others."""
        return {
            "type": "object",
            "properties": {one.name: one.schema() for one in self.parameters},
            "required": [one.name for one in self.parameters if one.required],
            "additionalProperties": False,
        }

    @property
    def result_schema(self) -> dict[str, Any] | None:
        """The JSON schema of what it replies with, errors included; None where that is not said."""
        return None if self.result is None else _schema_of(self.result)

    def definition(self, style: ToolFormat = "openai") -> dict[str, Any]:
        """What a request's list of tools says of it.

        Args:
            style: Whose. For OpenAI the schema is one of its strict mode: every argument is named, and what may be left
                out is null.
        """
        strict = {
            "type": "object",
            "properties": {one.name: one.strict_schema() for one in self.parameters},
            "required": [one.name for one in self.parameters],
            "additionalProperties": False,
        }
        function = {"name": self.name, "description": self.description, "parameters": strict, "strict": True}
        match style:
            case "openai":
                return {"type": "function", "function": function}
            case "openai-responses":
                return {"type": "function", **function}
            case "anthropic":
                return {"name": self.name, "description": self.description, "input_schema": self.schema}
            case _:
                assert_never(style)

    def __call__(self, view: View, room: Room, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - as checked
        """What the tool finds or does."""
        return self.function(view, room, **arguments)


@cache
def _schema_of(result: type) -> dict[str, Any]:
    # Its types are read where somebody asks for a schema.

    return schema_of(result)


# How far a tool has come, for whoever waits for it and wants to know.


#: Told what was done last, of the call that runs in this context; called in the thread of the call.
listener: ContextVar[Callable[[str], None] | None] = ContextVar("recollect_tool_progress", default=None)


def report(done: str) -> None:
    """Tell what was done last, where somebody wants to know."""
    tell = listener.get()
    if tell is not None:
        tell(done)
