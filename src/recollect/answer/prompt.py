"""Builds the prompt that holds a language model to the passages. Pure but for reading a prompt's file."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from recollect.answer.absence import REFUSALS, sentence_of
from recollect.context import assemble, defused, estimate_tokens
from recollect.errors import ConfigurationError, UsageError
from recollect.llm.base import ChatMessage
from recollect.model import RetrievedContext
from recollect.model.answer import REFUSAL

#: The lines around the context, which no document can imitate.
OPENING = "APPROVED CONTEXT"
CLOSING = "END OF CONTEXT"
#: The line between two blocks.
SEPARATOR = "\n\n---\n\n"
DEFAULT_MAX_CONTEXT_CHARS = 12_000

_PACKAGED = Path(__file__).with_name("prompts") / "strict.md"
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_KNOWN = {"{refusal}", "{context}", "{question}"}
_BEGINS = re.compile(rf"^{OPENING}[ \t]*$", re.MULTILINE)
_ENDS = re.compile(rf"^{CLOSING}[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """A prompt's two messages, with places for what changes.

    Attributes:
        system: The rules; ``{refusal}`` stands for the refusal sentence.
        request: From the line ``APPROVED CONTEXT`` on, with ``{context}`` and, behind it, ``{question}``.
    """

    system: str
    request: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is sent to the model, and which passages its block numbers stand for.

    Attributes:
        messages: A system message with the rules and a user message with context and question.
        passages: ``passages[n - 1]`` is block n; ``content`` may be shortened, the offsets with it.
    """

    messages: tuple[ChatMessage, ...]
    passages: tuple[RetrievedContext, ...]


def load_prompt(path: Path) -> PromptTemplate:
    """A prompt from a file.

    Args:
        path: Text in UTF-8. Up to a line ``APPROVED CONTEXT`` it is the system message, which holds ``{refusal}``; from
            there on the request, with ``{context}``, a line ``END OF CONTEXT``, and ``{question}`` last.

    Raises:
        ConfigurationError: The file cannot be read, or something is missing in it or unknown.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigurationError(f"The prompt {str(path)!r} cannot be read: {exc}.") from exc
    opening = _BEGINS.search(text)
    faults = [] if opening else [f"a line {OPENING!r}, from which on it is the request"]
    system, request = (text[: opening.start()], text[opening.start() :]) if opening else (text, text)
    if "{refusal}" not in system and REFUSAL not in system:
        faults.append("{refusal}, the refusal sentence, among the rules")
    faults += [f"{{{place}}} once" for place in ("context", "question") if request.count(f"{{{place}}}") != 1]
    closing = _ENDS.search(request)
    context, question = request.find("{context}"), request.find("{question}")
    if opening and not (closing and context < closing.start() < question):
        faults.append(f"{{context}}, then a line {CLOSING!r}, then {{question}}")
    if faults:
        raise ConfigurationError(f"The prompt {str(path)!r} lacks {'; '.join(faults)}.")
    if unknown := sorted({f"{{{place}}}" for place in _PLACEHOLDER.findall(text)} - _KNOWN):
        named = ", ".join(unknown)
        raise ConfigurationError(
            f"The prompt {str(path)!r} has {named}; known are {{refusal}}, {{context}} and {{question}}."
        )
    return PromptTemplate(system.strip(), request.strip())


def build_prompt(
    question: str,
    passages: Sequence[RetrievedContext],
    *,
    max_context_chars: int = DEFAULT_MAX_CONTEXT_CHARS,
    max_context_tokens: int | None = None,
    count_tokens: Callable[[str], int] | None = None,
    language: str = "en",
    template: PromptTemplate | None = None,
) -> Prompt:
    """The strict prompt: answer from these passages only, cite them, or say the refusal sentence.

    Args:
        question: In plain words; the refusal sentence is in its language.
        passages: Best first; they fill the budget in this order, as ``recollect.context.assemble`` has it. One of which
            a newer document is among them comes behind that.
        max_context_chars: Characters for all context blocks together, headers included; at least 500.
        max_context_tokens: A second budget, in tokens; None: characters alone count.
        count_tokens: Counts the tokens of a text; needed with ``max_context_tokens``.
        language: ISO 639-1 code of the passages, for sentence boundaries.
        template: The words around it; None: the packaged ones.

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
        newest_first(passages),
        token_budget=max_context_tokens,
        count_tokens=count_tokens or estimate_tokens,
        max_context_length=max_context_chars,
        language=language,
        separator=SEPARATOR,
    )
    template = template or load_prompt(_PACKAGED)
    refusal = sentence_of(REFUSALS, question, language)
    given = {"refusal": refusal, "context": context.text, "question": defused(question.strip())}

    def filled(text: str) -> str:
        # In one go, so that a document that holds "{question}" gets nothing put into it.
        return _PLACEHOLDER.sub(lambda match: given.get(match.group(1), match.group()), text)

    messages = (ChatMessage("system", filled(template.system)), ChatMessage("user", filled(template.request)))
    return Prompt(messages, context.passages)


def newest_first(passages: Sequence[RetrievedContext]) -> list[RetrievedContext]:
    """The passages in their order, but behind those of a newer document that their notes name.

    Args:
        passages: Best first.
    """
    ordered: list[RetrievedContext] = []
    seen: set[int] = set()

    def place(passage: RetrievedContext) -> None:
        if id(passage) not in seen:
            seen.add(id(passage))
            newer = {note.document_id for note in passage.notes}
            for other in passages:
                if other.document_id in newer:
                    place(other)
            ordered.append(passage)

    for passage in passages:
        place(passage)
    return ordered
