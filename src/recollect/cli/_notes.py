"""Why a passage is not the last word, for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.cli._command_context import CommandContext
    from recollect.model import PassageNote


def show_notes(ctx: CommandContext, notes: Sequence[PassageNote]) -> None:
    """Print them for people, each a line."""
    from rich.text import Text

    from recollect.cli._terminal import one_line, print_indented

    for note in notes:
        print_indented(ctx.out, Text("! ", style="bold yellow").append(one_line(note.text), "yellow not bold"), by=4)
