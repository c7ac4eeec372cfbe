"""``recollect import`` and ``recollect export``: collections as JSON Lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Annotated

import typer

from recollect.cli._access import ActorOptions
from recollect.cli._command_context import CommandContext
from recollect.cli._options import ChunkingOptions, command
from recollect.cli._progress import WorkBar
from recollect.cli.ingest import prepare_collection, tell
from recollect.errors import UsageError
from recollect.model.written_files import written_whole

#: Named in place of a file.
STANDARD_OUTPUT = Path("-")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "import", collection=True, remote=True)(_import)
    command(app, "export", collection=True, remote=True)(_export)


def _import(
    ctx: CommandContext,
    chunking: ChunkingOptions,
    actor: ActorOptions,
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON Lines: one document, or one chunk, a line.")],
    force: Annotated[bool, typer.Option("--force", help="Store every document anew, changed or not.")] = False,
) -> int:
    """Read documents from JSON Lines, with their chunks and vectors where they are given.

    Takes what `recollect export` writes, and lines of {"id", "text", "embedding", "metadata"} as other stores give
    them. Any size; unchanged documents cost next to nothing. Exit status 1 if some lines could not be read.
    """
    principal = actor.actor()
    with ctx.view(principal=principal) as view:
        if principal is None:
            prepare_collection(ctx.config, view, chunking)
        elif chunking.given:
            raise UsageError("With --as, leave out how documents are cut: that is for the collection's owners to say.")
        with WorkBar(ctx.err, "Importing", unit="documents") as bar:
            report = view.collections.import_file(file, force=force, on_progress=bar.ingest)
    return tell(ctx, report)


def _export(
    ctx: CommandContext,
    actor: ActorOptions,
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write; - for standard output.")],
    originals: Annotated[
        bool, typer.Option("--originals", help="With the files that documents were read from, up to 64 MiB each.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
) -> int:
    """Write a collection as JSON Lines: its current documents with their chunks and vectors."""
    if ctx.json and file == STANDARD_OUTPUT:
        raise UsageError("With --json the report stands on standard output: name a file to export to.")
    documents = 0
    with ctx.view(principal=actor.actor()) as view, writing(file, overwrite=overwrite) as target:
        for line in view.collections.export_lines(originals=originals):
            target.write(line)
            documents += 1
    if ctx.json:
        ctx.emit({"collection": ctx.collection, "documents": documents, "file": str(file)})
    elif file != STANDARD_OUTPUT:
        ctx.out.print(f"{documents:,} documents of {ctx.collection} in {file}")
    return 0


@contextmanager
def writing(file: Path, *, overwrite: bool) -> Iterator[IO[str]]:
    """Open the file to write, or standard output; an interruption leaves no half-written file."""
    if file == STANDARD_OUTPUT:
        yield sys.stdout
        return
    with written_whole(file, overwrite=overwrite) as raw:
        target = TextIOWrapper(raw, encoding="utf-8")
        try:
            yield target
        finally:
            target.detach()
