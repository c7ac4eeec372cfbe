"""Documents from JSON Lines: a file is sent in parts, each a request, so that what breaks off is not much."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.client.calls.base import Call, Steps, segment
from recollect.client.reading import Json
from recollect.errors import ConflictError, ParseError, RequestUnderWayError, UsageError
from recollect.ingest.line_files import MAX_LINE_BYTES, numbered_lines, too_long
from recollect.ingest.report import EXPIRED, FileError, IngestProgress, Tally

if TYPE_CHECKING:
    from recollect.ingest.report import IngestReport, ProgressCallback

# Of one request: little enough that a model on a slow machine embeds it while a client waits for the reply.
_MOST_LINES = 200
_MOST_BYTES = 1 << 20
# A part is replied to when it is stored, which takes a slow machine its time.
_PATIENCE_SECONDS = 600.0

_COUNTS = ("added", "updated", "unchanged", "removed")


@dataclass(slots=True)
class _Part:
    """Lines that are sent together."""

    first: int
    lines: bytes
    count: int


def send_lines(
    collection: str, path: Path, *, force: bool, on_progress: ProgressCallback | None
) -> Steps[IngestReport]:
    """Send a file of JSON Lines part by part, and tell what became of it.

    Raises:
        ParseError: It cannot be read.
    """
    began, tally, done = time.monotonic(), Tally(), 0
    for part in _parts(path, tally):
        told = yield from _stored(_call(collection, path, part, force=force), part, path, tally, force=force)
        if told is None:
            continue
        for name in _COUNTS:
            setattr(tally, name, getattr(tally, name) + told["documents"][name])
        tally.chunks += told["chunks"]
        if skipped := told["documents"]["skipped"]:
            tally.skip_reasons[EXPIRED] = tally.skip_reasons.get(EXPIRED, 0) + skipped
        tally.errors += [FileError(one["path"], one["error"]) for one in told["errors"]]
        done += sum(told["documents"][name] for name in _COUNTS)
        if on_progress is not None:
            on_progress(IngestProgress(done=done, total=0, chunks=tally.chunks))
    tally.errors.sort(key=_line_of)
    return tally.report(time.monotonic() - began)


def _call(collection: str, path: Path, part: _Part, *, force: bool) -> Call[Json]:
    query: dict[str, Any] = {"file": str(path), "first_line": part.first, "force": force or None}
    return Call(
        method="POST",
        path=f"/v1/collections/{segment(collection)}/import",
        query=query,
        lines=part.lines,
        patience_seconds=_PATIENCE_SECONDS,
        read=dict,
    )


def _stored(call: Call[Json], part: _Part, path: Path, tally: Tally, *, force: bool) -> Steps[Json | None]:
    try:
        told: Json = yield call
        return told
    except (ConflictError, RequestUnderWayError):
        # The server has died in the middle of it. What is stored is found unchanged, so it may be sent once more.
        if force:
            raise
        told = yield call
        return told
    except UsageError as exc:
        if part.count > 1 or not _is_too_large(exc):
            raise
        tally.fail(f"{path}:{part.first}", str(exc))
        return None


def _is_too_large(exc: UsageError) -> bool:
    return str(exc).startswith("The body is longer than")


def _parts(path: Path, tally: Tally) -> Iterator[_Part]:
    part: _Part | None = None
    for number, line in _lines(path):
        if len(line) > MAX_LINE_BYTES:
            tally.fail(f"{path}:{number}", too_long(MAX_LINE_BYTES))
            continue
        if part is not None and (
            part.count == _MOST_LINES
            or len(part.lines) + len(line) > _MOST_BYTES
            # The server counts on from the first line.
            or number != part.first + part.count
        ):
            yield part
            part = None
        if part is None:
            part = _Part(number, line, 1)
        else:
            part.lines += line
            part.count += 1
    if part is not None:
        yield part


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as file:
            yield from numbered_lines(file)
    except OSError as exc:
        raise ParseError(str(path), exc.strerror or str(exc)) from exc


def _line_of(error: FileError) -> int:
    number = error.path.rpartition(":")[2]
    return int(number) if number.isdecimal() else 0
