"""Which models are used: ``[rag.embedding]``, ``[rag.reranking]`` and ``[rag.answer]``."""

from __future__ import annotations

from typing import Literal, get_args

import platformdirs
from pydantic import Field

from recollect.config.sections import Folder, ProviderSection


class EmbeddingConfig(ProviderSection):
    """``[rag.embedding]``: which model turns text into vectors."""

    provider: Literal[
        "local", "hashing", "openai", "cohere", "bedrock", "voyage", "google", "huggingface", "ollama"
    ] = Field("local", description="Whose model; hashing is a fake without one.")
    model: str | None = Field(
        None,
        description="As the provider names it, for local a directory too; by default the provider's default, for "
        "local sentence-transformers/all-MiniLM-L6-v2.",
    )
    query_model: str | None = Field(
        None, description="Another model of the same space that embeds questions, where a provider has such."
    )
    dimensions: int | None = Field(
        None, ge=1, le=4000, description="The length of a vector; by default the model's, which must be known."
    )
    truncate: bool = Field(
        False, description="Whether longer vectors are cut to `dimensions`: for Matryoshka models that are not known."
    )
    parallel: int = Field(4, ge=1, le=64, description="Requests that are under way at once.")
    batch_size: int | None = Field(None, ge=1, description="Texts of a request at most; by default the provider's.")
    batch_tokens: int | None = Field(None, ge=1, description="Tokens of a request at most; by default the provider's.")
    precision: Literal["int8", "fp32"] = Field("int8", description="Numeric format of the local model.")
    threads: int | None = Field(None, ge=1, description="Threads of the local model; by default one a core.")
    model_dir: Folder = Field(
        default_factory=lambda: platformdirs.user_cache_path("recollect") / "models",
        description="Where fetched and built models are kept.",
    )
    cache: bool = Field(True, description="Keep embeddings in the store, so that equal text is embedded once.")
    keep_previous_days: int | None = Field(
        30,
        ge=0,
        description="Days for which the vectors of a collection's previous model are kept for `reembed --rollback`; "
        "null: until `reembed --drop`.",
    )
    token_vectors: bool = Field(
        False, description="Whether new collections store token vectors, for late_interaction; at most 4 KB a chunk."
    )


class RerankingConfig(ProviderSection):
    """``[rag.reranking]``: a provider's model that orders what was found; `retrieval.rerank` names what else can."""

    provider: Literal["none", "local", "cohere", "bedrock", "voyage", "huggingface"] = Field(
        "none", description="Whose model orders results; none: `retrieval.rerank` says what does."
    )
    model: str | None = Field(
        None, description="As the provider names it, for local a cross-encoder's directory; by default its default."
    )
    timeout_seconds: float = Field(8.0, gt=0, description="The longest wait for one answer of the provider.")
    max_retries: int = Field(1, ge=0, le=20, description="How often a request that may succeed later is repeated.")
    search_price: float | None = Field(
        None,
        ge=0,
        description="Of a thousand searches, where the provider bills by them (Cohere, Bedrock), for the log of "
        "requests; by default unknown.",
    )
    candidates: int = Field(50, ge=1, le=1_000, description="Passages that the model sees.")
    top_k: int = Field(5, ge=1, le=1_000, description="Passages returned where a search does not say how many.")


_AnswerProvider = Literal["extractive", "openai", "ollama", "bedrock", "google", "anthropic"]
#: What can answer.
ANSWER_PROVIDERS: tuple[str, ...] = get_args(_AnswerProvider)


class AnswerConfig(ProviderSection):
    """``[rag.answer]``: extraction by default, a language model where one is configured."""

    provider: _AnswerProvider = Field(
        "extractive", description="extractive quotes sentences; the others ask a language model."
    )
    model: str | None = Field(None, description="As the provider names it; by default its default, where it has one.")
    api: Literal["responses", "chat"] | None = Field(
        None, description="For openai: its Responses API or chat completions; by default what the address speaks."
    )
    temperature: float | None = Field(
        None, ge=0, le=2, description="0 for the most repeatable answers; by default the model's own."
    )
    output_price: float | None = Field(
        None, ge=0, description="Of a million tokens that are written, for the log of requests; by default unknown."
    )
    passages: int = Field(10, ge=1, le=100, description="Passages that an answer may rest on.")
    top_k: int | None = Field(
        None, ge=1, le=100, description="Passages that a language model is shown at most; by default `passages`."
    )
    max_context_tokens: int | None = Field(
        None, ge=100, description="Tokens that it is shown at most; by default `context.token_budget`."
    )
    prompt: Folder | None = Field(
        None, description="A file that holds the prompt; by default the packaged one. See the how-to on answers."
    )
    prompts: dict[str, Folder] = Field(
        default_factory=dict, description="Such files by the name of the collection that is asked."
    )
    unsupported: Literal["mark", "remove", "retry", "refuse"] = Field(
        "mark",
        description="What becomes of sentences of a language model that the sources do not support: mark: they are "
        "shown as such; remove; retry: it is asked once more, then mark; refuse: passages replace the answer.",
    )
