"""AWS Bedrock: embeddings by Cohere's and Amazon's models, reranking, and chat by Converse.

boto3 finds credentials and region as it does everywhere: environment, profile, container, instance role. A Bedrock API
key takes their place where one is configured.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from recollect.errors import ConfigurationError
from recollect.llm.base import ChatMessage, ChatUsage
from recollect.providers.catalogue import PROVIDERS
from recollect.providers.chat import ChatItem, Turn, stream_end, turns_of
from recollect.providers.connection import Fault, status_fault
from recollect.providers.embedder import EmbeddingReply, Purpose, RerankReply, estimated_searches
from recollect.providers.requesting import BatchLimits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from boto3 import Session
    from botocore.awsrequest import AWSRequest
    from botocore.client import BaseClient
    from botocore.exceptions import ClientError
    from botocore.loaders import Loader

    from recollect.providers.connection import Connection
    from recollect.providers.registry import ModelRequest


# What requests need of the SDK.
_SDK = ("boto3", "botocore.config", "botocore.eventstream", "botocore.loaders", "botocore.session")

_COHERE_V3 = ("cohere.embed-english-v3", "cohere.embed-multilingual-v3")
_TITAN_V1 = ("amazon.titan-embed-text-v1", "amazon.titan-embed-g1-text-02")
# Cohere's third generation takes 2,048 characters here, and refuses longer texts.
_COHERE_V3_LIMITS = BatchLimits(texts=96, text_tokens=682)
_COHERE_LIMITS = BatchLimits(texts=96, tokens=128_000)
_TITAN_LIMITS = BatchLimits(texts=1, text_tokens=8192)
_TOKEN_COUNT = "x-amzn-bedrock-input-token-count"

# What an error in the middle of a stream would have had as a status at its beginning.
_STATUSES = {
    "validationexception": 400,
    "accessdeniedexception": 403,
    "modeltimeoutexception": 408,
    "modelstreamerrorexception": 424,
    "throttlingexception": 429,
    "internalserverexception": 500,
    "serviceunavailableexception": 503,
}
_ADVICE = {
    "AccessDeniedException": "the account needs access to the model (Bedrock's model catalogue) and the role "
    "bedrock:InvokeModel, for chat bedrock:InvokeModelWithResponseStream",
    "ExpiredTokenException": "the credentials have expired: sign in again",
    "ResourceNotFoundException": "the region may not offer the model",
}


class _BedrockClient:
    """One model's connection. Sessions are slow to make and clients are quick, so the session is kept."""

    def __init__(self, request: ModelRequest) -> None:
        self._request = request

    @cached_property
    def _session(self) -> Session:
        from boto3 import Session
        from botocore.session import Session as CoreSession

        for name in _SECRET_LOGS:
            logging.getLogger(name).addFilter(_WITHOUT_SECRETS)
        core = CoreSession()
        core.register_component("data_loader", _loader())
        return Session(botocore_session=core)

    def _connected(self) -> BaseClient:
        from botocore import UNSIGNED
        from botocore.config import Config

        connection = self._request.connection
        region = connection.region or self._session.region_name
        if not region:
            raise Fault("unknown", "no region is known: set region, or AWS_REGION in the environment")
        patience = connection.timeout_seconds
        by_key = connection.api_key is not None
        client: BaseClient = self._session.client(
            "bedrock-runtime",
            region_name=region,
            endpoint_url=connection.base_url,
            config=Config(
                connect_timeout=patience,
                read_timeout=patience,
                retries={"total_max_attempts": 1},
                max_pool_connections=64,
                signature_version=UNSIGNED if by_key else None,
            ),
            # Or botocore looks for credentials that are not needed, on the network too.
            **({"aws_access_key_id": "none", "aws_secret_access_key": "none"} if by_key else {}),
        )
        if by_key:
            client.meta.events.register("before-sign.bedrock-runtime", _bearer(connection))
        return client

    @cached_property
    def _client(self) -> BaseClient:
        return self._connected()

    def _errors(self) -> AbstractContextManager[None]:
        return _errors_in_words(None if self._request.connection.api_key is not None else self._session)

    def _invoked(self, body: Mapping[str, Any]) -> tuple[Any, int | None]:
        """A reply's JSON, and the tokens that were read, where it tells."""
        with self._errors():
            reply = self._client.invoke_model(
                modelId=self._request.model,
                body=json.dumps(body),
                contentType="application/json",
                accept="application/json",
            )
            given = json.loads(reply["body"].read())
        tokens = reply["ResponseMetadata"]["HTTPHeaders"].get(_TOKEN_COUNT, "")
        return given, int(tokens) if tokens.isdigit() else None


def _bearer(connection: Connection) -> Any:  # noqa: ANN401 - whatever botocore calls
    # botocore's own signer refuses addresses without TLS, which test servers and proxies beside a program have.
    def add_key(request: AWSRequest, **_: object) -> None:
        request.headers["Authorization"] = f"Bearer {connection.key}"

    return add_key


