"""Questions of OpenAI's clients: which model is meant, what the conversation was, and the answer as it comes."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from bisect import bisect_right
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Security
from pydantic import ConfigDict, Field, model_validator
from starlette.concurrency import run_in_threadpool
from typing_extensions import TypedDict

from recollect.answer.absence import OFFERS
from recollect.answer.readable import beginning
from recollect.llm.base import ChatMessage, ChatUsage, iterate
from recollect.model import Answer, Citation, RetrievalOptions, SearchReply, TokenUsage
from recollect.model.search_options import require_question
from recollect.operations.values import Name
from recollect.pipeline import View
from recollect.pipeline.chat import Conversation
from recollect.retrieval.enhance.follow_up import Exchange
from recollect.server.admission import Service
from recollect.server.bodies import Body, SearchOptions
from recollect.server.caller import Caller
from recollect.server.dependencies import asking
from recollect.server.openai.errors import Ignored, RefusedRequestError, Temperature
from recollect.server.openai.files import file_id
from recollect.server.openai.models import chosen

if TYPE_CHECKING:
    from starlette.requests import Request

    from recollect.llm.base import ChatModel
    from recollect.model import ShownPassage
    from recollect.pipeline.answering import AskEvent
    from recollect.server.openai.files import Made


# Where an answer ends that a request limits: at words to stop at, and at a number of tokens.


class Cut:
    """Ends one answer.

    Args:
        stop: It ends before the first of these.
        max_tokens: It has so many tokens at most; None: any number.
        count: Counts them.

    Attributes:
        reason: Why it ended: ``length`` where tokens ran out.
    """

    def __init__(self, *, stop: Sequence[str], max_tokens: int | None, count: Callable[[str], int]) -> None:
        self._stop = tuple(stop)
        self._max_tokens = max_tokens
        self._count = count
        self.reason: Literal["stop", "length"] = "stop"

    def applied(self, events: Iterator[AskEvent]) -> Iterator[AskEvent]:
        """The events of an answer, up to its end; what may begin a stop is held back until that is known."""
        if not self._stop and self._max_tokens is None:
            yield from events
            return
        heard = shown = ""
        for event in events:
            if isinstance(event, Answer):
                text = self._end(event.text)
                if text[len(shown) :]:
                    yield text[len(shown) :]
                yield self._fitting(_shortened(event, text))
            elif isinstance(event, str):
                heard += event
                text = self._end(heard)
                text = text if len(text) < len(heard) else heard[: len(heard) - self._held(heard)]
                if text[len(shown) :]:
                    yield text[len(shown) :]
                    shown = text
            elif isinstance(event, SearchReply) or len(shown) == len(heard):
                yield event

    def _fitting(self, answer: Answer) -> Answer:
        """The answer with as many of its passages as may be sent whole."""
        while answer.passages and self._end(content := spoken(answer)) != content:
            answer = replace(answer, passages=answer.passages[:-1])
        return answer

    def _end(self, text: str) -> str:
        text = text[: min((at for at in (text.find(one) for one in self._stop) if at >= 0), default=len(text))]
        if self._max_tokens is not None and self._count(text) > self._max_tokens:
            self.reason = "length"
            lengths = range(len(text) + 1)
            text = text[: bisect_right(lengths, self._max_tokens, key=lambda length: self._count(text[:length])) - 1]
        return text

    def _held(self, text: str) -> int:
        beginnings = (length for one in self._stop for length in range(1, len(one)) if text.endswith(one[:length]))
        return max(beginnings, default=0)


def _shortened(answer: Answer, text: str) -> Answer:
    """An answer of which only the beginning is sent, with what belongs to that."""
    if text == answer.text:
        return answer
    return replace(
        answer,
        text=text,
        citations=tuple(one for one in answer.citations if f"[{one.marker}]" in text),
        passages=(),
        unsupported=tuple(
            one for one in answer.unsupported if one.end_offset is not None and one.end_offset <= len(text)
        ),
    )


#: Whoever asks; a conversation is remembered for those only who may write.
Asker = Annotated[Caller, Security(asking, scopes=["read"])]


_MOST_CHARACTERS = 100_000


_MOST_MESSAGES = 2_000


# A stream begins after so long at most: proxies give up on a server that sends no header for half a minute.
_HELD_BACK_SECONDS = 10.0


class Extension(SearchOptions):
    """What OpenAI's API has no words for; the SDK sends it as ``extra_body={"recollect": {…}}``."""

    footnotes: bool | None = Field(None, description="Whether the text lists what it cites; left out: as configured.")
    conversation: Name | None = Field(
        None, description="The conversation that question and answer are remembered in; left out: in none."
    )

    @model_validator(mode="after")
    def _placed_by_the_model(self) -> Extension:
        if self.collection or self.everywhere or self.session or self.with_:
            raise ValueError("where is searched is what the model's name says: COLLECTION, or * for everywhere")
        return self


