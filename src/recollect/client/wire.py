"""Passages of contexts as replies tell them, and how a search is asked for over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Any, cast

from recollect.errors import UsageError
from recollect.model import (
    RetrievedContext,
)
from recollect.model.record import adapter_of
from recollect.model.search_options import names_of, search_options
from recollect.model.time import read_duration

if TYPE_CHECKING:
    from recollect.model import RetrievalOptions
    from recollect.model.memory import RecallOptions
    from recollect.model.time import Duration, Moment


Json = Mapping[str, Any]

# What replies leave out of a passage that stands in a context: its rank, for instance, or the place of what was said.
_LEFT_OUT: dict[str, Any] = {
    **dict.fromkeys(("rank", "chunk_id", "document_id", "start_offset", "end_offset", "score"), 0),
    "content": "",
    "section": None,
    "page": None,
    "metadata": {},
}


def passage_of(told: Json) -> RetrievedContext:
    """A passage of a context."""
    known = {key: value for key, value in told.items() if value is not None}
    passage: RetrievedContext = adapter_of(RetrievedContext).validate_python({**_LEFT_OUT, **known})
    return passage


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