@cache
def _loader() -> Loader:
    """Reads the descriptions of AWS's services, and keeps them: that is most of the time that a client takes."""
    from botocore.loaders import create_loader

    return create_loader()


class _WithoutSecrets(logging.Filter):
    """botocore writes whole requests and replies to its log, with tokens and signatures, where everything is logged."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno > logging.DEBUG


_WITHOUT_SECRETS = _WithoutSecrets()
_SECRET_LOGS = ("botocore.auth", "botocore.endpoint", "botocore.parsers")


class Embeddings(_BedrockClient):
    """Embeddings by ``InvokeModel``: Cohere's models take a batch, Amazon's one text."""

    sdk = _SDK

    def __init__(self, request: ModelRequest) -> None:
        super().__init__(request)
        model = PROVIDERS["bedrock"].plain(request.model)
        self.space = f"bedrock/{model}"
        self._model = model
        if model.startswith(_COHERE_V3):
            self.limits = _COHERE_V3_LIMITS
        elif "cohere." in model:
            self.limits = _COHERE_LIMITS
        elif "titan-embed" in model:
            self.limits = _TITAN_LIMITS
        else:
            raise ConfigurationError(
                f"Embeddings of Bedrock come from Cohere's and Amazon's Titan models, for instance "
                f"'cohere.embed-v4:0' or 'amazon.titan-embed-text-v2:0', not {request.model!r}."
            )

    def embed(self, texts: Sequence[str], purpose: Purpose) -> EmbeddingReply:
        """See `EmbeddingBackend`."""
        if self.limits is _TITAN_LIMITS:
            return self._titan(texts[0])
        body: dict[str, Any] = {
            "texts": list(texts),
            "input_type": "search_query" if purpose == "query" else "search_document",
            "embedding_types": ["float"],
        }
        if self.limits is _COHERE_V3_LIMITS:
            body["truncate"] = "END"
        else:
            body |= {"truncate": "RIGHT", "output_dimension": self._request.dimensions}
        given, tokens = self._invoked(body)
        return EmbeddingReply(vectors=given["embeddings"]["float"], tokens=tokens)

    def _titan(self, text: str) -> EmbeddingReply:
        """Amazon's models embed questions and documents alike."""
        body: dict[str, Any] = {"inputText": text}
        if not self._model.startswith(_TITAN_V1):
            body |= {"dimensions": self._request.dimensions, "normalize": True}
        given, tokens = self._invoked(body)
        counted = given.get("inputTextTokenCount")
        return EmbeddingReply(vectors=[given["embedding"]], tokens=counted if isinstance(counted, int) else tokens)


class Reranking(_BedrockClient):
    """Reranking by ``InvokeModel``."""

    sdk = _SDK
    limits = BatchLimits(texts=1_000)

    def rerank(self, query: str, passages: Sequence[str]) -> RerankReply:
        """See `RerankBackend`."""
        given, tokens = self._invoked({"api_version": 2, "query": query, "documents": list(passages)})
        scores = [(one["index"], one["relevance_score"]) for one in given["results"]]
        # Its replies do not tell what they are billed as.
        return RerankReply(scores=scores, tokens=tokens, searches=estimated_searches(query, passages))


class Chat(_BedrockClient):
    """Chat by ``ConverseStream``. boto3 waits in its thread, so each stream is read in one of its own."""

    sdk = _SDK

    async def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int | None) -> AsyncIterator[ChatItem]:
        """See `ChatBackend`."""
        system, turns = turns_of(messages)
        asked: dict[str, Any] = {
            "modelId": self._request.model,
            "messages": [{"role": turn.role, "content": _content(turn)} for turn in turns],
        }
        if system:
            asked["system"] = [{"text": system}]
        settings = {"maxTokens": max_tokens, "temperature": self._request.temperature}
        given = {name: value for name, value in settings.items() if value is not None}
        if given:
            asked["inferenceConfig"] = given
        stream = _Stream(self._connected, self._errors, asked)
        async for item in items_of_thread(stream.items, stop=stream.stop):
            yield item


def _content(turn: Turn) -> list[dict[str, Any]]:
    shown = [
        {"image": {"format": one.mime_type.removeprefix("image/"), "source": {"bytes": one.data}}}
        for one in turn.pictures
    ]
    return [*shown, {"text": turn.text}]


class _Stream:
    """One answer, read in one thread and stopped from another."""

    def __init__(
        self,
        connect: Callable[[], BaseClient],
        errors: Callable[[], AbstractContextManager[None]],
        asked: Mapping[str, Any],
    ) -> None:
        self._connect = connect
        self._errors = errors
        self._asked = asked
        self._body: Any = None
        self._stopped = False

    def items(self) -> Iterator[ChatItem]:
        with self._errors():
            client = self._connect()
            try:
                reply = client.converse_stream(**self._asked)
                with closing(reply["stream"]) as events:
                    _require_event_stream(reply)
                    self._body = events._raw_stream
                    if not self._stopped:
                        yield from _items(events)
            finally:
                client.close()

    def stop(self) -> None:
        """Ends a wait for the next event: closing a connection does not wake a thread that reads from it."""
        self._stopped = True
        with suppress(Exception):
            self._body.shutdown()