class QuestionBody(Body):
    """What both ways to ask have in common; clients send more than is looked at."""

    model: Name
    stream: bool | None = False
    recollect: Extension | None = None
    tool_choice: str | dict[str, Any] | None = None
    temperature: Temperature = None

    moderation: Ignored = None
    parallel_tool_calls: Ignored = None
    prompt_cache_key: Ignored = None
    prompt_cache_options: Ignored = None
    prompt_cache_retention: Ignored = None
    safety_identifier: Ignored = None
    service_tier: Ignored = None
    store: Ignored = None
    top_p: Ignored = None
    user: Ignored = None


class Part(Body):
    """A part of a message."""

    # Parts have members that say nothing here: annotations of an earlier answer, cache hints.
    model_config = ConfigDict(extra="ignore", frozen=True)

    type: str
    text: str | None = Field(None, max_length=_MOST_CHARACTERS)
    refusal: str | None = Field(None, max_length=_MOST_CHARACTERS)


class Message(Body):
    """Something that was said, or an instruction."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Annotated[str, Field(max_length=_MOST_CHARACTERS)] | tuple[Part, ...] | None = None

    def said(self, param: str) -> str:
        """The message's text.

        Raises:
            RefusedRequestError: It is not text alone.
        """
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        for part in self.content:
            if part.type not in {"text", "input_text", "output_text", "refusal"}:
                raise RefusedRequestError(
                    f"Messages are text; {part.type!r} is not read here. Documents are ingested into a collection.",
                    param=param,
                    code="unsupported_content",
                )
        return "\n".join(part.text or part.refusal or "" for part in self.content)


#: A conversation, oldest first.
Messages = Annotated[tuple[Message, ...], Field(max_length=_MOST_MESSAGES)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a request wants its answer written.

    Attributes:
        stop: It ends before the first of these.
        max_tokens: It has so many tokens at most; None: any number.
        temperature: Of the language model; None: as configured.
    """

    stop: tuple[str, ...] = ()
    max_tokens: int | None = None
    temperature: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Something that a client asks.

    Attributes:
        text: The latest of the user's messages.
        history: What was said before.
        view: What is asked, and who asks.
        options: How passages are searched.
        model: What writes the answer; None: what is configured.
        conversation: What remembers it; None: nothing does.
        footnotes: Whether the text lists what it cites.
        manner: How the answer is to be written.
        cut: Ends it.
        prompt: The messages, where a chat program orders something to be made of them (`helpers`); None: it asks.
    """

    text: str
    history: tuple[Exchange, ...]
    view: View
    options: RetrievalOptions
    model: str | None
    conversation: str | None
    footnotes: bool
    manner: Manner
    cut: Cut
    prompt: tuple[ChatMessage, ...] | None

    def answered(self) -> Iterator[AskEvent]:
        """What `Conversation.ask` gives, up to where the request wants it to end; looks at the database."""
        return self.cut.applied(self._events())

    def _events(self) -> Iterator[AskEvent]:
        if self.prompt is not None:
            at = self.view.standpoint
            model = at.assembly.chat_model_of(self.model, temperature=self.manner.temperature)
            return helped(
                self.prompt, model, collection=", ".join(at.names) or at.collection, max_tokens=self.manner.max_tokens
            )
        conversation = Conversation(
            self.view,
            session=self.conversation,
            options=self.options,
            history=self.history or (None if self.conversation else ()),
            model=self.model,
            temperature=self.manner.temperature,
        )
        return conversation.ask(self.text)

    def searching(
        self,
        collections: Sequence[str],
        *,
        top_k: int | None,
        filters: Mapping[str, Any] | None,
        min_relevance: float | None,
    ) -> Question:
        """The same question, of these collections alone, with what is given of the options."""
        given = {"top_k": top_k, "filters": filters, "min_relevance": min_relevance}
        changes = {name: value for name, value in given.items() if value is not None}
        options = replace(self.options, **changes)  # type: ignore[arg-type]
        return replace(self, view=self.view.view(collections=collections, remotes=()), options=options)


async def question_of(
    caller: Caller,
    service: Service,
    model: str,
    messages: Sequence[Message],
    extension: Extension | None,
    *,
    param: str,
    manner: Manner,
) -> Question:
    """What a client asks.

    Args:
        caller: Who asks.
        service: What is asked.
        model: As the request names it.
        messages: The conversation so far. Instructions in it (``system``, ``developer``) change nothing: how answers
            are written is for whoever runs the server.
        extension: What OpenAI's API has no words for.
        param: What the request calls the messages.
        manner: How the answer is to be written.

    Raises:
        RefusedRequestError: There is no such model, or no question.
        OutOfBoundsError: The question is too long.
        PermissionDeniedError: The credential may not remember it.
    """
    text, history = _conversation(messages, param)
    prompt = is_helper_prompt(text)
    if not prompt:
        require_question(text)
    given = extension or Extension()
    if given.conversation is not None:
        caller.require("write")

    def seen() -> Question:
        choice = chosen(caller.view(service.rag), model)
        placed = given.model_copy(update={"everywhere": choice.collection is None, "collection": choice.collection})
        view = placed.of(caller.view(service.rag))
        return Question(
            text=text,
            history=history,
            view=view,
            options=placed.options(),
            model=choice.model,
            conversation=given.conversation,
            footnotes=view.config.server.footnotes if given.footnotes is None else given.footnotes,
            manner=manner,
            cut=Cut(stop=manner.stop, max_tokens=manner.max_tokens, count=view.standpoint.assembly.count_tokens),
            prompt=_as_prompt(messages, param) if prompt else None,
        )

    return await run_in_threadpool(seen)


def _conversation(messages: Sequence[Message], param: str) -> tuple[str, tuple[Exchange, ...]]:
    """The question, and the exchanges before it."""
    spoken = [(one.role, number, one) for number, one in enumerate(messages) if one.role in {"user", "assistant"}]
    turns = [
        (role, "\n".join(message.said(f"{param}.{number}.content") for _, number, message in together))
        for role, together in itertools.groupby(spoken, key=itemgetter(0))
    ]
    if turns and turns[-1][0] == "assistant" and messages[-1].role in {"tool", "function"}:
        # What called the tool asked nothing: the question is still the user's.
        turns.pop()
    if not turns or turns[-1][0] != "user" or not turns[-1][1].strip():
        raise RefusedRequestError(
            "The latest message must be the user's, and ask something.", param=param, code="invalid_value"
        )
    if re.search("[\0\ud800-\udfff]", turns[-1][1]):
        raise RefusedRequestError(
            "The question holds a character that no text has (NUL or a lone surrogate).",
            param=param,
            code="invalid_value",
        )
    exchanges = [
        Exchange(asked, without_additions(answered))
        for (role, asked), (_, answered) in itertools.pairwise(turns)
        if role == "user"
    ]
    return turns[-1][1], tuple(exchanges)


def _as_prompt(messages: Sequence[Message], param: str) -> tuple[ChatMessage, ...]:
    """The messages as a language model takes them."""
    return tuple(
        ChatMessage("system" if one.role == "developer" else one.role, said)
        for number, one in enumerate(messages)
        if one.role in {"system", "developer", "user", "assistant"} and (said := one.said(f"{param}.{number}.content"))
    )


async def primed_events(question: Question, service: Service) -> AsyncGenerator[AskEvent]:
    """What `Conversation.ask` gives, as it comes; whoever closes it ends the model.

    It returns once the model writes, or after some seconds: until then a failure has an HTTP status of its own.
    """
    events = service.streams.stream(question.answered)
    first = await anext(events)
    written = asyncio.ensure_future(anext(events))
    try:
        await asyncio.wait([written], timeout=_HELD_BACK_SECONDS)
        if written.done():
            written.result()
    except BaseException:
        written.cancel()
        await asyncio.wait([written])
        await events.aclose()
        raise

    async def all_of_them() -> AsyncGenerator[AskEvent]:
        async with aclosing(events):
            yield first
            yield await written
            async for event in events:
                yield event

    return all_of_them()


async def answer_of(question: Question, service: Service) -> tuple[Answer, SearchReply]:
    """The whole answer, and what the search found for it."""

    def whole() -> tuple[Answer, SearchReply]:
        *events, answer = question.answered()
        (found,) = (one for one in events if isinstance(one, SearchReply))
        assert isinstance(answer, Answer)
        return answer, found

    return await service.streams.run(whole)


# What answers cite and show, for programs (annotations) and for people (footnotes and passages in the text).


_HEADING = "Sources:"


_FOOTNOTES = re.compile(rf"\n\n{_HEADING}\n\n(?:- \[\d+\] [^\n]*(?:\n|\Z))+\Z")


_MARKER = re.compile(r"\[(\d+)\]")


_QUOTED_CHARACTERS = 200


# A line of a highlight, behind what makes it an item, a heading or a quotation. Rows of tables and indented code cannot
# be bold.
_LINE = re.compile(r"^( {0,3}(?:(?:[-*+•]|\d+[.)]|#{1,6}|>) +)*)([^\s|].*?)([ \t]*)$", re.MULTILINE)


_FENCE = re.compile(r"^ *(?:```|~~~)", re.MULTILINE)


class UrlCitationJson(TypedDict):
    """A citation, as OpenAI's chat completions tell what was found in the web."""

    start_index: int
    end_index: int
    title: str
    url: str


