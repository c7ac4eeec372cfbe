"""Turns from JSON Lines: one turn a line, as chat programs export them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from recollect.errors import UsageError
from recollect.model.memory import Turn
from recollect.model.time import read_time

_NAMES = {
    "content": ("content", "text"),
    "role": ("role", "speaker"),
    "at": ("at", "date"),
    "id": ("id",),
    "metadata": ("metadata",),
}
_KNOWN = {name for names in _NAMES.values() for name in names}


def read_turns(lines: Iterable[bytes], *, where: str, role: str = "user") -> list[Turn]:
    """Read turns, one JSON object a line.

    Args:
        lines: UTF-8, each with ``content`` (or ``text``), and as far as they are known ``role`` (or ``speaker``),
            ``at`` (or ``date``: a time as people write it, without a zone UTC), ``id`` and ``metadata`` (an object).
            Blank lines are skipped.
        where: What the lines are of, for errors.
        role: Who speaks where a line does not say.

    Raises:
        UsageError: A line is not such an object; the message names it.
    """
    turns = []
    for number, line in enumerate(lines, start=1):
        place = f"{where}:{number}"
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            record = json.loads(text) if text else None
        except UnicodeDecodeError as exc:
            raise UsageError(f"{place}: not UTF-8 ({exc.reason}); convert the file to UTF-8.") from exc
        except (ValueError, RecursionError) as exc:
            raise UsageError(f"{place}: not a line of JSON ({exc}).") from exc
        if text:
            turns.append(_turn(record, place, role))
    return turns


def _turn(record: object, place: str, role: str) -> Turn:
    if not isinstance(record, dict):
        raise UsageError(f"{place}: expected a JSON object, found {type(record).__name__}.")
    strangers = sorted(set(record) - _KNOWN)
    if strangers:
        raise UsageError(f"{place}: unknown key {strangers[0]!r}; put what else is known of a turn into 'metadata'.")
    content = _text(record, "content", place)
    if content is None:
        raise UsageError(f"{place}: no 'content'.")
    at = _text(record, "at", place)
    metadata = record.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise UsageError(f"{place}: 'metadata' must be an object, not {metadata!r}.")
    return Turn(
        content=content,
        role=_text(record, "role", place) or role,
        at=None if at is None else read_time(at, name=f"{place}: the time"),
        turn_id=_text(record, "id", place),
        metadata=metadata or {},
    )


def _text(record: Mapping[str, object], name: str, place: str) -> str | None:
    value = next((record[key] for key in _NAMES[name] if record.get(key) is not None), None)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if value is not None and not isinstance(value, str):
        raise UsageError(f"{place}: {name!r} must be text, not {value!r}.")
    return value