def _require_event_stream(reply: Mapping[str, Any]) -> None:
    kind = reply["ResponseMetadata"]["HTTPHeaders"].get("content-type", "")
    if not kind.startswith("application/vnd.amazon.eventstream"):
        raise Fault("malformed", f"it sent no event stream but {kind or 'nothing'}")


def _items(events: Iterator[Mapping[str, Any]]) -> Iterator[ChatItem]:
    for event in events:
        if "contentBlockDelta" in event:
            # What the model thinks comes as another kind of delta, and is no part of its answer.
            yield event["contentBlockDelta"]["delta"].get("text", "")
        elif "messageStop" in event:
            yield stream_end(
                event["messageStop"]["stopReason"],
                stop={"end_turn", "stop_sequence"},
                length={"max_tokens", "model_context_window_exceeded"},
                filtered={"guardrail_intervened", "content_filtered"},
            )
        elif "metadata" in event:
            usage = event["metadata"].get("usage") or {}
            cached = usage.get("cacheReadInputTokens", 0) + usage.get("cacheWriteInputTokens", 0)
            yield ChatUsage(usage["inputTokens"] + cached, usage["outputTokens"])


@contextmanager
def _errors_in_words(session: Session | None) -> Iterator[None]:
    """What botocore raises, with advice, and without the credentials that some of AWS's messages repeat."""
    from botocore import eventstream, exceptions

    try:
        yield
    except exceptions.ClientError as exc:
        raise _fault(exc, _secrets(session)) from exc
    except (
        exceptions.NoCredentialsError,
        exceptions.PartialCredentialsError,
        exceptions.CredentialRetrievalError,
        exceptions.TokenRetrievalError,
        exceptions.SSOError,
    ) as exc:
        raise Fault("authentication", f"no usable AWS credentials: {exc}") from exc
    except (exceptions.ConnectTimeoutError, exceptions.ReadTimeoutError) as exc:
        raise Fault("timeout", retryable=True) from exc
    except exceptions.ConnectionError as exc:
        raise Fault("unreachable", type(exc).__name__, retryable=True) from exc
    except eventstream.ParserError as exc:
        raise Fault("malformed", f"an event is damaged ({type(exc).__name__})", retryable=True) from exc


def _fault(exc: ClientError, secrets: Sequence[str]) -> Fault:
    from botocore.exceptions import EventStreamError

    error = exc.response.get("Error", {})
    metadata = exc.response.get("ResponseMetadata", {})
    code = str(error.get("Code") or "")
    said = " ".join(str(error.get("Message") or "").split())
    detail = ": ".join(part for part in (code, said) if part)
    if code in _ADVICE:
        detail = f"{detail}; {_ADVICE[code]}"
    for secret in secrets:
        detail = detail.replace(secret, "***")
    if isinstance(exc, EventStreamError):
        return _status_fault(_STATUSES.get(code.lower(), 500), detail).in_the_stream()
    return _status_fault(metadata.get("HTTPStatusCode", 500), detail, metadata.get("HTTPHeaders"))


def _status_fault(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Fault:
    if status == 424:
        # The model failed, not the request.
        return Fault("server", detail, status=status, retryable=True)
    return status_fault(status, detail, headers)


def _secrets(session: Session | None) -> list[str]:
    credentials = None if session is None else session.get_credentials()
    if credentials is None:
        return []
    frozen = credentials.get_frozen_credentials()
    return [secret for secret in (frozen.secret_key, frozen.token, frozen.access_key) if secret]


# What can only be waited for in a thread, as an asynchronous iterator.


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Item(Generic[T]):
    value: T


async def items_of_thread(read: Callable[[], Iterator[T]], *, stop: Callable[[], None]) -> AsyncIterator[T]:
    """Items that a thread reads, as they come.

    Args:
        read: Iterated over in a thread of its own, to its end or until nobody wants more.
        stop: Called when nobody wants more: it makes a `read` that waits give up. Safe to call at any time.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[_Item[T] | BaseException | None] = asyncio.Queue()
    unwanted = threading.Event()

    def hand_over(item: _Item[T] | BaseException | None) -> None:
        try:
            loop.call_soon_threadsafe(queue.put_nowait, item)
        except RuntimeError:  # the loop is closed
            unwanted.set()

    def run() -> None:
        try:
            for value in read():
                hand_over(_Item(value))
                if unwanted.is_set():
                    return
        except BaseException as exc:  # noqa: BLE001 - raised where the items are awaited
            hand_over(exc)
        else:
            hand_over(None)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(run,), name="recollect-stream", daemon=True).start()
    try:
        while (item := await queue.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item.value
    finally:
        unwanted.set()
        stop()
