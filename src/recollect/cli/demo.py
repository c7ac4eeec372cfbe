"""``recollect demo``: the main job on an example handbook."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from recollect.cli import ask
from recollect.cli._command_context import CommandContext
from recollect.cli._options import command
from recollect.cli._progress import WorkBar
from recollect.errors import NotFoundError
from recollect.model.record import json_of
from recollect.replies.retrieval import shown_answer

if TYPE_CHECKING:
    from recollect.ingest.report import IngestReport
    from recollect.model import Answer
    from recollect.model.answer import Outcome
    from recollect.pipeline import View

COLLECTION = "demo"
QUESTIONS = (
    # A sentence says it; a passage tells it in several; the handbook says nothing about it.
    "How long is the notice period during probation?",
    "How can I work from another country for a while?",
    "Does the company pay for a gym membership?",
)

#: What is said of the last one.
_WITHOUT_ANSWER = {
    "passages": "No document answers the last one exactly: the nearest passages are shown, and nothing is made up.",
    "none": "No document says anything about the last one, and nothing is made up.",
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "demo", local="it makes a store of its own to show")(_demo)


def handbook() -> Path:
    """The example handbook: from the installed package, or from the checkout it is developed in.

    Raises:
        NotFoundError: Neither has it.
    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "_handbook", package.parents[1] / "examples" / "handbook"):
        if folder.is_dir():
            return folder
    raise NotFoundError("The example handbook is not part of this installation: install recollect from its wheel.")


def _demo(ctx: CommandContext) -> int:
    """Ingest an example handbook, ask it three questions, and say what to try next."""
    folder = handbook()
    config = ctx.config.model_copy(update={"collection": COLLECTION})
    if not ctx.json:
        ctx.out.print("The employee handbook of a company that does not exist: 38 documents,")
        ctx.out.print("five departments, Markdown, text, HTML, PDF and Word.\n")
    with ctx.view(config) as view:
        _forget_other_copies(view, folder)
        with WorkBar(ctx.err, "Ingesting", unit="files") as bar:
            report = view.ingest(folder, sync=True, on_progress=bar.ingest)
        if not ctx.json:
            _show_ingest(ctx, report)
        answers = []
        for question in QUESTIONS:
            answers.append(view.ask(question))
            if not ctx.json:
                _show(ctx, answers[-1])
    return ctx.tell(
        _as_json(report, answers),
        lambda: _show_next(ctx, answers[-1].outcome),
        status=1 if report.failed else 0,
    )


def _forget_other_copies(view: View, folder: Path) -> None:
    """Another installation's copy of the handbook would answer every question twice."""
    if all(place.name != COLLECTION for place in view.collections.each()):
        return
    copies = [
        record.document_id
        for record in view.documents.each()
        if record.origin != folder.as_posix() and Path(record.origin).name in {"_handbook", "handbook"}
    ]
    if copies:
        view.documents.erase(copies)


def _as_json(report: IngestReport, answers: list[Answer]) -> dict[str, Any]:
    return {
        "collection": COLLECTION,
        "ingest": json_of(report),
        "answers": [json_of(shown_answer(answer)) for answer in answers],
    }


def _show_ingest(ctx: CommandContext, report: IngestReport) -> None:
    if report.added or report.updated:
        count = report.added + report.updated
        ctx.out.print(f"✓ {count:,} documents, {report.chunks:,} chunks in {report.seconds:,.1f} s", style="green")
    else:
        ctx.out.print(f"✓ {report.unchanged:,} documents, unchanged since the last time", style="green")
    for error in report.errors:
        ctx.note(f"✗ {error.path}: {error.error}")


def _show(ctx: CommandContext, answer: Answer) -> None:
    ctx.out.print()
    ctx.out.rule(style="dim")
    ctx.out.print(Text.assemble(("? ", "bold magenta"), (answer.question, "bold")))
    ctx.out.print()
    ask.show_answer(ctx, answer)


def _show_next(ctx: CommandContext, last: Outcome) -> None:
    found = shutil.which("recollect")
    program = "recollect" if found == sys.argv[0] else shlex.quote(sys.argv[0])
    options = ctx.options
    place = f" --data-dir {shlex.quote(str(options.data_dir))}" if options.data_dir else ""
    ctx.out.print()
    ctx.out.rule(style="dim")
    if last in _WITHOUT_ANSWER:
        ctx.out.print(_WITHOUT_ANSWER[last])
    ctx.out.print("Try next:\n")
    for line in (
        f'ask -c {COLLECTION} "Who approves a purchase of 3,000 euros?"',
        f'query -c {COLLECTION} "working from abroad" --explain',
        "ingest YOUR-FOLDER",
        'ask "…"',
        "--help",
    ):
        ctx.out.print(Text.assemble("  ", (f"{program}{place} {line}", "bold")), soft_wrap=True)
