"""How a command searches, and what: a collection, all of them, or a session's documents, now or as of a time."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from recollect.cli._command_context import CommandContext
from recollect.cli._options import Mode, key_values, not_a_value
from recollect.errors import UsageError
from recollect.model.search_options import (
    FusionMethod,
    RetrievalOptions,
    SearchOption,
    options_named,
    search_options,
)
from recollect.model.time import Duration, MomentRange, read_time

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from recollect.config import RAGConfig
    from recollect.model.collection import Collection
    from recollect.pipeline import View


_T = TypeVar("_T")


#: Stands for every collection.
EVERYWHERE = "*"


_PANEL = "Sessions"


# Collections that a message names.
_NAMED = 5


class Fusion(StrEnum):
    """How the retrievers' results become one list."""

    WEIGHTED = "weighted"
    RRF = "rrf"


# How the command line takes what is no number, text or flag, and what the library takes of it.
_TYPES: dict[Any, Any] = {
    FusionMethod | None: Fusion | None,
    tuple[str, ...]: list[str] | None,
    Mapping[str, Any]: list[str] | None,
    Mapping[str, Any] | None: str | None,
    Duration | None: str | None,
    MomentRange | None: str | None,
}


_READERS: dict[Any, Callable[[Any], object]] = {
    FusionMethod | None: lambda given: given and given.value,
    tuple[str, ...]: lambda given: tuple(given or ()),
    Mapping[str, Any]: lambda given: key_values(given or (), option="--where"),
    Mapping[str, Any] | None: lambda given: None if given is None else _json_object(given),
}


_MORE = {tuple[str, ...]: "; repeat for more.", Mapping[str, Any]: " (as JSON, or else as text); repeat for more."}


def taking(*panels: str) -> Callable[[type[_T]], type[_T]]:
    """Give a group of options one for each option of a search under these headings of ``--help``."""

    def add(group: type[_T]) -> type[_T]:
        for option in search_options():
            for name, text in option.described if option.panel in panels else ():
                told = typer.Option(
                    *_flags(name, option),
                    help=text.removesuffix(".") + _MORE[option.type] if option.type in _MORE else text,
                    metavar=option.metavar,
                    rich_help_panel=option.panel,
                )
                group.__annotations__[name] = Annotated[_TYPES.get(option.type, option.type), told]
                setattr(group, name, None if option.type in _TYPES else option.default)
        return group

    return add


def _flags(name: str, option: SearchOption) -> list[str]:
    flag = f"--{name.replace('_', '-')}"
    if option.type == bool | None:
        return [f"{flag}/--no-{flag.removeprefix('--')}"]
    return [flag, option.short] if option.short else [flag]


def given_by(group: object) -> dict[str, Any]:
    """What a group of options says of a search, by the names of its options.

    Raises:
        UsageError: A ``--where`` is not ``KEY=VALUE``, or a ``--filter`` is not a JSON object.
    """
    given: dict[str, Any] = {}
    for option in search_options():
        for name in option.names:
            if hasattr(group, name):
                value = getattr(group, name)
                given[name] = _READERS[option.type](value) if option.type in _READERS else value
    return given


@dataclass(frozen=True, kw_only=True)
@taking("Search", "Results", "Filters")
class SearchOptions:
    """How a command searches: what `RetrievalOptions` declares under these headings."""

    # Named for `AccessOptions`, to which it means something else.
    department: list[str] | None = None

    def retrieval(self, config: RAGConfig, *, explain: bool = False) -> RetrievalOptions:
        """As the library takes them.

        Args:
            config: What applies where an option is not given.
            explain: Whether to say how each passage came to its rank.

        Raises:
            UsageError: A ``--where`` is not ``KEY=VALUE``, a ``--filter`` is not a JSON object, or an option has no
                effect beside another.
        """
        given = replace(options_named(given_by(self)), explain=explain)
        options = replace(given, mode=given.mode or None)
        _require_effect(options, config)
        return options


def _require_effect(options: RetrievalOptions, config: RAGConfig) -> None:
    """Refuses what another option leaves without effect."""
    mode = options.mode or config.retrieval.mode
    if mode != Mode.HYBRID:
        for name in ("fusion", "dense_weight", "rrf_k"):
            if getattr(options, name) is not None:
                flag = name.replace("_", "-")
                raise UsageError(f"--{flag} joins two retrievers, and --mode {mode} has one: leave one of both out.")
    if options.rrf_k is not None and (options.fusion or config.retrieval.fusion) != "rrf":
        raise UsageError("--rrf-k is the constant of reciprocal rank fusion: give --fusion rrf with it.")
    if options.rerank_candidates is None:
        return
    if options.rerank == "none" or (options.rerank is None and mode != Mode.HYBRID):
        raise UsageError("--rerank-candidates are what a reranker sees, and there is none: name one with --rerank.")


