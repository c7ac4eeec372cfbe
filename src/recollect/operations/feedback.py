"""What is done with feedback on contexts and answers."""

from __future__ import annotations

from typing import Protocol

from recollect.operations.declaring import operation
from recollect.operations.values import Number


class FeedbackOperations(Protocol):
    """Whether what contexts and answers showed has helped."""

    @operation("POST /v1/feedback/judgement", "writer", of_view=("session", "user"), reply="counted")
    def judge(self, position: Number, *, helpful: bool) -> bool:
        """Say whether an answer helped.

        An answer of the view's conversation, which counts for what it cites, once: what was said of it before stays.

        Args:
            position: Where the answer stands in the conversation.
            helpful: Whether it helped.

        Returns:
            Whether it was counted.

        Raises:
            UsageError: The view has no conversation.
            NotFoundError: There is no such conversation, or no answer at that position that cites anything.
        """
        ...

    @operation("DELETE /v1/feedback", "writer", of_view=("session", "user"), reply="forgotten")
    def reset(self) -> int:
        """Forget the feedback.

        The weights are as before it.

        Returns:
            How many passages it was on.

        Raises:
            NotFoundError: There is no such conversation.
            PermissionDeniedError: The principal would move the weights of everybody.
        """
        ...
