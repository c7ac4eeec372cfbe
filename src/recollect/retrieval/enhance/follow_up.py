"""Makes a follow-up question stand alone, so that it can be searched for. Asks a language model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files

from recollect.llm.base import ChatMessage, ChatModel, Completion, completion

#: Exchanges that a question is understood with.
LATEST = 4
_MOST_CHARACTERS = 600
_TURN_CHARACTERS = 1_000


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question of a conversation and what was answered."""

    question: str
    answer: str


def standing_question(
    question: str,
    history: Sequence[Exchange],
    *,
    model: ChatModel,
    timeout_seconds: float,
) -> Completion:
    """The question as it can be asked without the conversation.

    Args:
        question: As asked.
        history: What was said before, oldest first; not empty.
        model: Is asked for other words.
        timeout_seconds: How long it may take.

    Raises:
        ProviderError: The model failed, or its time was up.
    """
    turns = [
        {"question": one.question[:_TURN_CHARACTERS], "answer": one.answer[:_TURN_CHARACTERS]}
        for one in history[-LATEST:]
    ]
    asked = json.dumps({"turns": turns, "question": question}, ensure_ascii=False, indent=1)
    rules = files("recollect.retrieval.enhance").joinpath("prompts/follow_up.md").read_text(encoding="utf-8").strip()
    messages = (ChatMessage("system", rules), ChatMessage("user", asked))
    written = completion(model, messages, timeout_seconds=timeout_seconds, max_characters=_MOST_CHARACTERS)
    line = " ".join(written.text.split()).strip("\"'“”„«» ")
    # More than a question is an answer, or something that it was told to say.
    usable = line and len(line) < _MOST_CHARACTERS and not line.startswith(("{", "[", "I ", "I'"))
    return replace(written, text=line if usable else question)
