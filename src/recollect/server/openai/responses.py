"""``/v1/responses``: a question about a collection, with what was searched for it; whole or as it is written."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from typing import Any, Literal

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from typing_extensions import TypedDict

from recollect.model import Answer, SearchReply, TokenUsage
from recollect.model.record import json_of
from recollect.operations.values import Name
from recollect.replies.retrieval import shown_answer
from recollect.server.admission import Service
from recollect.server.bodies import Body
from recollect.server.caller import Caller
from recollect.server.dependencies import Asking
from recollect.server.openai.asking import (
    Asker,
    Extension,
    Manner,
    Message,
    Part,
    Question,
    QuestionBody,
    additions,
    answer_of,
    file_annotations,
    primed_events,
    question_of,
)
from recollect.server.openai.errors import (
    Ignored,
    MostTokens,
    RefusedRequestError,
    error_json,
    require_text,
    require_unforced,
    resource,
)
from recollect.server.openai.file_searches import FileSearchTool, read_filters, result_json, vector_store
from recollect.server.openai.files import Made, made_from
from recollect.server.searches import while_connected
from recollect.server.sse import documented_events, frame_stream

router = resource()

_RESULTS = "file_search_call.results"

# What the ids of a response's items begin with.
_SEARCH, _MESSAGE = "fs_", "msg_"
_TOOL: TypeAdapter[FileSearchTool] = TypeAdapter(FileSearchTool)


class Item(Body):
    """A message, or something else that a response gave, which says nothing here."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    type: str | None = None
    id: str | None = None
    role: Literal["system", "developer", "user", "assistant", "tool", "function"] | None = None
    content: str | tuple[Part, ...] | None = None


class TextOptions(Body):
    """The form of the answer."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    format: dict[str, Any] | None = None


class ConversationReference(Body):
    """A conversation that question and answer are remembered in."""

    id: Name


class ResponsesBody(QuestionBody):
    """A question, with the conversation before it."""

    input: str | tuple[Item, ...] = Field(max_length=100_000)
    include: tuple[str, ...] | None = None
    tools: tuple[dict[str, Any], ...] | None = Field(None, max_length=128)
    conversation: Name | ConversationReference | None = None

    text: TextOptions | None = None
    background: bool | None = None
    previous_response_id: str | None = None
    prompt: dict[str, Any] | None = None
    top_logprobs: int | None = None
    metadata: dict[str, str] | None = None
    max_output_tokens: MostTokens = None

    access_programs: Ignored = None
    background_options: Ignored = None
    context_management: Ignored = None
    image: Ignored = None
    instructions: Ignored = None
    max_tool_calls: Ignored = None
    reasoning: Ignored = None
    stream_options: Ignored = None
    truncation: Ignored = None

    def require_possible(self) -> None:
        """Refuse what would be answered otherwise than it is asked.

        Raises:
            RefusedRequestError: Something is asked for that is not done here.
        """
        if self.previous_response_id is not None:
            raise RefusedRequestError(
                "Responses are not kept: send what was said before as input, or name a conversation.",
                param="previous_response_id",
            )
        if self.background:
            raise RefusedRequestError("Answers are not made in the background: use stream.", param="background")
        if self.prompt is not None:
            raise RefusedRequestError("There are no stored prompts: [rag.answer] prompt is configured.", param="prompt")
        if self.top_logprobs or "message.output_text.logprobs" in (self.include or ()):
            raise RefusedRequestError("Probabilities of tokens are not known here.", param="top_logprobs")
        if self.text is not None:
            require_text(self.text.format, param="text.format")
        require_unforced(self.tool_choice)

    def messages(self) -> list[Message]:
        """The conversation so far."""
        if isinstance(self.input, str):
            return [Message(role="user", content=self.input)]
        said = []
        for item in self.input:
            if item.type == "item_reference":
                if not (item.id or "").startswith((_MESSAGE, _SEARCH)):
                    raise RefusedRequestError("Items are not kept: send them whole, with store false.", param="input")
                if str(item.id).startswith(_MESSAGE):
                    # The Vercel AI SDK refers to what a reply had: an answer was here, whose text nobody knows.
                    said.append(Message(role="assistant"))
            elif item.role is not None and item.type in {None, "message"}:
                said.append(Message(role=item.role, content=item.content))
        return said

    def extension(self) -> Extension | None:
        """What OpenAI's API has no words for, with the conversation for which it has."""
        if self.conversation is None:
            return self.recollect
        name = self.conversation if isinstance(self.conversation, str) else self.conversation.id
        return (self.recollect or Extension()).model_copy(update={"conversation": name})

    def search(self) -> FileSearchTool | None:
        """The tool that says where is searched; None: where the model says. Other tools are not called."""
        found = [one for one in self.tools or () if one.get("type") == "file_search"]
        if len(found) > 1:
            raise RefusedRequestError("One file_search tool names all vector stores.", param="tools")
        try:
            return _TOOL.validate_python(found[0]) if found else None
        except ValidationError as exc:
            # Of the tools only this one is read, so only this one is checked.
            raise RequestValidationError([{**one, "loc": ("tools", *one["loc"])} for one in exc.errors()]) from exc


