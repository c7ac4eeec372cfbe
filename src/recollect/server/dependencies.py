"""What routes ask for: the service that they belong to, the view of whoever asks, and the page of a list."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, TypeVar, cast

from fastapi import Depends, Query, Request, Security
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer, SecurityScopes

from recollect.model.arguments import UNSTORABLE
from recollect.model.page import moment_of, number_at, position_of, unknown_cursor
from recollect.operations.values import Cursor, Limit, Name
from recollect.pipeline import View
from recollect.pipeline.asynchronous import AsyncView
from recollect.server.admission import Service, admit
from recollect.server.authentication import caller_of
from recollect.server.caller import Caller
from recollect.server.requests import register

if TYPE_CHECKING:
    from recollect.model.key import AccessScope
    from recollect.pipeline import RAGPipeline


# Modules of routes import this one and declare their paths as they are imported.
register()


_bearer = HTTPBearer(
    auto_error=False, scheme_name="bearer", description="An API key, or a token of the configured issuer."
)


_api_key = APIKeyHeader(name="X-API-Key", auto_error=False, scheme_name="apiKey", description="An API key.")


def service_of(request: Request) -> Service:
    """The service that a request was sent to."""
    return cast("Service", request.app.state.service)


async def asking(
    request: Request,
    scopes: SecurityScopes,
    _: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)] = None,
    __: Annotated[str | None, Security(_api_key)] = None,
) -> Caller:
    """Who asks, who may do what the route needs.

    Raises:
        AuthenticationError: Nobody that is known, or several at once.
        PermissionDeniedError: The credential is not for this.
        TenantSuspendedError: It is of a tenant that is suspended.
        RateLimitedError: They have asked too much.
    """
    service = service_of(request)
    caller = await caller_of(request, service.authenticator)
    for scope in scopes.scopes:
        caller.require(cast("AccessScope", scope))
    return await _admitted(request, caller, service)


async def _admitted(request: Request, caller: Caller, service: Service) -> Caller:
    await admit(request, caller, service)
    return caller


async def _rights(
    request: Request,
    _: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)] = None,
    __: Annotated[str | None, Security(_api_key)] = None,
) -> View:
    service = service_of(request)
    caller = await caller_of(request, service.authenticator)
    view = caller.rights(service.rag)
    await _admitted(request, caller, service)
    return view


async def _service(request: Request) -> Service:
    # A coroutine, which FastAPI calls where it is; what is none it hands to a thread and waits for.
    return service_of(request)


Asking = Annotated[Service, Depends(_service)]


def _view(seen: Callable[[Caller, RAGPipeline], View]) -> Callable[..., Awaitable[View]]:
    """What gives a route a view of whoever asks: one dependency, because each costs as much as what most of them do."""

    async def view(
        request: Request,
        scopes: SecurityScopes,
        _: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)] = None,
        __: Annotated[str | None, Security(_api_key)] = None,
    ) -> View:
        return seen(await asking(request, scopes), service_of(request).rag)

    return view


_own = _view(Caller.view)


_administered = _view(Caller.administration)


_operated = _view(Caller.owner)


#: Whoever has a credential, whatever it opens.
Somebody = Annotated[Caller, Security(asking)]


#: Whoever administers the tenant.
AdministratorCaller = Annotated[Caller, Security(asking, scopes=["admin"])]


#: The caller's view, for what changes nothing.
Reader = Annotated[View, Security(_own, scopes=["read"])]


#: The caller's view, for what changes documents and conversations.
Writer = Annotated[View, Security(_own, scopes=["write"])]


#: The caller's view, for what is remembered of what documents say.
Participant = Annotated[View, Security(_own, scopes=["read", "write"])]


_Within = Annotated[
    tuple[Name, ...],
    Query(alias="collection", description="Only a document of one of these collections; left out: of any."),
]


async def _read_document(view: Reader, collections: _Within = ()) -> View:
    return view.view(collections=collections or "*")


async def _write_document(view: Writer, collections: _Within = ()) -> View:
    return view.view(collections=collections or "*")


#: The caller's view of the document that a path names by its number.
DocumentReader = Annotated[View, Depends(_read_document)]


#: As `DocumentReader`, for what changes the document.
DocumentWriter = Annotated[View, Depends(_write_document)]


#: The caller's view, for collections, rights and what was done.
Administrator = Annotated[View, Security(_administered, scopes=["admin"])]


#: The view of whoever says who may do what: administrators of all of it, whoever writes of what is theirs.
Granter = Annotated[View, Security(_rights, scopes=["write", "admin"])]


#: What the document says of that: either scope is enough.
EITHER_SCOPE = {
    "security": [
        {scheme: [scope]} for scheme in (_bearer.scheme_name, _api_key.scheme_name) for scope in ("admin", "write")
    ]
}


#: The view of whoever runs the store, for its tenants.
Operator = Annotated[View, Security(_operated, scopes=["operator"])]


def streaming(view: View, service: Service) -> AsyncView:
    """The view for an answer that is sent as it comes: whoever goes away ends it."""
    return AsyncView(view, service.streams)


# Lists, page by page: where a page begins is a cursor, which only the server reads.


T = TypeVar("T")


_HIGHEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Page:
    """The page that is asked for.

    Attributes:
        limit: Entries at most.
        cursor: As the page before gave it; None: the first page.
    """

    limit: int
    cursor: str | None

    @property
    def asked(self) -> int:
        """How many entries to look up: one more than are shown tells whether another page follows."""
        return self.limit + 1

    def number(self) -> int:
        """Where it begins, in a list by number, or how many entries it passes over; 0: at the first entry.

        Raises:
            UsageError: The cursor is of no such list.
        """
        return number_at(self.cursor) or 0

    def parts(self, count: int) -> list[object] | None:
        """Where several lists go on that are read together, null for one that has ended; None: the cursor counts.

        Raises:
            UsageError: The cursor is of no such lists.
        """
        found = 0 if self.cursor is None else position_of(self.cursor)
        if isinstance(found, int):
            return None
        if not isinstance(found, list) or len(found) != count:
            raise unknown_cursor()
        return found


PageLimit = Annotated[Limit, Query(description="Entries at most.")]


PageCursor = Annotated[Cursor | None, Query(description="`next_cursor` of the page before; left out: the first page.")]


async def page(limit: PageLimit = 100, cursor: PageCursor = None) -> Page:
    """The page that a request asks for."""
    return Page(limit=limit, cursor=cursor)


#: The page that a request asks for.
Paging = Annotated[Page, Depends(page)]


def numbered_moment(given: object) -> tuple[datetime, int]:
    """A place in a list by a moment and a number, as a cursor holds it.

    Raises:
        UsageError: It is none.
    """
    match given:
        case [str(moment), int(number)] if not isinstance(number, bool) and 0 <= number <= _HIGHEST:
            return moment_of(moment), number
    raise unknown_cursor()


def named_moment(given: object) -> tuple[datetime | None, str, str | None]:
    """A place in a list by a moment, a name and whose it is, as a cursor holds it.

    Raises:
        UsageError: It is none.
    """
    match given:
        case [str() | None as moment, str(name), str() | None as owner]:
            if not UNSTORABLE.search(f"{name}{owner}"):
                return None if moment is None else moment_of(moment), name, owner
    raise unknown_cursor()


def shown(found: Sequence[T], asked: Page) -> tuple[Sequence[T], bool]:
    """What is shown of what was looked up, and whether another page follows."""
    return found[: asked.limit], len(found) > asked.limit
