"""Routes of declared operations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, get_origin

from fastapi import APIRouter, Query
from pydantic import GetJsonSchemaHandler, create_model
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from recollect import errors
from recollect.model.record import summary_of
from recollect.operations.declaring import Operation, operations_of
from recollect.operations.values import Name
from recollect.pipeline import View
from recollect.server import dependencies
from recollect.server.problems import documented, status_of
from recollect.server.service import Service

_CALLERS: Mapping[str, Any] = {
    "reader": dependencies.Reader,
    "writer": dependencies.Writer,
    "administrator": dependencies.Administrator,
    "operator": dependencies.Operator,
}
_OF_COLLECTION = Annotated[Name | None, Query(description="Of this collection; left out: of any.")]


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
            summary=one.summary,
            description=one.description,
            responses=documented(*sorted({status_of(getattr(errors, name)) for name in one.raises} - {400, 403})),
        )


def _handler(declared: Operation, of: Callable[[View], Any]) -> Callable[..., Any]:
    def handle(caller: View, service: Service, **given: Any) -> Any:  # noqa: ANN401 - what the operation takes and gives
        if declared.http.of_collection:
            caller = caller.view(collections=given.pop("collection"))
        result = getattr(of(caller), declared.name)(**given)
        if declared.http.forgets:
            service.authenticator.forget()
        return declared.told(result)

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter("caller", keyword, annotation=_CALLERS[declared.http.standpoint]),
        inspect.Parameter("service", keyword, annotation=dependencies.Asking),
    ]
    for name, one in declared.parameters.items():
        if name in declared.in_path:
            parameters.append(one.replace(kind=keyword))
        else:
            said = declared.described.get(name, "").replace("null:", "left out:")
            asked: Any = Annotated[one.annotation, Query(description=said)]
            parameters.append(one.replace(kind=keyword, annotation=asked))
    if declared.http.of_collection:
        parameters.append(inspect.Parameter("collection", keyword, annotation=_OF_COLLECTION, default=None))
    handle.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    handle.__name__ = declared.name
    return handle


class _Titled:
    """Names a generic record by what it holds: generators of clients name their classes by titles."""

    def __init__(self, kind: object) -> None:
        self._kind = kind

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        found = handler(schema)
        record = get_origin(self._kind)
        if record is not None:
            title = "".join(one.__name__ for one in (*get_args(self._kind), record))
            handler.resolve_ref_schema(found).update(title=title, description=summary_of(record))
        return found


def _reply(declared: Operation) -> Any:  # noqa: ANN401 - a type
    name = declared.http.reply
    if name is None:
        return Annotated[declared.returns, _Titled(declared.returns)]
    fields: Any = {name: (declared.returns, ...)}
    group, called = declared.group.__name__.removesuffix("Operations"), declared.name.title().replace("_", "")
    return create_model(f"{group}{called}Reply", **fields)
