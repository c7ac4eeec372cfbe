"""Files that are sent: kept in the store at once, and read by a job, on whichever machine."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from recollect.errors import ParseError, PermissionDeniedError, PersonalDataError, QuotaExceededError, UsageError
from recollect.model.job import NewJob
from recollect.model.principal import read_permissions
from recollect.pipeline.ingesting import destination, store_in_stages, told

if TYPE_CHECKING:
    from recollect.jobs.progress import Progress
    from recollect.model.job import Job
    from recollect.model.original import Original
    from recollect.pipeline.standpoint import Standpoint
    from recollect.store.database import Connection

#: The source that documents belong to whose files were sent.
UPLOAD_SOURCE = "upload"

_LONGEST_NAME = 255
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
) -> Sequence[Job]:
    """Keep files and ask for the jobs that read them; see `Jobs.upload`."""
    if not files:
        raise UsageError("Send a file.")
    if len(tags) > _MOST_TAGS or any(not tag.strip() for tag in tags):
        raise UsageError(f"Tags are words, {_MOST_TAGS:,} at most.")
    named = [replace(file, name=upload_name(file.name)) for file in files]
    for file in named:
        _require_size(file, at.config.ingest.max_file_bytes)
    names = [file.name for file in named]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"Two files are called {twice!r}, and would be one document: send one after the other.")
    granted = None if permissions is None else list(read_permissions(permissions).as_tokens())
    shared = {"tags": list(tags), "permissions": granted, "department": department, "force": force}
    wanted = {name: value for name, value in shared.items() if value}
    jobs = [_job(file, wanted, priority=priority) for file in named]
    scope = at.present()
    try:
        return at.store.uploads.add(scope, named, lambda connection: enqueue(jobs, connection))
    except QuotaExceededError as exc:
        if scope.principal is None:
            raise
        # How much the tenant has is made of what they may not read too.
        raise PermissionDeniedError("There is no room left: ask whoever looks after the store.") from exc


def _job(file: Original, wanted: Mapping[str, Any], *, priority: int) -> NewJob:
    return NewJob(
        kind="ingest_upload",
        arguments={
            "name": file.name,
            "mime_type": file.mime_type,
            "byte_count": file.byte_count,
            "sha256": file.file_hash.hex(),
            **wanted,
        },
        source=UPLOAD_SOURCE,
        source_type="upload",
        # Of one name, the file that was sent last is stored last; others wait for nobody.
        # By its hash, because a name may hold what is not to be kept.
        lock=f"{UPLOAD_SOURCE}/{hashlib.sha256(file.name.encode()).hexdigest()}",
        document=file.name,
        priority=priority,
    )


def store_upload(at: Standpoint, arguments: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Read a file that was sent and store it; returns what became of it.

    Raises:
        ParseError: It cannot be read.
        NotFoundError: It is not kept any more.
    """
    from recollect.documents.reader import read_bytes

    name, tags, permissions = arguments["name"], arguments.get("tags", ()), arguments.get("permissions")
    department = arguments.get("department")
    progress("read")
    scope = at.present()
    file = at.store.uploads.get(scope, bytes.fromhex(arguments["sha256"]), name=name, mime_type=arguments["mime_type"])
    document = read_bytes(
        file.read(),
        name=name,
        mime_type=file.mime_type,
        department=department,
        max_bytes=at.config.ingest.max_file_bytes,
        workers=at.assembly.parser_workers,
    )
    document = replace(
        document,
        tags=tuple(dict.fromkeys((*document.tags, *tags))),
        permissions=document.permissions if permissions is None else tuple(permissions),
        original=None if at.config.ingest.keep_originals == "never" else document.original,
    )
    progress("read", 1, 1)
    given = {"department": department, "tags": tuple(tags), "permissions": permissions}
    with destination(at) as place:
        source = at.store.documents.ensure_source(place.scope, place.collection, UPLOAD_SOURCE, "upload")
        force = arguments.get("force", False)
        try:
            return told(source, *store_in_stages(place, source, document, given=given, force=force, progress=progress))
        except PersonalDataError:
            # What is refused is not kept for another try either.
            at.store.uploads.drop(scope, file.file_hash)
            raise


def upload_name(given: str) -> str:
    """The name of a file as it was sent, without folders and without what is not to be seen in it.

    Raises:
        UsageError: Nothing is left of it.
    """
    last = re.split(r"[/\\]", given)[-1]
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
