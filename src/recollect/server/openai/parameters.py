"""Parameters of OpenAI's API that say nothing here: taken, so that programs that always send them work."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from recollect.server.openai.errors import RefusedRequestError

#: How much chance a language model gives its answer; where none writes, there is none.
Temperature = Annotated[float | None, Field(ge=0, le=2)]
#: The answer ends there at the latest.
MostTokens = Annotated[int | None, Field(ge=1)]

_StopText = Annotated[str, Field(min_length=1, max_length=1_000)]
#: The answer ends before the first of these.
Stop = _StopText | Annotated[tuple[_StopText, ...], Field(max_length=16)] | None

#: Taken and not looked at: how answers are written is for whoever runs the server.
Ignored = Annotated[Any, Field(description="Taken and not looked at.")]


def require_unforced(tool_choice: object, *, param: str = "tool_choice") -> None:
    """Refuse requests that insist on a tool's being called: none is, and tools are otherwise not looked at.

    Raises:
        RefusedRequestError: One is insisted on.
    """
    kind = tool_choice.get("type") if isinstance(tool_choice, dict) else tool_choice
    if kind not in {None, "none", "auto", "file_search"}:
        raise RefusedRequestError(
            'Tools are not called here: documents are searched, and answered from. Use tool_choice "auto".', param=param
        )


def require_text(wanted: object, *, param: str) -> None:
    """Refuse another form of answers than text.

    Raises:
        RefusedRequestError: Another is asked for.
    """
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if kind not in {None, "text"}:
        raise RefusedRequestError(
            "Answers are text with citations: the form of the answer cannot be given.", param=param
        )
