"""``recollect eval make``: test cases to start from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli._command_context import CommandContext
from recollect.cli._options import command
from recollect.errors import NotFoundError, UsageError
from recollect.model.written_files import require_writable

if TYPE_CHECKING:
    from recollect.pipeline import View

# Reading every document of a large collection would take long and add little.
_MAX_DOCUMENTS = 500
_PAGE = 500

_COMMENT = """\
Drafted from the documents by `recollect eval make`, without a language model. Read every case: delete what
nobody would ask, put questions into the words that people use, and shorten each text to what the answer needs.
Add questions that the documents do not answer, with `answerable: false`."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "make", collection=True, local="it draws cases from every document of a collection")(_make)


def _make(
    ctx: CommandContext,
    *,
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=10_000, help="Cases at most.")] = 50,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Where to write them; else they are printed.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> int:
    """Draft test cases from a collection, without a language model, for a person to choose from and improve."""
    from recollect.evaluation.case_files import dump_suite
    from recollect.evaluation.make import draft_cases

    if out is not None:
        if out.exists() and not force:
            raise UsageError(f"{out} exists: choose another name, or --force to overwrite it.")
        require_writable(out, overwrite=force)
    with ctx.view() as view:
        place = next((one for one in view.collections.each() if one.name == ctx.collection), None)
        if place is None or not place.document_count:
            raise NotFoundError(f"The collection {ctx.collection!r} is empty. Fill it: recollect ingest FOLDER")
        cases = draft_cases(_documents(ctx, view), count=count, language=place.language)
    if not cases:
        raise NotFoundError(f"No sentence of {ctx.collection!r} can be asked for: the texts hold no whole sentences.")
    text = dump_suite(cases, comment=_COMMENT)
    if out is not None:
        out.write_text(text, encoding="utf-8")
    if ctx.json:
        ctx.emit({"file": None if out is None else str(out), "cases": cases})
    elif out is None:
        ctx.out.print(text, end="", soft_wrap=True)
    else:
        ctx.out.print(f"{len(cases):,} drafts in {out}. Try: recollect rag-test {out}", soft_wrap=True)
    return 0


def _documents(ctx: CommandContext, view: View) -> Iterator[tuple[str, str]]:
    """The collection's documents; of many, some from all over it."""
    from recollect.cli._progress import WorkBar
    from recollect.evaluation.rag_test import tracked

    ids: list[int] = []
    while page := view.documents.list(status="embedded", after=ids[-1] if ids else 0, limit=_PAGE):
        ids += [record.document_id for record in page]
    chosen = ids[:: max(1, -(-len(ids) // _MAX_DOCUMENTS))]
    with WorkBar(ctx.err, "Reading", unit="documents") as bar:
        for document_id in tracked(chosen, bar.update):
            record = view.documents.get(document_id)
            yield record.source, record.content or ""
