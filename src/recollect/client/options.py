"""How a search is asked for over HTTP: the options of the library under the names that the server has for them."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from typing import TYPE_CHECKING, Any

from recollect.errors import UsageError
from recollect.model.time import read_duration

if TYPE_CHECKING:
    from recollect.model import RetrievalOptions
    from recollect.model.memory import RecallOptions
    from recollect.model.time import Duration, Moment

# By the name that a body has; those of one name are not listed.
_NAMES = {
    "similarity_threshold": "min_similarity",
    "tags": "tag",
    "metadata_filters": "where",
    "filters": "filter",
    "collapse_duplicates": "collapse",
    "mmr_lambda": "mmr",
    "merge_adjacent": "merge",
}
# What a server looks up, or does, by itself.
_OWN = {"outline"}
_RANGES = {"event_time_range": ("event_from", "event_to"), "ingestion_time_range": ("ingested_from", "ingested_to")}
# Of a library in the same process alone.
_LOCAL = {"rerank_from", "enhance", "use_cache"}


def search_body(options: RetrievalOptions | None) -> dict[str, Any]:
    """The options of a search; None: as the server is configured.

    Raises:
        UsageError: One of them is none that a server takes.
    """
    if options is None:
        return {}
    body: dict[str, Any] = {}
    for one in fields(options):
        value = getattr(options, one.name)
        if one.name in _OWN or value == _default(one):
            continue
        if one.name in _LOCAL:
            raise UsageError(f"{one.name} is an option of a search in this process: a server decides it itself.")
        if one.name in _RANGES:
            sides = zip(_RANGES[one.name], value, strict=True)
            body |= {name: moment_text(side) for name, side in sides if side is not None}
        elif one.name == "event_window":
            body[one.name] = duration_text(value)
        else:
            body[_NAMES.get(one.name, one.name)] = list(value) if isinstance(value, tuple) else value
    return body


def _default(one: Field[Any]) -> object:
    return one.default if one.default_factory is MISSING else one.default_factory()


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