#: Only of commands that show how passages came to their ranks.
Explain = Annotated[
    bool, typer.Option("--explain", help="Say how each passage came to its rank.", rich_help_panel="Search")
]


@dataclass(frozen=True, kw_only=True)
class SessionOptions:
    """Whether a command searches the documents of a session, and what with them."""

    in_session: Annotated[
        str | None,
        typer.Option(
            "--session",
            metavar="SESSION",
            help="Search the documents of this session in place of a collection.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    with_: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="COLLECTION",
            help="With --session: search this collection too, * for all; repeat for more.",
            rich_help_panel=_PANEL,
        ),
    ] = None

    def where(self, ctx: CommandContext) -> dict[str, Any]:
        """What is searched, as `CommandContext.view` takes it.

        Raises:
            UsageError: Collections are named in a way that does not go with the session, or without one.
        """
        if self.in_session is None:
            if self.with_:
                raise UsageError("--with says what is searched together with a session: name that with --session.")
            return {}
        if ctx.names_collection:
            raise UsageError("With --session, name the collections that are searched too by --with.")
        return {"session": self.in_session, "collections": self.with_ or None}


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_constant=not_a_value)
    except (ValueError, RecursionError) as exc:
        raise UsageError(f"--filter takes a JSON object, and {text!r} is no JSON: {exc}.") from exc
    if not isinstance(value, dict):
        raise UsageError(f"--filter takes a JSON object of fields and conditions, not {text!r}.")
    return value


def language_of(view: View) -> str:
    """ISO 639-1, of most of what is found."""
    if view.standpoint.session is not None:
        return view.view(as_of=None).sessions.get(view.standpoint.session).language
    return next((place.language for place in _collections(view) if place.name in view.standpoint.names), "en")


def vain(view: View, options: RetrievalOptions) -> list[str]:
    """Why a search can have found nothing: the collection is empty, or filters name what no document has."""
    at = view.standpoint
    if at.session is not None:
        if at.collections or view.view(as_of=None).sessions.get(at.session).document_count:
            return []
        return [f"The session is empty. Fill it: recollect ingest FOLDER --session {at.session}"]
    empty = empty_collection(view) if at.is_owner else None
    return [empty] if empty else view.documents.filter_hints(options)


def told_besides(told: Sequence[str], why: Sequence[str]) -> tuple[str, ...]:
    """What a reply tells, without what `vain` says as well: a server tells why it found nothing, in fewer words."""
    return tuple(one for one in told if not any(more.startswith(one) for more in why))


def empty_collection(view: View) -> str | None:
    """What is said where what the view is of is empty, and which collections are not; None where it is not."""
    there = {place.name: place.document_count for place in _collections(view)}
    if EVERYWHERE in view.standpoint.names:
        return None if any(there.values()) else "Every collection is empty. Fill one: recollect ingest FOLDER"
    name = view.standpoint.collection
    if there.get(name):
        return None
    fill = "" if name == "default" else f" --collection {shlex.quote(name)}"
    told = f"The collection {name!r} is empty. Fill it: recollect ingest FOLDER{fill}"
    filled = [f"{name!r} ({count:,} document{'' if count == 1 else 's'})" for name, count in there.items() if count]
    more = f" and {len(filled) - _NAMED:,} more" if len(filled) > _NAMED else ""
    return told if not filled else f"{told}\nNot empty: {', '.join(filled[:_NAMED])}{more}. Name one with --collection."


def _collections(view: View) -> list[Collection]:
    return [*view.view(as_of=None, principal=None).collections.each()]


_TIME_PANEL = "Time"


@dataclass(frozen=True, kw_only=True)
@taking("Time")
class TimeOptions:
    """As of when a command searches, and the times that what it finds must have.

    Times are dates, ISO 8601, ``now``, or how long ago (``7d``); without a zone they are UTC.
    """

    as_of: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="What was known at this time: a date, a time (without a zone: UTC), or how long ago, such as 7d.",
            rich_help_panel=_TIME_PANEL,
        ),
    ] = None

    def moment(self) -> datetime | None:
        """What ``--as-of`` means; None: now.

        Raises:
            UsageError: It is no time.
        """
        return None if self.as_of is None else read_time(self.as_of, name="--as-of")

    def confine(self, options: RetrievalOptions) -> RetrievalOptions:
        """The options of a search with the times that were given.

        Raises:
            UsageError: One of them is no time or no duration, or a range ends before it begins.
        """
        from recollect.model.search_options import time_limits

        times = options_named(given_by(self))
        confined = replace(
            options,
            event_window=times.event_window,
            event_time_range=times.event_time_range,
            ingestion_time_range=times.ingestion_time_range,
        )
        time_limits(confined, self.moment())
        return confined
