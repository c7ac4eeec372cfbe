"""What somebody who calls may see and do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.tools.toolbox import DEFAULT_CHARACTERS

if TYPE_CHECKING:
    from recollect.pipeline.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Whose view a call looks through.

    Attributes:
        view: What is found, read and remembered through.
        may_write: Whether tools that change something are offered.
        max_characters: Of a tool's result.
    """

    view: View
    may_write: bool = True
    max_characters: int = DEFAULT_CHARACTERS
