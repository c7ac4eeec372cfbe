"""How far a tool has come, for whoever waits for it and wants to know."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

#: Told what was done last, of the call that runs in this context; called in the thread of the call.
listener: ContextVar[Callable[[str], None] | None] = ContextVar("recollect_tool_progress", default=None)


def report(done: str) -> None:
    """Tell what was done last, where somebody wants to know."""
    tell = listener.get()
    if tell is not None:
        tell(done)
