"""What routes ask for: the service that they belong to, and the view of whoever asks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, cast

from fastapi import Depends, Query, Request, Security
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer, SecurityScopes

from recollect.operations.values import Name
from recollect.pipeline import View
from recollect.pipeline.asynchronous import AsyncView
from recollect.server import named_paths
from recollect.server.admission import admit
from recollect.server.caller import Caller
from recollect.server.requests import caller_of
from recollect.server.service import Service

if TYPE_CHECKING:
    from recollect.model.key import AccessScope
    from recollect.pipeline import RAGPipeline

# Modules of routes import this one and declare their paths as they are imported.
named_paths.register()

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