class ChatAnnotationJson(TypedDict):
    """A marker in the text, and what it stands for."""

    type: str
    url_citation: UrlCitationJson


class FileCitationJson(TypedDict):
    """A citation, as OpenAI's responses tell what was found in files."""

    type: str
    index: int
    file_id: str
    filename: str


def markers(answer: Answer) -> Iterator[tuple[int, int, Citation | ShownPassage]]:
    """Where each marker is in `spoken`, and what it cites or shows."""
    cited = {citation.marker: citation for citation in answer.citations}
    for found in _MARKER.finditer(answer.text):
        citation = cited.get(int(found[1]))
        if citation is not None:
            yield found.start(), found.end(), citation
    end = len(answer.text)
    for passage in answer.shown_instead:
        text = _passage_text(passage)
        start = end + text.index("[")
        yield start, end + text.index("]") + 1, passage
        end += len(text)


def chat_annotations(answer: Answer, request: Request) -> list[ChatAnnotationJson]:
    """The markers of an answer, for chat completions; a document that is no web page is linked to here."""
    return [
        {
            "type": "url_citation",
            "url_citation": {
                "start_index": start,
                "end_index": end,
                "title": citation.source,
                "url": _address(citation, request),
            },
        }
        for start, end, citation in markers(answer)
        if citation.server is None or _is_address(citation.source)
    ]


