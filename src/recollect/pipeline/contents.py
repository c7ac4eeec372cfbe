"""What the documents of a view say: listed, outlined, read in parts and searched exactly."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from recollect.errors import NotFoundError, SessionExpiredError, UsageError
from recollect.model.activity import show
from recollect.model.arguments import checked
from recollect.model.contents import (
    DocumentChunk,
    DocumentEntry,
    DocumentOutline,
    DocumentPart,
    ExactMatch,
    GrepReply,
    MatchedDocument,
    Stop,
)
from recollect.model.outline import page_at, section_path
from recollect.model.page import Page, every, number_at
from recollect.model.scope import Guest, Target
from recollect.pipeline.standpoint import Group, is_conversation, label, living
from recollect.retrieval.grep import ExactPattern
from recollect.store.contents import DocumentText, Places, TextSize

if TYPE_CHECKING:
    from recollect.model import Scope
    from recollect.model.original import Original


T = TypeVar("T")

#: Documents of a listing, characters of a part, matches, and chunks of a listing, at most.
MAX_ENTRIES = 1_000

MAX_CHARACTERS = 1_000_000

MAX_MATCHES = 1_000

MAX_CHUNKS = 10_000


@checked
class Contents(Group):
    """What documents say; see `recollect.View`.

    All of it is of the documents that a search of the view looks into: of its collections, of its session, as they
    were known at its moment, as far as its principal may read them. Offsets are characters of a document's text, as
    searches, citations and `grep` give them. Nothing is changed.
    """

    def outline(self, document_id: int) -> DocumentOutline:
        """The headings and pages of a document, with their offsets.

        Raises:
            NotFoundError: There is no such document where the view looks.
        """
        found = self._of(document_id, self._at.store.contents.outline)
        show("outline", documents=[(document_id, 0)])
        return found

    def read(self, document_id: int, *, start: int = 0, length: int = 10_000) -> DocumentPart:
        """A range of a document's text.

        Args:
            document_id: Of the document.
            start: The first character, from 0.
            length: How many characters, 1 to 1,000,000; fewer are given where the text ends.

        Raises:
            UsageError: The range is none, or begins behind the end of the text.
            NotFoundError: There is no such document where the view looks.
        """
        _require_range("start", start, 0, 2**31 - 2)
        _require_range("length", length, 1, MAX_CHARACTERS)
        part = self._of(document_id, self._at.store.contents.part, start=start, length=length)
        if start and start >= part.characters:
            raise UsageError(
                f"The document {document_id} has {part.characters} characters: start must be less, not {start}."
            )
        show("read", documents=[(part.document_id, part.version_id)])
        return part

    def chunks(
        self, document_id: int, *, cursor: str | None = None, limit: int = 100, start: int = 0, end: int | None = None
    ) -> Page[DocumentChunk]:
        """What a document was cut into, in order: what is embedded, searched and found.

        Args:
            document_id: Of the document.
            cursor: ``next_cursor`` of the page before; None: the first page.
            limit: How many at most, 1 to 10,000.
            start: Only those that hold this character of the text or one behind it.
            end: Only those that hold a character before this one; None: to the end.

        Raises:
            UsageError: A limit is out of range, or the cursor is none of this list.
            NotFoundError: There is no such document where the view looks.
        """
        position = number_at(cursor)
        after = -1 if position is None else min(position, 2**31 - 1)
        _require_range("limit", limit, 1, MAX_CHUNKS)
        _require_range("start", start, 0, 2**31 - 2)
        stop = 2**31 - 1 if end is None else end
        _require_range("end", stop, 0, 2**31 - 1)
        read = self._at.store.contents.chunks
        found = self._of(document_id, read, after=after, limit=limit + 1, start=start, end=stop)
        return Page.of(found, limit, lambda chunk: chunk.position)

    def each_chunk(self, document_id: int, *, start: int = 0, end: int | None = None) -> Iterator[DocumentChunk]:
        """All chunks that `chunks` gives with these arguments, page by page as they are read."""
        return every(self.chunks, document_id, start=start, end=end)

    def download(self, document_id: int) -> Iterator[bytes]:
        """The bytes of `original`, piece by piece.

        Raises:
            NotFoundError: There is no such document where the view looks, or its original was not kept.
        """
        yield from self.original(document_id).opened()

    def original(self, document_id: int) -> Original:
        """The file that a document was read from, as it came; its bytes are read when they are wanted.

        Raises:
            NotFoundError: There is no such document where the view looks, or its original was not kept.
        """
        found = self._of(document_id, self._at.store.contents.original)
        show("original", documents=[(document_id, 0)])
        return found

    def grep(
        self,
        pattern: str,
        *,
        regex: bool = False,
        case_sensitive: bool = False,
        whole_words: bool = False,
        document_id: int | None = None,
        department: str | None = None,
        limit: int = 50,
        limit_per_document: int = 10,
        from_document: int = 0,
        from_offset: int = 0,
        seconds: float = 5.0,
        max_bytes: int = 64 << 20,
    ) -> GrepReply:
        r"""Find exact text, or what a regular expression matches, wherever it stands.

        Documents are looked at by their id until there are enough matches, or time or bytes run out; the reply says
        where to go on. No pattern takes longer than the length of the texts times its own.

        Args:
            pattern: Exact text, whose white space stands for any white space, because documents break lines.
            regex: Whether ``pattern`` is a regular expression in RE2's syntax: without look-around and
                back-references. ``^`` and ``$`` are the ends of lines; ``\w``, ``\d`` and ``\b`` know ASCII alone,
                ``\pL`` is a letter of any script.
            case_sensitive: Whether ``a`` is another letter than ``A``.
            whole_words: Only matches with no letter, digit or underscore, of any script, on either side.
            document_id: Only in this document.
            department: Only in documents of this one.
            limit: Matches at most, 1 to 1,000.
            limit_per_document: Matches of one document at most.
            from_document: The id of the document to begin with: the reply's ``next_document``.
            from_offset: The character of its text to begin at: the reply's ``next_offset``.
            seconds: How long to look; what is being looked at is finished, some milliseconds.
            max_bytes: Bytes of text to look at; the first document is looked at whatever its length.

        Raises:
            UsageError: The pattern is none, or a limit is out of range.
            NotFoundError: There is no such collection, session or document.
        """
        for name, given, most in (
            ("limit", limit, MAX_MATCHES),
            ("limit_per_document", limit_per_document, MAX_MATCHES),
            ("max_bytes", max_bytes, 2**63 - 1),
        ):
            _require_range(name, given, 1, most)
        _require_range("from_offset", from_offset, 0, 2**31 - 1)
        if not 0 <= seconds <= 600:
            raise UsageError(f"seconds must lie between 0 and 600, not {seconds!r}.")
        exact = ExactPattern(pattern, regex=regex, case_sensitive=case_sensitive, whole_words=whole_words)
        scope, places = self._places()
        contents = self._at.store.contents
        if document_id is not None:
            # One that is not there is told as that, and not as one without matches.
            self._of(document_id, contents.part, start=0, length=0)
            from_document = document_id
        sizes = contents.sizes(
            scope, places, from_document=from_document, document_id=document_id, department=department
        )
        grep = Grep(exact, limit=limit, limit_per_document=limit_per_document, seconds=seconds, max_bytes=max_bytes)
        found = grep.run(
            sizes,
            texts=lambda versions: contents.texts(scope, places, versions),
            outline=lambda found: contents.outline(scope, places, found),
            begin=(from_document, from_offset),
        )
        show("grep", question=pattern, documents=[(one.document_id, 0) for one in found.documents])
        return found

    # Last of the public ones: its name is a type's in what stands before it.
    def list(
        self, *, name: str | None = None, department: str | None = None, cursor: str | None = None, limit: int = 100
    ) -> Page[DocumentEntry]:
        """The documents, by id.

        Args:
            name: Only those whose source or title holds this, in whatever case; None: all.
            department: Only of this one.
            cursor: ``next_cursor`` of the page before; None: the first page.
            limit: How many at most, 1 to 1,000.

        Raises:
            UsageError: The limit is out of range, or the cursor is none of this list.
            NotFoundError: There is no such collection or session.
        """
        _require_range("limit", limit, 1, MAX_ENTRIES)
        scope, places = self._places()
        found = self._at.store.contents.entries(
            scope, places, name=name, department=department, after=number_at(cursor) or 0, limit=limit + 1
        )
        return Page.of(found, limit, lambda one: one.document_id)

    def _of(self, document_id: int, read: Callable[..., T], **how: int) -> T:
        """Read one document; the error for one of another collection says which."""
        places = self._places()
        try:
            return read(*places, document_id, **how)
        except NotFoundError:
            self._at.resolve(self._at.scope, document_id)
            raise

    def _places(self) -> tuple[Scope, Places]:
        """As whom, and in which collections, a search of the view looks."""
        at = self._at
        if at.session is None:
            return at.scope, self._searched(at.scope, at.target())

        try:
            found = living(at, at.scope, at.session)
        except SessionExpiredError:
            raise
        except NotFoundError:
            # A conversation's id, and no documents of its own: the collections are looked into without them.
            if at.collections is None or not is_conversation(at):
                raise
            return at.scope, self._searched(at.scope, at.target())
        scope = found.scope(at.scope)
        own = Guest(scope=scope, collection=found.collection, label=label(at.session))
        return scope, self._searched(scope, at.target(session=own))

    def _searched(self, scope: Scope, target: Target) -> Places:
        found = self._at.assembly.searcher.places(scope, target)
        return Places(
            collection_ids=tuple(one.collection.collection_id for one in found),
            hides_expired=any(one.hides_expired for one in found),
            revisions=tuple(one.revision for one in found),
        )


def _require_range(name: str, given: int, least: int, most: int) -> None:
    if not least <= given <= most:
        raise UsageError(f"{name} must lie between {least:,} and {most:,}, not {given:,}.")


# An exact search through texts, within its bounds of matches, time and bytes.


# Bytes of text that are read at a time: what is held in memory, as far as the longest document is not longer.
_BATCH_BYTES = 4 << 20

# Characters of its line that are shown on either side of a match, and of a match itself.
_AROUND = 80

_MOST_SHOWN = 400


class _EnoughError(Exception):
    """The search ends here."""

    def __init__(self, stop: Stop, document_id: int, offset: int) -> None:
        self.stop: Stop = stop
        self.document_id = document_id
        self.offset = offset


@dataclass
class Grep:
    """One exact search.

    Attributes:
        pattern: What is looked for.
        limit: Matches at most.
        limit_per_document: Matches of one document at most.
        seconds: How long it looks.
        max_bytes: How much it looks at.
    """

    pattern: ExactPattern
    limit: int
    limit_per_document: int
    seconds: float
    max_bytes: int
    _found: list[MatchedDocument] = field(default_factory=list)
    _searched: int = 0
    _bytes: int = 0

    def run(
        self,
        sizes: Iterable[TextSize],
        *,
        texts: Callable[[Sequence[int]], list[DocumentText]],
        outline: Callable[[int], DocumentOutline],
        begin: tuple[int, int],
    ) -> GrepReply:
        """Look through documents.

        Args:
            sizes: Of their texts, by their ids.
            texts: Reads some of them.
            outline: Reads the headings and pages of one.
            begin: In this document only from this character on.
        """
        deadline = time.monotonic() + self.seconds
        ended: _EnoughError | None = None
        try:
            for batch in self._batches(sizes):
                for text in texts([one.version_id for one in batch]):
                    self._look(text, begin[1] if text.document_id == begin[0] else 0, deadline)
        except _EnoughError as exc:
            ended = exc
        return GrepReply(
            documents=tuple(_placed(one, outline) for one in self._found),
            stopped=ended.stop if ended else None,
            next_document=ended.document_id if ended else None,
            next_offset=ended.offset if ended else None,
            documents_searched=self._searched,
            bytes_searched=self._bytes,
        )

    def _batches(self, sizes: Iterable[TextSize]) -> Iterator[list[TextSize]]:
        batch: list[TextSize] = []
        planned = 0
        for size in sizes:
            if planned and planned + size.byte_count > self.max_bytes:
                if batch:
                    yield batch
                raise _EnoughError("bytes", size.document_id, 0)
            if batch and sum(one.byte_count for one in batch) + size.byte_count > _BATCH_BYTES:
                yield batch
                batch = []
            batch.append(size)
            planned += size.byte_count
        if batch:
            yield batch

    def _look(self, text: DocumentText, from_offset: int, deadline: float) -> None:
        content = text.content
        data = content.encode()
        self._searched += 1
        self._bytes += len(data)
        matches: list[ExactMatch] = []
        shown = sum(len(one.matches) for one in self._found)
        characters = _Characters(data, start=len(content[:from_offset].encode()), offset=min(from_offset, len(content)))
        next_offset: int | None = None
        stopped: _EnoughError | None = None
        for first, last in self.pattern.spans(data, characters.position):
            start = characters.at(first)
            if first == last:
                if time.monotonic() > deadline:
                    stopped = _EnoughError("time", text.document_id, start)
                    break
            elif shown + len(matches) >= self.limit:
                stopped = _EnoughError("matches", text.document_id, start)
                break
            elif len(matches) >= self.limit_per_document:
                next_offset = start
                break
            else:
                end = start + len(data[first:last].decode())
                matches.append(ExactMatch(start_offset=start, end_offset=end, excerpt=_excerpt(content, start, end)))
        if matches:
            self._found.append(
                MatchedDocument(
                    document_id=text.document_id,
                    source=text.source,
                    title=text.title,
                    collection=text.collection,
                    version_id=text.version_id,
                    matches=tuple(matches),
                    next_offset=next_offset,
                )
            )
        if stopped is None and time.monotonic() > deadline:
            stopped = _EnoughError("time", text.document_id + 1, 0)
        if stopped is not None:
            raise stopped


@dataclass
class _Characters:
    """Turns ascending positions in bytes into characters, each byte read once."""

    data: bytes
    start: int
    offset: int

    @property
    def position(self) -> int:
        return self.start

    def at(self, position: int) -> int:
        self.offset += len(self.data[self.start : position].decode())
        self.start = position
        return self.offset


def _excerpt(content: str, start: int, end: int) -> str:
    """The line around a match, as far as it is near."""
    shown = min(end, start + _MOST_SHOWN)
    line = content.rfind("\n", max(0, start - _AROUND), start) + 1
    first = line or max(0, start - _AROUND)
    newline = content.find("\n", shown, shown + _AROUND)
    last = newline if newline >= 0 else min(len(content), shown + _AROUND)
    return content[first:last].strip()


def _placed(found: MatchedDocument, outline: Callable[[int], DocumentOutline]) -> MatchedDocument:
    """With the sections and pages of its matches, unless it is gone, or another version, by now."""
    try:
        where = outline(found.document_id)
    except NotFoundError:
        return found
    if where.version_id != found.version_id:
        return found
    return replace(
        found,
        matches=tuple(
            replace(
                one,
                section=" > ".join(section_path(where.headings, one.start_offset)) or None,
                page=page_at(where.pages, one.start_offset),
            )
            for one in found.matches
        ),
    )
