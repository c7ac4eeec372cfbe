"""How searches run, and what of documents and conversations a language model is shown."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from recollect.config.sections import Folder, Section


class EnhanceConfig(Section):
    """``[rag.retrieval.enhance]``: what is added to a query before it is searched."""

    synonyms: dict[str, Folder] = Field(
        default_factory=dict, description="A file of synonyms by collection name; see the how-to on query enhancement."
    )
    acronyms: bool = Field(True, description="Whether an acronym that documents explain finds its long form as well.")
    accounting: bool = Field(
        True,
        description="Whether names of financial measures (capex, quick ratio) find the lines of statements that they "
        "are computed from, in collections that may hold statements.",
    )
    multi_query: int = Field(0, ge=0, le=10, description="Other wordings that the language model is asked for.")
    hyde: bool = Field(False, description="Whether the language model drafts an answer to search by.")
    timeout_seconds: float = Field(10.0, gt=0, description="How long a search waits for the language model.")


class RetrievalConfig(Section):
    """``[rag.retrieval]``: how the retrievers search and how their results are joined."""

    top_k: int = Field(10, ge=1, le=1000, description="Passages returned.")
    mode: str = Field(
        "hybrid",
        min_length=1,
        description="Words and meaning (hybrid), meaning only (dense), words only (lexical), or the name of a "
        "retriever of your own.",
    )
    fusion: Literal["weighted", "rrf"] = Field("weighted", description="How the retrievers' results become one list.")
    dense_weight: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Share of the dense retriever; by default 0.55 in weighted fusion and half in rrf.",
    )
    rrf_k: int = Field(60, ge=1, le=10_000, description="The constant k of reciprocal rank fusion.")
    candidates: int = Field(50, ge=1, le=10_000, description="Results that each retriever contributes at least.")
    similarity_threshold: float | None = Field(
        None, ge=-1, le=1, description="Passages whose cosine similarity is lower are dropped."
    )
    min_relevance: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Passages whose relevance is lower are dropped. By default searches drop none, and contexts and "
        "answers start from nothing if not even the best passage reaches the floor of its model. 0: no floor.",
    )
    min_score: float | None = Field(None, description="Passages whose score is lower are dropped.")
    notes: bool = Field(
        True, description="Whether passages say that they are superseded, or a newer document covers them."
    )
    lexical_budget: int = Field(
        2_000, ge=1, description="Document frequency that the first round of lexical candidates may add up to."
    )
    rerank: str = Field(
        "consensus",
        min_length=1,
        description="The reranker of hybrid searches: consensus, bm25, best_sentence, late_interaction, cross_encoder, "
        "none, or the name of one of your own.",
    )
    rerank_candidates: int | None = Field(
        None,
        ge=1,
        le=1_000,
        description="Passages that it sees, twice as many at most where many are wanted; by default what suits it.",
    )
    rerank_weight: float | None = Field(None, ge=0, le=1, description="Its share of the score; by default its own.")
    rerank_model: str | None = Field(None, description="For cross_encoder: a model's directory.")
    rerank_timeout_seconds: float = Field(10.0, gt=0, description="After that, results come in their first order.")
    pseudo_relevance: bool = Field(
        False, description="Whether the first results move the query (pseudo-relevance feedback)."
    )
    collapse_duplicates: bool = Field(True, description="Show of passages that say the same only the best.")
    cache_entries: int = Field(1_000, ge=0, description="Replies that are kept for equal searches; 0 keeps none.")
    cache_seconds: float = Field(3_600, gt=0, description="How long a reply is kept.")
    query_cache_entries: int = Field(
        1_000, ge=0, description="Questions whose embeddings a process keeps; 0 keeps none."
    )
    resident_memory_mb: int | None = Field(
        None,
        ge=0,
        description="Megabytes that copies of collections may take in the memory of this process, which searches are "
        "answered from; by default an eighth of the memory of the machine or its container. 0: none is held.",
    )
    probe_rate: float = Field(
        0.01, ge=0, le=1, description="Share of approximate searches that are measured in the background; 0: none."
    )
    enhance: EnhanceConfig = Field(default_factory=EnhanceConfig)


class RemoteConfig(Section):
    """``[[rag.remotes]]``: another server of recollect, which is searched together with the store."""

    name: str = Field(min_length=1, max_length=100, description="What its passages name as their server.")
    url: str = Field(min_length=1, description="Where it is.")
    key: str | None = Field(
        None,
        pattern=r"^env:[A-Za-z_][A-Za-z0-9_]*$",
        description="env:NAME, the environment variable that holds the key; the key determines what can be read.",
    )
    collection: str = Field(
        "*", min_length=1, description="The collection to search there; *: all that the key can read."
    )
    timeout_seconds: float = Field(5.0, gt=0, le=600, description="How long a search waits for it.")
    allow_insecure: bool = Field(
        False, description="Send the key over plain HTTP to another machine, where the way is safe."
    )


class ContextConfig(Section):
    """``[rag.context]``: how much of what was found a language model is shown, in `ask` and in `context` alike."""

    token_budget: int = Field(
        3_000, ge=1, description="Tokens of a context at most, its headers included, by the model's own tokenizer."
    )
    max_context_length: int = Field(12_000, ge=500, description="Characters of a context at most, headers included.")


class MemoryConfig(Section):
    """``[rag.memory]``: how conversations become facts, and what of them a context shows."""

    facts: bool = Field(True, description="Whether contexts show facts beside documents and conversations.")

    min_retrievals: int = Field(3, ge=1, description="How often searches find a turn before facts are drawn from it.")
    facts_by_model: bool = Field(
        True, description="Whether the language model writes facts, where one is configured; else sentences are taken."
    )
    timeout_seconds: float = Field(60.0, gt=0, description="How long consolidation waits for the language model.")
    adaptive_weights: bool = Field(
        False, description="Whether feedback moves the weights of documents and memory in contexts."
    )
    max_weight_shift: float = Field(0.2, gt=0, le=0.5, description="How far feedback may move them.")
