"""A file's bytes to a `Document` with structure."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Protocol

from recollect.documents._data import parse_json, parse_table
from recollect.documents._html import parse_epub, parse_feed, parse_html
from recollect.documents._mail import parse_mail
from recollect.documents._office import parse_office
from recollect.documents._parsed import AttachedFile, Fact, Parsed, choose_title, one_line
from recollect.documents._text import NotTextError, clean, decode
from recollect.documents.formats import (
    DOCX,
    HTML,
    JPEG,
    PDF,
    PNG,
    PPTX,
    WEBP,
    XLSX,
    Format,
    UnreadableError,
    can_read_name,
    detect,
    is_picture_name,
    is_plain,
)
from recollect.documents.headings import (
    front_matter,
    front_matter_list,
    markdown_headings,
    org_headings,
    org_keywords,
    rst_headings,
    title_headings,
    without_silent_markdown,
    without_silent_rst,
)
from recollect.documents.ocr.readings import can_recognise, without_text
from recollect.documents.ocr.recognising import picture_pages
from recollect.documents.pdf import NO_TEXT, parse_pages, parse_pdf
from recollect.documents.pictures import with_descriptions
from recollect.documents.walk import open_file
from recollect.documents.workers import PageCallback, ParserWorkers, recognise_pages, shared_workers
from recollect.errors import ParseError, UsageError
from recollect.model import Document
from recollect.model.original import Original
from recollect.model.principal import read_permissions
from recollect.model.stated import StatedFields, stated_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from recollect.documents.ocr.readings import Readings


# What the content of each format is, chosen by what retrieves and quotes best:
# - Markdown, plain text, code, reStructuredText, Org: the file's own characters, so that a quote is the author's.
# - HTML, EPUB, office files: headings and list items as Markdown writes them, everything else as plain text (no
#   escapes, emphasis, link targets or images); see `TextBuilder`.
# - Tables: as Markdown writes them, so that a piece of one is indexed with the names of its columns; CSV files one line
#   a row with them, because they are lists of records. See `pipe_table` and `table_lines`.
# - PDF: plain paragraphs; headings are known by their offsets alone.
# - JSON: an outline without braces and escapes. E-mail: the main header lines, then the text.


_LONGEST_REASON = 200
_KEPT_BACK = "personal data is taken out or refused (rag.privacy.send_pictures)"
# What pictures are looked for in.
_WITH_PICTURES = frozenset(one.mime_type for one in (PDF, DOCX, PPTX, XLSX, HTML, PNG, JPEG, WEBP))


class PictureWithoutTextError(ParseError):
    """A picture in which nothing is written: nobody's failure."""


def _always_wanted() -> bool:
    return False


def read_file(
    path: Path,
    *,
    source: str,
    department: str | None = None,
    max_bytes: int | None = None,
    below: Path | None = None,
    workers: ParserWorkers | None = None,
    cancelled: Callable[[], bool] = _always_wanted,
    on_page: PageCallback | None = None,
) -> Document:
    """Reads a file as a document.

    Safe to call from many threads. All but short text, Markdown and the like is parsed in another process, which is
    killed when the file costs too much (`recollect.documents.workers`); a small Markdown file takes about 0.3 ms.

    Args:
        path: The file.
        source: The document's ``source``.
        department: The document's ``department``.
        max_bytes: Refuse larger files; None: no limit.
        below: A folder that holds it: the file is refused where a part of its path below that is a link. None: links
            are followed.
        workers: Who parses; None: processes that are shared by all, with limits as they are by default.
        cancelled: Asked now and then; once it says so, the file's parser is ended.
        on_page: Told how many of the pages that are pictures were recognised, and how many there are.

    Raises:
        ParseError: The file is missing, empty, too large, of an unknown type, protected, damaged or without text.
    """
    data = load_file(path, max_bytes=max_bytes, below=below)
    files = _FileReader(workers or shared_workers(), cancelled, on_page)
    return _document(files, data, path.name, str(path), source=source, department=department)