class ResponseJson(TypedDict):
    """An answer as OpenAI's API has it; `recollect` is what `/v1/ask` replies."""

    id: str
    object: Literal["response"]
    created_at: int
    completed_at: int | None
    status: Literal["in_progress", "completed", "incomplete", "failed"]
    error: dict[str, Any] | None
    incomplete_details: dict[str, str] | None
    instructions: None
    metadata: dict[str, str]
    model: str
    output: list[dict[str, Any]]
    parallel_tool_calls: bool
    previous_response_id: None
    conversation: dict[str, str] | None
    store: bool
    temperature: float | None
    text: dict[str, Any]
    tool_choice: str
    tools: list[dict[str, Any]]
    top_p: None
    truncation: str
    usage: dict[str, Any] | None
    generated_by: str | None
    """The language model that wrote it; null: it is quoted from documents."""
    recollect: Answer | None


@router.post(
    "/responses",
    summary="Answer a question as OpenAI's responses do",
    response_model=ResponseJson,
    responses={200: {"content": documented_events()}},
)
async def responses(
    body: ResponsesBody, caller: Asker, service: Asking, request: Request
) -> Response | Mapping[str, Any]:
    """From the collection that `model` names, or the vector stores of a `file_search` tool, with citations.

    With `include: ["file_search_call.results"]` the passages found are among the output. Nothing is remembered, unless
    `conversation` says where.
    """
    body.require_possible()
    question = await _question(body, caller, service)
    if body.stream:
        events = await primed_events(question, service)
        return frame_stream(_frames(events, _Reply(body, question)))
    answer, found = await while_connected(request, answer_of(question, service))
    reply = _Reply(body, question)
    reply.searched(found, await _made_from(found, question))
    reply.answered(answer)
    return reply.json()


async def _question(body: ResponsesBody, caller: Caller, service: Service) -> Question:
    manner = Manner(max_tokens=body.max_output_tokens, temperature=body.temperature)
    question = await question_of(
        caller, service, body.model, body.messages(), body.extension(), param="input", manner=manner
    )
    tool = body.search()
    if tool is None:
        return question
    here = question.view.view(as_of=None)
    names = await run_in_threadpool(lambda: [vector_store(here, one).name for one in tool.vector_store_ids])
    threshold = None if tool.ranking_options is None else tool.ranking_options.score_threshold
    return question.searching(
        names,
        top_k=tool.max_num_results,
        filters=read_filters(tool.filters, param="tools.filters"),
        min_relevance=threshold,
    )


async def _made_from(found: SearchReply, question: Question) -> Made:
    """The files that the documents were made from which a search found."""
    return await run_in_threadpool(made_from, question.view, [one.document_id for one in found.results])