def file_annotations(answer: Answer, made: Made) -> list[FileCitationJson]:
    """The markers of an answer, for responses.

    Args:
        answer: Whose markers.
        made: The files that the documents it cites were made from.
    """
    return [
        {
            "type": "file_citation",
            "index": start,
            "file_id": file_id(citation.document_id, made),
            "filename": citation.source,
        }
        for start, _, citation in markers(answer)
        if citation.server is None  # what another server has is no file here
    ]


def spoken(answer: Answer) -> str:
    """The text of an answer, with the passages that may help where it is none."""
    return answer.text + "".join(map(_passage_text, answer.shown_instead))


def additions(answer: Answer, *, footnotes: bool) -> str:
    """What is sent behind an answer's text: the passages that may help, or footnotes for what it cites.

    Args:
        answer: Whose.
        footnotes: Whether footnotes are wanted; passages are part of the content and always sent.
    """
    lines = [f"- [{one.marker}] {_place(one, answer)}" for one in answer.citations] if footnotes else []
    notes = f"\n\n{_HEADING}\n\n" + "\n".join(lines) if lines else ""
    return spoken(answer)[len(answer.text) :] + notes


def without_additions(text: str) -> str:
    """An earlier answer that a client gives back, as it was written, without passages and footnotes."""
    first = text.partition("\n\n")[0]
    return first if first in OFFERS.values() else _FOOTNOTES.sub("", text)