def load_file(path: Path, *, max_bytes: int | None = None, below: Path | None = None) -> bytes:
    """A file's bytes, read once; the arguments are `read_file`'s.

    Raises:
        ParseError: The file is missing, no regular file, empty or too large, or may not be read.
    """
    try:
        if not path.is_file() and path.exists():
            raise ParseError(str(path), "is not a regular file")
        with open_file(path, below=below) as file:
            _check_size(os.fstat(file.fileno()).st_size, max_bytes, str(path))
            data = file.read(-1 if max_bytes is None else max_bytes + 1)
        _check_size(len(data), max_bytes, str(path))
    except FileNotFoundError as error:
        raise ParseError(str(path), "does not exist") from error
    except PermissionError as error:
        raise ParseError(str(path), "may not be read: permission denied") from error
    except (OSError, ValueError) as error:
        raise ParseError(str(path), f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return data


def read_bytes(
    data: bytes,
    *,
    name: str,
    mime_type: str | None = None,
    source: str | None = None,
    department: str | None = None,
    max_bytes: int | None = None,
    main_content: bool = False,
    attachments: bool = True,
    pictures: bool = True,
    workers: ParserWorkers | None = None,
    cancelled: Callable[[], bool] = _always_wanted,
    on_page: PageCallback | None = None,
) -> Document:
    """Reads an uploaded or downloaded file as a document, which has it as its ``original``.

    Args:
        data: The whole file.
        name: Its name; the extension says what it is, unless its content or ``mime_type`` says better.
        mime_type: As the sender declared it; unknown and generic types are ignored.
        source: The document's ``source``; None: ``name``.
        department: The document's ``department``.
        max_bytes: Refuse larger files; None: no limit.
        main_content: Whether a web page is cut down to its main content, without menus, banners and footers.
        attachments: Whether what is attached to a message is read, as the document's ``attachments``.
        pictures: Whether its pictures may be shown to the model of ``workers`` that describes them, if there is one.
        workers: As in `read_file`.
        cancelled: As in `read_file`.
        on_page: As in `read_file`.

    Raises:
        ParseError: As in `read_file`.
    """
    _check_size(len(data), max_bytes, name)
    document = _document(
        _FileReader(workers or shared_workers(), cancelled, on_page, pictures),
        data,
        name,
        name,
        source=name if source is None else source,
        department=department,
        mime_type=mime_type,
        main_content=main_content,
        attachments=attachments,
    )
    return replace(document, original=Original.of_bytes(data, name=clean(name), mime_type=document.mime_type))


def _check_size(size: int, max_bytes: int | None, path: str) -> None:
    if size == 0:
        raise ParseError(path, "is empty")
    if max_bytes is not None and size > max_bytes:
        raise ParseError(path, f"is larger than the limit ({size:,} of {max_bytes:,} bytes)")


def _document(
    files: _FileReader,
    data: bytes,
    name: str,
    path: str,
    *,
    source: str,
    department: str | None,
    mime_type: str | None = None,
    main_content: bool = False,
    attachments: bool = True,
) -> Document:
    try:
        parsed = files.read(data, name, mime_type, main_content=main_content)
    except UnreadableError as error:
        shows_nothing = str(error) == NO_TEXT and is_picture_name(name)
        raise (PictureWithoutTextError if shows_nothing else ParseError)(path, str(error)) from error
    document = replace(document_of(parsed, data, source=source), department=parsed.stated.department or department)
    document = files.described(document, data, name, mime_type)
    if not document.content.strip():
        raise PictureWithoutTextError(path, NO_TEXT)
    if not attachments or not parsed.attached:
        return document
    limits = files.pool.limits
    reader = AttachedReader(
        files.read, files.described, seconds=limits.seconds, characters=max(limits.characters, len(data))
    )
    return reader.with_attachments(document, parsed)


@dataclass(frozen=True, slots=True)
class _FileReader:
    """Reads files, each within the limits of a file."""

    pool: ParserWorkers
    cancelled: Callable[[], bool]
    on_page: PageCallback | None
    shows_pictures: bool = True

    def read(self, data: bytes, name: str, mime_type: str | None, *, main_content: bool = False) -> Parsed:
        """A file's text; of a picture whose text cannot be recognised, none where it is to be described.

        Raises:
            UnreadableError: It cannot be read.
        """
        if is_plain(data, name=name, mime_type=mime_type):
            return parse(data, name, mime_type)
        parsed = self.pool.parse(
            data, name=name, mime_type=mime_type, main_content=main_content, cancelled=self.cancelled
        )
        if not parsed.unread:
            return parsed
        try:
            return self._recognised(data, parsed, name, mime_type)
        except UnreadableError:
            if self.pool.describer is None or not self.shows_pictures or not is_picture_name(name):
                raise
            return parsed

    def _recognised(self, data: bytes, parsed: Parsed, name: str, mime_type: str | None) -> Parsed:
        """A file with the text of its pages that are pictures; what cannot be recognised is counted in the metadata."""
        why: list[str] = []
        if not self.pool.ocr and is_picture_name(name):
            raise UnreadableError(NO_TEXT)
        if self.pool.ocr and can_recognise():
            readings, why = recognise_pages(
                self.pool,
                data,
                parsed.unread,
                name=name,
                mime_type=mime_type,
                cancelled=self.cancelled,
                on_page=self.on_page,
            )
            parsed = self.pool.parse(data, name=name, mime_type=mime_type, readings=readings, cancelled=self.cancelled)
            if readings:
                parsed = replace(parsed, metadata={**parsed.metadata, "pages_recognised": len(readings)})
        if not parsed.unread:
            return parsed
        unread, pages = len(parsed.unread), int(parsed.metadata.get("page_count") or len(parsed.unread))
        if not parsed.content:
            raise UnreadableError(
                "; ".join([f"has no text in it: {without_text(unread, pages, ocr=self.pool.ocr)}", *why[:1]])
            )
        told: dict[str, Fact] = {"pages_without_text": unread}
        if not self.pool.ocr:
            told["ocr"] = "off"
        if why:
            told["pages_left_out"] = why[0][:_LONGEST_REASON]
        return replace(parsed, metadata={**parsed.metadata, **told})

    def described(self, document: Document, data: bytes, name: str, mime_type: str | None) -> Document:
        """A document with what its pictures show, where somebody describes them."""
        describer = self.pool.describer
        if describer is None or document.mime_type not in _WITH_PICTURES:
            return document
        try:
            pictures = self.pool.find_pictures(data, name=name, mime_type=mime_type, cancelled=self.cancelled)
        except UnreadableError as error:
            return replace(document, metadata={**document.metadata, "pictures_left_out": str(error)[:_LONGEST_REASON]})
        if pictures and not self.shows_pictures:
            count = "1 picture was" if len(pictures) == 1 else f"{len(pictures)} pictures were"
            note = f"{count} not described: none is sent where {_KEPT_BACK}"
            return replace(document, metadata={**document.metadata, "pictures_left_out": note})
        return with_descriptions(document, pictures, describer) if pictures else document


def parse(
    data: bytes,
    name: str,
    mime_type: str | None = None,
    *,
    main_content: bool = False,
    readings: Readings | None = None,
) -> Parsed:
    """A file's text and structure, with its title; in this process, whatever it costs.

    Args:
        data: The whole file.
        name: Its name; the extension says what it is, unless its content or ``mime_type`` says better.
        mime_type: As the sender declared it.
        main_content: Whether a web page is cut down to its main content.
        readings: What was recognised on its pages.

    Raises:
        UnreadableError: It is of an unknown type, protected, damaged or without text.
    """
    file_format = detect(data, name=name, mime_type=mime_type)
    try:
        parsed = _parse(data, file_format, main_content=main_content, readings=readings or {})
    except NotTextError as error:
        raise UnreadableError(str(error)) from error
    if not parsed.content.strip() and not parsed.unread:
        raise UnreadableError("has no text in it")
    if not parsed.headings and file_format.kind in {"html", "epub", "office"}:
        parsed = replace(parsed, headings=title_headings(parsed.content))
    return replace(
        parsed,
        title=choose_title(parsed, PurePath(name).stem),
        metadata={"format": _format_name(name, file_format), **parsed.metadata},
        mime_type=file_format.mime_type,
    )


def _stated(matter: Mapping[str, object]) -> StatedFields:
    try:
        return stated_fields(matter, where="the front matter")
    except UsageError as exc:
        raise UnreadableError(str(exc)) from exc


def _permissions(given: list[str] | None) -> tuple[str, ...] | None:
    if given is None:
        return None
    try:
        return read_permissions(given, name="permissions in the front matter").as_tokens()
    except UsageError as exc:
        # Read as everybody's, a document that was meant for few would be everybody's.
        raise UnreadableError(str(exc)) from exc


def _format_name(name: str, file_format: Format) -> str:
    suffix = PurePath(name.lower()).suffix[1:]
    known = file_format.kind if file_format.kind != "office" else ""
    return known if known in {"pdf", "html", "epub", "markdown"} else clean(suffix) or file_format.kind


def _parse(data: bytes, file_format: Format, *, main_content: bool, readings: Readings) -> Parsed:
    match file_format.kind:
        case "pdf":
            return parse_pdf(data, readings)
        case "picture":
            return parse_pages(picture_pages(data), readings)
        case "office":
            return parse_office(data, file_format)
        case "html":
            return parse_html(data, main_content=main_content)
        case "feed":
            return parse_feed(data)
        case "epub":
            return parse_epub(data)
        case "mail":
            return parse_mail(data)
        case "table":
            return parse_table(data, tabs=file_format.mime_type == "text/tab-separated-values")
        case "json":
            return parse_json(data)
        case _:
            return _parse_text(decode(data), file_format)


def _parse_text(text: str, file_format: Format) -> Parsed:
    match file_format.kind:
        case "markdown":
            matter = front_matter(text)
            stated = _stated(matter)
            author = matter.get("author")
            text = without_silent_markdown(text)
            return Parsed(
                content=text,
                headings=markdown_headings(text) or title_headings(text),
                title=stated.title,
                event_time=stated.event_time,
                metadata={"author": author} if isinstance(author, str) else {},
                stated=stated,
                permissions=_permissions(front_matter_list(text, "permissions")),
            )
        case "rst":
            text, headings = without_silent_rst(text, rst_headings(text))
            return Parsed(content=text, headings=headings)
        case "org":
            words = org_keywords(text)
            author = {"author": words["author"]} if "author" in words else {}
            return Parsed(content=text, headings=org_headings(text), title=words.get("title"), metadata=author)
        case "text":
            return Parsed(content=text, headings=title_headings(text))
        case _:
            return Parsed(content=text)


# What is attached to a message, read as documents of its own.


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
