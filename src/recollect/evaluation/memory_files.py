"""Conversations with questions and the turns that answer them: the shape of published long-term memory benchmarks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from recollect.errors import NotFoundError, UsageError

# "1:56 pm on 8 May, 2023" (LoCoMo), "2023/05/20 (Sat) 02:21" (LongMemEval), and what people write.
_FORMATS = (
    "%I:%M %p on %d %B, %Y",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d",
    "%d %B, %Y",
    "%d %B %Y",
    "%B %d, %Y",
)
_WEEKDAY = re.compile(r"\s*\([^)]*\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedTurn:
    """What somebody said; ``text`` may be empty."""

    turn_id: str
    speaker: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedSession:
    """A session; ``at`` is None where it has no date, or one that cannot be read."""

    session_id: str
    at: datetime | None
    turns: tuple[DatedTurn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryQuestion:
    """A question, and the ids of the turns that answer it, none twice."""

    text: str
    category: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Sessions over some time, and questions about them.

    Attributes:
        conversation_id: As in the file.
        sessions: In the file's order.
        questions: Those that have evidence.
    """

    conversation_id: str
    sessions: tuple[DatedSession, ...]
    questions: tuple[MemoryQuestion, ...]

    @property
    def turn_ids(self) -> frozenset[str]:
        """Of all its turns."""
        return frozenset(turn.turn_id for session in self.sessions for turn in session.turns)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDataset:
    """What a file holds.

    Attributes:
        conversations: In the file's order.
        unanswered: Questions that name no evidence; they cannot be measured.
        undated: Sessions without a readable date.
    """

    conversations: tuple[Conversation, ...]
    unanswered: int
    undated: int


def load_memory(path: Path | str) -> MemoryDataset:
    """Read a file of conversations.

    Args:
        path: JSON: ``{"conversations": [{"id", "sessions": [{"id", "date", "turns": [{"id", "speaker", "text"}]}],
            "questions": [{"question", "category", "evidence": ["turn id", …]}]}]}``.

    Raises:
        NotFoundError: There is no such file.
        UsageError: It has another shape, or no question has evidence; the message says where.
    """
    file = Path(path)
    try:
        content = json.loads(file.read_bytes().decode("utf-8-sig"))
    except (FileNotFoundError, IsADirectoryError) as exc:
        raise NotFoundError(f"{file} is not a file of conversations.") from exc
    except OSError as exc:
        raise UsageError(f"{file} cannot be read: {exc.strerror}.") from exc
    except (ValueError, RecursionError) as exc:
        raise UsageError(f"{file} is not JSON in UTF-8: {exc}.") from exc
    given = content if isinstance(content, list) else _mapping(content, str(file)).get("conversations")
    found = [_conversation(item, f"{file}: conversation {number}") for number, item in _numbered(given, str(file))]
    conversations = tuple(conversation for conversation, _ in found)
    if len({one.conversation_id for one in conversations}) < len(conversations):
        raise UsageError(f"{file}: two conversations have the same id.")
    if not any(one.questions for one in conversations):
        raise UsageError(f"{file}: no question names the turns that answer it ('evidence').")
    return MemoryDataset(
        conversations=conversations,
        unanswered=sum(unanswered for _, unanswered in found),
        undated=sum(session.at is None for one in conversations for session in one.sessions),
    )


def read_date(text: str) -> datetime | None:
    """A session's date in any of the forms in use, UTC where it names no zone; None where it cannot be read."""
    plain = _WEEKDAY.sub("", text).strip()
    try:
        found = datetime.fromisoformat(plain)
    except ValueError:
        return next((moment for form in _FORMATS if (moment := _parsed(plain, form)) is not None), None)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _parsed(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text, form).replace(tzinfo=UTC)
    except ValueError:
        return None


def _conversation(item: object, where: str) -> tuple[Conversation, int]:
    record = _mapping(item, where)
    sessions = tuple(
        _session(one, f"{where}, session {number}") for number, one in _numbered(record.get("sessions"), where)
    )
    ids = [turn.turn_id for session in sessions for turn in session.turns]
    if len(set(ids)) < len(ids):
        twice = next(turn_id for turn_id in ids if ids.count(turn_id) > 1)
        raise UsageError(f"{where}: two turns have the id {twice!r}; evidence must name one turn.")
    asked = [_question(one, f"{where}, question {number}") for number, one in _numbered(record.get("questions"), where)]
    answered = tuple(question for question in asked if question.evidence)
    return (
        Conversation(conversation_id=_text(record, "id", where), sessions=sessions, questions=answered),
        len(asked) - len(answered),
    )


def _session(item: object, where: str) -> DatedSession:
    record = _mapping(item, where)
    turns = []
    for number, one in _numbered(record.get("turns"), where):
        turn = _mapping(one, f"{where}, turn {number}")
        place = f"{where}, turn {number}"
        turns.append(
            DatedTurn(
                turn_id=_text(turn, "id", place),
                speaker=_text(turn, "speaker", place),
                text=_text(turn, "text", place, empty=True),
            )
        )
    date = record.get("date")
    return DatedSession(
        session_id=_text(record, "id", where), at=read_date(date) if isinstance(date, str) else None, turns=tuple(turns)
    )


def _question(item: object, where: str) -> MemoryQuestion:
    record = _mapping(item, where)
    evidence = record.get("evidence")
    if not isinstance(evidence, list) or not all(isinstance(one, str | int) for one in evidence):
        raise UsageError(f"{where}: 'evidence' must be a list of turn ids.")
    return MemoryQuestion(
        text=_text(record, "question", where),
        category=str(record.get("category", "")),
        evidence=tuple(dict.fromkeys(map(str, evidence))),
    )


def _mapping(item: object, where: str) -> Mapping[str, object]:
    if not isinstance(item, dict):
        raise UsageError(f"{where}: expected a JSON object, found {type(item).__name__}.")
    return item


def _numbered(items: object, where: str) -> Sequence[tuple[int, object]]:
    if not isinstance(items, list):
        raise UsageError(
            f"{where}: expected a list; conversations hold 'sessions', which hold 'turns', and 'questions' beside them."
        )
    return list(enumerate(items, start=1))


def _text(record: Mapping[str, object], name: str, where: str, *, empty: bool = False) -> str:
    value = record.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not (empty or value.strip()):
        raise UsageError(f"{where}: {name!r} must be {'text' if empty else 'text that is not empty'}, not {value!r}.")
    return value
