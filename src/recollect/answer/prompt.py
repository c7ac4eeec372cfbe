"""Builds the prompt that holds a language model to the passages. Pure but for reading the packaged template."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from recollect.errors import UsageError
from recollect.llm.base import ChatMessage
from recollect.model.answer import REFUSAL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from recollect.model import RetrievedContext

OPENING = "<<<CONTEXT"
CLOSING = "CONTEXT>>>"
DEFAULT_MAX_CONTEXT_CHARS = 12_000
_MIN_CUT_CHARS = 200

# What a document could hold to pass for the prompt's own structure: a block's header, the lines around the context.
_IMITATED_HEADER = re.compile(r"[\[［【⟦]((?:\s|[\u200b-\u200f\u2060\ufeff])*sources?\s*[\d#])", re.IGNORECASE)
_IMITATED_FENCE = re.compile(r"<{2,}\s*context|context\s*>{2,}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is sent to the model, and which passages its block numbers stand for.

    Attributes:
        messages: A system message with the rules and a user message with context and question.
        passages: ``passages[n - 1]`` is block n; ``content`` may be cut at its end, offsets cut with it.
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
) -> Prompt:
    """The strict prompt: answer from these passages only, cite them, or say the refusal sentence.

    Args:
        question: In plain words.
        passages: Best first; they fill the budget in this order, and one that does not fit ends the list. The first
            is shortened rather than left out.
        max_context_chars: Characters for all context blocks together, headers included; at least 500.
        max_context_tokens: A second budget, in tokens; None: characters alone count.
        count_tokens: Counts the tokens of a text; needed with ``max_context_tokens``.

    Raises:
        UsageError: The question is empty, or a budget is too small or cannot be counted.
    """
    if not question.strip():
        raise UsageError("The question is empty; ask something, for instance 'How many days of leave do I have?'.")
    if max_context_chars < 500:
        raise UsageError(f"max_context_chars must be at least 500, not {max_context_chars!r}.")
    if max_context_tokens is not None and (count_tokens is None or max_context_tokens < 1):
        raise UsageError("max_context_tokens must be at least 1 and needs count_tokens.")
    fits = _Budget(max_context_chars, max_context_tokens, count_tokens)
    shown: list[RetrievedContext] = []
    blocks: list[str] = []
    for passage in passages:
        piece = _fitted(passage, len(shown) + 1, blocks, fits, may_cut=not shown)
        if piece is None:
            break
        shown.append(piece)
        blocks.append(context_block(piece, number=len(shown)))
    rules = _template().format(opening=OPENING, closing=CLOSING, refusal=REFUSAL)
    context = "\n\n".join(blocks)
    request = f"{OPENING}\n{context}\n{CLOSING}\n\nQuestion: {_defused(question.strip())}"
    return Prompt((ChatMessage("system", rules), ChatMessage("user", request)), tuple(shown))


def context_block(passage: RetrievedContext, *, number: int) -> str:
    """A passage as the model sees it: a header that only recollect can write, then the text.

    Args:
        passage: Text in it that imitates a header or the context's borders is made harmless.
        number: From 1.
    """
    facts = [f"Source {number}: {_one_line(passage.source)}"]
    if passage.section:
        facts.append(f"Section: {_one_line(passage.section)}")
    if passage.page is not None:
        facts.append(f"Page: {passage.page}")
    date = passage.metadata.get("date")
    if isinstance(date, str) and date.strip():
        facts.append(f"Date: {_one_line(date)}")
    return f"[{' | '.join(facts)}]\n{_defused(passage.content.strip())}"


@dataclass(frozen=True, slots=True)
class _Budget:
    max_chars: int
    max_tokens: int | None
    count_tokens: Callable[[str], int] | None

    def __call__(self, blocks: Sequence[str]) -> bool:
        text = "\n\n".join(blocks)
        if len(text) > self.max_chars:
            return False
        return self.max_tokens is None or self.count_tokens is None or self.count_tokens(text) <= self.max_tokens


def _fitted(
    passage: RetrievedContext, number: int, blocks: Sequence[str], fits: _Budget, *, may_cut: bool
) -> RetrievedContext | None:
    """The passage, shortened if that is allowed and needed; None where it does not fit."""
    while not fits([*blocks, context_block(passage, number=number)]):
        if not may_cut or len(passage.content) <= _MIN_CUT_CHARS:
            return None
        length = len(passage.content) * 4 // 5
        passage = replace(passage, content=passage.content[:length], end_offset=passage.start_offset + length)
    return passage


def _defused(text: str) -> str:
    """The text, unable to pass for the prompt's structure; its words stay readable."""
    text = _IMITATED_HEADER.sub(r"(\1", text)
    return _IMITATED_FENCE.sub(lambda match: match.group().replace("<", "‹").replace(">", "›"), text)


def _one_line(text: str) -> str:
    """A header's field: one line, without the characters that structure the header."""
    return _defused(" ".join(text.split())).replace("[", "(").replace("]", ")").replace("|", "/")


@cache
def _template() -> str:
    return files("recollect.answer").joinpath("prompts/strict.md").read_text(encoding="utf-8")
