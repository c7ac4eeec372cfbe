"""Builds the prompt that holds a language model to the passages. Pure but for reading the packaged template."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from recollect.context import assemble, context_block, defused, estimate_tokens
from recollect.errors import UsageError
from recollect.llm.base import ChatMessage
from recollect.model.answer import REFUSAL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from recollect.model import RetrievedContext

OPENING = "<<<CONTEXT"
CLOSING = "CONTEXT>>>"
DEFAULT_MAX_CONTEXT_CHARS = 12_000

__all__ = ["CLOSING", "DEFAULT_MAX_CONTEXT_CHARS", "OPENING", "Prompt", "build_prompt", "context_block"]


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is sent to the model, and which passages its block numbers stand for.

    Attributes:
        messages: A system message with the rules and a user message with context and question.
        passages: ``passages[n - 1]`` is block n; ``content`` may be shortened, the offsets with it.
    """

    messages: tuple[ChatMessage, ...]
    passages: tuple[RetrievedContext, ...]


def build_prompt(
    question: str,
    passages: Sequence[RetrievedContext],
    *,
    max_context_chars: int = DEFAULT_MAX_CONTEXT_CHARS,
    max_context_tokens: int | None = None,
    count_tokens: Callable[[str], int] | None = None,
    language: str = "en",
) -> Prompt:
    """The strict prompt: answer from these passages only, cite them, or say the refusal sentence.

    Args:
        question: In plain words.
        passages: Best first; they fill the budget in this order, as ``recollect.context.assemble`` has it.
        max_context_chars: Characters for all context blocks together, headers included; at least 500.
        max_context_tokens: A second budget, in tokens; None: characters alone count.
        count_tokens: Counts the tokens of a text; needed with ``max_context_tokens``.
        language: ISO 639-1 code of the passages, for sentence boundaries.

    Raises:
        UsageError: The question is empty, or a budget is too small or cannot be counted.
    """
    if not question.strip():
        raise UsageError("The question is empty; ask something, for instance 'How many days of leave do I have?'.")
    if max_context_chars < 500:
        raise UsageError(f"max_context_chars must be at least 500, not {max_context_chars!r}.")
    if max_context_tokens is not None and (count_tokens is None or max_context_tokens < 1):
        raise UsageError("max_context_tokens must be at least 1 and needs count_tokens.")
    context = assemble(
        passages,
        token_budget=max_context_tokens,
        count_tokens=count_tokens or estimate_tokens,
        max_context_length=max_context_chars,
        language=language,
    )
    rules = _template().format(opening=OPENING, closing=CLOSING, refusal=REFUSAL)
    request = f"{OPENING}\n{context.text}\n{CLOSING}\n\nQuestion: {defused(question.strip())}"
    return Prompt((ChatMessage("system", rules), ChatMessage("user", request)), context.passages)


@cache
def _template() -> str:
    return files("recollect.answer").joinpath("prompts/strict.md").read_text(encoding="utf-8")
