"""One document: its text with its chunks, its original's pages, its versions, its quotes, who may read it, its end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Depends, Form, Header, Query
from starlette.responses import Response

from recollect.errors import NotFoundError, PermissionDeniedError, UsageError
from recollect.model import Principal
from recollect.model.original import Original
from recollect.model.page import cursor_at
from recollect.model.record import json_of
from recollect.model.time import read_time
from recollect.operations.values import Name, Number
from recollect.pipeline import View
from recollect.server.bodies import Moment
from recollect.server.downloads import original_reply
from recollect.ui.drawn_text import Quote, draw, quote_of
from recollect.ui.routes.administration.people import Change, change_readers
from recollect.ui.visit import LIBRARY, Reading, Visit, Visiting, Writing, names, page_router, somebody

if TYPE_CHECKING:
    from recollect.model.access import CollectionAccess, DocumentPermissions, ReadingExplained
    from recollect.model.activity import Access
    from recollect.model.contents import DocumentOutline
    from recollect.model.document_record import DocumentRecord
    from recollect.model.history import DocumentHistory, VersionDiff, VersionRecord
    from recollect.model.page import Page

router = page_router()

# One version of a document as a visitor sees it: which it is, what there is beside it, and the view that reads it.


PDF = "application/pdf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edition:
    """A version of a document.

    Attributes:
        document_id: Of the document.
        view: Reads the text of this version, under the visitor's rights.
        session: The conversation that the document belongs to; None: a collection's.
        history: Every version that the visitor may read; None: a conversation's documents have none.
        version: The one that is shown; None: as of ``history``.
    """

    document_id: int
    view: View
    session: str | None = None
    history: DocumentHistory | None = None
    version: VersionRecord | None = None

    @property
    def newest(self) -> VersionRecord | None:
        """The newest version."""
        return None if self.history is None else self.history.versions[-1]

    @property
    def title(self) -> str:
        """What the version is called; a conversation's document is looked up for it."""
        return self.view.contents.outline(self.document_id).title if self.version is None else self.version.title

    @property
    def is_newest(self) -> bool:
        """Whether no version came behind this one."""
        return self.version is self.newest

    @property
    def is_gone(self) -> bool:
        """Whether searches of the present no longer find the document, in whatever version."""
        return self.newest is not None and not _is_current(self.newest)

    @property
    def number(self) -> int | None:
        """Of the version, where it is not the one that everybody finds; addresses leave it out otherwise."""
        return None if self.version is None or self.is_newest else self.version.version

    def original(self) -> Original | None:
        """The file that this version was read from; None: it was not kept."""
        try:
            return self.view.contents.original(self.document_id)
        except NotFoundError:
            return None


@dataclass(frozen=True, slots=True)
class Which:
    """A version of a document, as an address names it.

    Attributes:
        document_id: Of the document.
        version: Its number; None: the newest, though the document may be deleted.
        session: The conversation that it belongs to; None: a collection's.
    """

    document_id: int
    version: int | None = None
    session: str | None = None


def edition_of(visit: Visit, which: Which, *, known_at: datetime | None = None) -> Edition:
    """A version of a document.

    Args:
        visit: Whose view.
        which: Which one.
        known_at: Of the versions that there were at this moment, the newest; None: of all.

    Raises:
        NotFoundError: The visitor may not read it, or there is none.
    """
    document_id, session = which.document_id, which.session
    if session is not None:
        return Edition(
            document_id=document_id, view=visit.view.view(collections=None, session=session), session=session
        )
    history = visit.view.documents.history(document_id)
    known = [one for one in history.versions if known_at is None or one.known_from <= known_at]
    chosen = next((one for one in reversed(known) if which.version in {None, one.version}), None)
    if chosen is None:
        wanted = f"version {which.version}" if which.version is not None else "version of that moment"
        raise NotFoundError(f"There is no {wanted} of the document {document_id}.")
    view = visit.view if _is_current(chosen) else visit.view.view(as_of=chosen.known_from)
    return Edition(document_id=document_id, view=view, history=history, version=chosen)


