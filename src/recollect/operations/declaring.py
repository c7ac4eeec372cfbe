"""How an operation is declared, and what the surfaces read of its declaration.

A protocol has the one signature and the one docstring of each operation, and `operation` says how HTTP asks for it.
Routes, clients, commands and the reference are made of that; the pipeline's groups implement the protocol.
"""

from __future__ import annotations

import inspect
import re
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, wraps
from typing import Any, Literal, TypeVar, cast, get_origin, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from recollect.errors import OutOfBoundsError, UsageError
from recollect.model.page import Page
from recollect.model.record import adapter_of, entries, summary_of

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

#: Who asks, and with which rights: the names of `recollect.server.dependencies`.
Standpoint = Literal[
    "reader", "writer", "participant", "document_reader", "document_writer", "administrator", "granter", "operator"
]

#: What a view may be given and a request may name: by `recollect.View.view`.
OfView = Literal["collection", "session", "user", "as_of"]


@dataclass(frozen=True, slots=True)
class _Http:
    method: Method
    path: str
    standpoint: Standpoint
    of_view: tuple[OfView, ...]
    reply: str | None
    status: int
    no_store: bool
    etag: bool
    forgets: bool


def operation(
    http: str,
    standpoint: Standpoint,
    *,
    of_view: tuple[OfView, ...] = (),
    reply: str | None = None,
    status: int = 200,
    no_store: bool = False,
    etag: bool = False,
    forgets: bool = False,
) -> Callable[[F], F]:
    """Declares a method of a protocol as an operation.

    Args:
        http: The verb and the path, whose parts in braces are arguments (``{name:named}`` may hold a slash); what else
            there is comes in the query of a ``GET`` and ``DELETE``, and in the body of the others.
        standpoint: Who asks.
        of_view: What a request names of the view, in the query or the body, where the view was given it.
        reply: What JSON calls a value that is no record, such as a count; None: it is a record.
        status: Of the reply; what gives None replies 204, with an empty body.
        no_store: Whether no cache may keep the reply, because it shows a secret.
        etag: Whether the reply has an entity tag, which whoever changes it later names in ``If-Match``.
        forgets: Whether a credential may be taken no longer afterwards: the server forgets those that it knows.
    """

    def declare(function: F) -> F:
        method, path = http.split()
        asked = cast("Method", method)
        declared = _Http(asked, path, standpoint, of_view, reply, status, no_store, etag, forgets)
        function.__http__ = declared  # type: ignore[attr-defined]
        return function

    return declare


@dataclass(frozen=True, eq=False)
class Operation:
    """An operation, as it is declared.

    Attributes:
        group: Whose method it is.
        name: Of the method.
        http: How it is asked for over HTTP.
        parameters: Its arguments, with what is known of their values.
        returns: What it gives.
        function: The declaration.
    """

    group: type
    name: str
    http: _Http
    parameters: Mapping[str, inspect.Parameter]
    returns: Any
    function: Callable[..., Any]

    @cached_property
    def in_path(self) -> tuple[str, ...]:
        """The arguments that the path holds."""
        return tuple(re.findall(r"{(\w+)[:}]", self.http.path))

    @cached_property
    def elsewhere(self) -> Mapping[str, inspect.Parameter]:
        """The arguments that the query or the body holds."""
        return {name: one for name, one in self.parameters.items() if name not in self.in_path}

    @property
    def in_query(self) -> bool:
        """Whether the query holds them."""
        return self.http.method in {"GET", "DELETE"}

    @property
    def gives(self) -> bool:
        """Whether it gives anything."""
        return self.returns is not type(None)

    @property
    def paged(self) -> bool:
        """Whether it gives one page of a list."""
        return get_origin(self.returns) is Page

    @property
    def summary(self) -> str:
        """What it does, in a line without a full stop."""
        return self._said[0].rstrip(".")

    @property
    def description(self) -> str:
        """What else is to be known of it."""
        return self._said[2]

    @cached_property
    def described(self) -> Mapping[str, str]:
        """What is said of each argument."""
        return entries(self.function, "Args")

    @cached_property
    def raises(self) -> tuple[str, ...]:
        """The names of the errors that are its own."""
        return tuple(entries(self.function, "Raises"))

    @cached_property
    def _said(self) -> tuple[str, str, str]:
        return summary_of(self.function).partition("\n\n")

    def result_of(self, told: Any) -> Any:  # noqa: ANN401 - what it gives
        """What it gave, of the JSON that a server replied."""
        return adapter_of(self.returns).validate_python(told if self.http.reply is None else told[self.http.reply])

    def told(self, result: Any) -> Any:  # noqa: ANN401 - what it gives
        """What it gave, as it is told in JSON: a record, or a value by its name."""
        return result if self.http.reply is None else {self.http.reply: result}

    def require(self, given: Mapping[str, object]) -> None:
        """Checks arguments by what is declared of them.

        Raises:
            UsageError: A value is none of those that it may be.
        """
        for name in given.keys() & self.checks.keys():
            try:
                self.checks[name].validate_python(given[name])
            except ValidationError as exc:
                error = exc.errors(include_url=False)[0]
                raise _refusal(name, error) from None

    @cached_property
    def checks(self) -> Mapping[str, TypeAdapter[Any]]:
        """What checks the value of each argument; made when it is first asked for."""
        strict = ConfigDict(strict=True, arbitrary_types_allowed=True)
        return {name: TypeAdapter(one.annotation, config=strict) for name, one in self.parameters.items()}


