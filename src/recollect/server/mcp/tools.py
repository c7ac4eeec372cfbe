"""Tools of agents as the protocol describes and calls them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from recollect.errors import RateLimitedError
from recollect.server.mcp.calls import BusyError
from recollect.tools import Toolbox, ToolResult
from recollect.tools.toolbox import ASK, offered

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from recollect.server.limits import LimitKind
    from recollect.server.mcp.access import Access
    from recollect.server.mcp.calls import Calls, Tell
    from recollect.tools import Tool

# Of a sentence of an answer that is told before the answer is whole.
_PROGRESS_CHARACTERS = 500

_BUSY = {"error": {"kind": "busy", "message": "Too many calls are under way. Try again in a moment."}}


def offered_tools(access: Access) -> list[Tool]:
    """The tools that somebody may use: those that their view has a use for, without what writes where they may not."""
    return [one for one in offered(access.view) if access.may_write or not one.writes]


def described(tools: Sequence[Tool]) -> list[types.Tool]:
    """Tools as a client is told of them."""
    return [
        types.Tool(
            name=one.name,
            title=one.title or None,
            description=one.description,
            input_schema=one.schema,
            output_schema=one.result_schema,
            annotations=types.ToolAnnotations(
                title=one.title or None,
                read_only_hint=not one.writes,
                destructive_hint=one.replaces,
                idempotent_hint=one.repeatable,
                open_world_hint=False,
            ),
        )
        for one in tools
    ]


async def call_tool(
    ctx: ServerRequestContext[Any], params: types.CallToolRequestParams, access: Access, calls: Calls
) -> types.CallToolResult:
    """What a tool replies; whatever goes wrong with it is a reply that the model can act on.

    Raises:
        MCPError: There is no such tool for the caller.
    """
    box = Toolbox(access.view, offered_tools(access), max_characters=access.max_characters)
    if params.name not in box:
        message = f"There is no tool {params.name[:100]!r}: there are {', '.join(box)}."
        raise MCPError(code=types.INVALID_PARAMS, message=message)
    try:
        result = await calls.run_telling(_teller(ctx), _execute, access, box, params)
    except BusyError:
        result = ToolResult(value=_BUSY, is_error=True)
    return _replied(result)


def _execute(access: Access, box: Toolbox, params: types.CallToolRequestParams) -> ToolResult:
    tool, arguments = box[params.name], params.arguments or {}
    kind: LimitKind = "ingest" if tool.writes else "answer" if tool is ASK else "search"
    try:
        with access.admit(kind, _stored_bytes(arguments) if tool.writes else 0):
            return box.execute(tool.name, params.arguments)
    except RateLimitedError as exc:
        told = {"kind": "busy", "message": str(exc), "retry_after_seconds": max(1, math.ceil(exc.retry_after_seconds))}
        return ToolResult(value={"error": told}, is_error=True, error=exc)


def _stored_bytes(arguments: Mapping[str, Any]) -> int:
    return sum(len(one.encode("utf-8", "replace")) for one in arguments.values() if isinstance(one, str))


def _teller(ctx: ServerRequestContext[Any]) -> Tell:
    steps = iter(range(1, 2**31))

    async def tell(done: str) -> None:
        await ctx.session.report_progress(next(steps), message=done[:_PROGRESS_CHARACTERS])

    return tell


def _replied(result: ToolResult) -> types.CallToolResult:
    text = result.text
    return types.CallToolResult(
        content=[types.TextContent(text=text)],
        # As it reads in the text: what no encoding can write is replaced there.
        structured_content=json.loads(text),
        is_error=result.is_error,
    )