def _is_current(version: VersionRecord) -> bool:
    now = datetime.now(UTC)
    return version.known_to is None and (version.expires_at is None or version.expires_at > now)


_MOST = 2**31 - 2
#: Headings shown at a time, and lines of a difference.
_HEADINGS = 200
_LINES = 2_000
#: Characters shown before what is marked.
_BEFORE = 500
#: Texts up to so many characters are compared for a page; longer ones take minutes.
_COMPARED = 2_000_000

Version = Annotated[int | None, Query(ge=1, le=_MOST)]
Offset = Annotated[int, Query(ge=0, le=_MOST)]
LaterOffset = Annotated[int | None, Query(ge=1, le=_MOST)]


async def _which(
    document_id: Number, version: Version = None, session: Annotated[Name | None, Query()] = None
) -> Which:
    return Which(document_id, version, session)


#: The version that an address names.
Named = Annotated[Which, Depends(_which)]


@router.get("/documents/{document_id}")
async def text_page(visit: Reading, which: Named, start: Offset = 0, end: LaterOffset = None) -> Response:
    """Its text with its chunks drawn on it, its outline and what is known of it."""
    try:
        shown = await visit.run(_text, visit, which, start, end)
    except NotFoundError:
        # One that a job is to store, or could not store, has no version yet.
        record = await visit.run(visit.view.documents.get, which.document_id)
        if record.status == "embedded":
            raise
        return visit.page("documents/unstored.html", LIBRARY, record=record)
    return visit.page("documents/text.html", LIBRARY, **shown)


@router.get("/documents/{document_id}/text")
async def text_part(visit: Reading, which: Named, start: Offset, until: LaterOffset = None) -> Response:
    """The next part of its text, or the part that ends where another begins."""
    edition = await visit.run(edition_of, visit, which)
    drawn = await visit.run(draw, edition.view, which.document_id, start=start, until=until)
    return visit.fragment(
        "documents/part.html", edition=edition, drawn=drawn, ways=("down",) if until is None else ("up",)
    )


@router.get("/documents/{document_id}/outline")
async def outline_part(visit: Reading, which: Named, after: Offset) -> Response:
    """More of its headings."""
    edition = await visit.run(edition_of, visit, which)
    outline = await visit.run(edition.view.contents.outline, which.document_id)
    return visit.fragment("documents/headings.html", edition=edition, **_headings(outline, after))


@router.get("/documents/{document_id}/pages")
async def original_page(visit: Reading, which: Named, page: Annotated[int, Query(ge=1, le=_MOST)] = 1) -> Response:
    """The file that it was read from: pages of a PDF, everything else to be saved."""
    return visit.page("documents/pages.html", LIBRARY, first_page=page, **await visit.run(_original, visit, which))


@router.get("/documents/{document_id}/versions")
async def versions_page(
    visit: Reading,
    document_id: Number,
    from_: Annotated[Version, Query(alias="from")] = None,
    to: Version = None,
) -> Response:
    """Its versions, and how the text changed from one to another."""
    edition = await visit.run(edition_of, visit, Which(document_id))
    compared = await visit.run(_compared, visit, edition, from_, to)
    return visit.page("documents/versions.html", LIBRARY, **_framed("versions", edition, edition.title), **compared)


def _framed(tab: str, edition: Edition, title: str, *, record: DocumentRecord | None = None) -> dict[str, Any]:
    """What every page of a document shows."""
    return {"tab": tab, "edition": edition, "record": record, "title": title}


