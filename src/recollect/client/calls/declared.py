"""Requests of declared operations."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from pydantic_core import to_jsonable_python

from recollect.client.calls.base import Call, Calls, nothing, segment
from recollect.operations.declaring import Operation


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
