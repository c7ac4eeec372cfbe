"""What somebody who calls may see and do."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from recollect.tools.toolbox import DEFAULT_CHARACTERS

if TYPE_CHECKING:
    from recollect.pipeline.view import View
    from recollect.server.limits import LimitKind


class Admission(Protocol):
    """Counts calls, and refuses those that are too many."""

    def __call__(self, kind: LimitKind, byte_count: int = 0, /) -> AbstractContextManager[object]:
        """A block that a call is made in.

        Args:
            kind: What it costs.
            byte_count: Of what it stores.

        Raises:
            RateLimitedError: There were too many; it is not made.
        """


def unlimited(_kind: LimitKind, _byte_count: int = 0) -> AbstractContextManager[object]:
    """Counts nothing."""
    return nullcontext()


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Whose view a call looks through.

    Attributes:
        view: What is found, read and remembered through.
        may_write: Whether tools that change something are offered.
        max_characters: Of a tool's result.
        admit: Counts what is asked for.
        caller: The tenant and the credential, which share the server's threads.
    """

    view: View
    may_write: bool = True
    max_characters: int = DEFAULT_CHARACTERS
    admit: Admission = unlimited
    caller: tuple[int, str] = (0, "")
