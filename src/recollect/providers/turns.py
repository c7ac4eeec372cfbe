"""A conversation as providers want it that know two roles only, which take turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from recollect.llm.base import ChatMessage, ChatPicture
from recollect.providers.faults import Fault


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side said until the other one spoke."""

    role: Literal["user", "assistant"]
    text: str
    pictures: tuple[ChatPicture, ...] = ()


def turns_of(messages: Sequence[ChatMessage]) -> tuple[str, list[Turn]]:
    r"""The system messages as one text, and the others as turns: user first, then in alternation.

    Blank messages are left out, which providers refuse; messages in a row of one role are joined. A conversation whose
    beginning was cut off begins with the model's own words: they are left out too.

    Raises:
        Fault: The user says nothing.

    Example:
        >>> turns_of([ChatMessage("system", "Be brief."), ChatMessage("user", "Hi."), ChatMessage("user", "You?")])
        ('Be brief.', [Turn(role='user', text='Hi.\n\nYou?', pictures=())])
    """
    system = "\n\n".join(one.content for one in messages if one.role == "system" and one.content.strip())
    turns: list[Turn] = []
    for one in messages:
        if one.role == "system" or not one.content.strip() or (one.role == "assistant" and not turns):
            continue
        if turns and turns[-1].role == one.role:
            last = turns[-1]
            turns[-1] = Turn(one.role, f"{last.text}\n\n{one.content}", (*last.pictures, *one.pictures))
        else:
            turns.append(Turn(one.role, one.content, one.pictures))
    if not turns:
        raise Fault("invalid_request", "the conversation holds no question")
    return system, turns
