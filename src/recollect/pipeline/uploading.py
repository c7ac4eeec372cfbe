"""Files that are sent: kept in the store at once, and read by a job, on whichever machine."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from recollect.documents.ocr.readings import pages_without_text
from recollect.documents.reader import read_bytes
from recollect.errors import ParseError, PermissionDeniedError, PersonalDataError, QuotaExceededError, UsageError
from recollect.interruption import carried_through
from recollect.model.job import Job, NewJob
from recollect.model.principal import read_permissions
from recollect.model.uploaded_file import file_of_source
from recollect.pipeline.ingesting import destination, store_in_stages, told
from recollect.pipeline.preparing import ChunkSizes, shows_pictures
from recollect.store.files import missing_file

if TYPE_CHECKING:
    from recollect.jobs.progress import Progress
    from recollect.model import Scope
    from recollect.model.collection import Collection
    from recollect.model.original import Original
    from recollect.pipeline.standpoint import Standing, Standpoint
    from recollect.store.database import Connection

#: In the metadata of a document that was cut with sizes of its own: `chunk_tokens` and `overlap_tokens`.
CUT = "chunking"

#: The source that documents belong to whose files were sent.
UPLOAD_SOURCE = "upload"

_LONGEST_NAME = 255
_LONGEST_PATH = 1_000
_LONGEST_SUFFIX = 20
_MOST_TAGS = 1_000


def ask_for(
    at: Standpoint,
    files: Sequence[Original],
    *,
    enqueue: Callable[[Sequence[NewJob], Connection], Sequence[Job]],
    tags: Sequence[str],
    permissions: Sequence[str] | None,
    department: str | None,
    force: bool,
    priority: int,
    folders: bool = False,
) -> Sequence[Job]:
    """Keep files and ask for the jobs that read them; see `Jobs.upload`."""
    if not files:
        raise UsageError("Send a file.")
    if len(tags) > _MOST_TAGS or any(not tag.strip() for tag in tags):
        raise UsageError(f"Tags are words, {_MOST_TAGS:,} at most.")
    named = [named_file(at, file, folders=folders) for file in files]
    names = [file.name for file in named]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"Two files are called {twice!r}, and would be one document: send one after the other.")
    granted = None if permissions is None else list(read_permissions(permissions).as_tokens())
    shared = {"tags": list(tags), "permissions": granted, "department": department, "force": force}
    wanted = {name: value for name, value in shared.items() if value}
    jobs = [upload_job(file, wanted, priority=priority) for file in named]
    scope = at.present()
    with room_told(scope):
        return at.store.uploads.add(scope, named, lambda connection: enqueue(jobs, connection))


def named_file(at: Standpoint, file: Original, *, folders: bool = False) -> Original:
    """A file that was sent, under the name that it is kept and shown by; ``folders``: with those before it.

    Raises:
        UsageError: It has no name.
        ParseError: It is empty, or larger than files may be.
    """
    named = replace(file, name=upload_name(file.name, folders=folders))
    _require_size(named, at.config.ingest.max_file_bytes)
    return named


@contextmanager
def room_told(scope: Scope) -> Iterator[None]:
    """Tells a principal no more of the tenant's quota than that it is full.

    Raises:
        PermissionDeniedError: It is, and somebody in particular asks.
    """
    try:
        yield
    except QuotaExceededError as exc:
        if scope.principal is None:
            raise
        # How much the tenant has is made of what they may not read too.
        raise PermissionDeniedError("There is no room left: ask whoever looks after the store.") from exc


def upload_job(file: Original, wanted: Mapping[str, Any], *, source: str = UPLOAD_SOURCE, priority: int = 0) -> NewJob:
    """What is asked for to have a file stored whose bytes are kept.

    Args:
        file: Which one.
        wanted: What else the job is told.
        source: That its document belongs to.
        priority: Jobs of a higher one run first.
    """
    return NewJob(
        kind="ingest_upload",
        arguments={
            "name": file.name,
            "mime_type": file.mime_type,
            "byte_count": file.byte_count,
            "sha256": file.file_hash.hex(),
            **wanted,
        },
        source=source,
        source_type="upload",
        # Of one name, the file that was sent last is stored last; others wait for nobody.
        # By its hash, because a name may hold what is not to be kept.
        lock=f"{source}/{hashlib.sha256(file.name.encode()).hexdigest()}",
        document=file.name,
        priority=priority,
    )


def store_upload(view: Standing, arguments: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Read a file that was sent and store it; returns what became of it.

    Raises:
        ParseError: It cannot be read.
        NotFoundError: It is not kept any more.
    """
    at = view.standpoint
    name, tags, permissions = arguments["name"], arguments.get("tags", ()), arguments.get("permissions")
    department, said = arguments.get("department"), {**arguments.get("metadata", {}), **_cut(arguments)}
    progress("read")
    scope = at.present()
    kept = file_of_source(arguments.get("source", UPLOAD_SOURCE))
    ends = None if kept is None else _require_kept(at, scope, kept)
    file = at.store.uploads.get(scope, bytes.fromhex(arguments["sha256"]), name=name, mime_type=arguments["mime_type"])
    document = read_bytes(
        file.read(),
        name=name,
        mime_type=file.mime_type,
        department=department,
        max_bytes=at.config.ingest.max_file_bytes,
        pictures=shows_pictures(at.assembly, scope),
        workers=at.assembly.parser_workers,
        on_page=lambda done, total: progress("recognising", done, total),
    )
    document = replace(
        document,
        tags=tuple(dict.fromkeys((*document.tags, *tags))),
        metadata={**document.metadata, **said},
        ttl=document.ttl if ends is None else max(ends - datetime.now(UTC), timedelta(seconds=1)),
        permissions=document.permissions if permissions is None else tuple(permissions),
        original=None if at.config.ingest.keep_originals == "never" else document.original,
    )
    progress("read", 1, 1)
    given = {"department": department, "tags": tuple(tags), "permissions": permissions}
    given |= {"metadata": json.dumps(said, sort_keys=True)} if said else {}
    with destination(at, sizes=_sizes(arguments)) as place:
        source = at.store.documents.ensure_source(
            place.scope, place.collection, arguments.get("source", UPLOAD_SOURCE), "upload"
        )
        force = arguments.get("force", False)
        try:
            stored = store_in_stages(place, source, document, given=given, force=force, progress=progress)
            unread = pages_without_text(document.metadata)
            return {**told(source, *stored), **({"without_text": unread} if unread else {})}
        except PersonalDataError:
            # What is refused is not kept for another try either.
            at.store.uploads.drop(scope, file.file_hash)
            raise
        finally:
            if kept is not None:
                # Whoever takes the file out cancels the job too, which may end it here with the document stored.
                with carried_through():
                    _close_unwanted(at, place.scope, place.collection, kept)


