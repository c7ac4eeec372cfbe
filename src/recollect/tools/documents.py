"""Tools that find and read documents."""

from __future__ import annotations

import re
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from recollect.errors import NotFoundError, SessionExpiredError, UsageError
from recollect.model import RetrievalOptions
from recollect.model.page import cursor_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from recollect.model import RetrievedContext
    from recollect.model.contents import DocumentEntry, MatchedDocument
    from recollect.model.outline import Heading
    from recollect.pipeline.view import View
    from recollect.tools.results import Room

R = TypeVar("R")

# Characters of a passage that `search` shows: enough to judge whether it is worth reading.
_EXCERPT = 400

# What `read` gives where no end is named.
READ_CHARACTERS = 8_000

# Characters of a title, a source or a section.
_NAME = 200
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")

_NOTHING_FOUND = (
    "Nothing relevant was found. Try other words, or say that the knowledge base does not answer this; do not answer "
    "from memory."
)


def look_beside_a_conversation(view: View, look: Callable[[View], R]) -> R:
    """Look into a view's collections alone where its session is none with documents of its own.

    A conversation that begins is not stored before something of it is remembered, and until then no session at all.
    """
    try:
        return look(view)
    except SessionExpiredError:
        raise
    except NotFoundError:
        at = view.standpoint
        if at.session is None or at.collections is None:
            raise
        return look(view.view(session=None))


