"""Routes of declared operations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import Field, create_model

from recollect import errors
from recollect.operations.declaring import Operation, operations_of
from recollect.operations.values import Name
from recollect.pipeline import View
from recollect.server import dependencies
from recollect.server.admission import Service
from recollect.server.bodies import Body, Moment
from recollect.server.etags import tagged
from recollect.server.problems import documented, status_of

_CALLERS: Mapping[str, Any] = {
    "reader": dependencies.Reader,
    "writer": dependencies.Writer,
    "participant": dependencies.Participant,
    "document_reader": dependencies.DocumentReader,
    "document_writer": dependencies.DocumentWriter,
    "administrator": dependencies.Administrator,
    "granter": dependencies.Granter,
    "operator": dependencies.Operator,
}
_OF_VIEW: Mapping[str, tuple[Any, str]] = {
    "collection": (Name | None, "Of this collection; `*`: of all."),
    "session": (Name | None, "Of this conversation; left out: of all."),
    "user": (Name | None, "Of this user's conversations; left out: of anybody's."),
    "as_of": (Moment | None, "As it was known at this time (without a zone: UTC); left out: now."),
}


def bind(router: APIRouter, group: type, of: Callable[[View], Any]) -> None:
    """Make a route of each operation of a group.

    Args:
        router: Where they belong.
        group: Declares them.
        of: What has the operations as its methods, of the view of whoever asks.
    """
    for one in operations_of(group).values():
        router.add_api_route(
            one.http.path.removeprefix(f"/v1{router.prefix}"),
            _handler(one, of),
            methods=[one.http.method],
            response_model=_reply(one),
            status_code=one.http.status if one.gives else 204,
            summary=one.summary,
            description=one.description,
            responses=documented(*sorted({status_of(getattr(errors, name)) for name in one.raises} - {400, 403})),
            openapi_extra=dependencies.EITHER_SCOPE if one.http.standpoint == "granter" else None,
        )


def _handler(declared: Operation, of: Callable[[View], Any]) -> Callable[..., Any]:
    def handle(caller: View, service: Service, response: Response, **given: Any) -> Any:  # noqa: ANN401 - what the operation takes and gives
        if "body" in given:
            body = given.pop("body")
            given |= {name: getattr(body, name) for name in (*declared.elsewhere, *declared.http.of_view)}
        if declared.http.of_view:
            asked = {name: given.pop(name) for name in declared.http.of_view}
            caller = caller.view(
                **{"collections" if name == "collection" else name: one for name, one in asked.items()}
            )
        result = getattr(of(caller), declared.name)(**given)
        if declared.http.forgets:
            service.authenticator.forget()
        _note(declared, response, result)
        return declared.told(result)

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter("caller", keyword, annotation=_CALLERS[declared.http.standpoint]),
        inspect.Parameter("service", keyword, annotation=dependencies.Asking),
        inspect.Parameter("response", keyword, annotation=Response),
        *(declared.parameters[name].replace(kind=keyword) for name in declared.in_path),
    ]
    if declared.in_query:
        for name, one in declared.elsewhere.items():
            asked: Any = Annotated[one.annotation, Query(description=_said(declared, name))]
            parameters.append(one.replace(kind=keyword, annotation=asked))
        for name in declared.http.of_view:
            kind, said = _OF_VIEW[name]
            found: Any = Annotated[kind, Query(description=said)]
            parameters.append(inspect.Parameter(name, keyword, annotation=found, default=None))
    elif declared.elsewhere or declared.http.of_view:
        parameters.append(inspect.Parameter("body", keyword, annotation=_body(declared)))
    handle.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    handle.__name__ = declared.name
    return handle


def _note(declared: Operation, response: Response, result: Any) -> None:  # noqa: ANN401 - what the operation gives
    if declared.http.no_store:
        response.headers["Cache-Control"] = "no-store"
    if declared.http.etag:
        tagged(response, result)


def _said(declared: Operation, name: str) -> str:
    return declared.described.get(name, "").replace("null:", "left out:")


def _body(declared: Operation) -> type[Body]:
    fields: Any = {
        name: (
            one.annotation,
            Field(... if one.default is one.empty else one.default, description=_said(declared, name)),
        )
        for name, one in declared.elsewhere.items()
    }
    for name in declared.http.of_view:
        kind, said = _OF_VIEW[name]
        fields[name] = (kind, Field(None, description=said))
    return create_model(_named(declared, "Body"), __base__=Body, **fields)


def _reply(declared: Operation) -> Any:  # noqa: ANN401 - a type
    if not declared.gives:
        return None
    name = declared.http.reply
    if name is None:
        return declared.returns
    fields: Any = {name: (declared.returns, ...)}
    return create_model(_named(declared, "Reply"), **fields)


def _named(declared: Operation, what: str) -> str:
    group = declared.group.__name__.removesuffix("Operations")
    return f"{group}{declared.name.title().replace('_', '')}{what}"
