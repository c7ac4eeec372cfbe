"""Answers a question from passages: with a language model where there is one, by extraction otherwise."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import get_args

from recollect.answer.extractive import ExtractionOptions, extract_answer, helpful, language_of_passages, read
from recollect.answer.prompt import DEFAULT_MAX_CONTEXT_CHARS, Prompt, PromptTemplate, build_prompt
from recollect.answer.reader import Reader
from recollect.answer.statements import MARKER, Statement, StatementStream
from recollect.answer.verification import Verifier
from recollect.answer.writing import AnswerEvent, Draft, Treatment, WrittenAnswer
from recollect.embedding.base import EmbeddingProvider
from recollect.errors import UsageError
from recollect.familiar_names import suggesting
from recollect.llm.base import ChatMessage, ChatModel, ChatUsage, iterate, usage_of
from recollect.model import Answer, Decided, RetrievedContext, ShownPassage, TokenUsage

# Passages that are shown whatever their relevance, and what share of the best one's the others must have.
_ALWAYS_SHOWN = 3
_RELEVANT_SHARE = 0.2


@suggesting
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
        top_k: Passages that a language model is shown at most; None: all that were found, the irrelevant left out.
        prompt: The words around the context; None: the packaged ones.
        ask_only_if_answerable: Whether ``extraction.rule`` is asked before a language model is: what it refuses, the
            model is not asked. The rule's threshold must belong to the embedding model.
        unsupported: What is done with sentences of a language model that the sources do not support. ``mark``: they
            stay, and are listed; ``remove``: they are left out; ``retry``: the model is asked once more, told which,
            and what then is unsupported is marked; ``refuse``: if there is one, passages are shown in its place.
        checker: Says whether a passage supports an English sentence of a language model; None: words alone count.
        drafts: Whether what a language model writes comes as a `Draft` before it is checked, where all of it will be
            shown (``mark``).
    """

    language: str = "en"
    extraction: ExtractionOptions = field(default_factory=ExtractionOptions)
    max_context_chars: int = DEFAULT_MAX_CONTEXT_CHARS
    max_context_tokens: int | None = None
    count_tokens: Callable[[str], int] | None = None
    max_tokens: int | None = None
    top_k: int | None = None
    prompt: PromptTemplate | None = None
    ask_only_if_answerable: bool = False
    unsupported: Treatment = "mark"
    checker: Reader | None = None
    drafts: bool = False

    def __post_init__(self) -> None:
        if self.unsupported not in get_args(Treatment):
            known = ", ".join(repr(name) for name in get_args(Treatment))
            raise UsageError(f"unsupported must be one of {known}, not {self.unsupported!r}.")


def answer(
    question: str,
    passages: Sequence[RetrievedContext],
    *,
    embedder: EmbeddingProvider,
    chat_model: ChatModel | None = None,
    options: AnswerOptions | None = None,
) -> Answer:
    """Answer a question from passages, whole.

    Works in any thread, also below a running event loop (a notebook), which it blocks until the answer is there.

    Args:
        question: In plain words.
        passages: What a search found, best first; without any the outcome is `none`.
        embedder: The model that the passages were found with; used without a language model only.
        chat_model: Writes the answer; None: sentences of the passages are quoted.
        options: Budgets and the refusal rule; None: the defaults.

    Returns:
        The answer; ``timings_ms`` holds ``answer_ms``.

    Raises:
        UsageError: The question is empty, or an option is out of range.
        ProviderError: A model failed.
    """
    stream = stream_answer_sync(question, passages, embedder=embedder, chat_model=chat_model, options=options)
    return next(event for event in stream if isinstance(event, Answer))


def stream_answer_sync(
    question: str,
    passages: Sequence[RetrievedContext],
    *,
    embedder: EmbeddingProvider,
    chat_model: ChatModel | None = None,
    options: AnswerOptions | None = None,
) -> Iterator[AnswerEvent]:
    """As ``stream_answer``, for callers that are not asynchronous; a running event loop does not disturb it."""
    stream = stream_answer(question, passages, embedder=embedder, chat_model=chat_model, options=options)
    # Without a model nothing is waited for, and no second thread is needed.
    return iterate(stream, in_thread=chat_model is not None)


async def stream_answer(
    question: str,
    passages: Sequence[RetrievedContext],
    *,
    embedder: EmbeddingProvider,
    chat_model: ChatModel | None = None,
    options: AnswerOptions | None = None,
) -> AsyncIterator[AnswerEvent]:
    """Answer a question from passages, in pieces: checked text as it comes, and at the end the ``Answer``.

    With a language model each piece is a whole sentence, checked against the passages before it is yielded, its markers
    numbered as in the final text: the pieces join to it. Before the first piece comes `Decided`: whether it is an
    answer, passages that may help, or nothing. Behind a piece come the citations that it makes and the
    `UnsupportedSentence` that it is, if it is one. Where an unsupported sentence can still change what stands before it
    (``retry``, ``refuse``), everything comes when the model has ended. Without a language model there is one piece,
    computed in the calling thread.

    Args:
        question: In plain words.
        passages: What a search found, best first; without any the outcome is `none`.
        embedder: The model that the passages were found with; used without a language model only.
        chat_model: Writes the answer; None: sentences of the passages are quoted.
        options: Budgets and the refusal rule; None: the defaults.

    Raises:
        UsageError: The question is empty, or an option is out of range.
        ProviderError: A model failed; pieces may have come before.
    """
    options = options or AnswerOptions()
    started = time.perf_counter()
    readable = [passage for passage in passages if passage.content.strip()]
    language = language_of_passages(options.language, readable, question)
    if chat_model is None or not readable or options.ask_only_if_answerable:
        reply = extract_answer(question, readable, embedder=embedder, language=language, options=options.extraction)
        if chat_model is None or reply.refused:
            yield Decided(reply.outcome)
            yield reply.text
            yield _timed(reply, started)
            return
    prompt = build_prompt(
        question,
        relevant(readable, top_k=options.top_k),
        max_context_chars=options.max_context_chars,
        max_context_tokens=options.max_context_tokens,
        count_tokens=options.count_tokens,
        language=language,
        template=options.prompt,
    )
    verifier = Verifier(prompt.passages, language=language, question=question, reader=options.checker)
    reading = partial(
        read, question, readable, embedder=embedder, language=language, options=options.extraction, apart=False
    )
    writing = Writing(
        prompt=prompt,
        verifier=verifier,
        model=chat_model,
        options=options,
        helpful=lambda: helpful(reading(), options.extraction),
    )
    async for event in writing.events(question):
        yield _timed(event, started) if isinstance(event, Answer) else event