def beside_a_conversation(function: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """A function of a tool that looks as `look_beside_a_conversation` does."""

    @wraps(function)
    def call(view: View, room: Room, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - as checked
        return look_beside_a_conversation(view, lambda seen: function(seen, room, **arguments))

    return call


@beside_a_conversation
def knowledge_search(view: View, room: Room, *, query: str, limit: int, **narrowing: object) -> dict[str, Any]:
    """The passages that answer a question, whole and numbered."""
    found = view.retrieve(query, options_of(narrowing, top_k=limit))
    sources: list[dict[str, Any]] = []
    for number, passage in enumerate(found, start=1):
        source = {"source_number": number, **_place(passage)}
        text = room.cut(passage.content, source)
        source["text"] = text
        source["end_offset"] = passage.start_offset + len(text)
        if not text or not room.take(source):
            break
        sources.append(source)
        if len(text) < len(passage.content):
            break
    told: dict[str, Any] = {"sources": sources}
    if not found:
        told["note"] = _NOTHING_FOUND
    elif len(sources) < len(found) or sources[-1]["end_offset"] < found[len(sources) - 1].end_offset:
        told["note"] = f"Cut to fit: {len(sources)} of {len(found)} passages. `read` gives what is missing of the last."
    return told


@beside_a_conversation
def search(
    view: View,
    room: Room,
    *,
    query: str,
    limit: int,
    skip: int,
    mode: str,
    **narrowing: object,
) -> dict[str, Any]:
    """Where passages stand that are about something, with the beginning of each."""
    found = view.retrieve(query, options_of(narrowing, top_k=skip + limit, mode=mode))
    results: list[dict[str, Any]] = []
    for passage in found[skip:]:
        excerpt = passage.content[:_EXCERPT]
        result = {**_place(passage), "excerpt": excerpt + ("…" if len(excerpt) < len(passage.content) else "")}
        if not room.take(result):
            break
        results.append(result)
    told: dict[str, Any] = {"results": results}
    if not results:
        told["note"] = _NOTHING_FOUND if not skip else "There are no more results."
    elif len(results) < len(found) - skip or len(found) == skip + limit:
        told["continue_with"] = {"skip": skip + len(results)}
    return told


@beside_a_conversation
def grep(
    view: View,
    room: Room,
    *,
    pattern: str,
    regex: bool,
    case_sensitive: bool,
    whole_words: bool,
    limit: int,
    from_document: int,
    from_offset: int,
    document_id: int | None = None,
    department: str | None = None,
) -> dict[str, Any]:
    """Where exact text stands, or what a regular expression matches."""
    reply = view.contents.grep(
        pattern,
        regex=regex,
        case_sensitive=case_sensitive,
        whole_words=whole_words,
        document_id=document_id,
        department=department,
        limit=limit,
        limit_per_document=limit if document_id is not None else 10,
        from_document=from_document,
        from_offset=from_offset,
    )
    shown: list[dict[str, Any]] = []
    following = (
        None
        if reply.next_document is None
        else {"from_document": reply.next_document, "from_offset": reply.next_offset}
    )
    reason = reply.stopped
    for found in reply.documents:
        told, left_at = _matches(found, room)
        if told["matches"]:
            shown.append(told)
        if left_at is not None:
            following, reason = {"from_document": found.document_id, "from_offset": left_at}, "matches"
            break
    result: dict[str, Any] = {"documents": shown, "documents_searched": reply.documents_searched}
    if following is not None:
        result["continue_with"] = following
        why = _REASONS[reason or "matches"]
        result["note"] = f"Not everything was searched ({why}): go on with continue_with added."
    elif not shown:
        result["note"] = "No match. Try a shorter piece of it, regex, or search, which finds other words too."
    return result


_REASONS = {"matches": "there are enough matches", "time": "it took too long", "bytes": "there is too much text"}


def _matches(found: MatchedDocument, room: Room) -> tuple[dict[str, Any], int | None]:
    told: dict[str, Any] = {
        "document_id": found.document_id,
        "source": shortened(found.source),
        "title": shortened(found.title),
        "matches": [],
    }
    if not room.take(told):
        return told, found.matches[0].start_offset
    for one in found.matches:
        match = {"start_offset": one.start_offset, "end_offset": one.end_offset, "line": one.excerpt}
        place = {"section": shortened(one.section), "page": one.page}
        match |= {name: value for name, value in place.items() if value is not None}
        if not room.take(match):
            return told, one.start_offset
        told["matches"].append(match)
    if found.next_offset is not None:
        told["more_matches"] = {"document_id": found.document_id, "from_offset": found.next_offset}
    return told, None


@beside_a_conversation
def list_documents(
    view: View, room: Room, *, after: int, limit: int, name: str | None = None, department: str | None = None
) -> dict[str, Any]:
    """Which documents there are."""
    found = view.contents.list(name=name, department=department, cursor=cursor_at(after), limit=limit)
    shown = _fitting((_entry(one) for one in found), room)
    told: dict[str, Any] = {"documents": shown}
    if len(shown) < len(found) or found.next_cursor is not None:
        told["continue_with"] = {"after": shown[-1]["document_id"] if shown else after}
    elif not shown:
        told["note"] = "There are no more documents." if after else "There are no such documents."
    return told


@beside_a_conversation
def outline(view: View, room: Room, *, document_id: int, after_offset: int) -> dict[str, Any]:
    """The headings of a document, each with the range of its section."""
    found = _of_document(document_id, lambda: view.contents.outline(document_id))
    headings = [one for one in found.headings if one.start_offset >= after_offset]
    shown = _fitting(_sections(headings, found.characters), room)
    told: dict[str, Any] = {
        "document_id": found.document_id,
        "source": shortened(found.source),
        "title": shortened(found.title),
        "characters": found.characters,
        "pages": len(found.pages) or None,
        "headings": shown,
    }
    if len(shown) < len(headings):
        told["continue_with"] = {"after_offset": headings[len(shown)].start_offset}
    elif not found.headings:
        told["note"] = "The document has no headings: read it by offsets, or search in it with document_id."
    return told


@beside_a_conversation
def read(
    view: View, room: Room, *, document_id: int, start_offset: int, end_offset: int | None = None
) -> dict[str, Any]:
    """The text of a document between two offsets."""
    end = start_offset + READ_CHARACTERS if end_offset is None else end_offset
    if end <= start_offset:
        raise UsageError(f"end_offset must be greater than start_offset ({start_offset}), not {end}.")
    length = min(end - start_offset, 100_000)
    part = _of_document(document_id, lambda: view.contents.read(document_id, start=start_offset, length=length))
    told: dict[str, Any] = {
        "document_id": part.document_id,
        "source": shortened(part.source),
        "title": shortened(part.title),
        "section": shortened(part.section),
        "page": part.page,
        "start_offset": part.start_offset,
        "end_offset": part.end_offset,
        "characters": part.characters,
    }
    text = room.cut(part.text, told)
    stopped = part.start_offset + len(text)
    told |= {"end_offset": stopped, "text": text}
    if stopped < min(part.characters, end):
        told["continue_with"] = {"start_offset": stopped} | ({} if end_offset is None else {"end_offset": end_offset})
        told["note"] = "Cut to fit: go on with continue_with."
    elif stopped < part.characters:
        told["continue_with"] = {"start_offset": stopped}
    return told


def shortened(text: str | None) -> str | None:
    """A name as it is shown: a model needs to recognise it, and calls documents by their ids."""
    if text is None:
        return None
    plain = _CONTROL.sub(" ", text)
    return plain if len(plain) <= _NAME else plain[: _NAME - 1] + "…"


def options_of(
    narrowing: Mapping[str, object], *, top_k: int | None = None, mode: str | None = None
) -> RetrievalOptions:
    """The options of a search that a tool makes.

    Args:
        narrowing: The other arguments of the tool, by attribute of `RetrievalOptions`; None: left out. A tool takes one
            department, and one document as ``document_id``.
        top_k: How many passages.
        mode: What searches.
    """
    given: dict[str, Any] = {name: value for name, value in narrowing.items() if value is not None}
    if "department" in given:
        given["department"] = (given["department"],)
    if "document_id" in given:
        given["filters"] = {"document_id": given.pop("document_id")}
    return RetrievalOptions(top_k=top_k, mode=mode, **given)


def _place(passage: RetrievedContext) -> dict[str, Any]:
    told = {
        "document_id": passage.document_id,
        "source": shortened(passage.source),
        "id": shortened(passage.id),
        "title": shortened(passage.title),
        "collection": passage.collection,
        "server": passage.server,
        "section": shortened(passage.section),
        "page": passage.page,
        "start_offset": passage.start_offset,
        "end_offset": passage.end_offset,
        "date": passage.event_time.date().isoformat() if passage.event_time else None,
        "relevance": None if passage.relevance is None else round(passage.relevance, 2),
        "warnings": [shortened(one.text) for one in passage.notes[:3]] or None,
    }
    return {name: value for name, value in told.items() if value is not None}


def _entry(one: DocumentEntry) -> dict[str, Any]:
    told = {
        "document_id": one.document_id,
        "source": shortened(one.source),
        "id": shortened(one.id),
        "title": shortened(one.title),
        "collection": one.collection,
        "department": one.department,
        "tags": [shortened(tag) for tag in one.tags[:5]] or None,
        "bytes": one.byte_count,
        "date": one.event_time.date().isoformat() if one.event_time else None,
    }
    return {name: value for name, value in told.items() if value is not None}


def _sections(headings: Sequence[Heading], characters: int) -> Iterable[dict[str, Any]]:
    for place, one in enumerate(headings):
        ends = (later.start_offset for later in headings[place + 1 :] if later.level <= one.level)
        yield {
            "level": one.level,
            "title": shortened(one.title),
            "start_offset": one.start_offset,
            "end_offset": next(ends, characters),
        }


def _fitting(items: Iterable[dict[str, Any]], room: Room) -> list[dict[str, Any]]:
    """The first items, as far as there is room."""
    shown = []
    for item in items:
        if not room.take(item):
            break
        shown.append(item)
    return shown


def _of_document(document_id: int, look: Any) -> Any:  # noqa: ANN401 - whatever it gives
    try:
        return look()
    except NotFoundError as exc:
        raise NotFoundError(
            f"There is no document {document_id} that you may read. list_documents and search tell the ids of those "
            "there are."
        ) from exc
