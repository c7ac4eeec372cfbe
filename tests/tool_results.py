"""What tools reply with beside what they declare, told apart by an independent reader of schemas."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from recollect.tools import Tool, ToolResult


def strict(schema: Any) -> Any:
    """A schema that allows no names but its own."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    own = {key: strict(one) for key, one in schema.items()}
    return own | ({"additionalProperties": False} if own.get("type") == "object" and "properties" in own else {})


@cache
def _validator(tool: Tool) -> Draft202012Validator:
    Draft202012Validator.check_schema(tool.result_schema)
    return Draft202012Validator(strict(tool.result_schema))


def require_declared(tool: Tool, result: ToolResult) -> None:
    """The result is what the tool's schema says, and nothing beside it."""
    _validator(tool).validate(result.value)
    assert ("error" in result.value) == result.is_error
