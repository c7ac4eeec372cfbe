"""Collections, documents that are imported into them, and what models say of every chunk of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.client.calls.base import Call, Calls, Steps, as_it_is, asked, once, reading, segment
from recollect.client.place import given
from recollect.client.wire import Json
from recollect.errors import ConflictError, NotFoundError, ParseError, RequestUnderWayError, UsageError
from recollect.ingest.line_files import MAX_LINE_BYTES, numbered_lines, require_file, too_long
from recollect.ingest.report import EXPIRED, FileError, IngestProgress, Tally
from recollect.model.collection import Collection
from recollect.model.contexts import ContextEstimate
from recollect.model.job import Job
from recollect.model.page import Page
from recollect.model.space import Space, SpaceReport
from recollect.operations.collections import CollectionOperations
from recollect.operations.declaring import operations_of

if TYPE_CHECKING:
    from recollect.ingest.report import IngestReport, ProgressCallback


class CollectionCalls(Calls):
    """Collections; see `recollect.View.collections`."""

    create: Callable[..., Call[Collection]] = asked(operations_of(CollectionOperations)["create"])
    get: Callable[..., Call[Collection]] = asked(operations_of(CollectionOperations)["get"])

    def ensure(self, name: str | None = None) -> Steps[Collection]:
        """The collection of that name, made with the server's settings where it is missing; None: the view's own."""
        wanted = (yield from self._collection()) if name is None else name
        try:
            return (yield from once(self.get(wanted)))
        except NotFoundError:
            pass
        try:
            return (yield from once(self.create(wanted)))
        except ConflictError:  # another process was faster
            return (yield from once(self.get(wanted)))

    def update(self, name: str, *, description: str) -> Call[Collection]:
        """Say something else of it."""
        self._at.require_present()
        return Call(method="PATCH", path=_path(name), body={"description": description}, read=reading(Collection))

    def export_lines(self, *, originals: bool = False) -> Call[Any]:
        """The view's collection as JSON Lines, as they are read; with ``originals`` the files of documents too."""
        self._at.require_present()
        if self._at.collections is None and self._at.known.me is None:
            raise UsageError("Name the collection that is exported: view(collections=NAME).")
        path = f"{_path(self._at.collection)}/export"
        return Call(method="GET", path=path, query={"originals": originals or None}, read=as_it_is)

    def import_file(
        self, path: Path | str, *, force: bool = False, on_progress: ProgressCallback | None = None
    ) -> Steps[IngestReport]:
        """Import documents from JSON Lines into the view's collection; see `recollect.View.collections`.

        The file is sent part by part. What an interruption leaves is whole; the same again goes on behind it.
        """
        self._at.require_present()
        require_file(Path(path))
        place = yield from self.ensure()
        return (yield from send_lines(place.name, Path(path), force=force, on_progress=on_progress))


def _path(name: str) -> str:
    return f"/v1/collections/{segment(name)}"


# Documents from JSON Lines: a file is sent in parts, each a request, so that what breaks off is not much.


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
            setattr(tally, name, getattr(tally, name) + told[name])
        tally.chunks += told["chunks"]
        if skipped := told["skipped"]:
            tally.skip_reasons[EXPIRED] = tally.skip_reasons.get(EXPIRED, 0) + skipped
        tally.errors += [FileError(one["path"], one["error"]) for one in told["errors"]]
        done += sum(told[name] for name in _COUNTS)
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


# What is computed anew of every chunk of a collection: its vectors, and the sentences that situate chunks.


class SpaceCalls(Calls):
    """The vector spaces of the view's collection; see `recollect.View.spaces`. `jobs.reembed` makes another."""

    def status(self) -> Steps[SpaceReport]:
        """The space that the collection uses, and those beside it."""
        self._at.require_present()
        path = _of((yield from self._collection()), "spaces")
        return (yield from once(Call(method="GET", path=path, read=reading(SpaceReport))))

    def drop(self) -> Steps[Page[Space]]:
        """Remove what is kept of the model before, and what was begun of another one; returns what that was."""
        self._at.require_present()
        path = _of((yield from self._collection()), "spaces")
        return (yield from once(Call(method="DELETE", path=path, read=reading(Page[Space]))))


class ModelCalls(Calls):
    """Jobs that ask a model about everything in the view's collection, and what they would take."""

    def reembed(
        self,
        model: str,
        *,
        provider: str | None = None,
        dimensions: int | None = None,
        cases: Path | str | None = None,
        samples: int = 100,
        minimum: Mapping[str, float] | None = None,
        switch: bool = True,
        rest: float = 1.0,
    ) -> Steps[Job]:
        """Ask for everything to be embedded with another model; see `recollect.View.jobs`.

        Raises:
            UsageError: ``cases`` is given: a server compares by questions that it samples.
        """
        self._at.require_present()
        if cases is not None:
            raise UsageError("Leave cases (--cases) out: a server compares the models by questions that it samples.")
        body = given(
            model=model,
            provider=provider,
            dimensions=dimensions,
            samples=samples,
            minimum=dict(minimum or {}),
            switch=switch,
            pause=rest,
        )
        return (yield from _asked(self, "spaces", body))

    def rollback(self, *, rest: float = 0.0) -> Steps[Job]:
        """Ask for the change back to the model before; see `recollect.View.jobs`."""
        self._at.require_present()
        return (yield from _asked(self, "spaces/rollback", {"pause": rest}))

    def contextualise(self) -> Steps[Job]:
        """Ask for every chunk to be situated in its document by a sentence; see `recollect.View.jobs`."""
        self._at.require_present()
        return (yield from _asked(self, "contexts", None))

    def estimate_contexts(self) -> Steps[ContextEstimate]:
        """What `contextualise` would ask of the server's language model, about."""
        self._at.require_present()
        path = _of((yield from self._collection()), "contexts")
        return (yield from once(Call(method="GET", path=path, read=reading(ContextEstimate))))


def _asked(calls: Calls, what: str, body: Mapping[str, Any] | None) -> Steps[Job]:
    path = _of((yield from calls._collection()), what)
    return (yield from once(Call(method="POST", path=path, body=body, read=reading(Job))))


def _of(collection: str, what: str) -> str:
    return f"/v1/collections/{segment(collection)}/{what}"