def give_up(view: Standing, arguments: Mapping[str, Any]) -> None:
    """What ends `store_upload` where its worker was killed before it came to that, and the job was cancelled."""
    at = view.standpoint
    kept, scope = file_of_source(arguments.get("source", UPLOAD_SOURCE)), replace(at.present(), principal=None)
    collection = None if kept is None or at.session is not None else at.store.collections.find(scope, at.collection)
    if kept is not None and collection is not None:
        _close_unwanted(at, scope, collection, kept)


def _close_unwanted(at: Standpoint, scope: Scope, collection: Collection, file_id: int) -> None:
    """Close what was made of a file that was deleted or taken out meanwhile: who did that met nothing to close yet."""
    if at.store.files.is_wanted(scope, file_id, collection=collection.name):
        return
    made = at.store.files.documents(scope, file_id)
    at.store.writer.close(scope, [number for number, where, _ in made if where == collection.collection_id])


def _require_kept(at: Standpoint, scope: Scope, file_id: int) -> datetime | None:
    """When a file goes that was sent to be kept.

    Raises:
        NotFoundError: It was deleted.
    """
    owned = replace(scope, principal=None)
    found = at.store.files.several(owned, [file_id])
    if not found:
        raise missing_file(file_id)
    return found[file_id].expires_at


def _cut(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """How a document is cut otherwise than its collection, as its metadata has it."""
    sizes = {name: arguments[name] for name in ("chunk_tokens", "overlap_tokens") if name in arguments}
    return {CUT: sizes} if sizes else {}


def _sizes(arguments: Mapping[str, Any]) -> ChunkSizes | None:
    size, overlap = arguments.get("chunk_tokens"), arguments.get("overlap_tokens")
    return None if size is None and overlap is None else ChunkSizes(size=size, overlap=overlap, in_tokens=True)


def upload_name(given: str, *, folders: bool = False) -> str:
    """The name of a file as it was sent, without what is not to be seen in it.

    Args:
        given: As its sender wrote it.
        folders: Whether the folders before it stay; what leads upwards does not.

    Raises:
        UsageError: Nothing is left of it, or there is too much.
    """
    *above, last = re.split(r"[/\\]", given)
    if not folders:
        return _plain(last)
    path = "/".join([*(_plain(one) for one in above if one.strip(". ")), _plain(last)])
    if len(path) > _LONGEST_PATH:
        raise UsageError(f"The path of a file is longer than {_LONGEST_PATH:,} characters: {path[:100]!r}…")
    return path


def _plain(last: str) -> str:
    # Controls, marks that turn the direction of writing, surrogates: names are read by people.
    shown = "".join(one for one in unicodedata.normalize("NFC", last) if unicodedata.category(one)[0] != "C")
    name = " ".join(shown.split())
    if not name.strip("."):
        raise UsageError("A file needs a name: it says what the document is called, and its ending what it holds.")
    if len(name) > _LONGEST_NAME:
        suffix = PurePath(name).suffix[:_LONGEST_SUFFIX]
        name = name[: _LONGEST_NAME - len(suffix)] + suffix
    return name


def _require_size(file: Original, most: int) -> None:
    if not file.byte_count:
        raise ParseError(file.name, "is empty")
    if file.byte_count > most:
        raise ParseError(file.name, f"is larger than the limit ({file.byte_count:,} of {most:,} bytes)")
