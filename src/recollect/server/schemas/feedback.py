"""Bodies of feedback."""

from __future__ import annotations

from pydantic import Field

from recollect.operations.values import Name
from recollect.server.schemas.base import Body


class FeedbackBody(Body):
    """Whether passages that a context showed have helped."""

    sources: tuple[Name, ...] = Field(
        min_length=1, max_length=1_000, description="As the context named them: memory:chat-1, fact:7, hr/leave.md."
    )
    helpful: bool
    session: Name | None = Field(None, description="In contexts of this conversation; left out: in all.")
    user: Name | None = Field(None, description="Whose conversation, where several users have one of that id.")
