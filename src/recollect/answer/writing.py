"""Has a language model write an answer: checked as it comes, asked again where that is wanted, counted, and cited."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from recollect.answer import absence
from recollect.answer._units import quotable_units
from recollect.answer.absence import without_answer
from recollect.answer.statements import MARKER, Statement, StatementStream, marker_numbers
from recollect.answer.verification import Verifier
from recollect.llm.base import ChatMessage, ChatModel, ChatUsage
from recollect.model import Answer, Citation, Decided, RetrievedContext, TokenUsage, UnsupportedSentence

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from recollect.answer.prompt import Prompt
    from recollect.answer.verification import Support, Verdict
    from recollect.model.answer import ShownPassage


# What a language model writes becomes an answer: checked, its markers numbered, its citations at exact characters.

#: What is done with sentences that the sources do not support.
Treatment = Literal["mark", "remove", "retry", "refuse"]

MAX_QUOTE_CHARS = 600

# Characters that show nothing and move what is shown: control codes, direction marks, zero width, tags.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
_LOOKS_LIKE_MARKER = re.compile(r"\[\s*(\d{1,3})\s*\]")
_LINK = re.compile(r"(!?)\[([^\[\]]*)\]\(\s*<?([^()\s<>]*(?:\([^()]*\)[^()\s<>]*)*)>?(?:\s+[^()]*)?\)")
_REFERENCE = re.compile(r"^[ \t]*\[[^\]\n]+\]:\s*\S+.*$", re.MULTILINE)
_HTML = re.compile(r"</?[a-zA-Z][^<>\n]*>")
# Stand for a marker while the text around it is looked through for what would pass for one.
_OPEN, _CLOSE = "\ue000", "\ue001"


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """A statement that may be shown.

    Attributes:
        text: With markers as the answer numbers them, and with what stands before it.
        citations: Those of its markers.
        unsupported: What is wrong with it; None: nothing.
    """

    text: str
    citations: tuple[Citation, ...] = ()
    unsupported: UnsupportedSentence | None = None


@dataclass(eq=False)
class WrittenAnswer:
    """Statements in, an answer out: numbers markers by first use, and keeps what was cited and what is unsupported.

    Attributes:
        verifier: Of the sources that the model was shown.
        passages: These sources.
        language: ISO 639-1 code, for sentence boundaries.
        removes: Whether unsupported statements are left out.
        helpful: The passages that may help where it is no answer.
    """

    verifier: Verifier
    passages: Sequence[RetrievedContext]
    language: str = "en"
    removes: bool = False
    helpful: Callable[[], Sequence[ShownPassage]] = tuple
    heard: str = ""
    refused: bool = False
    _text: str = ""
    _numbers: dict[int, int] = field(default_factory=dict)
    _supports: dict[int, list[Support]] = field(default_factory=dict)
    _unsupported: list[UnsupportedSentence] = field(default_factory=list)
    _held: list[tuple[Statement, Verdict]] = field(default_factory=list)
    _claims: list[tuple[int, int, str, bool]] = field(default_factory=list)

    @property
    def held(self) -> str:
        """What was checked and is not shown yet, because it may still be a refusal."""
        return "".join(statement.raw for statement, _ in self._held)

    def add(self, statement: Statement) -> list[CheckedSentence]:
        """Check a statement; what can be shown now: nothing where it is not known yet whether this is an answer."""
        if self.refused:
            return []
        if not self._text and not self._held and absence.is_refusal(statement.text):
            self.refused = True
            return []
        verdict = self.verifier.check(statement)
        self._held.append((statement, verdict))
        # Until the first claim it may still be a refusal; before the first citation nothing is sure to be kept.
        begun = any(one.kind == "claim" and (one.cited or not self.removes) for _, one in self._held)
        return self._released() if self._text or begun else []

    def finish(self) -> list[CheckedSentence]:
        """What is left to show when the model has ended; nothing of a refusal."""
        claims = any(verdict.kind == "claim" for _, verdict in self._held) or bool(self._text)
        if self.refused or not claims:
            self.refused = True
            return []
        return self._released()

    def answer(self, question: str) -> Answer:
        """The whole answer, once it is finished."""
        text = self._text.strip()
        if not self.refused and not self._numbers:
            self._mark_as_uncited()
            if self.removes:
                self.refused = True
        unsupported = tuple(sorted(self._unsupported, key=lambda one: one.start_offset or 0))
        if self.refused or not text:
            return without_answer(
                question, self.helpful(), language=self.language, unsupported=map(_without_place, unsupported)
            )
        citations = tuple(self._citation(number) for number in self._numbers)
        return Answer(question=question, text=text, outcome="answer", citations=citations, unsupported=unsupported)

    def _released(self) -> list[CheckedSentence]:
        shown = [self._shown(statement, verdict) for statement, verdict in self._held]
        self._held.clear()
        return [one for one in shown if one is not None]

    def _shown(self, statement: Statement, verdict: Verdict) -> CheckedSentence | None:
        bad = verdict.reason
        if bad and self.removes:
            self._unsupported.append(_unsupported(statement.body.strip(), None, verdict))
            return None
        lead = statement.raw[: len(statement.raw) - len(statement.body)] if self._text else ""
        body = self._rendered(statement)
        text = (_INVISIBLE.sub("", lead) + body).rstrip()
        if not self._text:
            text = text.lstrip()
        start = len(self._text) + len(text) - len(text.lstrip())
        self._text += text
        for support in verdict.supports:
            if support.source in verdict.cited:
                self._supports.setdefault(support.source, []).append(replace(support, score=verdict.score))
        flagged = _unsupported(text.strip(), start, verdict) if bad else None
        if flagged:
            self._unsupported.append(flagged)
        if verdict.kind == "claim":
            self._claims.append((start, start + len(text.strip()), text.strip(), bool(bad)))
        return CheckedSentence(text, tuple(self._citation(number) for number in verdict.cited), flagged)

    def _rendered(self, statement: Statement) -> str:
        """The statement's text: known markers numbered by first use, others and active markup left out."""

        def numbered(match: re.Match[str]) -> str:
            known = [number for number in marker_numbers(match) if number in cited]
            for number in known:
                self._numbers.setdefault(number, len(self._numbers) + 1)
            gap = match.group()[: len(match.group()) - len(match.group().lstrip())]
            numbers = dict.fromkeys(self._numbers[number] for number in known)
            return gap + "".join(f"{_OPEN}{number}{_CLOSE}" for number in numbers) if known else ""

        passages = self.passages
        cited = {
            number
            for number in statement.cited
            if 1 <= number <= len(passages) and passages[number - 1].content.strip()
        }
        body = _INVISIBLE.sub("", statement.body).replace(_OPEN, "").replace(_CLOSE, "")
        text = self._without_active_markup(MARKER.sub(numbered, body))
        text = _LOOKS_LIKE_MARKER.sub(r"(\1)", text)
        return text.replace(_OPEN, "[").replace(_CLOSE, "]")

    def _without_active_markup(self, text: str) -> str:
        """Images, HTML and links to where no source points would be fetched or followed by what shows the answer."""

        def link(match: re.Match[str]) -> str:
            known = not match.group(1) and any(match.group(3) in passage.content for passage in self.passages)
            return match.group() if known and match.group(3) else match.group(2)

        return _HTML.sub("", _REFERENCE.sub("", _LINK.sub(link, text)))

    def _mark_as_uncited(self) -> None:
        for start, end, text, flagged in self._claims:
            if not flagged:
                self._unsupported.append(
                    UnsupportedSentence(
                        text=text,
                        start_offset=start,
                        end_offset=end,
                        reason="uncited",
                        detail="the answer cites no source",
                    )
                )

    def _citation(self, number: int) -> Citation:
        passage = self.passages[number - 1]
        supports = self._supports.get(number, [])
        start, end = _quoted(passage, [(one.start, one.end) for one in supports], self.language)
        begin, stop = passage.start_offset + start, passage.start_offset + end
        part = passage.part_at(begin)
        return Citation(
            marker=self._numbers[number],
            document_id=passage.document_id,
            source=passage.source,
            section=part.section,
            page=part.page,
            last_page=passage.part_at(stop - 1).page,
            boxes=passage.boxes(begin, stop),
            start_offset=begin,
            end_offset=stop,
            quote=passage.content[start:end],
            department=passage.department,
            notes=passage.notes,
            collection=passage.collection,
            server=passage.server,
            id=passage.id,
            support=round(min((one.score for one in supports), default=0.0), 3),
        )