def _text(visit: Visit, which: Which, start: int, end: int | None) -> dict[str, Any]:
    """What the page of a document's text shows."""
    edition = edition_of(visit, which)
    outline = edition.view.contents.outline(which.document_id)
    current = edition.session is None and edition.is_newest and not edition.is_gone
    record = visit.view.documents.get(which.document_id) if current else None
    quoted = (start, end) if end is not None and start < end else None
    # What was asked for is read with some of what stands before it.
    begin = start if quoted is None else max(0, start - _BEFORE)
    drawn = draw(edition.view, which.document_id, start=begin, quoted=quoted) if outline.characters else None
    return {
        **_framed("text", edition, outline.title, record=record),
        **_headings(outline, 0),
        "outline": outline,
        "drawn": drawn,
        "metadata": _written(record),
    }


def _headings(outline: DocumentOutline, after: int) -> dict[str, Any]:
    """Some of its headings, and behind which of them there are more."""
    end = after + _HEADINGS
    return {"headings": outline.headings[after:end], "more_headings": end if len(outline.headings) > end else None}


def _written(record: DocumentRecord | None) -> list[tuple[str, str]]:
    """A document's metadata, each value as text."""
    given = {} if record is None else record.metadata
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1))
        for name, value in given.items()
    ]


def _original(visit: Visit, which: Which) -> dict[str, Any]:
    """What the page of a document's file shows."""
    edition = edition_of(visit, which)
    file = edition.original()
    is_pdf = file is not None and file.mime_type == PDF
    return {**_framed("pages", edition, edition.title), "original": file, "is_pdf": is_pdf}


def _compared(visit: Visit, edition: Edition, first: int | None, last: int | None) -> dict[str, Any]:
    """The difference of two versions, or why there is none."""
    assert edition.history is not None
    versions = edition.history.versions
    known = [one.version for one in versions]
    last = last or known[-1]
    first = first or max((one for one in known if one < last), default=None)
    shown: dict[str, Any] = {"difference": None, "too_long": False, "first": first, "last": last, "most_lines": _LINES}
    if first is None:
        return shown
    if sum(one.character_count for one in versions if one.version in {first, last}) > _COMPARED:
        return {**shown, "too_long": True}
    difference: VersionDiff = visit.view.documents.diff(edition.document_id, from_version=first, to_version=last)
    return {**shown, "difference": difference}


# Where a quote stands: the panel beside an answer, and the file that it was read from.


@router.get("/documents/{document_id}/source")
async def source(
    visit: Reading,
    which: Named,
    start: Offset,
    end: Offset,
    as_of: Annotated[Moment | None, Query()] = None,
) -> Response:
    """The text around a quote with the quote marked, or the pages that it stands on: a panel, or a page of its own.

    Of a version by its number, or of the one that was known at a moment.
    """
    known_at = None if as_of is None else read_time(as_of, name="as_of")

    def found() -> tuple[Edition, Quote, Original | None]:
        return _found(edition_of(visit, which, known_at=known_at), start, end)

    edition, quote, pdf = await visit.run(found)
    if visit.is_fragment:
        return visit.fragment("documents/source.html", edition=edition, quote=quote, pdf=pdf)
    return visit.page("documents/source_page.html", LIBRARY, edition=edition, quote=quote, pdf=pdf)


@router.get("/documents/{document_id}/original")
async def original(
    visit: Visiting,
    which: Named,
    wanted: Annotated[str | None, Header(alias="Range", max_length=200)] = None,
    if_none_match: Annotated[str | None, Header(max_length=2_000)] = None,
    if_range: Annotated[str | None, Header(max_length=200)] = None,
) -> Response:
    """The file that a version was read from, to be saved; ranges of it for whoever draws its pages."""
    limits, read = visit.service.limits, astuple(which)
    if wanted is not None and limits.goes_on(visit.caller, read):
        visit.caller.require("read")
    else:
        await visit.require("read")
    found = await visit.run(_file, visit, which)
    limits.begin_read(visit.caller, read)
    response = original_reply(found, wanted=wanted, if_none_match=if_none_match, if_range=if_range)
    # Should a browser show it in spite of all: alone, and without running anything.
    response.headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
    response.headers["Cache-Control"] = "private, no-cache"
    return response


