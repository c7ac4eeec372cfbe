"""``recollect eval memory``: how well memory finds the turns that answer questions."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli._command_context import CommandContext
from recollect.cli._options import Mode, command

if TYPE_CHECKING:
    from rich.table import Table

    from recollect.evaluation.memory import MemoryReport, RecalledTurn
    from recollect.evaluation.memory_files import Conversation
    from recollect.model.memory import RecallMode
    from recollect.pipeline import View

# Enough turns to hold ten sessions wherever there are as many.
_DEPTH = 200


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "memory")(_memory)


def _memory(
    ctx: CommandContext,
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Conversations with questions, in JSON.")],
    mode: Annotated[Mode, typer.Option(help="Words and meaning, meaning only, or words only.")] = Mode.HYBRID,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the sessions made for this run.")] = False,
) -> int:
    """Find turns: recall of the turns that answer, on a file of conversations with questions.

    FILE holds {"conversations": [{"id", "sessions": [{"id", "date", "turns": [{"id", "speaker", "text"}]}],
    "questions": [{"question", "category", "evidence": ["turn id", …]}]}]}. Every conversation is remembered as one
    user's, its questions are asked, and the sessions are removed again.
    """
    from recollect.cli._progress import WorkBar
    from recollect.evaluation.memory import run_memory
    from recollect.evaluation.memory_files import load_memory

    dataset = load_memory(file)
    with ctx.view() as view, WorkBar(ctx.err, "Recalling", unit="questions") as bar:
        run = _Run(view, mode.value)
        try:
            report = run_memory(dataset, remember=run.remember, recall=run.recall, progress=bar.update)
        finally:
            if not keep:
                run.remove()
    if ctx.json:
        ctx.emit(report.as_json())
    else:
        _show(ctx, report)
    if dataset.undated:
        ctx.note(f"{dataset.undated:,} sessions have no date that can be read: their turns have none.")
    return 0


class _Run:
    """One run: its sessions have names that no others have."""

    def __init__(self, view: View, mode: RecallMode) -> None:
        self._view = view
        self._mode: RecallMode = mode
        self._prefix = f"eval-{uuid.uuid4().hex[:12]}"
        self._users: dict[str, str] = {}
        self._sessions: dict[str, str] = {}

    def remember(self, conversation: Conversation) -> int:
        """Store a conversation as a user's; turns without words are passed over."""
        from recollect.model.memory import Turn

        user = self._users.setdefault(conversation.conversation_id, f"{self._prefix}/{len(self._users) + 1}")
        stored = 0
        for number, one in enumerate(conversation.sessions, start=1):
            name = f"{user}/{number}"
            turns = [
                Turn(content=turn.text, role=turn.speaker, at=one.at, metadata={"eval_turn": turn.turn_id})
                for turn in one.turns
                if turn.text.strip()
            ]
            if turns:
                self._sessions[name] = one.session_id
                stored += self._view.view(session=name, user=user).remember(turns).added
        return stored

    def recall(self, conversation: Conversation, question: str) -> list[RecalledTurn]:
        """The turns of a conversation that answer a question, best first."""
        from recollect.evaluation.memory import RecalledTurn
        from recollect.model.memory import RecallOptions

        options = RecallOptions(top_k=_DEPTH, mode=self._mode, before=0, after=0, counted=False)
        found = self._view.view(user=self._users[conversation.conversation_id]).recall(question, options)
        return [RecalledTurn(self._sessions[hit.episode.session], hit.episode.metadata["eval_turn"]) for hit in found]

    def remove(self) -> None:
        """Remove the sessions of this run."""
        for name in self._sessions:
            self._view.memory.delete(name, actor="eval memory")


def _show(ctx: CommandContext, report: MemoryReport) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for name in report.metrics:
        table.add_column(name.replace("evidence_recall", "recall").replace("session_hit", "session"), justify="right")
    _add(table, "all", report.metrics)
    for category, figures in report.by_category.items():
        _add(table, f"category {category}" if category else "no category", figures)
    for conversation, figures in report.by_conversation.items():
        _add(table, conversation, figures)
    out = ctx.out
    out.print(table)
    out.print(f"{report.questions:,} questions on {report.turns:,} turns in {report.seconds:,.1f} s")
    out.print(f"a question: {report.query_ms.p50:,.1f} ms (median), {report.query_ms.p95:,.1f} ms (95th percentile)")
    if report.unanswered:
        out.print(f"left out: {report.unanswered:,} questions that name no evidence")
    if report.unknown_evidence:
        out.print(f"not found because there is no such turn: {report.unknown_evidence:,} pieces of evidence")


def _add(table: Table, name: str, figures: Mapping[str, float]) -> None:
    from recollect.cli._terminal import one_line

    table.add_row(one_line(name), *(f"{value:.4f}" for value in figures.values()))