def _without_place(sentence: UnsupportedSentence) -> UnsupportedSentence:
    """What is told of a sentence of an answer that is not shown."""
    return replace(sentence, start_offset=None, end_offset=None)


def _unsupported(text: str, start: int | None, verdict: Verdict) -> UnsupportedSentence:
    return UnsupportedSentence(
        text=text,
        start_offset=start,
        end_offset=None if start is None else start + len(text),
        reason=verdict.reason or "no_evidence",
        detail=verdict.detail,
    )


def _quoted(passage: RetrievedContext, spans: Sequence[tuple[int, int]], language: str) -> tuple[int, int]:
    """The span over all that is cited of a passage, or the first alone where they stand far apart."""
    if not spans:
        units = quotable_units(passage.content, language=language)
        if units:
            return units[0].start, units[0].end
        content = passage.content
        return len(content) - len(content.lstrip()), len(content.rstrip())
    start, end = min(span[0] for span in spans), max(span[1] for span in spans)
    sections = {passage.part_at(passage.start_offset + at).section for at in (start, end - 1)}
    return spans[0] if end - start > MAX_QUOTE_CHARS or len(sections) > 1 else (start, end)


@dataclass(frozen=True, slots=True)
class Draft:
    """What a language model has written beyond its checked sentences: each replaces the one before.

    Attributes:
        text: As the model wrote it, its markers left out: their numbers are not yet the answer's.
    """

    text: str


