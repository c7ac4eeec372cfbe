"""``/v1/chat/completions``: a conversation about a collection, whole or as it is written."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Literal

from fastapi import Request
from pydantic import ConfigDict
from starlette.responses import Response
from typing_extensions import TypedDict

from recollect.model import Answer, TokenUsage
from recollect.model.record import json_of
from recollect.replies.retrieval import shown_answer
from recollect.server.bodies import Body
from recollect.server.dependencies import Asking
from recollect.server.openai.asking import (
    Asker,
    ChatAnnotationJson,
    Manner,
    Messages,
    Question,
    QuestionBody,
    additions,
    answer_of,
    chat_annotations,
    primed_events,
    question_of,
)
from recollect.server.openai.errors import (
    Ignored,
    MostTokens,
    RefusedRequestError,
    Stop,
    error_json,
    require_text,
    require_unforced,
    resource,
)
from recollect.server.searches import while_connected
from recollect.server.sse import documented_events, frame_stream

router = resource()

_DONE = b"data: [DONE]\n\n"


class StreamOptions(Body):
    """What a stream tells beside the text."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    include_usage: bool | None = False


class ChatCompletionBody(QuestionBody):
    """A conversation whose latest message is a question."""

    messages: Messages
    stream_options: StreamOptions | None = None

    n: int | None = None
    response_format: dict[str, Any] | None = None
    function_call: str | dict[str, Any] | None = None
    logprobs: bool | None = None
    modalities: tuple[str, ...] | None = None
    web_search_options: dict[str, Any] | None = None
    max_completion_tokens: MostTokens = None
    max_tokens: MostTokens = None
    stop: Stop = None

    audio: Ignored = None
    frequency_penalty: Ignored = None
    functions: Ignored = None
    logit_bias: Ignored = None
    metadata: Ignored = None
    prediction: Ignored = None
    presence_penalty: Ignored = None
    reasoning_effort: Ignored = None
    seed: Ignored = None
    tools: Ignored = None
    top_logprobs: Ignored = None
    verbosity: Ignored = None

    @property
    def manner(self) -> Manner:
        """How the answer is to be written."""
        stop = (self.stop,) if isinstance(self.stop, str) else self.stop or ()
        most = self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens
        return Manner(stop=stop, max_tokens=most, temperature=self.temperature)

    def require_possible(self) -> None:
        """Refuse what would be answered otherwise than it is asked.

        Raises:
            RefusedRequestError: Something is asked for that is not done here.
        """
        if self.n not in {None, 1}:
            raise RefusedRequestError("There is one answer to a question: leave n out.", param="n")
        if self.logprobs:
            raise RefusedRequestError("Probabilities of tokens are not known here.", param="logprobs")
        if set(self.modalities or ()) - {"text"}:
            raise RefusedRequestError("Answers are text.", param="modalities")
        if self.web_search_options is not None:
            raise RefusedRequestError("Documents are searched here, not the web.", param="web_search_options")
        require_text(self.response_format, param="response_format")
        require_unforced(self.tool_choice)
        require_unforced(self.function_call, param="function_call")


class UsageJson(TypedDict):
    """What the answer cost its language model; nothing where none was asked."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatMessageJson(TypedDict):
    """The answer."""

    role: Literal["assistant"]
    content: str
    refusal: None
    annotations: list[ChatAnnotationJson]


class ChoiceJson(TypedDict):
    """The one answer."""

    index: int
    message: ChatMessageJson
    finish_reason: Literal["stop", "length"]
    logprobs: None


class ChatCompletionJson(TypedDict):
    """An answer as OpenAI's API has it, and as `/v1/ask` has it."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChoiceJson]
    usage: UsageJson
    generated_by: str | None
    """The language model that wrote it; null: it is quoted from documents."""
    recollect: Answer


