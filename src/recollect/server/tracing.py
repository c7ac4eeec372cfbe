"""Traces of requests, searches, answers and calls of models, where OpenTelemetry is installed and set up.

The operator brings the SDK, an exporter, and how they are set up; without them the API makes spans that nobody sees.
No span holds a question, a text, a path or a credential.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from opentelemetry import propagate, trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from recollect.pipeline.assembly import Observer

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from recollect.model import Answer, SearchReply
    from recollect.model.requests import RequestRecord

_NANOSECONDS = 1_000_000

# The names that OpenTelemetry gives to what generative models do; they still move, so they stand here alone. Of the
# semantic conventions 1.36 and later: https://opentelemetry.io/docs/specs/semconv/gen-ai/
_OPERATION = "gen_ai.operation.name"
_PROVIDER = "gen_ai.provider.name"
_REQUEST_MODEL = "gen_ai.request.model"
_INPUT_TOKENS = "gen_ai.usage.input_tokens"
_OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
_ERROR_TYPE = "error.type"

#: What a request is called, by the kind that the log of requests gives it. The conventions know no reranking.
_OPERATIONS: Mapping[str, str] = {"embed": "embeddings", "answer": "chat", "rerank": "rerank"}

#: Providers whose name in the conventions is not the one in settings.
_PROVIDERS: Mapping[str, str] = {"bedrock": "aws.bedrock", "google": "gcp.gen_ai"}


class Tracing(Observer):
    """Makes spans. Safe to share between threads.

    Args:
        route_of: The template of the route that answered, for the names of spans.
        provider: Where spans go; None: the global one.
    """

    def __init__(self, route_of: Callable[[Scope], str], provider: TracerProvider | None = None) -> None:
        self._route_of = route_of
        self._tracer = trace.get_tracer("recollect", tracer_provider=provider)

    def around(self, app: ASGIApp) -> ASGIApp:
        """An application around another that makes a span of each request, of the caller's trace if it brings one."""

        async def traced(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            method = scope["method"]
            carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            with self._tracer.start_as_current_span(
                "request",
                context=propagate.extract(carrier),
                kind=SpanKind.SERVER,
                record_exception=False,
                set_status_on_exception=False,
            ) as span:

                async def tell(message: Message) -> None:
                    if message["type"] == "http.response.start":
                        status = message["status"]
                        span.set_attribute("http.response.status_code", status)
                        if status >= 500:
                            span.set_status(Status(StatusCode.ERROR))
                    await send(message)

                try:
                    await app(scope, receive, tell)
                finally:
                    route = self._route_of(scope)
                    span.update_name(f"{method} {route}")
                    span.set_attributes({"http.request.method": method, "http.route": route})

        return traced

    @contextmanager
    def searching(self) -> Iterator[None]:
        """A span for the time of a search; calls of models within it are its children."""
        # Without what an error says, which may be what was asked.
        with self._tracer.start_as_current_span(
            "search", record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield
            except Exception as exc:
                span.set_status(Status(StatusCode.ERROR))
                span.set_attribute(_ERROR_TYPE, type(exc).__name__)
                raise

    def searched(self, reply: SearchReply) -> None:
        """What the search did, and how long each stage took."""
        span = trace.get_current_span()
        span.set_attributes(
            {
                "recollect.search.mode": reply.mode,
                "recollect.search.cached": reply.cached,
                "recollect.search.results": len(reply.results),
                **_stages("recollect.search", reply.timings_ms),
            }
        )

    def answered(self, answer: Answer) -> None:
        """A span of an answer that is written, after its search."""
        own = {stage: ms for stage, ms in answer.timings_ms.items() if not stage.startswith("search_")}
        self._past(
            "answer",
            own.get("total", sum(own.values())),
            {
                "recollect.answer.mode": "extractive" if answer.model is None else "generated",
                "recollect.answer.outcome": answer.outcome,
                "recollect.answer.citations": len(answer.citations),
                **_stages("recollect.answer", own),
            },
        )

    def requested(self, record: RequestRecord) -> None:
        """A span of a call of a model, as the conventions for generative models name it."""
        operation = _OPERATIONS[record.kind]
        attributes: dict[str, str | int] = {
            _OPERATION: operation,
            _PROVIDER: _PROVIDERS.get(record.provider, record.provider),
            _REQUEST_MODEL: record.model,
            _INPUT_TOKENS: record.input_tokens,
            _OUTPUT_TOKENS: record.output_tokens,
        }
        if record.error is not None:
            attributes[_ERROR_TYPE] = record.error
        self._past(
            f"{operation} {record.model}",
            record.milliseconds,
            attributes,
            kind=SpanKind.CLIENT,
            failed=record.error is not None,
        )

    def _past(
        self,
        name: str,
        milliseconds: float,
        attributes: Mapping[str, str | int | float | bool],
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        failed: bool = False,
    ) -> None:
        """A span of what has just ended."""
        ended = time.time_ns()
        span = self._tracer.start_span(
            name, kind=kind, attributes=attributes, start_time=ended - int(milliseconds * _NANOSECONDS)
        )
        if failed:
            span.set_status(Status(StatusCode.ERROR))
        span.end(ended)


def _stages(prefix: str, timings_ms: Mapping[str, float]) -> dict[str, float]:
    return {f"{prefix}.{stage}_ms": round(milliseconds, 3) for stage, milliseconds in timings_ms.items()}