#: What a stream yields: what becomes of the question; checked text, then what it cites and what is wrong with it; at
#: the end the whole answer.
AnswerEvent: TypeAlias = "Decided | str | Citation | UnsupportedSentence | Draft | Answer"

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
        helpful: The passages that may help where the model writes no answer.
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
        helpful: Callable[[], Sequence[ShownPassage]] = tuple,
    ) -> None:
        self._prompt = prompt
        self._verifier = verifier
        self._model = model
        self._language = language
        self._treatment = treatment
        self._max_tokens = max_tokens
        self._count_tokens = count_tokens
        self._drafts = drafts and treatment == "mark"
        self._helpful = helpful
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
                if not shown:
                    yield Decided("answer")
                shown = True
                for event in _events(piece):
                    yield event
            # In a thread: where it is none, passages that may help are looked for.
            reply = await asyncio.to_thread(written.answer, question)
            if not shown:
                yield Decided(reply.outcome)
                yield reply.text
        yield replace(reply, model=self._model.model_name, usage=self._usage)

    async def _whole(self, question: str) -> Answer:
        """The answer with its treatment: written anew, or refused."""
        written = self._nothing_written()
        async for _ in self._round(self._prompt.messages, written):
            pass
        reply = await asyncio.to_thread(written.answer, question)
        if reply.refused or not reply.unsupported:
            return reply
        if self._treatment == "refuse":
            return without_answer(
                question,
                self._helpful(),
                language=self._language,
                unsupported=map(_without_place, reply.unsupported),
            )
        faults = "\n".join(f"- {one.text} ({one.detail})" for one in reply.unsupported)
        again = (ChatMessage("assistant", written.heard), ChatMessage("user", _AGAIN.format(faults=faults)))
        second = self._nothing_written()
        async for _ in self._round((*self._prompt.messages, *again), second):
            pass
        return await asyncio.to_thread(second.answer, question)

    def _nothing_written(self) -> WrittenAnswer:
        removes = self._treatment == "remove"
        return WrittenAnswer(
            self._verifier, self._prompt.passages, self._language, removes=removes, helpful=self._helpful
        )

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
    return (Decided(reply.outcome), reply.text, *reply.citations, *reply.unsupported)


