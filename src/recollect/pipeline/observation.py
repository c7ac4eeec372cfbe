"""What a pipeline tells whoever watches it: searches, answers and requests to models, as they end."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.model import Answer, SearchReply
    from recollect.model.requests import RequestRecord


class Observer:
    """Is told what a pipeline does, in the thread that does it; this one takes no notice.

    What it is told holds questions and texts: what it keeps, and where, is its own responsibility.
    """

    def searching(self) -> AbstractContextManager[None]:
        """Entered for the time of a search, for what must be known before it ends."""
        return nullcontext()

    def searched(self, reply: SearchReply) -> None:
        """A search has found what it found; told within `searching`."""

    def answered(self, answer: Answer) -> None:
        """A question has been answered, or the answer refused."""

    def requested(self, record: RequestRecord) -> None:
        """A provider's model has been asked, with or without success."""
