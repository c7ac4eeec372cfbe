"""Cohere: embeddings that tell documents from questions, and reranking."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from recollect.providers.connection import Connection, Fault, status_fault, tls_context
from recollect.providers.embedder import EmbeddingReply, Purpose, RerankReply, estimated_searches
from recollect.providers.requesting import BatchLimits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cohere import ApiMeta, ClientV2
    from cohere.core import ApiError
    from cohere.core.request_options import RequestOptions

    from recollect.providers.registry import ModelRequest

# What requests need of the SDK.
_SDK = ("cohere.client_v2", "cohere.core.parse_error")

COHERE_BASE_URL = "https://api.cohere.com"

# Models before the fourth generation have one length of vector, and refuse to be asked for another.
_ONE_LENGTH = ("-v2.0", "-v3.0")
_ONCE: RequestOptions = {"max_retries": 0}
_LONGEST_DETAIL = 500


def _client(connection: Connection) -> ClientV2:
    from cohere import ClientV2
    from httpx import Client

    return ClientV2(
        # Key and address must be named, or the SDK takes them from the environment, and sends one's key to another's.
        connection.key or "none",
        base_url=connection.base_url or COHERE_BASE_URL,
        httpx_client=Client(timeout=connection.timeout_seconds, verify=tls_context()),
        log_warning_experimental_features=False,
    )


class Embeddings:
    """Embeddings by ``/v2/embed``."""

    sdk = _SDK
    # The API takes 96 texts, and cuts each to what its model reads; a request of more than one model can read is slow.
    limits = BatchLimits(texts=96, tokens=128_000)

    def __init__(self, request: ModelRequest) -> None:
        self._request = request
        self.space = f"cohere/{request.model}"

    @cached_property
    def _client(self) -> ClientV2:
        return _client(self._request.connection)

    def embed(self, texts: Sequence[str], purpose: Purpose) -> EmbeddingReply:
        """See `EmbeddingBackend`."""
        options: dict[str, Any] = {}
        if not self._request.model.endswith(_ONE_LENGTH):
            options["output_dimension"] = self._request.dimensions
        with _errors_in_words():
            reply = self._client.embed(
                model=self._request.model,
                texts=list(texts),
                input_type="search_query" if purpose == "query" else "search_document",
                embedding_types=["float"],
                truncate="END",
                request_options=_ONCE,
                **options,
            )
            return EmbeddingReply(vectors=reply.embeddings.float_ or [], tokens=_billed(reply.meta))


class Reranking:
    """Reranking by ``/v2/rerank``."""

    sdk = _SDK
    # The API takes ten times as many, and advises against it.
    limits = BatchLimits(texts=1_000)

    def __init__(self, request: ModelRequest) -> None:
        self._request = request

    @cached_property
    def _client(self) -> ClientV2:
        return _client(self._request.connection)

    def rerank(self, query: str, passages: Sequence[str]) -> RerankReply:
        """See `RerankBackend`."""
        with _errors_in_words():
            reply = self._client.rerank(
                model=self._request.model, query=query, documents=list(passages), request_options=_ONCE
            )
            scores = [(one.index, one.relevance_score) for one in reply.results]
            told = _searches(reply.meta)
            searches = estimated_searches(query, passages) if told is None else told
            return RerankReply(scores=scores, tokens=_billed(reply.meta), searches=searches)


def _billed(meta: ApiMeta | None) -> int | None:
    """Tokens, where the reply tells; reranking is billed by searches, which are none."""
    tokens = meta.billed_units.input_tokens if meta is not None and meta.billed_units is not None else None
    return None if tokens is None else int(tokens)


def _searches(meta: ApiMeta | None) -> float | None:
    """What reranking is billed by: a search is a question with up to a hundred passages."""
    return meta.billed_units.search_units if meta is not None and meta.billed_units is not None else None


@contextmanager
def _errors_in_words() -> Iterator[None]:
    """What the SDK raises, without all the headers that it writes into its messages."""
    from cohere.core import ApiError
    from cohere.core.parse_error import ParsingError

    try:
        yield
    except ParsingError as exc:
        raise Fault("malformed", "it lacks what such a reply has", retryable=True) from exc
    except ApiError as exc:
        raise _fault(exc) from exc


def _fault(exc: ApiError) -> Fault:
    status = exc.status_code or 0
    if status < 400:
        # What came is no JSON.
        page = str(exc.body).lstrip().startswith("<")
        return Fault("malformed", "it sent a page" if page else "what it sent is no JSON", retryable=not page)
    body = exc.body
    said = getattr(body, "message", None) or (body.get("message") if isinstance(body, dict) else None) or body
    detail = " ".join(str(said or "").split())[:_LONGEST_DETAIL]
    if status == 498:
        return Fault("authentication", detail, status=status)
    return status_fault(status, detail, exc.headers)
