"""Commands of declared operations."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

import typer

from recollect.cli._access import ActorOptions
from recollect.cli._command_context import CommandContext
from recollect.cli._options import command
from recollect.errors import UsageError
from recollect.model.arguments import whole_number
from recollect.model.page import Page, cursor_at
from recollect.model.record import json_of
from recollect.operations.declaring import Operation, operations_of

if TYPE_CHECKING:
    from recollect.pipeline import View

# Arguments are called so within a command: one of them may be named as an option is that every command has.
_ARGUMENT = "argument_"

#: Shows what an operation gave to a person.
Show = Callable[[CommandContext, Any], None]

_BEFORE = Annotated[
    str | None,
    typer.Option("--before", "--after", hidden=True, help="As --cursor, by what stands last on the page before."),
]

_OF_VIEW: Mapping[str, Any] = {
    "session": Annotated[str | None, typer.Option(help="Only of this conversation.")],
    "user": Annotated[str | None, typer.Option(help="Only of this user's conversations.")],
    "as_of": Annotated[
        str | None, typer.Option(metavar="TIME", help="As it was known at this time (without a zone: UTC).")
    ],
}


def bind(
    app: typer.Typer,
    name: str,
    group: type,
    of: Callable[[View], Any],
    show: Mapping[str, Show],
    *,
    names: Mapping[str, str] | None = None,
    tenant: Callable[[CommandContext], int | str | None] | None = None,
) -> None:
    """Make commands of the operations of a group, for a store and for a server.

    Args:
        app: Where the commands belong.
        name: Of the app, as it is called.
        group: Declares the operations.
        of: What has them as its methods, of a view.
        show: By the name of an operation that becomes a command, what shows a person what it gave.
        names: Of commands that are not called as the operation is.
        tenant: Of commands for the store's owner alone, which take no ``--as``: the tenant that they ask about.
    """
    for operation, shown in show.items():
        declared, called = operations_of(group)[operation], (names or {}).get(operation, operation)
        command(app, called, remote=True)(_command(declared, of, shown, f"recollect {name} {called}", tenant))


def _command(
    declared: Operation,
    of: Callable[[View], Any],
    show: Show,
    called: str,
    tenant: Callable[[CommandContext], int | str | None] | None,
) -> Callable[..., int]:
    def run(ctx: CommandContext, asking: ActorOptions | None = None, **given: Any) -> int:  # noqa: ANN401 - options of any type
        before = given.pop("before", None)
        if before is not None:
            given["cursor"] = cursor_at(_position(declared, before))
        said = {name.removeprefix(_ARGUMENT): one for name, one in given.items()}
        of_view: dict[str, Any] = {name: said.pop(name) for name in declared.http.of_view if name in _OF_VIEW}
        whose = None if tenant is None else tenant(ctx)
        with ctx.view(tenant=whose, principal=None if asking is None else asking.actor(), **of_view) as view:
            found = getattr(of(view), declared.name)(**said)
        if ctx.json:
            ctx.emit(json_of(declared.told(found)))
            return 0
        show(ctx, found)
        if isinstance(found, Page) and found.next_cursor is not None:
            ctx.note(f"There are more: {called} --cursor {found.next_cursor}")
        return 0

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter("ctx", keyword, annotation=CommandContext),
        *(_parameter(declared, one) for one in declared.parameters.values()),
    ]
    if tenant is None and declared.http.standpoint != "operator":
        parameters.insert(1, inspect.Parameter("asking", keyword, annotation=ActorOptions))
    # The collection is an option of every command.
    of_view = [name for name in declared.http.of_view if name in _OF_VIEW]
    parameters += [inspect.Parameter(name, keyword, annotation=_OF_VIEW[name], default=None) for name in of_view]
    if declared.paged:
        parameters.append(inspect.Parameter("before", keyword, annotation=_BEFORE, default=None))
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__doc__ = f"{declared.summary}.\n\n{declared.description}".strip()
    return run


def _position(declared: Operation, before: str) -> int | str:
    """Where a page begins behind what stands last on the page before: a number or a name, as one is shown by it."""
    get = operations_of(declared.group).get("get")
    if get is not None and all(_plain(key.annotation) is not int for key in get.parameters.values()):
        return before
    number = whole_number(before)
    if number is None:
        raise UsageError(f"--before must be a whole number, not {reprlib.repr(before)}.")
    return number


def _parameter(declared: Operation, one: inspect.Parameter) -> inspect.Parameter:
    bounds = {name: value for kind, name in (("ge", "min"), ("le", "max")) if (value := _bound(one, kind)) is not None}
    said = declared.described.get(one.name, "").replace("`", "").replace("null:", "by default")
    if one.name in declared.in_path:
        name = f"{_ARGUMENT}{one.name}"
        shown: Any = typer.Argument(metavar=one.name.removesuffix("_id").upper(), help=said, **bounds)
    else:
        # A flag has no opposite that is spelt out: leaving it away says that.
        flag = [f"--{one.name}"] if _plain(one.annotation) is bool else []
        name, shown = one.name, typer.Option(*flag, help=said, **bounds)
    hint: Any = Annotated[_plain(one.annotation), shown]
    return one.replace(name=name, kind=inspect.Parameter.KEYWORD_ONLY, annotation=hint)


def _bound(one: inspect.Parameter, kind: str) -> Any:  # noqa: ANN401 - a number
    found = [
        getattr(bound, kind)
        for field in getattr(one.annotation, "__metadata__", ())
        for bound in getattr(field, "metadata", ())
        if hasattr(bound, kind)
    ]
    # A number that no table can hold is refused with the others: its bound would only lengthen the help.
    return found[0] if found and found[0] < 2**63 - 1 else None


def _plain(hint: Any) -> Any:  # noqa: ANN401 - any annotation
    """An annotation without what is known of its values."""
    if get_origin(hint) is Annotated:
        return _plain(get_args(hint)[0])
    if get_origin(hint) in {Union, UnionType}:
        kinds = set(map(_plain, get_args(hint)))
        # Whatever may be text is given as text, of which the operation says what it is.
        return reduce(or_, kinds & {str, NoneType} if str in kinds else kinds)
    return hint
