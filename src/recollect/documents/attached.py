"""What is attached to a message, read as documents of its own."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from recollect.documents._parsed import one_line
from recollect.documents._text import clean
from recollect.documents.formats import UnreadableError, can_read_name
from recollect.model import Document
from recollect.model.original import Original

if TYPE_CHECKING:
    from recollect.documents._parsed import AttachedFile, Parsed

#: The most files that are read of one message, with those of the messages attached to it.
MOST_ATTACHMENTS = 100
#: How deep messages may lie in messages.
DEEPEST = 5
# So many times as long as a file may take, all of them together may.
_TIMES = 10
_LONGEST_NOTE = 500


class Read(Protocol):
    """Gives a file's text and structure."""

    def __call__(self, data: bytes, name: str, mime_type: str | None) -> Parsed:
        """Read it.

        Raises:
            UnreadableError: It cannot be read, or costs more than it may.
        """
        ...


class Finish(Protocol):
    """Adds to a document what is made of its file beside its text."""

    def __call__(self, document: Document, data: bytes, name: str, mime_type: str | None) -> Document:
        """The document as it is to be stored."""
        ...


class AttachedReader:
    """Reads what is attached to one message, and to the messages attached to it, within limits for all together.

    Args:
        read: Reads a file, within the limits of a file.
        finish: Adds what is made of it beside its text.
        seconds: What a file may take; all together may take ten times that.
        characters: What all together may give.
    """

    def __init__(self, read: Read, finish: Finish, *, seconds: float, characters: int) -> None:
        self._read, self._finish = read, finish
        self._ends = time.monotonic() + _TIMES * seconds
        self._characters = characters
        self._left = MOST_ATTACHMENTS
        self._seen: set[bytes] = set()

    def with_attachments(self, document: Document, parsed: Parsed, *, depth: int = 1) -> Document:
        """A message with what is attached to it; what cannot be read is named in its metadata, with the reason.

        Args:
            document: The message.
            parsed: As it was parsed.
            depth: How deep it lies in others, from 1.
        """
        self._seen.add(document.file_hash or b"")
        left_out: list[str] = []
        attachments = tuple(self._documents(parsed.attached, depth, left_out))
        note = "; ".join(left_out)
        if len(note) > _LONGEST_NOTE:
            note = f"{note[: _LONGEST_NOTE - 1]}…"
        told = {"attachments_left_out": note} if note else {}
        return replace(document, attachments=attachments, metadata={**document.metadata, **told})

    def _documents(self, files: Sequence[AttachedFile], depth: int, left_out: list[str]) -> Iterator[Document]:
        for file in files:
            named = one_line(file.own_name)[:100] or file.name
            file_hash = hashlib.sha256(file.data).digest()
            if file_hash in self._seen:
                continue  # forwarded messages bring the same files again
            reason = self._reason_to_leave_out(file, depth)
            if reason is None:
                self._seen.add(file_hash)
                self._left -= 1
                try:
                    yield self._document(file, depth)
                    continue
                except UnreadableError as error:
                    reason = str(error)
            left_out.append(f"{named} {reason}")

    def _reason_to_leave_out(self, file: AttachedFile, depth: int) -> str | None:
        if not file.data:
            return "is empty"
        if not can_read_name(file.name):
            return "is of a type that is not read"
        if depth > DEEPEST:
            return f"lies deeper than {DEEPEST} messages"
        if self._left <= 0:
            return f"is one of more than {MOST_ATTACHMENTS} files"
        if time.monotonic() > self._ends:
            return "came after the time was over (rag.ingest.parse_seconds)"
        return None

    def _document(self, file: AttachedFile, depth: int) -> Document:
        # Without the number before it: a name may become the title.
        name, mime_type = file.name.partition("-")[2], file.mime_type or None
        parsed = self._read(file.data, name, mime_type)
        if len(parsed.content) > self._characters:
            raise UnreadableError("gives more characters than are left of the message's (rag.ingest.max_characters)")
        self._characters -= len(parsed.content)
        document = self._finish(document_of(parsed, file.data, source=file.name), file.data, name, mime_type)
        if not document.content.strip():
            raise UnreadableError("has no text in it")
        own_name = clean(file.own_name) or file.name
        document = replace(document, original=Original.of_bytes(file.data, name=own_name, mime_type=document.mime_type))
        return self.with_attachments(document, parsed, depth=depth + 1) if parsed.attached else document


def document_of(parsed: Parsed, data: bytes, *, source: str) -> Document:
    """What was parsed of a file, as a document."""
    return Document(
        content=parsed.content,
        source=clean(source),
        title=parsed.title,
        metadata=parsed.metadata,
        tags=parsed.stated.tags,
        department=parsed.stated.department,
        ttl=parsed.stated.ttl,
        mime_type=parsed.mime_type,
        headings=tuple(parsed.headings),
        pages=tuple(parsed.pages),
        event_time=parsed.event_time,
        event_end=parsed.stated.event_end,
        permissions=parsed.permissions,
        file_hash=hashlib.sha256(data).digest(),
    )
