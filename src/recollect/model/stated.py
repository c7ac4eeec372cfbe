"""What a document's metadata, or the front matter of its file, says of the document as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

from recollect.errors import UsageError
from recollect.model.time import Duration, read_lifetime, read_time


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedFields:
    """Fields of a `recollect.model.Document` that its metadata states; None, or no tags: it says nothing of them."""

    title: str | None = None
    department: str | None = None
    tags: tuple[str, ...] = ()
    ttl: Duration | None = None
    event_time: datetime | None = None
    event_end: datetime | None = None


def stated_fields(facts: Mapping[str, object], *, where: str) -> StatedFields:
    """The fields that facts state under their names: ``title``, ``department``, ``tags``, ``ttl`` and times.

    ``event_time`` may also be called ``date``; a ``date`` that is no time says something else, and is passed over.

    Args:
        facts: By name.
        where: They stand, for the error.

    Raises:
        UsageError: A value is none that the field can have.
    """

    def said(name: str) -> object:
        value = facts.get(name)
        return None if value is None or value == "" else value

    ttl = said("ttl")
    if ttl is not None:
        # It refuses what it cannot take.
        ttl = read_lifetime(ttl, name=f"ttl in {where}") or "never"  # type: ignore[arg-type]
    begin, end = (_time(said(name), name, where) for name in ("event_time", "event_end"))
    return StatedFields(
        title=_text(said("title"), "title", where),
        department=_text(said("department"), "department", where),
        tags=_tags(said("tags"), where),
        ttl=ttl,
        event_time=begin or _date(said("date")),
        event_end=end,
    )


def _text(value: object, name: str, where: str) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float | date):
        raise UsageError(f"{name} in {where} must be text, not {value!r}.")
    return str(value).strip() or None


def _tags(value: object, where: str) -> tuple[str, ...]:
    if value is None:
        return ()
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not all(isinstance(tag, str) for tag in given):
        raise UsageError(f"tags in {where} must be texts, as a list or with commas between, not {value!r}.")
    return tuple(dict.fromkeys(tag.strip() for tag in given if tag.strip()))


def _time(value: object, name: str, where: str) -> datetime | None:
    return None if value is None else read_time(value, name=f"{name} in {where}")  # type: ignore[arg-type]


def _date(value: object) -> datetime | None:
    if not isinstance(value, date | str):
        return None
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else read_time(value)
    except (ValueError, UsageError):
        return None
