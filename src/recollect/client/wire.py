"""Replies as the types that a view gives.

One rule for all: what a view gives, a client gives as the same type, read back from the JSON of ``--json``, so that it
makes the same JSON again. A field that the reply says nothing of has its type's default, and None where that has none:
a reply does not tell what only the store has a use for (numbers of chunks and versions beside a passage, revisions of
a collection).
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, datetime, timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from recollect.errors import UsageError
from recollect.model import (
    Answer,
    Citation,
    Outline,
    PageSpan,
    ReplyExplain,
    RetrievedContext,
    SearchReply,
)
from recollect.model.answer import Nearest
from recollect.model.outline import Heading
from recollect.model.search_options import names_of, search_options
from recollect.model.time import read_duration

if TYPE_CHECKING:
    from recollect.model import RetrievalOptions
    from recollect.model.memory import RecallOptions
    from recollect.model.time import Duration, Moment


T = TypeVar("T")


Json = Mapping[str, Any]


def read(kind: type[T], told: Json, **more: object) -> T:
    """An object of what a reply says.

    Args:
        kind: A dataclass.
        told: Its fields under their names; others are left aside.
        **more: Fields that the reply has under other names, or in another form.

    Raises:
        KeyError, TypeError, ValueError: It says something else.
    """
    values = dict(more)
    for name, convert, default in _plan(kind):  # type: ignore[arg-type]  # a type has a hash
        if name not in values:
            values[name] = convert(told[name]) if name in told else default()
    return kind(**values)


@cache
def _plan(kind: Any) -> tuple[tuple[str, Callable[[Any], Any], Callable[[], Any]], ...]:  # noqa: ANN401 - a dataclass
    hints = get_type_hints(kind, localns={"datetime": datetime, "timedelta": timedelta})
    return tuple((one.name, _converter(hints[one.name]), _default(one)) for one in fields(kind) if one.init)


def _default(one: Any) -> Callable[[], Any]:  # noqa: ANN401 - a field of any type
    if one.default_factory is not MISSING:
        return one.default_factory  # type: ignore[no-any-return]
    return partial(_same, None if one.default is MISSING else one.default)


def _same(value: Any) -> Any:  # noqa: ANN401 - whatever it is
    return value


def _converter(hint: Any) -> Callable[[Any], Any]:  # noqa: ANN401 - any annotation
    """What makes a value of JSON one of a field."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in {Union, types.UnionType}:
        (one, *others) = [arg for arg in inner if arg is not types.NoneType]
        return _same if others else partial(_or_none, _converter(one))
    if hint is datetime:
        return datetime.fromisoformat
    if origin is tuple and inner[-1] is Ellipsis:
        return partial(_several, _converter(inner[0]))
    if is_dataclass(hint) and isinstance(hint, type):
        return partial(read, hint)
    return _same


def _or_none(convert: Callable[[Any], Any], value: Any) -> Any:  # noqa: ANN401 - see above
    return None if value is None else convert(value)


def _several(convert: Callable[[Any], Any], values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(convert(value) for value in values)


# Searches and answers


def passage_of(told: Json, **more: object) -> RetrievedContext:
    """A passage that a search found; its parts are those that the reply tells."""
    return read(RetrievedContext, {"metadata": {}, **told}, outline=_outline(told["parts"]), **more)


def _outline(parts: Sequence[Json]) -> Outline:
    headings = tuple(Heading(1, one["section"] or "", one["start_offset"], one["start_offset"]) for one in parts)
    pages = tuple(PageSpan(one["page"], one["start_offset"], one["end_offset"]) for one in parts)
    sectioned = any(one["section"] for one in parts)
    paged = any(one["page"] is not None for one in parts)
    return Outline(headings=headings if sectioned else (), pages=pages if paged else ())


def search_reply_of(told: Json) -> SearchReply:
    """What a search has to say."""
    explain = told.get("explain")
    return read(
        SearchReply,
        told,
        results=tuple(passage_of(one) for one in told["results"]),
        explain=None if explain is None else _reply_explain(explain),
    )


def _reply_explain(told: Json) -> ReplyExplain:
    filtered = told["filter"] or {}
    return read(
        ReplyExplain,
        told,
        terms=tuple((one["term"], one["weight"]) for one in told["terms"]),
        filter_kept=filtered.get("kept"),
        filter_removed=filtered.get("removed"),
        removed_by=tuple((one["condition"], one["removed"]) for one in filtered.get("removed_by", ())),
    )


def answer_of(told: Json) -> Answer:
    """An answer."""
    nearest = told.get("nearest")
    return read(
        Answer,
        told,
        text=told["answer"],
        nearest=None if nearest is None else read(Nearest, nearest, evidence=read(Citation, nearest, marker=0)),
    )


# How a search is asked for over HTTP: the options of the library under the names that the server has for them.


# What a server looks up, or does, by itself.
_OWN = {"outline"}


def search_body(options: RetrievalOptions | None) -> dict[str, Any]:
    """The options of a search; None: as the server is configured.

    Raises:
        UsageError: One of them is none that a server takes.
    """
    if options is None:
        return {}
    for option in search_options():
        if not option.remote and option.field not in _OWN and getattr(options, option.field) != option.default:
            raise UsageError(f"{option.field} is an option of a search in this process: a server decides it itself.")
    given = {name: value for name, value in names_of(options).items() if name not in _OWN}
    return {name: _written(name, value) for name, value in given.items()}


def _written(name: str, value: object) -> object:
    if name == "event_window":
        return duration_text(cast("Duration", value))
    if isinstance(value, date):
        return value.isoformat()
    return list(value) if isinstance(value, tuple) else value


def recall_body(options: RecallOptions | None, *, turns: bool) -> dict[str, Any]:
    """The options of a search of what was said, or with ``turns`` false of the facts drawn from it.

    Raises:
        UsageError: Something is asked for that a server does not do.
    """
    if options is None:
        return {}
    body: dict[str, Any] = {"top_k": options.top_k, "mode": options.mode}
    if not options.counted:
        raise UsageError("counted is an option of a search in this process: a server counts what it shows.")
    if not turns:
        return body
    if options.before != options.after:
        raise UsageError("A server shows as many turns before each as after it: give both the same number.")
    body["neighbours"] = options.before
    sides = {"since": options.since, "until": options.until}
    return body | {name: side.isoformat() for name, side in sides.items() if side is not None}


def moment_text(moment: Moment) -> str:
    """A time, as a body has it."""
    return moment if isinstance(moment, str) else moment.isoformat()


def duration_text(duration: Duration) -> str:
    """A length of time, as a body has it."""
    return (
        duration if isinstance(duration, str) else f"{round(read_duration(duration, name='duration').total_seconds())}s"
    )