def _events(sentence: CheckedSentence) -> tuple[AnswerEvent, ...]:
    found: tuple[AnswerEvent, ...] = (sentence.text, *sentence.citations)
    return found if sentence.unsupported is None else (*found, sentence.unsupported)


# Makes and verifies citations: from markers in a model's answer to exact characters of a document. Pure.


_CITED = re.compile(r"\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class CitedText:
    """A text whose markers run from 1 in order of appearance, and the citations that they stand for."""

    text: str
    citations: tuple[Citation, ...]


def cite(
    text: str,
    passages: Sequence[RetrievedContext],
    *,
    terms: Callable[[str], Sequence[str]],
    language: str = "en",
) -> CitedText:
    """Turn the markers of a model's whole answer into citations of the passages that it was shown.

    Markers are renumbered by first use; one that names no passage is removed. A passage is quoted with the sentence,
    or the neighbouring sentences, that support the statements that cite it.

    Args:
        text: The model's answer, with markers such as ``[1]``, ``[1, 2]`` or ``[Source 1]``.
        passages: The context blocks; ``[n]`` means the n-th.
        terms: Splits a text into its terms; statements and sentences are compared by them.
        language: ISO 639-1 code, for sentence boundaries.
    """
    verifier = Verifier(passages, terms=terms, language=language)
    written = WrittenAnswer(verifier, passages, language)
    stream = StatementStream(language)
    for statement in [*stream.feed(text), *stream.flush()]:
        written.add(statement)
    written.finish()
    answer = written.answer("")
    return CitedText("" if answer.refused else answer.text, answer.citations)


def verify(answer_text: str, citations: Sequence[Citation], contents: Mapping[int, str]) -> tuple[str, ...]:
    """What is wrong with an answer's citations; nothing, if every one can be trusted.

    Args:
        answer_text: The answer, with its markers.
        citations: In order of their markers.
        contents: Document contents by ``document_id``, as stored.

    Returns:
        One sentence for each fault: a quote that differs from the document's characters, a marker without a citation
        or a citation without a marker, numbers that do not run from 1 in order of appearance.
    """
    faults = [fault for citation in citations if (fault := _fault(citation, contents))]
    markers = [citation.marker for citation in citations]
    if markers != list(range(1, len(markers) + 1)):
        faults.append(f"The markers of the citations are {markers}, not 1 to {len(markers)} in order.")
    used = [number for number in markers_in(answer_text) if number in markers]
    if used != sorted(used):
        faults.append(f"The markers appear in the text in the order {used}.")
    faults.extend(f"Citation {marker} has no marker in the text." for marker in markers if marker not in used)
    return tuple(faults)


def markers_in(text: str) -> list[int]:
    """The numbers of the markers ``[n]`` in a text, each once, in order of first appearance."""
    return list(dict.fromkeys(int(match.group(1)) for match in _CITED.finditer(text)))


def _fault(citation: Citation, contents: Mapping[int, str]) -> str | None:
    content = contents.get(citation.document_id)
    if content is None:
        return f"Citation {citation.marker} names document {citation.document_id}, which is not among the contents."
    if not 0 <= citation.start_offset < citation.end_offset <= len(content):
        return f"Citation {citation.marker} has offsets outside document {citation.document_id}."
    if content[citation.start_offset : citation.end_offset] != citation.quote:
        return f"The quote of citation {citation.marker} differs from document {citation.document_id}."
    return None
