"""The address of a list of documents: its filters, its order and its page, read and written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any, cast, get_args
from urllib.parse import quote_plus

from starlette.datastructures import QueryParams

from recollect.errors import UsageError
from recollect.model.document_record import DocumentStatus
from recollect.model.filter import parse_filter
from recollect.model.listing import LISTING_SORTS, ListingPlace, ListingQuery, ListingSort
from recollect.model.page import cursor_at, position_of
from recollect.model.principal import read_token
from recollect.model.source import SourceType
from recollect.model.time import read_time

STATUSES: tuple[str, ...] = get_args(DocumentStatus)
ORIGINS: tuple[str, ...] = get_args(SourceType)
PATH = "/library/documents"

_MOST_CHARACTERS = 2_000
_MOST_WORDS = 10
_MOST_KEY = 100
_HIGHEST = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentsAddress:
    """What the address of a list says, as it says it; what is empty stands in no address.

    Attributes:
        collection: By name; empty: all that may be read.
        q: Words of titles and paths.
        status: One of `STATUSES`.
        source: Where documents come from.
        source_type: One of `ORIGINS`.
        type: Of files.
        department: Of documents.
        tag: That documents have.
        language: Of documents.
        changed_from: A day, the first.
        changed_to: A day, the last.
        dated_from: A day of what documents tell of, the first.
        dated_to: The last.
        key: Of metadata.
        value: Of that key; empty: whichever.
        grant: Who may read.
        filter: JSON, in the language of filters.
        sort: One of `LISTING_SORTS`.
        cursor: Where the page begins or ends.
    """

    collection: str = ""
    q: str = ""
    status: str = ""
    source: str = ""
    source_type: str = ""
    type: str = ""
    department: str = ""
    tag: str = ""
    language: str = ""
    changed_from: str = ""
    changed_to: str = ""
    dated_from: str = ""
    dated_to: str = ""
    key: str = ""
    value: str = ""
    grant: str = ""
    filter: str = ""
    sort: str = ""
    cursor: str = ""

    @classmethod
    def read(cls, params: QueryParams) -> DocumentsAddress:
        """What an address says; parameters of other names are left alone.

        Raises:
            UsageError: One of them is longer than any should be, or holds what no text has.
        """
        given = {field.name: params.get(field.name, "").strip() for field in fields(cls)}
        for name, text in given.items():
            if len(text) > _MOST_CHARACTERS:
                raise UsageError(f"{name} has more than {_MOST_CHARACTERS:,} characters.")
            if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
                raise UsageError(f"{name} holds a character that no document can hold (NUL or half a pair).")
        return cls(**given)

    def said(self) -> dict[str, str]:
        """What it says, without what is empty."""
        return {field.name: text for field in fields(self) if (text := getattr(self, field.name))}

    @property
    def tags(self) -> list[str]:
        """The tags, with commas between in the address."""
        return [tag.strip() for tag in self.tag.split(",") if tag.strip()]

    def filters(self) -> dict[str, str]:
        """What confines the list."""
        return {name: text for name, text in self.said().items() if name not in {"sort", "cursor"}}

    def path(self, **changes: str) -> str:
        """The path of a list that differs from this one; its first page, unless that is what differs."""
        said = replace(self, **{"cursor": "", **changes}).said()
        # With a plus for a blank and nothing else left as it is: names are anybody's.
        query = "&".join(f"{name}={quote_plus(text)}" for name, text in said.items())
        return f"{PATH}?{query}" if query else PATH

    def at(self, place: ListingPlace) -> str:
        """The path of the page behind a place, or before it."""
        key = place.key.isoformat() if isinstance(place.key, datetime) else place.key
        if isinstance(key, str):
            key = key[:_MOST_KEY]
        return self.path(cursor=cursor_at([key, place.document_id, place.backwards, place.count]))

    def query(self) -> ListingQuery:
        """The list that is asked for.

        Raises:
            UsageError: A filter, a day or the cursor is none.
        """
        sort = self.sort or "newest"
        if sort not in LISTING_SORTS:
            raise UsageError(f"sort is one of {', '.join(LISTING_SORTS)}, not {sort!r}.")
        if self.status and self.status not in STATUSES:
            raise UsageError(f"status is one of {', '.join(STATUSES)}, not {self.status!r}.")
        where = self._where()
        return ListingQuery(
            words=tuple(self.q.split()[:_MOST_WORDS]),
            status=cast("DocumentStatus", self.status) if self.status else None,
            origin=self.source or None,
            mime_types=(self.type,) if self.type else (),
            changed_from=_day("changed_from", self.changed_from),
            changed_to=_day("changed_to", self.changed_to, last=True),
            grant=read_token(self.grant, name="grant") if self.grant else None,
            where=parse_filter(where) if where else None,
            sort=sort,
            place=_place(self.cursor, sort),
        )

    def _where(self) -> dict[str, Any]:
        """What the language of filters is asked."""
        plain = {"department": self.department, "language": self.language, "source_type": self.source_type}
        parts: list[Mapping[str, Any]] = [{name: text} for name, text in plain.items() if text]
        parts += [{"tags": {"contains": tag}} for tag in self.tags]
        if first := _day("dated_from", self.dated_from):
            parts.append({"event_time": {"gte": first}})
        if last := _day("dated_to", self.dated_to, last=True):
            parts.append({"event_time": {"lt": last}})
        if self.key:
            parts.append(_of_metadata(self.key, self.value))
        if self.filter:
            parts.append(_json(self.filter))
        return {"and": parts} if parts else {}


def _of_metadata(key: str, value: str) -> dict[str, Any]:
    name = f"metadata.{key}"
    if not value:
        return {name: {"exists": True}}
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        return {name: value}
    # What looks like a number may have been stored as a text, and a text of a list is one of its entries.
    other = [{name: read}] if isinstance(read, bool | int | float) else []
    return {"or": [{name: value}, {name: {"contains": value}}, *other]}


def _json(text: str) -> dict[str, Any]:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise UsageError('filter is JSON, for instance {"metadata.year": {"gte": 2024}}.') from exc
    if not isinstance(given, dict) or not given:
        raise UsageError('filter is an object, for instance {"metadata.year": {"gte": 2024}}.')
    return given


def _day(name: str, text: str, *, last: bool = False) -> datetime | None:
    if not text:
        return None
    try:
        at = read_time(text, name=name)
        return at + timedelta(days=1) if last and len(text) == len("2026-01-31") else at
    except OverflowError as exc:
        raise UsageError(f"{name} is a day, for instance 2026-01-31, not {text!r}.") from exc


def _place(cursor: str, sort: ListingSort) -> ListingPlace | None:
    if not cursor:
        return None
    match position_of(cursor):
        case [str() | int() as key, int(number), bool(backwards), int() | None as count] if 0 <= number <= _HIGHEST:
            if (read := _key(key, sort)) is not None:
                return ListingPlace(key=read, document_id=number, backwards=backwards, count=count)
    raise UsageError("The cursor is none that this list gave: leave it out to begin anew.")


def _key(key: str | int, sort: ListingSort) -> str | int | datetime | None:
    """What a list is sorted by, as a cursor has it; None: not of this list."""
    match sort:
        case "title":
            storable = isinstance(key, str) and "\0" not in key and not any("\ud800" <= one <= "\udfff" for one in key)
            return key if storable else None
        case "changed":
            return _moment(key)
        case _:
            return key if isinstance(key, int) and 0 <= key <= _HIGHEST else None


def _moment(key: str | int) -> datetime | None:
    try:
        at = datetime.fromisoformat(key) if isinstance(key, str) else None
    except ValueError:
        return None
    return at if at is not None and at.tzinfo is not None else None
