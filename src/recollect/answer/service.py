"""Answers a question from passages: with a language model where there is one, by extraction otherwise."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from recollect.answer.citations import cite
from recollect.answer.extractive import ExtractionOptions, extract_answer
from recollect.answer.prompt import DEFAULT_MAX_CONTEXT_CHARS, build_prompt
from recollect.answer.synchronous import iterate
from recollect.errors import UsageError
from recollect.model import Answer
from recollect.model.answer import REFUSAL
from recollect.retrieval.analysis import Analyzer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    from recollect.embedding.base import EmbeddingProvider
    from recollect.llm.base import ChatModel
    from recollect.model import RetrievedContext


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOptions:
    """How a question is answered.

    Attributes:
        language: ISO 639-1 code of the passages.
        extraction: How sentences are chosen without a language model, and when to refuse.
        max_context_chars: Characters of context that a language model is shown.
        max_context_tokens: A second budget, in tokens; needs ``count_tokens``.
        count_tokens: Counts the tokens of a text.
        max_tokens: The longest answer of a language model; None: its own limit.
    """

    language: str = "en"
    extraction: ExtractionOptions = field(default_factory=ExtractionOptions)
    max_context_chars: int = DEFAULT_MAX_CONTEXT_CHARS
    max_context_tokens: int | None = None
    count_tokens: Callable[[str], int] | None = None
    max_tokens: int | None = None


def answer(
    question: str,
    passages: Sequence[RetrievedContext],
    *,
    embedder: EmbeddingProvider,
    chat_model: ChatModel | None = None,
    analyzer: Analyzer | None = None,
    options: AnswerOptions | None = None,
) -> Answer:
    """Answer a question from passages, whole.

    Works in any thread, also below a running event loop (a notebook), which it blocks until the answer is there.

    Args:
        question: In plain words.
        passages: What a search found, best first; none gives a refusal.
        embedder: The model that the passages were found with; used without a language model only.
        chat_model: Writes the answer; None: sentences of the passages are quoted.
        analyzer: Splits texts into terms; None: one for the language of ``options``.
        options: Budgets and the refusal rule; None: the defaults.

    Returns:
        The answer; ``timings_ms`` holds ``answer_ms``.

    Raises:
        UsageError: The question is empty, or an option is out of range.
        ProviderError: A model failed.
    """
    reply: Answer | None = None
    for piece in stream_answer_sync(
        question, passages, embedder=embedder, chat_model=chat_model, analyzer=analyzer, options=options
    ):
        if isinstance(piece, Answer):
            reply = piece
    if reply is None:
        raise AssertionError("an answer's stream ends with the answer")
    return reply


def stream_answer_sync(
    question: str,
    passages: Sequence[RetrievedContext],
    *,
    embedder: EmbeddingProvider,
    chat_model: ChatModel | None = None,
    analyzer: Analyzer | None = None,
    options: AnswerOptions | None = None,
) -> Iterator[str | Answer]:
    """As ``stream_answer``, for callers that are not asynchronous; a running event loop does not disturb it."""
    stream = stream_answer(
        question, passages, embedder=embedder, chat_model=chat_model, analyzer=analyzer, options=options
    )
    # Without a model nothing is waited for, and no second thread is needed.
    return iterate(stream, in_thread=chat_model is not None)


async def stream_answer(
    question: str,
    passages: Sequence[RetrievedContext],
    *,
    embedder: EmbeddingProvider,
    chat_model: ChatModel | None = None,
    analyzer: Analyzer | None = None,
    options: AnswerOptions | None = None,
) -> AsyncIterator[str | Answer]:
    """Answer a question from passages, in pieces: text as it comes, and at the end the ``Answer`` with citations.

    The pieces carry the model's own markers; the final text has them renumbered, and those that name no passage
    removed. Without a language model there is one piece, computed in the calling thread.

    Args:
        question: In plain words.
        passages: What a search found, best first; none gives a refusal.
        embedder: Used without a language model only.
        chat_model: Writes the answer; None: sentences of the passages are quoted.
        analyzer: Splits texts into terms; None: one for the language of ``options``.
        options: Budgets and the refusal rule; None: the defaults.

    Raises:
        UsageError: The question is empty, or an option is out of range.
        ProviderError: A model failed; pieces may have come before.
    """
    options = options or AnswerOptions()
    started = time.perf_counter()
    if not question.strip():
        raise UsageError("The question is empty; ask something, for instance 'How many days of leave do I have?'.")
    analyzer = analyzer or Analyzer(options.language)
    readable = [passage for passage in passages if passage.content.strip()]
    if chat_model is None or not readable:
        reply = extract_answer(
            question,
            readable,
            embedder=embedder,
            analyzer=analyzer,
            language=options.language,
            options=options.extraction,
        )
        yield reply.text
    else:
        prompt = build_prompt(
            question,
            readable,
            max_context_chars=options.max_context_chars,
            max_context_tokens=options.max_context_tokens,
            count_tokens=options.count_tokens,
            language=options.language,
        )
        pieces: list[str] = []
        async for piece in chat_model.stream(prompt.messages, max_tokens=options.max_tokens):
            if not isinstance(piece, str):
                continue
            pieces.append(piece)
            yield piece
        reply = written_answer(question, "".join(pieces), prompt.passages, analyzer=analyzer, language=options.language)
    yield replace(reply, timings_ms={"answer_ms": (time.perf_counter() - started) * 1000})


def written_answer(
    question: str,
    text: str,
    passages: Sequence[RetrievedContext],
    *,
    analyzer: Analyzer,
    language: str = "en",
) -> Answer:
    """A model's text as an answer: a refusal recognised, or its markers turned into citations.

    Args:
        question: As asked.
        text: All that the model wrote.
        passages: The context blocks that it was shown, in their order.
        analyzer: Splits texts into terms, to find the sentences that support a statement.
        language: ISO 639-1 code of the passages.
    """
    if not text.strip() or is_refusal(text):
        return Answer(question=question, text=REFUSAL, refused=True, citations=())
    cited = cite(text, passages, terms=analyzer.terms, language=language)
    return Answer(question=question, text=cited.text, refused=False, citations=cited.citations)


def is_refusal(text: str) -> bool:
    """Whether a model's text is the refusal sentence, or begins with it.

    Typographic apostrophes, quotation marks, emphasis, case and line breaks make no difference. The sentence behind
    a partial answer does not make that answer a refusal.
    """
    return _plain(text).startswith(_plain(REFUSAL))


def _plain(text: str) -> str:
    text = re.sub(r"[’‘`´]", "'", text.casefold())
    return " ".join(re.sub(r"[\"“”„«»*_.]", "", text).split()).lstrip("'> ")