class _Reply:
    """The response while it is made: what each of its events tells of it.

    Args:
        body: What was asked for.
        question: The same as it was understood.
    """

    def __init__(self, body: ResponsesBody, question: Question) -> None:
        self._body = body
        self.question = question
        self._number = 0
        self._created = int(time.time())
        self._id = f"resp_{secrets.token_hex(16)}"
        self._error: dict[str, Any] | None = None
        self._answer: Answer | None = None
        self._made: Made = {}
        self.call: dict[str, Any] = {
            "id": f"{_SEARCH}{secrets.token_hex(16)}",
            "type": "file_search_call",
            "status": "in_progress",
            "queries": [],
            "results": None,
        }
        self.message: dict[str, Any] = {
            "id": f"{_MESSAGE}{secrets.token_hex(16)}",
            "type": "message",
            "role": "assistant",
            "status": "in_progress",
            "content": [],
        }
        self._output: list[dict[str, Any]] = []

    def searched(self, found: SearchReply, made: Made) -> None:
        """The search is done; ``made`` are the files that the documents found were made from."""
        self._made = made
        with_results = _RESULTS in (self._body.include or ())
        self.call |= {
            "status": "completed",
            "queries": [found.query],
            "results": [result_json(one, made) for one in found.results] if with_results else None,
        }
        self._output = [self.call]

    def answered(self, answer: Answer) -> str:
        """The answer is there; gives what is sent behind its text."""
        self._answer = answer
        behind = additions(answer, footnotes=self.question.footnotes)
        part = {**text_part(answer.text + behind), "annotations": file_annotations(answer, self._made)}
        self.message |= {"status": "completed", "content": [part]}
        self._output = [self.call, self.message]
        return behind

    def failed(self, exc: Exception) -> Mapping[str, Any]:
        """It failed; gives what is told of that."""
        told = error_json(exc)[1]["error"]
        limited = told["type"] == "rate_limit_error"
        self._error = {"code": "rate_limit_exceeded" if limited else "server_error", "message": told["message"]}
        return told

    def event(self, kind: str, **data: object) -> bytes:
        """One event of the stream."""
        told = json.dumps(
            {"type": kind, "sequence_number": self._number, **data}, ensure_ascii=False, separators=(",", ":")
        )
        self._number += 1
        return f"event: {kind}\ndata: {told}\n\n".encode("utf-8", "replace")

    def json(self) -> ResponseJson:
        """The response as it is by now."""
        answer = self._answer
        cut_short = answer is not None and self.question.cut.reason == "length"
        status: Literal["in_progress", "completed", "incomplete"] = "in_progress" if answer is None else "completed"
        status = "incomplete" if cut_short else status
        conversation = self.question.conversation
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "completed_at": None if answer is None else int(time.time()),
            "status": status if self._error is None else "failed",
            "error": self._error,
            "incomplete_details": {"reason": "max_output_tokens"} if cut_short else None,
            "instructions": None,
            "metadata": dict(self._body.metadata or {}),
            "model": self._body.model,
            "output": self._output,
            "parallel_tool_calls": False,
            "previous_response_id": None,
            "conversation": None if conversation is None else {"id": conversation},
            "store": False,
            "temperature": self._body.temperature,
            "text": {"format": {"type": "text"}},
            "tool_choice": "auto",
            "tools": [one for one in self._body.tools or () if one.get("type") == "file_search"],
            "top_p": None,
            "truncation": "disabled",
            "usage": None if answer is None else _usage(answer.usage),
            "generated_by": None if answer is None else answer.model,
            "recollect": None if answer is None else json_of(shown_answer(answer)),
        }


def text_part(text: str) -> dict[str, Any]:
    """The text of a message."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


async def _frames(events: AsyncGenerator[Any], reply: _Reply) -> AsyncGenerator[bytes]:
    async with aclosing(events):
        try:
            yield reply.event("response.created", response=reply.json())
            yield reply.event("response.in_progress", response=reply.json())
            async for piece in events:
                if isinstance(piece, SearchReply):
                    for frame in _of_search(piece, reply, await _made_from(piece, reply.question)):
                        yield frame
                elif isinstance(piece, str):
                    yield _delta(reply, piece)
                elif isinstance(piece, Answer):
                    for frame in _of_answer(piece, reply):
                        yield frame
        except Exception as exc:  # noqa: BLE001 - the status was sent long ago: the stream tells it
            told = reply.failed(exc)
            yield reply.event("error", code=told["code"], message=told["message"], param=told["param"])
            yield reply.event("response.failed", response=reply.json())


def _of_search(found: SearchReply, reply: _Reply, made: Made) -> Iterator[bytes]:
    place = {"output_index": 0, "item_id": reply.call["id"]}
    yield reply.event("response.output_item.added", output_index=0, item=reply.call)
    yield reply.event("response.file_search_call.in_progress", **place)
    yield reply.event("response.file_search_call.searching", **place)
    reply.searched(found, made)
    yield reply.event("response.file_search_call.completed", **place)
    yield reply.event("response.output_item.done", output_index=0, item=reply.call)
    yield reply.event("response.output_item.added", output_index=1, item=reply.message)
    yield reply.event("response.content_part.added", **_place(reply), part=text_part(""))


def _of_answer(answer: Answer, reply: _Reply) -> Iterator[bytes]:
    behind = reply.answered(answer)
    if behind:
        yield _delta(reply, behind)
    (part,) = reply.message["content"]
    for number, annotation in enumerate(part["annotations"]):
        yield reply.event(
            "response.output_text.annotation.added",
            **_place(reply),
            annotation_index=number,
            annotation=annotation,
        )
    yield reply.event("response.output_text.done", **_place(reply), text=part["text"], logprobs=[])
    yield reply.event("response.content_part.done", **_place(reply), part=part)
    yield reply.event("response.output_item.done", output_index=1, item=reply.message)
    response = reply.json()
    yield reply.event(f"response.{response['status']}", response=response)


def _delta(reply: _Reply, text: str) -> bytes:
    return reply.event("response.output_text.delta", **_place(reply), delta=text, logprobs=[])


def _place(reply: _Reply) -> dict[str, Any]:
    return {"output_index": 1, "content_index": 0, "item_id": reply.message["id"]}


def _usage(usage: TokenUsage | None) -> dict[str, Any]:
    used = usage or TokenUsage(input_tokens=0, output_tokens=0, requests=0)
    return {
        "input_tokens": used.input_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": used.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": used.input_tokens + used.output_tokens,
    }