_AGAIN = (
    "Some sentences of your answer are not supported by the sources:\n{faults}\n\n"
    "Write the whole answer again. Leave out what the context does not say, keep every number, date and name as the "
    "context has it, and cite the source that says it. If nothing remains, reply with exactly the refusal sentence."
)


@dataclass(eq=False, kw_only=True)
class Writing:
    """One answer of a language model, from its prompt to the checked text.

    Attributes:
        prompt: What the model is sent, and the sources that it shows.
        verifier: Checks statements against these sources.
        model: Writes the answer.
        options: What is done with unsupported sentences, and the longest answer.
        helpful: The passages that may help where the model writes no answer.
        usage: What it has taken so far.
    """

    prompt: Prompt
    verifier: Verifier
    model: ChatModel
    options: AnswerOptions
    helpful: Callable[[], Sequence[ShownPassage]]
    usage: TokenUsage = field(default_factory=lambda: TokenUsage(input_tokens=0, output_tokens=0, requests=0))

    async def events(self, question: str) -> AsyncIterator[AnswerEvent]:
        """The answer's sentences as they are checked, their events, and the answer.

        Where an unsupported sentence can change what stands before it, all of it comes at the end.
        """
        waits = self.options.unsupported in {"retry", "refuse"}
        written, shown = self._nothing_written(), False
        async for event in self._round(self.prompt.messages, written):
            if waits:
                continue
            if not shown and not isinstance(event, Draft):
                yield Decided("answer")
                shown = True
            yield event
        # In a thread: where it is none, passages that may help are looked for.
        reply = await asyncio.to_thread(written.answer, question)
        if waits and reply.unsupported and not reply.refused:
            written = await self._treated(written, reply)
            reply = await asyncio.to_thread(written.answer, question)
        if not shown:
            unsupported = reply.unsupported if waits else ()
            events: tuple[AnswerEvent, ...] = (Decided(reply.outcome), reply.text, *reply.citations, *unsupported)
            for event in events:
                yield event
        yield replace(reply, model=self.model.model_name, usage=self.usage)

    async def _treated(self, written: WrittenAnswer, reply: Answer) -> WrittenAnswer:
        """What takes the place of an answer with unsupported sentences: another one, or none."""
        if self.options.unsupported == "refuse":
            return replace(written, refused=True)
        faults = "\n".join(f"- {one.text} ({one.detail})" for one in reply.unsupported)
        again = (ChatMessage("assistant", written.heard), ChatMessage("user", _AGAIN.format(faults=faults)))
        second = self._nothing_written()
        async for _ in self._round((*self.prompt.messages, *again), second):
            pass
        return second

    def _nothing_written(self) -> WrittenAnswer:
        removes = self.options.unsupported == "remove"
        return WrittenAnswer(self.verifier, removes=removes, helpful=self.helpful)

    async def _round(self, messages: Sequence[ChatMessage], written: WrittenAnswer) -> AsyncIterator[AnswerEvent]:
        """One request to the model: its sentences, each as soon as it is checked, and drafts where they are wanted."""
        stream = StatementStream(self.verifier.language)
        told: ChatUsage | None = None
        async for item in self.model.stream(messages, max_tokens=self.options.max_tokens):
            if not isinstance(item, str):
                told = item
                continue
            written.heard += item
            for event in await _checked(written, stream.feed(item)):
                yield event
            if self.options.drafts and self.options.unsupported == "mark" and not written.refused:
                yield Draft(MARKER.sub("", written.held + stream.pending))
        for event in await _checked(written, stream.flush()):
            yield event
        for event in written.finish():
            yield event
        self.usage += usage_of(self.model, messages, written.heard, told)


async def _checked(written: WrittenAnswer, statements: Sequence[Statement]) -> list[AnswerEvent]:
    # In a thread: an embedding model computes there, and other answers of this event loop go on meanwhile.
    if not statements:
        return []
    return await asyncio.to_thread(lambda: [event for one in statements for event in written.add(one)])


def relevant(passages: Sequence[RetrievedContext], *, top_k: int | None = None) -> list[RetrievedContext]:
    """The passages that a language model should read: those far less relevant than the best one only distract it.

    Args:
        passages: Best first.
        top_k: At most so many; None: any number.
    """
    best = max((passage.relevance or 0.0 for passage in passages), default=0.0)
    kept = [
        passage
        for rank, passage in enumerate(passages)
        if rank < _ALWAYS_SHOWN or passage.relevance is None or passage.relevance >= _RELEVANT_SHARE * best
    ]
    return kept[:top_k]


def _timed(reply: Answer, started: float) -> Answer:
    return replace(reply, timings_ms={"answer_ms": round((time.perf_counter() - started) * 1000, 3)})