def _found(edition: Edition, start: int, end: int) -> tuple[Edition, Quote, Original | None]:
    quote = quote_of(edition.view, edition.document_id, start=start, end=end)
    file = edition.original() if quote.part.mime_type == PDF and quote.pages else None
    return edition, quote, file if file is not None and file.mime_type == PDF else None


def _file(visit: Visit, which: Which) -> Original:
    found = edition_of(visit, which).original()
    if found is None:
        raise NotFoundError(f"The original of document {which.document_id} was not kept.")
    return found


# Who may read one document and why, who read it, and how that is changed by whoever may.


_SHOWN = 50

_Asked = Annotated[str, Query(max_length=2_000)]
_Typed = Annotated[str, Form(max_length=2_000)]
_Kind = Literal["user", "role", "department", "group", "everybody", "token"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Whom the explainer is asked about, as it was typed."""

    user: str = ""
    roles: str = ""
    department: str = ""
    groups: str = ""

    @property
    def principal(self) -> Principal | None:
        """Them; None: nobody was named."""
        found = somebody(self.user, self.roles, self.department, self.groups)
        return None if found == Principal() else found


@router.get("/documents/{document_id}/access")
async def access_page(
    visit: Reading,
    document_id: Number,
    user: _Asked = "",
    roles: _Asked = "",
    department: _Asked = "",
    groups: _Asked = "",
    before: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
) -> Response:
    """Its grants, why somebody may read it, and, for administrators, who read it."""
    asked = Asked(user=user, roles=roles, department=department, groups=groups)
    return await _shown(visit, document_id, asked, before=before)


@router.post("/documents/{document_id}/access")
async def change_access(
    visit: Visiting,
    document_id: Number,
    change: Annotated[Change, Form()],
    kind: Annotated[_Kind, Form()],
    who: _Typed = "",
    user: _Typed = "",
    roles: _Typed = "",
    department: _Typed = "",
    groups: _Typed = "",
) -> Response:
    """Change who may read it, as far as the visitor's view lets them; the question of the page is asked again."""
    visit.caller.rights(visit.service.rag)
    await visit.require("admin" if visit.may("admin") else "write", "ingest")
    await visit.run(_changed, visit, document_id, change, _tokens(kind, who))
    asked = Asked(user=user, roles=roles, department=department, groups=groups)
    try:
        return await _shown(visit, document_id, asked, changed=True)
    except NotFoundError:
        # Whoever takes away their own right does not see it any more.
        return visit.go_to("/library/documents")


def _tokens(kind: _Kind, who: str) -> list[str]:
    """Whom a form means: ``everybody``, a grant as it is shown (``token``), or names of one kind."""
    if kind == "everybody":
        return ["*"]
    named = [who.strip()] if kind == "token" else [*names(who)]
    if not all(named) or not named:
        raise UsageError("Say whom: the name of a user, a role, a department or a group.")
    return named if kind == "token" else [f"{kind}:{name}" for name in named]


def _changed(visit: Visit, document_id: int, change: Change, tokens: Sequence[str]) -> None:
    edition_of(visit, Which(document_id))
    change_readers(_rights(visit), change, tokens, documents=document_id)


async def _shown(
    visit: Visit, document_id: int, asked: Asked, *, before: int | None = None, changed: bool = False
) -> Response:
    told = await visit.run(_told, visit, document_id, asked.principal, before)
    return visit.page("documents/access.html", LIBRARY, tab="access", asked=asked, changed=changed, **told)


def _rights(visit: Visit) -> View:
    """The view that rights are shown and changed with, by the rule of ``/v1/grants``.

    Raises:
        PermissionDeniedError: The visitor's credential is not for that.
    """
    return visit.caller.rights(visit.service.rag).view(collections="*")


def _told(visit: Visit, document_id: int, principal: Principal | None, before: int | None) -> dict[str, Any]:
    """What the visitor may know of who reads a document; None: they may not."""
    # What the visitor may not read is not there for them, whatever else they may.
    edition = edition_of(visit, Which(document_id))
    collection: CollectionAccess | None = None
    permissions: DocumentPermissions | None = None
    explained: ReadingExplained | None = None
    accesses: Page[Access] | None = None
    with suppress(PermissionDeniedError):
        view = _rights(visit)
        (permissions,) = view.grants.of_documents(document_id)
    if permissions is not None:
        with suppress(PermissionDeniedError):
            collection = view.view(collections=permissions.collection).grants.of_collection()
        if principal is not None:
            explained = view.grants.explain(document_id, principal)
        if visit.may("admin"):
            cursor = None if before is None else cursor_at(before)
            accesses = visit.administration.audit.accesses(document=document_id, cursor=cursor, limit=_SHOWN)
    return {
        "edition": edition,
        "title": edition.title,
        "permissions": permissions,
        "collection": collection,
        "explained": explained,
        "accesses": accesses,
        "earlier": accesses[-1].access_id if accesses is not None and accesses.next_cursor else None,
        "may_change": permissions is not None,
    }


# What becomes of one document: how long it is found, deleted, restored, and erased with its receipt.


_Version = Annotated[int, Form(ge=1, le=2**31 - 2)]


@router.post("/documents/{document_id}/delete")
async def delete(visit: Writing, document_id: Number, version: _Version) -> Response:
    """Close it, as it was when that was decided; it can be restored."""
    await visit.run(visit.view.documents.delete, [document_id], if_version=version)
    return visit.go_to(f"/documents/{document_id}")


@router.post("/documents/{document_id}/lifetime")
async def set_lifetime(
    visit: Writing, document_id: Number, lifetime: Annotated[str, Form(max_length=100)] = ""
) -> Response:
    """Say how long it is found from now on; nothing: for ever."""

    def change() -> None:
        edition_of(visit, Which(document_id))
        visit.view.documents.set_ttl(document_id, lifetime.strip() or None)

    await visit.run(change)
    return visit.go_to(f"/documents/{document_id}#facts-title")


@router.post("/documents/{document_id}/restore")
async def restore(visit: Writing, document_id: Number, version: _Version) -> Response:
    """Make what a version said the newest version."""
    await visit.run(visit.view.documents.restore, document_id, version)
    return visit.go_to(f"/documents/{document_id}")


@router.get("/documents/{document_id}/erase")
async def ask_before_erasing(visit: Writing, document_id: Number) -> Response:
    """What erasing it means, and whether that is meant."""
    return await _asked(visit, document_id)


@router.post("/documents/{document_id}/erase")
async def erase(
    visit: Writing,
    document_id: Number,
    confirm: Annotated[str, Form(max_length=100)] = "",
    reason: Annotated[str, Form(max_length=500)] = "",
) -> Response:
    """Remove it for good, once it has been confirmed, and show the receipt."""
    if confirm.strip() != str(document_id):
        problem = visit.language.gettext("Nothing was erased: type the number of the document to confirm.")
        return await _asked(visit, document_id, reason=reason, problem=problem)
    receipt = await visit.run(visit.view.documents.erase, [document_id], reason=reason.strip() or None)
    written = json.dumps(json_of(receipt), indent=2)
    return visit.page("documents/erased.html", LIBRARY, receipt=receipt, written=written)


async def _asked(visit: Visit, document_id: int, *, reason: str = "", problem: str = "") -> Response:
    edition = await visit.run(edition_of, visit, Which(document_id))
    assert edition.version is not None
    return visit.page(
        "documents/erase.html",
        LIBRARY,
        status=422 if problem else 200,
        tab="",
        edition=edition,
        title=edition.version.title,
        reason=reason,
        problem=problem,
    )