@router.post(
    "/chat/completions",
    summary="Answer a question as OpenAI's chat completions do",
    response_model=ChatCompletionJson,
    responses={200: {"content": documented_events()}},
)
async def chat_completions(
    body: ChatCompletionBody, caller: Asker, service: Asking, request: Request
) -> Response | Mapping[str, Any]:
    """From the collection that `model` names, with citations as annotations and as footnotes in the text.

    Without an exact answer the content is a sentence that says so and the passages that may help, with annotations.

    The messages before the latest are the conversation that it is understood with. Nothing is remembered, unless
    `recollect.conversation` says where.
    """
    body.require_possible()
    question = await question_of(
        caller, service, body.model, body.messages, body.recollect, param="messages", manner=body.manner
    )
    head = _Head(body.model)
    if body.stream:
        events = await primed_events(question, service)
        with_usage = body.stream_options is not None and bool(body.stream_options.include_usage)
        return frame_stream(_frames(events, question, head, request, with_usage=with_usage))
    answer, _ = await while_connected(request, answer_of(question, service))
    return _completion(answer, question, head, request)


class _Head:
    """What every piece of an answer says of itself."""

    def __init__(self, model: str) -> None:
        self.id = f"chatcmpl-{secrets.token_hex(12)}"
        self.created = int(time.time())
        self.model = model


def _completion(answer: Answer, question: Question, head: _Head, request: Request) -> ChatCompletionJson:
    message: ChatMessageJson = {
        "role": "assistant",
        "content": answer.text + additions(answer, footnotes=question.footnotes),
        "refusal": None,
        "annotations": chat_annotations(answer, request),
    }
    return {
        "id": head.id,
        "object": "chat.completion",
        "created": head.created,
        "model": head.model,
        "choices": [{"index": 0, "message": message, "finish_reason": question.cut.reason, "logprobs": None}],
        "usage": _usage(answer.usage),
        "generated_by": answer.model,
        "recollect": json_of(shown_answer(answer)),
    }


async def _frames(
    events: AsyncGenerator[Any], question: Question, head: _Head, request: Request, *, with_usage: bool
) -> AsyncGenerator[bytes]:
    unused: dict[str, Any] = {"usage": None} if with_usage else {}

    def chunk(delta: Mapping[str, Any], *, finish: str | None = None, **more: object) -> bytes:
        choice = {"index": 0, "delta": dict(delta), "logprobs": None, "finish_reason": finish}
        return _frame({**_chunk_head(head), "choices": [choice], **unused, **more})

    async with aclosing(events):
        try:
            yield chunk({"role": "assistant", "content": "", "refusal": None})
            async for piece in events:
                if isinstance(piece, str):
                    yield chunk({"content": piece})
                elif isinstance(piece, Answer):
                    if behind := additions(piece, footnotes=question.footnotes):
                        yield chunk({"content": behind})
                    if piece.citations or piece.passages:
                        yield chunk({"annotations": chat_annotations(piece, request)})
                    told = json_of(shown_answer(piece))
                    yield chunk({}, finish=question.cut.reason, generated_by=piece.model, recollect=told)
                    if with_usage:
                        yield _frame({**_chunk_head(head), "choices": [], "usage": _usage(piece.usage)})
            yield _DONE
        except Exception as exc:  # noqa: BLE001 - the status was sent long ago: the stream tells it
            yield _frame(error_json(exc)[1])


def _chunk_head(head: _Head) -> dict[str, Any]:
    return {"id": head.id, "object": "chat.completion.chunk", "created": head.created, "model": head.model}


def _frame(data: Mapping[str, Any]) -> bytes:
    told = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return b"data: " + told.encode("utf-8", "replace") + b"\n\n"


def _usage(usage: TokenUsage | None) -> UsageJson:
    used = usage or TokenUsage(input_tokens=0, output_tokens=0, requests=0)
    return {
        "prompt_tokens": used.input_tokens,
        "completion_tokens": used.output_tokens,
        "total_tokens": used.input_tokens + used.output_tokens,
    }
