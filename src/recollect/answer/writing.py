"""Has a language model write an answer: its text checked as it comes, asked again where that is wanted, counted."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from recollect.answer.statements import MARKER, Statement, StatementStream
from recollect.answer.written import Treatment, WrittenAnswer, refused_answer
from recollect.llm.base import ChatMessage, ChatUsage
from recollect.model import Answer, Citation, TokenUsage, UnsupportedSentence

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from recollect.answer.prompt import Prompt
    from recollect.answer.verification import Verifier
    from recollect.answer.written import CheckedSentence
    from recollect.llm.base import ChatModel


@dataclass(frozen=True, slots=True)
class Draft:
    """What a language model has written beyond its checked sentences: each replaces the one before.

    Attributes:
        text: As the model wrote it, its markers left out: their numbers are not yet the answer's.
    """

    text: str


#: What a stream yields: checked text, then what it cites and what is wrong with it; at the end the whole answer.
AnswerEvent: TypeAlias = "str | Citation | UnsupportedSentence | Draft | Answer"

_AGAIN = (
    "Some sentences of your answer are not supported by the sources:\n{faults}\n\n"
    "Write the whole answer again. Leave out what the context does not say, keep every number, date and name as the "
    "context has it, and cite the source that says it. If nothing remains, reply with exactly the refusal sentence."
)


class Writing:
    """One answer of a language model, from its prompt to the checked text.

    Args:
        prompt: What the model is sent, and the sources that it shows.
        verifier: Of these sources.
        model: Writes the answer.
        language: ISO 639-1 code, for sentence boundaries.
        treatment: What is done with unsupported sentences.
        max_tokens: The longest answer; None: the model's own limit.
        count_tokens: Counts what the model's server does not tell.
        drafts: Whether what is not checked yet comes too, where all of it will be shown.
    """

    def __init__(
        self,
        prompt: Prompt,
        verifier: Verifier,
        model: ChatModel,
        *,
        language: str,
        treatment: Treatment,
        max_tokens: int | None,
        count_tokens: Callable[[str], int],
        drafts: bool = False,
    ) -> None:
        self._prompt = prompt
        self._verifier = verifier
        self._model = model
        self._language = language
        self._treatment = treatment
        self._max_tokens = max_tokens
        self._count_tokens = count_tokens
        self._drafts = drafts and treatment == "mark"
        self._usage = TokenUsage(input_tokens=0, output_tokens=0, requests=0)

    async def events(self, question: str) -> AsyncIterator[AnswerEvent]:
        """The answer's sentences as they are checked, their events, and the answer.

        Where an unsupported sentence can change what stands before it, all of it comes at the end.
        """
        if self._treatment in {"retry", "refuse"}:
            reply = await self._whole(question)
            for event in _all_of(reply):
                yield event
        else:
            written, shown = self._nothing_written(), False
            async for piece in self._round(self._prompt.messages, written):
                if isinstance(piece, Draft):
                    yield piece
                    continue
                shown = True
                for event in _events(piece):
                    yield event
            reply = written.answer(question)
            if not shown:
                yield reply.text
        yield replace(reply, model=self._model.model_name, usage=self._usage)

    async def _whole(self, question: str) -> Answer:
        """The answer with its treatment: written anew, or refused."""
        written = self._nothing_written()
        async for _ in self._round(self._prompt.messages, written):
            pass
        reply = written.answer(question)
        if reply.refused or not reply.unsupported:
            return reply
        if self._treatment == "refuse":
            return refused_answer(question, self._language, reply.unsupported)
        faults = "\n".join(f"- {one.text} ({one.detail})" for one in reply.unsupported)
        again = (ChatMessage("assistant", written.heard), ChatMessage("user", _AGAIN.format(faults=faults)))
        second = self._nothing_written()
        async for _ in self._round((*self._prompt.messages, *again), second):
            pass
        return second.answer(question)

    def _nothing_written(self) -> WrittenAnswer:
        removes = self._treatment == "remove"
        return WrittenAnswer(self._verifier, self._prompt.passages, self._language, removes=removes)

    async def _round(
        self, messages: Sequence[ChatMessage], written: WrittenAnswer
    ) -> AsyncIterator[CheckedSentence | Draft]:
        """One request to the model: its sentences, each as soon as it is checked, and drafts where they are wanted."""
        stream = StatementStream(self._language)
        told: ChatUsage | None = None
        async for item in self._model.stream(messages, max_tokens=self._max_tokens):
            if not isinstance(item, str):
                told = item
                continue
            written.heard += item
            for sentence in await self._checked(written, stream.feed(item)):
                yield sentence
            if self._drafts and not written.refused:
                yield Draft(MARKER.sub("", written.held + stream.pending))
        for sentence in await self._checked(written, stream.flush()):
            yield sentence
        for sentence in written.finish():
            yield sentence
        self._count(messages, written.heard, told)

    async def _checked(self, written: WrittenAnswer, statements: Sequence[Statement]) -> list[CheckedSentence]:
        # In a thread: an embedding model computes there, and other answers of this event loop go on meanwhile.
        if not statements:
            return []
        return await asyncio.to_thread(lambda: [one for statement in statements for one in written.add(statement)])

    def _count(self, messages: Sequence[ChatMessage], text: str, told: ChatUsage | None) -> None:
        """Add what a request has cost: as the provider tells, or else counted here."""
        used = told or ChatUsage(
            input_tokens=sum(self._count_tokens(message.content) for message in messages),
            output_tokens=self._count_tokens(text) if text else 0,
            estimated=True,
        )
        self._usage += TokenUsage(
            input_tokens=used.input_tokens, output_tokens=used.output_tokens, estimated=used.estimated
        )


def _all_of(reply: Answer) -> tuple[AnswerEvent, ...]:
    return (reply.text, *reply.citations, *reply.unsupported)


def _events(sentence: CheckedSentence) -> tuple[AnswerEvent, ...]:
    found: tuple[AnswerEvent, ...] = (sentence.text, *sentence.citations)
    return found if sentence.unsupported is None else (*found, sentence.unsupported)
