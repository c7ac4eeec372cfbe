"""What may be remembered and asked; everything else is refused in words before anything is embedded or stored."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from recollect.errors import OutOfBoundsError, PermissionDeniedError, UsageError
from recollect.model import Scope
from recollect.model.memory import RecallOptions, Turn
from recollect.model.search_options import MAX_QUERY_CHARACTERS, MAX_TOP_K

MAX_TURN_CHARACTERS = 100_000
MAX_NAME_CHARACTERS = 200
MAX_NEIGHBOURS = 50

# NUL and lone surrogates, which PostgreSQL's text cannot hold.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def checked_name(what: str, name: str) -> str:
    """A session's, user's or turn's id, without white space around it.

    Raises:
        UsageError: It is empty, too long, or holds what cannot be stored.
    """
    if not isinstance(name, str):
        raise UsageError(f"{what} must be text, not {name!r}.")
    stripped = name.strip()
    if not stripped:
        raise UsageError(f"{what} must not be empty.")
    if len(stripped) > MAX_NAME_CHARACTERS:
        raise UsageError(f"{what} has {len(stripped):,} characters; at most {MAX_NAME_CHARACTERS} are allowed.")
    if _UNSTORABLE.search(stripped):
        raise UsageError(f"{what} {stripped!r} holds characters that cannot be stored (NUL or half a surrogate pair).")
    return stripped


def own_user(scope: Scope, user: str | None) -> str | None:
    """Whose conversation is written: a restricted caller's are his own.

    Raises:
        PermissionDeniedError: He is nobody in particular, or names somebody else.
    """
    if scope.principal is None:
        return user
    own = scope.principal.user_id
    if own is None:
        raise PermissionDeniedError("Conversations belong to users: name the user (--as USER, Principal(user_id=…)).")
    if user is not None and user != own:
        raise PermissionDeniedError(f"{own!r} may not write conversations of {user!r}.")
    return own


def checked_turns(turns: Sequence[Turn]) -> list[Turn]:
    """Turns as they are stored: named, dated in UTC, without what PostgreSQL's text cannot hold.

    Raises:
        UsageError: One of them cannot be remembered; the message says which and why.
    """
    kept: list[Turn] = []
    by_id: dict[str, Turn] = {}
    for number, turn in enumerate(turns, start=1):
        checked = _checked_turn(turn, f"Turn {number}")
        if checked.turn_id is None:
            kept.append(checked)
            continue
        earlier = by_id.setdefault(checked.turn_id, checked)
        if earlier is not checked and (earlier.role, earlier.content) != (checked.role, checked.content):
            raise UsageError(f"Turn {number}: the id {checked.turn_id!r} is another turn's already; ids must differ.")
        kept.append(earlier)
    return kept


def _checked_turn(turn: Turn, where: str) -> Turn:
    if not isinstance(turn.content, str):
        raise UsageError(f"{where}: the content must be text, not {turn.content!r}.")
    if not turn.content.strip():
        raise UsageError(f"{where} says nothing: its content is empty.")
    if len(turn.content) > MAX_TURN_CHARACTERS:
        raise UsageError(
            f"{where} has {len(turn.content):,} characters; a turn has at most {MAX_TURN_CHARACTERS:,}. "
            "Ingest a text of this length as a document."
        )
    return replace(
        turn,
        content=_UNSTORABLE.sub("\ufffd", turn.content),
        role=" ".join(checked_name(f"{where}: the role", turn.role).split()),
        at=checked_time(f"{where}: the time", turn.at),
        turn_id=None if turn.turn_id is None else checked_name(f"{where}: the id", turn.turn_id),
        metadata=checked_metadata(f"{where}: the metadata", dict(turn.metadata)),
    )


def checked_metadata(what: str, metadata: dict[str, object]) -> dict[str, object]:
    """Metadata as PostgreSQL's jsonb takes it.

    Raises:
        UsageError: It is not JSON, or holds NaN, NUL or half a surrogate pair.
    """
    try:
        text = json.dumps(metadata, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as exc:
        raise UsageError(f"{what} must be a JSON object of names and values: {exc}.") from exc
    if _UNSTORABLE.search(text) or "\\u0000" in text:
        raise UsageError(f"{what} holds characters that cannot be stored (NUL or half a surrogate pair).")
    return metadata


def checked_time(what: str, at: datetime | None) -> datetime | None:
    """A moment in UTC; one without a time zone is UTC already.

    Raises:
        UsageError: It is no moment.
    """
    if at is None:
        return None
    if not isinstance(at, datetime):
        raise UsageError(f"{what} must be a date and time, not {at!r}.")
    try:
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except OverflowError as exc:
        raise UsageError(f"{what} {at.isoformat()} lies outside the years 1 to 9999.") from exc


def checked_question(query: str) -> str:
    """A question with words in it.

    Raises:
        OutOfBoundsError: It is too long.
        UsageError: It is empty.
    """
    if not query.strip():
        raise UsageError("The query is empty: say what to look for.")
    if len(query) > MAX_QUERY_CHARACTERS:
        raise OutOfBoundsError(
            f"The query has {len(query):,} characters; at most {MAX_QUERY_CHARACTERS:,} are allowed."
        )
    return query


def checked_options(options: RecallOptions) -> RecallOptions:
    """Options that make sense, their times in UTC.

    Raises:
        UsageError: One does not; the message names it.
    """
    if type(options.top_k) is not int or not 1 <= options.top_k <= MAX_TOP_K:
        raise OutOfBoundsError(f"top_k must be a whole number from 1 to {MAX_TOP_K:,}, not {options.top_k!r}.")
    if options.mode not in ("hybrid", "dense", "lexical"):
        raise UsageError(f"mode must be hybrid, dense or lexical, not {options.mode!r}.")
    for name in ("before", "after"):
        value = getattr(options, name)
        if type(value) is not int or not 0 <= value <= MAX_NEIGHBOURS:
            raise OutOfBoundsError(f"{name} must be a whole number from 0 to {MAX_NEIGHBOURS}, not {value!r}.")
    since, until = checked_time("since", options.since), checked_time("until", options.until)
    if since is not None and until is not None and since >= until:
        raise UsageError(f"since ({since.isoformat()}) must lie before until ({until.isoformat()}).")
    return replace(options, since=since, until=until)