def _refusal(name: str, error: Mapping[str, Any]) -> UsageError:
    said = str(error["msg"]).removeprefix("Value error, ").removeprefix("Input ")
    bounds = error["type"] in {"greater_than_equal", "less_than_equal", "string_too_long", "string_too_short"}
    return (OutOfBoundsError if bounds else UsageError)(f"{name}: {said}, not {reprlib.repr(error['input'])}.")


@cache
def operations_of(group: type) -> Mapping[str, Operation]:
    """The operations that a protocol declares, by name."""
    found = {}
    for name, function in vars(group).items():
        http = getattr(function, "__http__", None)
        if http is None:
            continue
        hints = get_type_hints(function, include_extras=True)
        given = list(inspect.signature(function).parameters.values())[1:]
        parameters = {one.name: one.replace(annotation=hints[one.name]) for one in given}
        found[name] = Operation(group, name, http, parameters, hints["return"], function)
    return found


_IMPLEMENTED: list[type] = []


def implements(group: type) -> Callable[[C], C]:
    """Has a class check the arguments of the operations that it implements, as they are declared."""

    def implement(kind: C) -> C:
        for one in operations_of(group).values():
            setattr(kind, one.name, _checking(one, vars(kind)[one.name]))
        _IMPLEMENTED.append(group)
        return kind

    return implement


def make_checks() -> None:
    """Make the checks of all operations that are implemented here, which the first call of each would wait for."""
    for group in _IMPLEMENTED:
        for one in operations_of(group).values():
            _ = one.checks


def awaiting(group: type) -> Callable[[C], C]:
    """Says whose operations a protocol has as coroutines."""

    def say(kind: C) -> C:
        kind.__awaits__ = group  # type: ignore[attr-defined]
        return kind

    return say


def bind(kind: type, method_of: Callable[[Operation], Callable[..., Any]]) -> None:
    """Give a class those of the operations that its bases declare which it does not have itself.

    Args:
        kind: A subclass of a protocol of operations, or of one that awaits them.
        method_of: Makes the method of an operation.
    """
    for base in kind.__bases__:
        for name, declared in operations_of(getattr(base, "__awaits__", base)).items():
            if name not in vars(kind):
                method = method_of(declared)
                method.__name__, method.__qualname__ = name, f"{kind.__name__}.{name}"
                method.__doc__ = declared.function.__doc__
                method.__signature__ = inspect.signature(declared.function)  # type: ignore[attr-defined]
                setattr(kind, name, method)


def _checking(declared: Operation, function: Callable[..., Any]) -> Callable[..., Any]:
    names = tuple(declared.parameters)

    @wraps(function)
    def call(self: object, *args: object, **kwargs: object) -> object:
        declared.require({**dict(zip(names, args, strict=False)), **kwargs})
        return function(self, *args, **kwargs)

    call.__doc__ = declared.function.__doc__
    call.__signature__ = inspect.signature(declared.function)  # type: ignore[attr-defined]
    return call