def _passage_text(passage: ShownPassage) -> str:
    """A passage as people read it: its number, where it is, and its text as a quote with the highlights in bold."""
    text, done = "", beginning(passage)
    for one in passage.highlights:
        start, end = one.start_offset - passage.start_offset, one.end_offset - passage.start_offset
        text += passage.text[done:start]
        text += passage.text[start:end] if _is_code(passage.text, start, end) else _bold(passage.text[start:end])
        done = end
    lines = (text + passage.text[done:]).strip("\n").splitlines()
    quote = "\n".join(f"> {line}".rstrip() for line in lines)
    return f"\n\n[{passage.marker}] {_plain(_where(passage))}\n\n{_without_links(quote)}"


def _bold(text: str) -> str:
    return _LINE.sub(lambda line: f"{line[1]}**{line[2].replace('**', '')}**{line[3]}", text)


def _is_code(text: str, start: int, end: int) -> bool:
    """Whether characters of a text stand within a fence of code, or hold one."""
    return bool(_FENCE.search(text, start, end)) or len(_FENCE.findall(text[:start])) % 2 == 1


def _address(citation: Citation | ShownPassage, request: Request) -> str:
    if _is_address(citation.source):
        return citation.source
    return str(request.base_url.replace(path=f"/v1/documents/{citation.document_id}"))


def _is_address(source: str) -> bool:
    return source.startswith(("https://", "http://"))


def _where(one: Citation | ShownPassage) -> str:
    where = [one.source if one.server is None else f"{one.source} ({one.server})"]
    if one.section:
        where.append(one.section)
    if one.page:
        last = one.last_page if isinstance(one, Citation) else None
        where.append(f"p. {one.page}" if last in {None, one.page} else f"pp. {one.page}-{last}")
    return ", ".join(where)


def _place(citation: Citation, answer: Answer) -> str:
    shown = _plain(_where(citation))
    quote = _plain(citation.quote)
    if quote in _plain(answer.text):
        return shown
    return f"{shown}: “{quote[:_QUOTED_CHARACTERS]}{'…' if len(quote) > _QUOTED_CHARACTERS else ''}”"


def _plain(text: str) -> str:
    """One line without links and images."""
    return _without_links(" ".join(text.split())).replace("`", "'")


def _without_links(text: str) -> str:
    """Without links, images and HTML: what a document says is not fetched by whoever shows it."""
    return text.replace("](", "] (").replace("][", "] [").replace("![", "! [").replace("<", "‹")


# Prompts that chat programs send by themselves about a conversation: for its title, its tags, questions that follow.
#
# They ask for nothing that documents say, so a language model answers them without a search. Open WebUI, LibreChat
# and others word them differently; what they have in common is that they order something to be made of a
# conversation.


# Where a prompt begins to quote a conversation: a heading, a tag, or the first line of a speaker.
_QUOTED = re.compile(
    r"^[ \t#*>]*(?:conversation|chat history|chat|messages|transcript)[ \t*]*:[ \t*]*$"
    r"|<(?:chat_history|conversation|chat|messages|transcript)>"
    r"|^[ \t#*>-]*(?:user|human)[ \t*]*:",
    re.IGNORECASE | re.MULTILINE,
)


