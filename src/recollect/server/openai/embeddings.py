"""``/v1/embeddings``."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import Request
from pydantic import Field
from typing_extensions import TypedDict

from recollect.context import estimate_tokens
from recollect.operations.values import Name, Text
from recollect.server.bodies import Body
from recollect.server.dependencies import Asking, Reader
from recollect.server.openai.errors import RefusedRequestError, resource
from recollect.server.openai.models import EVERYWHERE, place_of, unknown_model

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider, Vectors
    from recollect.pipeline import View

router = resource()

_MOST_TEXTS = 2_048
_Input = Annotated[Text, Field(min_length=1, max_length=1_000_000)]


class EmbeddingsBody(Body):
    """Texts to be embedded."""

    input: _Input | Annotated[tuple[_Input, ...] | tuple[int, ...] | tuple[tuple[int, ...], ...], Field(min_length=1)]
    model: Name = Field(description="A collection, whose model is meant, or the name of the configured model.")
    encoding_format: Literal["float", "base64"] | None = "float"
    dimensions: int | None = Field(None, ge=1, le=100_000)
    user: str | None = Field(None, description="Is not looked at.")
    input_type: Literal["document", "query"] = Field(
        "document", description="Whether the texts are to be found, or ask; of models that tell these apart."
    )

    def texts(self) -> list[str]:
        """What is to be embedded.

        Raises:
            RefusedRequestError: It is no text, or too much.
        """
        given = [self.input] if isinstance(self.input, str) else list(self.input)
        if len(given) > _MOST_TEXTS:
            raise RefusedRequestError(
                f"A request embeds {_MOST_TEXTS:,} texts at most, not {len(given):,}.",
                param="input",
                code="array_above_max_length",
            )
        texts = [one for one in given if isinstance(one, str)]
        if len(texts) < len(given):
            raise RefusedRequestError(
                "Tokens are of another model's vocabulary: send texts. (LangChain: check_embedding_ctx_length=False.)",
                param="input",
                code="unsupported_value",
            )
        return texts


class EmbeddingJson(TypedDict):
    """The vector of a text."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingUsageJson(TypedDict):
    """How much was embedded; estimated, since models of this machine do not tell."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingListJson(TypedDict):
    """The vectors, in the order of the texts."""

    object: Literal["list"]
    data: list[EmbeddingJson]
    model: str
    usage: EmbeddingUsageJson


@router.post("/embeddings", summary="Embed texts as a collection's documents are embedded")
async def embeddings(body: EmbeddingsBody, caller: Reader, service: Asking, request: Request) -> EmbeddingListJson:
    """As floats, or in base64 (little-endian float32), which OpenAI's SDK asks for by itself."""
    return await service.searches.run_long(request, _embedded, caller, body)


def _embedded(caller: View, body: EmbeddingsBody) -> EmbeddingListJson:
    texts = body.texts()
    embedder = _embedder(caller, body.model)
    if body.dimensions not in {None, embedder.dimension}:
        raise RefusedRequestError(
            f"{embedder.model_name} gives vectors of {embedder.dimension} dimensions: leave dimensions out.",
            param="dimensions",
        )
    tokens = sum(map(estimate_tokens, texts))
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": index, "embedding": _encoded(vector, body.encoding_format)}
            for index, vector in enumerate(_vectors(embedder, texts, body.input_type))
        ],
        "model": embedder.model_name,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _embedder(view: View, name: str) -> EmbeddingProvider:
    assembly = view.standpoint.assembly
    for place in view.collections.each():
        if name in {place.name, place_of(place.name)}:
            return assembly.embedder_for(place)
    configured = assembly.embedder
    if name in {configured.model_name, view.config.embedding.model, view.config.collection, EVERYWHERE}:
        return configured
    raise unknown_model(view, name, configured.model_name)


def _vectors(embedder: EmbeddingProvider, texts: list[str], kind: str) -> list[Vectors]:
    if kind == "query":
        return [embedder.embed_query(text) for text in texts]
    return list(embedder.embed_documents(texts))


def _encoded(vector: Vectors, encoding: str | None) -> list[float] | str:
    if encoding == "base64":
        return base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")
    return [float(number) for number in vector]
