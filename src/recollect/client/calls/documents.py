"""Documents: stored, listed, read, described, closed and erased."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from recollect.client.calls.base import Call, Calls, Pages, Steps, as_it_is, listed, nothing, once, reading, segment
from recollect.client.place import given
from recollect.client.wire import Json, duration_text, moment_text, search_body
from recollect.errors import NotFoundError, UsageError
from recollect.model import IngestResult, RetrievalOptions
from recollect.model.contents import DocumentChunk, DocumentEntry, DocumentOutline, DocumentPart, GrepReply
from recollect.model.document_record import DocumentRecord, DocumentStatus, Duplicates, SameDocument
from recollect.model.history import (
    DocumentHistory,
    ErasureReceipt,
    EvidenceDiff,
    VersionDiff,
)
from recollect.model.page import Page
from recollect.model.search_options import refined

if TYPE_CHECKING:
    from typing import Unpack

    from recollect.client.place import Place
    from recollect.fetching.client import Method
    from recollect.model.search_options import SearchKeywords
    from recollect.model.time import Duration, Moment


T = TypeVar("T")

# Of a text that is read in parts.
_PART_CHARACTERS = 50_000


class _OfDocuments(Calls):
    """Requests about one document."""

    def _on(
        self,
        method: Method,
        number: int,
        more: str = "",
        *,
        read: Callable[[Any], T],
        query: Mapping[str, Any] | None = None,
        **how: Any,  # noqa: ANN401 - as of `Call`
    ) -> Call[T]:
        asked = {**(query or {}), **self._at.within}
        return Call(method=method, path=f"/v1/documents/{number}{more}", query=asked, read=read, **how)

    def _number(self, document: int | str) -> Steps[int]:
        self._at.require_present()
        return document if isinstance(document, int) else (yield from self._looked_up(document))[0]

    def _looked_up(self, document: int | str, *, several: bool = False) -> Steps[list[int]]:
        self._at.require_present()
        query = {"source": document, "several": several or None, **self._at.within}
        return (
            yield from once(
                Call(method="GET", path="/v1/documents", query=query, read=lambda told: list(told["document_ids"]))
            )
        )


class DocumentCalls(_OfDocuments):
    """Documents, their versions, and what becomes of them; see `recollect.View.documents`.

    A document is named by its number, or by its source or given id, which is looked up first. It is one of the view's
    collections.
    Where the view names none, a source is one of the server's configured collection, and an id one of any.
    """

    def get(self, document: int | str) -> Steps[DocumentRecord]:
        """A document as its current version is, with its text, which is read in parts."""
        number = yield from self._number(document)
        record = yield from once(self._on("GET", number, read=reading(DocumentRecord)))
        if record.status != "embedded":
            return record
        contents, parts, start = ContentCalls(self._at), list[str](), 0
        while True:
            part = yield from once(contents.read(number, start=start, length=_PART_CHARACTERS))
            parts.append(part.text)
            start = part.end_offset
            if start >= part.characters or not part.text:
                return replace(record, content="".join(parts))

    def resolve(self, documents: Sequence[int | str], *, each_one: bool = False) -> Steps[list[int]]:
        """The ids of documents that are named by number, by source or by given id.

        A source that documents with ids share means all of them; with ``each_one`` it is refused.
        """
        found: list[int] = []
        for one in documents:
            found += yield from self._looked_up(one, several=not each_one)
        return found

    def duplicates(self, document: int | str) -> Steps[Duplicates]:
        """The documents that say the same, and those that nearly do."""
        number = yield from self._number(document)
        return (yield from once(self._on("GET", number, "/duplicates", read=reading(Duplicates))))

    def diff_evidence(
        self,
        question: str,
        *,
        from_time: Moment,
        to_time: Moment | None = None,
        options: RetrievalOptions | None = None,
        **keywords: Unpack[SearchKeywords],
    ) -> Call[EvidenceDiff]:
        """How the evidence for a question changed between two moments: what came, went, stayed and changed."""
        given = refined(RetrievalOptions, options, keywords)
        body = self._at.viewpoint() | search_body(given) | {"question": question, "from": moment_text(from_time)}
        if to_time is not None:
            body["to"] = moment_text(to_time)
        return Call(method="POST", path="/v1/diff", body=body, read=reading(EvidenceDiff), searches=True)

    def filter_hints(self, options: RetrievalOptions) -> Call[list[str]]:
        """Why a search with these options can have found nothing."""
        body = self._at.viewpoint() | search_body(options)
        return Call(
            method="POST", path="/v1/search/hints", body=body, read=lambda told: list(told["warnings"]), searches=True
        )

    def history(self, document: int | str) -> Steps[DocumentHistory]:
        """Its versions, oldest first."""
        number = yield from self._number(document)
        return (yield from once(self._on("GET", number, "/history", read=reading(DocumentHistory))))

    def diff(
        self,
        document: int | str,
        *,
        from_version: int | None = None,
        to_version: int | None = None,
        context_lines: int = 3,
    ) -> Steps[VersionDiff]:
        """What changed from one version to another."""
        number = yield from self._number(document)
        query = {"from": from_version, "to": to_version, "context_lines": context_lines}
        return (yield from once(self._on("GET", number, "/diff", query=query, read=reading(VersionDiff))))

    def reread(self, document: int | str, *, force: bool = False) -> Steps[IngestResult]:
        """Read its kept original anew, as files are read, cut and embedded now."""
        number = yield from self._number(document)
        return (
            yield from once(self._on("POST", number, "/reingest", body={"force": force}, read=reading(IngestResult)))
        )

    def update(
        self,
        document: int | str,
        *,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: Sequence[str] | None = None,
        department: str | None = None,
        if_version: int | None = None,
    ) -> Steps[IngestResult]:
        """Say something else of it; what is None stays as it is. With ``if_version``: only while it is at that one."""
        number = yield from self._number(document)
        body = given(
            title=title,
            metadata=None if metadata is None else dict(metadata),
            tags=None if tags is None else list(tags),
            department=department,
        )
        return (
            yield from once(
                self._on("PUT", number, body=body, headers=_at_version(if_version), read=reading(IngestResult))
            )
        )

    def delete(self, documents: Sequence[int | str], *, if_version: int | None = None) -> Steps[int]:
        """Close documents, one after the other; returns how many. Their history stays."""
        numbers = dict[int, None]()
        for one in documents:
            several = [one] if isinstance(one, int) else (yield from self._looked_up(one, several=True))
            numbers |= dict.fromkeys(several)
        if if_version is not None and len(numbers) != 1:
            raise UsageError("if_version is of one document.")
        for number in numbers:
            yield self._on("DELETE", number, headers=_at_version(if_version), read=nothing)
        return len(numbers)

    def erase(
        self, documents: Sequence[int | str], *, reason: str | None = None, scrub: bool = False
    ) -> Steps[ErasureReceipt]:
        """Remove a document with every version, physically; the receipt proves it. A server erases one at a time."""
        if len(documents) != 1:
            raise UsageError("A server erases documents one at a time, each with its receipt: name one.")
        number = yield from self._number(documents[0])
        body = {**given(reason=reason), "scrub": scrub}
        return (yield from once(self._on("POST", number, "/erase", body=body, read=reading(ErasureReceipt))))

    def list(
        self,
        *,
        department: str | None = None,
        status: DocumentStatus | None = None,
        source: str | None = None,
        tags: Sequence[str] = (),
        newest_first: bool = False,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Steps[Page[DocumentRecord]]:
        """The documents of the view's collection, by their ids."""
        if self._at.session is not None:
            if department or status or source or tags or newest_first or cursor:
                raise UsageError("A server lists the documents of a session without filters: leave them out.")
            return Page(tuple((yield from session_documents(self._at, self._at.session))[:limit]))
        pages = yield from self.each(
            department=department, status=status, source=source, tags=tags, newest_first=newest_first
        )
        return reading(Page[DocumentRecord])((yield from once(pages.page(cursor, limit))))

    def each(
        self,
        *,
        department: str | None = None,
        status: DocumentStatus | None = None,
        source: str | None = None,
        tags: Sequence[str] = (),
        newest_first: bool = False,
    ) -> Steps[Pages[DocumentRecord]]:
        """All of them, page by page as they are read."""
        self._at.require_present()
        query = {
            "department": department,
            "status": status,
            "source": source,
            "tag": list(tags),
            "sort": "newest" if newest_first else None,
        }
        if self._at.session is not None:
            raise UsageError("A server lists the first hundred documents of a session: documents.list().")
        path = f"/v1/collections/{segment((yield from self._collection()))}/documents"
        return Pages(
            call=Call(method="GET", path=path, query=query, read=dict),
            items=listed("items", reading(DocumentRecord)),
        )