_ORDER = re.compile(
    r"^\s*(?:#+ *task\b|(?:please |you are |based on |given )?.{0,200}?"
    r"\b(?:generate|create|suggest|provide|analy[sz]e|summari[sz]e|write|give|determine|categori[sz]e|name|return)\b)",
    re.IGNORECASE | re.DOTALL,
)


_WANTED = re.compile(
    r"\b(?:titles?|tags?|follow[- ]?ups?|summary|summari[sz]\w+|topics?|emojis?|search quer(?:y|ies)|autocompletion)\b",
    re.IGNORECASE,
)


# The same where the conversation stands before it in messages of its own.
_OF_THIS = re.compile(
    r"\b(?:title|name|tags?|summary|follow[- ]?up questions?)\b[^.?!\n]{0,80}\b(?:this|our|the above) "
    r"(?:conversation|chat|dialogue)\b\s*(?:[.,;:!]|$)",
    re.IGNORECASE | re.MULTILINE,
)


_SAID = re.compile(r"^[ \t#*>-]*(?:user|human)[ \t*]*:[ \t*]*(.+)$", re.IGNORECASE | re.MULTILINE)


_EXAMPLE = re.compile(r"\{[^{}]{1,1000}\}")


_TITLE_WORDS = 6


# A document that somebody pastes is no prompt of a program.
_MOST_ORDER_CHARACTERS = 6_000


def is_helper_prompt(text: str) -> bool:
    """Whether a message orders something to be made of a conversation, in place of asking the documents."""
    quoted = _QUOTED.search(text)
    order = text[: quoted.start()] if quoted else text
    if len(order) > _MOST_ORDER_CHARACTERS or not _ORDER.match(order):
        return False
    return bool(_WANTED.search(order)) if quoted else bool(_OF_THIS.search(order))


def helped(
    messages: Sequence[ChatMessage], model: ChatModel | None, *, collection: str, max_tokens: int | None
) -> Iterator[AskEvent]:
    """The answer to a helper prompt, in the events of any answer; it cites nothing.

    Args:
        messages: The conversation; the last one is the prompt.
        model: Writes it; None: it is made of the prompt's own words.
        collection: Which the search would have looked into.
        max_tokens: Of the answer, at most; None: as the model has it.

    Raises:
        ProviderError: The model failed.
    """
    prompt = messages[-1].content
    yield SearchReply(query=prompt, collection=collection, mode="hybrid", results=(), timings_ms={})
    if model is None:
        said = _without_model(messages)
        yield said
        yield Answer(question=prompt, text=said, outcome="answer", citations=())
        return
    text, usage = "", None
    for item in iterate(model.stream(messages, max_tokens=max_tokens)):
        if isinstance(item, ChatUsage):
            usage = TokenUsage(
                input_tokens=item.input_tokens, output_tokens=item.output_tokens, estimated=item.estimated
            )
        else:
            text += item
            yield item
    yield Answer(question=prompt, text=text, outcome="answer", citations=(), model=model.model_name, usage=usage)


def _without_model(messages: Sequence[ChatMessage]) -> str:
    """A title of the conversation's first words; in the form of the prompt's example, whose lists stay empty."""
    prompt = messages[-1].content
    said = _SAID.search(prompt)
    first = said[1] if said else next((one.content for one in messages[:-1] if one.role == "user"), "")
    title = " ".join(first.split()[:_TITLE_WORDS]).rstrip(".,;:?!")
    quoted = _QUOTED.search(prompt)
    order = prompt[: quoted.start()] if quoted else prompt
    for example in _EXAMPLE.findall(order):
        try:
            form = json.loads(example)
        except ValueError:
            continue
        return json.dumps({name: title if isinstance(value, str) else [] for name, value in form.items()})
    wants_title = re.search(r"\b(?:title|name|summar\w+|topic)", order, re.IGNORECASE)
    return title if wants_title else ""
