"""Groups of options that several commands share, as dataclasses whose fields a command takes as options."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from typing import Annotated, Any, get_type_hints

import typer

from recollect.cli._command_context import CommandContext, GlobalOptions, argument_text
from recollect.errors import UsageError

#: Whoever read the output has read enough; 128 and the signal's number, as shells report it.
STATUS_BROKEN_PIPE = 141

_CHUNKING_PANEL = "Chunking"

JsonScalar = str | int | float | bool | None


class Mode(StrEnum):
    """What searches."""

    HYBRID = "hybrid"
    DENSE = "dense"
    LEXICAL = "lexical"


@dataclass(frozen=True, kw_only=True)
class CollectionOption:
    """The collection that a command works on."""

    collection: Annotated[
        str | None, typer.Option("--collection", "-c", help="The collection; by default the configured one.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class ChunkingOptions:
    """How a new collection cuts its documents."""

    chunking: Annotated[
        str | None,
        typer.Option(
            metavar="STRATEGY",
            help="fixed_size, hierarchical, markdown, paragraph, recursive, semantic, sliding_window, or one of your "
            "own.",
            rich_help_panel=_CHUNKING_PANEL,
        ),
    ] = None
    chunk_size: Annotated[
        int | None, typer.Option(help="Longest chunk, in the strategy's unit.", rich_help_panel=_CHUNKING_PANEL)
    ] = None
    chunk_overlap: Annotated[
        int | None,
        typer.Option(help="What neighbouring chunks have in common.", rich_help_panel=_CHUNKING_PANEL),
    ] = None
    chunking_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Another parameter of the strategy, for instance unit=tokens; repeat for more.",
            rich_help_panel=_CHUNKING_PANEL,
        ),
    ] = None

    @property
    def given(self) -> bool:
        """Whether any of them was."""
        values = [getattr(self, field.name) for field in fields(ChunkingOptions)]
        return any(value is not None and value != [] for value in values)

    def parameters(self, strategy: str) -> dict[str, JsonScalar]:
        """The parameters given, by the names that ``strategy`` has for them.

        Raises:
            UsageError: The strategy is unknown, or has no such parameter.
        """
        from recollect.chunking.registry import CHUNKERS, parameter_names, size_parameters

        values = key_values(self.chunking_option or (), option="--chunking-option")
        if self.chunk_size is None and self.chunk_overlap is None and not CHUNKERS.has(strategy):
            # A server may have one that is unknown here; who makes the collection refuses it otherwise.
            return values
        known = parameter_names(strategy)
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise UsageError(f"{strategy} chunking has no parameter {unknown[0]!r}; it has {', '.join(known)}.")
        window = values.get("window_size")
        values |= size_parameters(
            strategy,
            size=self.chunk_size,
            overlap=self.chunk_overlap,
            window_size=window if isinstance(window, int) else None,
        )
        return values


def key_values(items: list[str] | tuple[str, ...], *, option: str) -> dict[str, Any]:
    """``KEY=VALUE`` texts as a mapping; a value that is JSON has JSON's type, any other is text.

    Raises:
        UsageError: An item has no ``=``, or no key before it.
    """
    values: dict[str, Any] = {}
    for item in items:
        key, separator, value = item.partition("=")
        if not separator or not key:
            raise UsageError(f"{option} takes KEY=VALUE, not {item!r}.")
        values[key] = _json_or_text(value)
    return values


def _json_or_text(value: str) -> Any:  # noqa: ANN401 - whatever JSON holds
    try:
        return json.loads(value, parse_constant=not_a_value)
    except (ValueError, RecursionError):
        return value


def not_a_value(name: str) -> None:
    """Refuse NaN and the infinities, which Python's JSON has and JSON has not."""
    raise ValueError(name)


def command(
    app: typer.Typer,
    name: str,
    *,
    collection: bool = False,
    remote: bool = False,
    local: str = "",
    paths: Collection[str] = (),
) -> Callable[[Callable[..., int | None]], Callable[..., int | None]]:
    """Register a function as a command; a parameter whose type is a group of options becomes those options.

    The function takes a `CommandContext` first, and returns the exit status (None: 0). Every command takes the global
    options, so that they may stand before or behind its name.

    Args:
        app: Where the command belongs.
        name: The command's name.
        collection: Whether it takes ``--collection``, which its context knows.
        remote: Whether it works against a server too.
        local: Why it does not, in a sentence without its full stop, and what is done in its place.
        paths: Parameters that may name files, which are taken as they are given; of all other texts, bytes that are not
            UTF-8 are replaced, as nothing could be looked for by them.
    """
    if remote == bool(local):
        raise AssertionError(f"{name}: a command works against a server, or says why it does not.")

    def register(function: Callable[..., int | None]) -> Callable[..., int | None]:
        app.command(name)(_expanded(function, collection=collection, local=local, paths=paths))
        return function

    return register


def _expanded(
    function: Callable[..., int | None], *, collection: bool, local: str, paths: Collection[str]
) -> Callable[..., int | None]:
    parameters = inspect.signature(function, eval_str=True).parameters
    groups: dict[str, type] = {"": CollectionOption} if collection else {}
    plain: dict[str, inspect.Parameter] = {}
    for name, parameter in list(parameters.items())[1:]:
        if is_dataclass(parameter.annotation) and isinstance(parameter.annotation, type):
            groups[name] = parameter.annotation
        else:
            plain[name] = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)

    def run(*, ctx: typer.Context, **values: Any) -> int | None:  # noqa: ANN401 - each option has its own type
        values = {name: value if name in paths else _readable(value) for name, value in values.items()}
        own = {name: _picked(group, values) for name, group in groups.items()}
        named = next((group.collection for group in own.values() if isinstance(group, CollectionOption)), None)
        context = CommandContext.of(
            ctx.obj,
            _picked(GlobalOptions, values),
            collection=named,
            takes_collection=CollectionOption in groups.values(),
            local=local,
        )
        try:
            own.pop("", None)
            return function(context, **own, **{name: values[name] for name in plain})
        except BrokenPipeError:
            # Typer would make this an error like any other.
            return STATUS_BROKEN_PIPE
        finally:
            context.close()

    signature = [inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context), *plain.values()]
    for group in (*groups.values(), GlobalOptions):
        signature += as_parameters(group)
    return _with_signature(run, function, signature)


def _readable(value: Any) -> Any:  # noqa: ANN401 - each option has its own type
    if isinstance(value, list):
        return [_readable(one) for one in value]
    return argument_text(value) if type(value) is str else value


def as_parameters(group: type) -> list[inspect.Parameter]:
    """The fields of a group of options, as the parameters of a function."""
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]


def _with_signature(
    run: Callable[..., int | None], function: Callable[..., int | None], signature: list[inspect.Parameter]
) -> Callable[..., int | None]:
    # Typer reads both: the signature for the defaults, the annotations for the types.
    run.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in signature}
    run.__name__, run.__doc__ = function.__name__, function.__doc__
    return run


def _picked(group: type, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - an instance of `group`
    return group(**{field.name: values[field.name] for field in fields(group)})
