"""What related systems call things, and what they are called here, for messages about names that do not exist."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any, TypeVar

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Familiar:
    """What has other names elsewhere.

    Attributes:
        names: Elsewhere; one with a section before it is of that section alone.
        setting: Here, below ``rag``; empty: no setting.
        arguments: What it is called as an argument: the first that a function has; empty: the setting's last part.
        note: What else has to be said, as a sentence.
    """

    names: tuple[str, ...]
    setting: str = ""
    arguments: tuple[str, ...] = ()
    note: str = ""

    @property
    def here(self) -> tuple[str, ...]:
        """The names of its arguments."""
        return self.arguments or ((self.setting.rpartition(".")[2],) if self.setting else ())


def _row(names: str, setting: str = "", arguments: str = "", note: str = "") -> Familiar:
    return Familiar(tuple(names.split()), setting, tuple(arguments.split()), note)


#: Everything that is known of, in the order of the page `docs/how-to/coming-from-another-system.md`.
FAMILIAR = (
    _row("default_top_k k topk n_results num_results max_results similarity_top_k limit", "retrieval.top_k"),
    _row("relevance_threshold min_relevance_score", "retrieval.min_relevance", note="It is a probability."),
    _row(
        "min_similarity min_similarity_score similarity_cutoff similarity_score_threshold score_threshold",
        "retrieval.similarity_threshold",
        "similarity_threshold min_similarity",
        note="It is a cosine.",
    ),
    _row("search_type search_mode retrieval_mode hybrid_search enable_hybrid use_hybrid", "retrieval.mode"),
    _row("alpha hybrid_alpha vector_weight semantic_weight", "retrieval.dense_weight"),
    _row("fetch_k num_candidates", "retrieval.candidates"),
    _row("rrf_constant", "retrieval.rrf_k"),
    _row(
        "enable_reranking enable_reranker use_reranker use_reranking rerank_enabled reranking_enabled reranker "
        "reranking.enabled",
        "retrieval.rerank",
        note='It is a reranker\'s name, and "none" for none.',
    ),
    _row("rerank_top_n rerank_top_k top_n", "reranking.top_k"),
    _row("lambda_mult mmr_diversity", arguments="mmr_lambda"),
    _row("where filter metadata_filter", arguments="filters metadata_filters"),
    _row("num_queries query_expansion", "retrieval.enhance.multi_query"),
    _row("use_hyde", "retrieval.enhance.hyde"),
    _row("chunk_size max_chunk_size", "chunking.size", "size max_size max_tokens window_size"),
    _row("chunk_overlap", "chunking.overlap"),
    _row("chunker chunking_strategy splitter text_splitter", "chunking.strategy", "strategy chunking"),
    _row(
        "sentence_detector sentence_splitter sentence_tokenizer",
        note="Sentences are found by the rules of a text's language: there is nothing to choose.",
    ),
    _row("embedding_model embed_model embedding_function", "embedding.model", "embedder model"),
    _row("embedding_provider", "embedding.provider"),
    _row("embedding_dim embedding_dims embedding_dimension vector_size dimension dim", "embedding.dimensions"),
    _row("embed_batch_size embedding_batch_size", "embedding.batch_size"),
    _row("cache_embeddings enable_embedding_cache embedding_cache", "embedding.cache"),
    _row("llm llm_model generation_model", "answer.model", "chat_model model"),
    _row("llm_provider", "answer.provider"),
    _row("model_name", "embedding.model"),
    _row("system_prompt prompt_template", "answer.prompt"),
    _row("token_limit context_tokens", "context.token_budget"),
    _row("api_base endpoint", "answer.base_url"),
    _row("timeout request_timeout", "answer.timeout_seconds"),
    _row(
        "backend storage_backend vector_backend vector_store vector_db",
        "storage.dsn",
        note="The store is PostgreSQL: one that comes along, or the server at that address.",
    ),
    _row("persist_directory persist_dir db_path storage_path storage_dir", "storage.data_dir"),
    _row("database_url db_url connection_string connection_uri postgres_url", "storage.dsn"),
    _row("pool_size max_pool_size", "storage.max_connections"),
    _row("namespace index_name collection_name", "collection", "collection collections"),
    _row(
        "multi_tenant.enabled enable_multi_tenancy multi_tenancy",
        note="There is nothing to switch on: `RAGPipeline.view(tenant=…)` and `MultiTenantRAG` keep tenants apart.",
    ),
    _row("ttl_days default_ttl_days", "temporal.default_ttl", "ttl"),
    _row(
        "discovery_window_days ingestion_window ingested_within recent_window recent_days lookback lookback_days",
        arguments="discovery_window ingestion_time_range",
        note='A duration is a text, as "7d".',
    ),
    _row("event_age_days min_event_age min_age", arguments="event_age", note='A duration is a text, as "90d".'),
    _row("time_window", arguments="event_window discovery_window", note='A duration is a text, as "7d".'),
    _row("page_content text body", arguments="content"),
    _row("doc_id document_id", arguments="id source"),
    _row("uri url file_path path", arguments="source"),
    _row("meta extra_info", arguments="metadata"),
    _row("created_at timestamp date", arguments="event_time"),
    _row("expires_at expiry", arguments="ttl"),
)


@cache
def _by_name() -> dict[str, Familiar]:
    return {name: row for row in FAMILIAR for name in row.names}


def familiar(*place: str) -> Familiar | None:
    """What is called so elsewhere: the name with its section, else the name alone."""
    name = ".".join(place).lower()
    return _by_name().get(name) or _by_name().get(name.rpartition(".")[2])


def meant_argument(name: str, known: Collection[str]) -> str:
    """What to say of an argument, or a key, that there is not: a sentence behind a space, or nothing.

    Args:
        name: The one that was given.
        known: Those that there are.
    """
    row = familiar(name)
    if row is not None:
        here = next((one for one in row.here if one in known), None)
        note = f" {row.note}" if row.note else ""
        if here is not None:
            return f" Did you mean {here!r}?{note}"
        if row.setting:
            return f" Did you mean the setting rag.{row.setting}?{note}"
        if note and not row.arguments:
            return note
    from difflib import get_close_matches

    close = get_close_matches(name, list(known), n=1, cutoff=0.7)
    return f" Did you mean {close[0]!r}?" if close else ""


def unexpected_argument(function: str, name: str, known: Collection[str]) -> TypeError:
    """Python's own error for an argument that a function does not have, with what was probably meant."""
    return TypeError(f"{function}() got an unexpected keyword argument {name!r}.{meant_argument(name, known)}")


def suggesting(kind: type[_T]) -> type[_T]:
    """Let the constructor of a class say what was probably meant by an argument that it does not have."""
    construct: Callable[..., None] = kind.__init__

    @wraps(construct)
    def init(self: object, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - whatever the class takes
        try:
            construct(self, *args, **kwargs)
        except TypeError:
            known = [name for name in inspect.signature(construct).parameters if name != "self"]
            unknown = [name for name in kwargs if name not in known]
            if unknown:
                raise unexpected_argument(kind.__name__, unknown[0], known) from None
            raise

    kind.__init__ = init  # type: ignore[method-assign]
    return kind
