"""A request as a value, lists page by page, streams of events, and the requests of declared operations."""

from __future__ import annotations

import inspect
import json
import mimetypes
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, cast
from urllib.parse import quote

from pydantic_core import to_jsonable_python

from recollect.errors import ParseError, ServerError
from recollect.model.record import adapter_of
from recollect.operations.declaring import Operation

if TYPE_CHECKING:
    from recollect.client.place import Place
    from recollect.replies.me import MeJson, ServerSettingsJson


T = TypeVar("T")


Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


#: Entries of a list that one request asks for at most.
MOST_OF_A_PAGE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A reply that was read.

    Attributes:
        status: Of HTTP.
        headers: By name, in small letters.
        json: What its body says; None where it has none.
    """

    status: int
    headers: Mapping[str, str]
    json: Any = None

    @property
    def etag(self) -> str | None:
        """What the thing that was read or changed is at now, for ``if_match``."""
        return self.headers.get("etag")

    @property
    def request_id(self) -> str | None:
        """The id of the server's log lines about it."""
        return self.headers.get("x-request-id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T]):
    """One request, and what its reply means.

    Attributes:
        method: Of HTTP.
        path: Below the server's address.
        read: Makes the result of what the body says.
        query: Left out where None; several values for a list.
        body: Sent as JSON.
        upload: Files, sent as a form in place of a body.
        lines: JSON Lines, sent as they are in place of a body.
        patience_seconds: How long the reply may take to begin, where that is longer than the client's own limit.
        headers: Beside the client's own.
        searches: Whether it changes nothing though it is no GET: it can be repeated as it is.
    """

    method: Method
    path: str
    read: Callable[[Any], T]
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    upload: Upload | None = None
    lines: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    searches: bool = False
    patience_seconds: float = 0.0

    @property
    def writes(self) -> bool:
        """Whether it changes something."""
        return self.method != "GET" and not self.searches


@dataclass(frozen=True, slots=True)
class Pause:
    """Some time in which nothing is asked."""

    seconds: float


#: A method of several requests: yields each, and is sent what it gave.
Steps: TypeAlias = Generator[Call[Any] | Pause, Any, T]


def once(call: Call[T]) -> Steps[T]:
    """One request of several, with the type of what it gives."""
    result: T = yield call
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages(Generic[T]):
    """A list that the server gives page by page.

    Attributes:
        call: Asks for its first page; the cursor comes to its query.
        items: Reads the entries of a page.
        cursor: Where it begins; None: at its beginning.
    """

    call: Call[Mapping[str, Any]]
    items: Callable[[Mapping[str, Any]], Sequence[T]]
    cursor: str | None = None

    def page(self, cursor: str | None, limit: int) -> Call[Mapping[str, Any]]:
        """The request for one page."""
        query = {**self.call.query, "limit": limit, "cursor": cursor}
        return replace(self.call, query=query)

    def first(self, most: int) -> Steps[list[T]]:
        """The first entries, so many at most."""
        found: list[T] = []
        cursor = self.cursor
        while len(found) < most:
            page = yield self.page(cursor, min(most - len(found), MOST_OF_A_PAGE))
            found += self.items(page)
            cursor = page["next_cursor"]
            if cursor is None:
                break
        return found


@dataclass(frozen=True, slots=True)
class Event:
    """An event as it came.

    Attributes:
        name: What it is.
        data: What it says.
        id: Where the stream is with it; empty: not said.
        url: Of the server.
    """

    name: str
    data: str
    id: str
    url: str

    def json(self) -> Any:  # noqa: ANN401 - whatever JSON holds
        """What it says, as JSON.

        Raises:
            ServerError: It is none.
        """
        try:
            return json.loads(self.data)
        except (ValueError, RecursionError) as exc:
            raise ServerError(
                f"The server at {self.url} sent an event {self.name!r} that is no JSON.", url=self.url
            ) from exc


@dataclass(frozen=True, slots=True, kw_only=True)
class EventStream(Generic[T]):
    """Events that come one after the other.

    Attributes:
        call: Begins it.
        read: What one event gives; several things, or none.
        ends: Whether an event is the last one.
        resumes: How it goes on after its connection broke: ``restarted`` asks the same again with the id of the last
            event, ``kept`` asks for what the server keeps of it for a while. None: not at all.
    """

    call: Call[Any]
    read: Callable[[Event], Sequence[T]]
    ends: frozenset[str]
    resumes: Literal["restarted", "kept"] | None = None


class Calls:
    """The requests of a group of methods; see `recollect.Client`.

    Args:
        at: Where the client stands.
    """

    def __init__(self, at: Place) -> None:
        self._at = at

    @property
    def standpoint(self) -> Place:
        """Where the client stands."""
        return self._at

    def me(self) -> Call[MeJson]:
        """Who asks: the tenant, the principal and the scopes of the credential, and the server's settings."""
        return Call(method="GET", path="/v1/me", read=self._noted)

    def _noted(self, told: MeJson) -> MeJson:
        self._at.known.me = told
        return told

    def _settings(self) -> Steps[ServerSettingsJson]:
        """What the server is configured with; asked once."""
        me = self._at.known.me
        if me is None:
            me = yield from once(self.me())
        return me["settings"]

    def _collection(self) -> Steps[str]:
        """The one collection of the view; the configured one where none was named."""
        if self._at.collections is None:
            yield from self._settings()
        return self._at.collection


def segment(name: object) -> str:
    """A name as a part of a path."""
    return quote(str(name), safe="")


def nothing(_: Any) -> None:  # noqa: ANN401 - whatever a reply says
    """Of a reply that says nothing."""
    return


def as_it_is(told: Any) -> Any:  # noqa: ANN401 - whatever a reply says
    """What a reply says."""
    return told


def reading(kind: type[T]) -> Callable[[Any], T]:
    """Reads a record, or several, as which a reply is."""
    return lambda told: cast("T", adapter_of(kind).validate_python(told))


def listed(key: str, read: Callable[[Mapping[str, Any]], T]) -> Callable[[Mapping[str, Any]], list[T]]:
    """Reads the entries of a page.

    Args:
        key: That they stand under.
        read: One of them.
    """
    return lambda page: [read(one) for one in page[key]]


# Requests of declared operations.


def asked(declared: Operation) -> Callable[..., Call[Any]]:
    """What makes the request of an operation, of its arguments."""
    signature = inspect.Signature(list(declared.parameters.values()))

    def make(calls: Calls, *args: Any, **kwargs: Any) -> Call[Any]:  # noqa: ANN401 - those of the operation
        given = signature.bind(*args, **kwargs).arguments
        declared.require(given)
        of_view = calls.standpoint.of_view(declared.http.of_view)
        path = re.sub(r":\w+}", "}", declared.http.path).format(
            **{name: segment(given.pop(name)) for name in declared.in_path}
        )
        said = to_jsonable_python({name: value for name, value in given.items() if value is not None}) | of_view
        bodied = declared.elsewhere or declared.http.of_view
        where = {"query": said} if declared.in_query else {"body": said if bodied else None}
        read = declared.result_of if declared.gives else nothing
        return Call(method=declared.http.method, path=path, read=read, **where)

    return make


@dataclass(frozen=True, slots=True, kw_only=True)
class FileToSend:
    """A file to be sent.

    Attributes:
        path: Where it is.
        name: What its document is called: a name, or a path with ``/``.
    """

    path: Path
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A form with files.

    Attributes:
        files: In their order.
        fields: Beside them, each with its values.
    """

    files: tuple[FileToSend, ...]
    fields: Mapping[str, list[str]]

    @contextmanager
    def opened(self) -> Iterator[dict[str, Any]]:
        """What the HTTP library takes; the files are open meanwhile, and read as they are sent.

        Raises:
            ParseError: One cannot be read.
        """
        with ExitStack() as open_files:
            parts: list[tuple[str, tuple[str, IO[bytes], str]]] = []
            for one in self.files:
                try:
                    file = open_files.enter_context(one.path.open("rb"))
                except OSError as exc:
                    raise ParseError(str(one.path), exc.strerror or str(exc)) from exc
                kind = mimetypes.guess_type(one.name)[0] or "application/octet-stream"
                parts.append(("file", (one.name, file, kind)))
            yield {"files": parts, "data": {name: values for name, values in self.fields.items() if values}}