class VersionCalls(_OfDocuments):
    """Which version of a document is current, for how long, and which documents say the same."""

    def restore(self, document: int | str, version: int) -> Steps[IngestResult]:
        """Make what an old version said the newest version."""
        number = yield from self._number(document)
        call = self._on("POST", number, "/restore", body={"version": version}, read=reading(IngestResult))
        return (yield from once(call))

    def set_ttl(self, document: int | str, ttl: Duration | None) -> Steps[None]:
        """Decide how long it is found from now on; None: it never expires."""
        number = yield from self._number(document)
        body = {"ttl": None if ttl is None else duration_text(ttl)}
        return (yield from once(self._on("PUT", number, "/ttl", body=body, read=nothing)))

    def list_duplicates(self, *, cursor: str | None = None, limit: int = 100) -> Call[Page[tuple[SameDocument, ...]]]:
        """Documents that have the same text, group by group."""
        self._at.require_present()
        query = {"cursor": cursor, "limit": limit}
        return Call(method="GET", path="/v1/duplicates", query=query, read=reading(Page[tuple[SameDocument, ...]]))


class ContentCalls(_OfDocuments):
    """What documents say; see `recollect.View.contents`."""

    def outline(self, document_id: int) -> Call[DocumentOutline]:
        """Its headings and pages."""
        return self._on("GET", document_id, "/outline", read=reading(DocumentOutline))

    def read(self, document_id: int, *, start: int = 0, length: int = 10_000) -> Call[DocumentPart]:
        """A range of its text, by characters."""
        query = {"start": start, "length": length}
        return self._on("GET", document_id, "/content", query=query, read=reading(DocumentPart))

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
    ) -> Call[GrepReply]:
        """Find exact text, or what a regular expression matches; a server looks for half a minute at most."""
        said = given(
            pattern=pattern,
            regex=regex,
            case_sensitive=case_sensitive,
            whole_words=whole_words,
            document_id=document_id,
            department=department,
            limit=limit,
            limit_per_document=limit_per_document,
            from_document=from_document,
            from_offset=from_offset,
            seconds=seconds,
            max_bytes=max_bytes,
        )
        body = self._at.viewpoint() | dict(said)
        return Call(method="POST", path="/v1/grep", body=body, read=reading(GrepReply), searches=True)

    def original(self, document_id: int) -> Call[Any]:
        """The file that it was read from, byte by byte as it comes. A connection that breaks is gone on with."""
        return self._on("GET", document_id, "/original", read=as_it_is)

    def chunks(
        self, document_id: int, *, cursor: str | None = None, limit: int = 100, start: int = 0, end: int | None = None
    ) -> Call[Page[DocumentChunk]]:
        """What it is cut into, in order; of its characters from ``start`` to ``end``."""
        query = given(start=start or None, end=end, cursor=cursor, limit=limit)
        return self._on("GET", document_id, "/chunks", query=query, read=reading(Page[DocumentChunk]))

    def each_chunk(self, document_id: int, *, start: int = 0, end: int | None = None) -> Pages[DocumentChunk]:
        """All of them, page by page as they are read; of its characters from ``start`` to ``end``."""
        query = given(start=start or None, end=end)
        call: Call[Json] = self._on("GET", document_id, "/chunks", query=query, read=dict)
        return Pages(call=call, items=listed("items", reading(DocumentChunk)))

    def list(
        self, *, name: str | None = None, department: str | None = None, cursor: str | None = None, limit: int = 100
    ) -> Call[Page[DocumentEntry]]:
        """The documents that a search of the view looks into, by id."""
        body = self._at.viewpoint() | dict(given(name=name, department=department, cursor=cursor, limit=limit))
        return Call(method="POST", path="/v1/contents", body=body, read=reading(Page[DocumentEntry]), searches=True)


def session_content(at: Place, session_id: str) -> Steps[Json]:
    """A session with documents, and its first hundred documents.

    Raises:
        NotFoundError: There is none of that id.
    """
    at.require_present()
    told: Json = yield Call(method="GET", path=f"/v1/sessions/{segment(session_id)}", read=dict)
    if "document_session" not in told:
        raise NotFoundError(f"There is no session {session_id!r} with documents.")
    return told


def session_documents(at: Place, session_id: str) -> Steps[list[DocumentRecord]]:
    """The first hundred documents of a session."""
    told = yield from session_content(at, session_id)
    return reading(list[DocumentRecord])(told["documents"])


def _at_version(version: int | None) -> dict[str, str]:
    return {} if version is None else {"If-Match": f'"{version}"'}
