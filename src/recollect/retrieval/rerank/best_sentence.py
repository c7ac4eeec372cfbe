"""Reranking by the best sentence: a passage is as relevant as the sentence in it that comes closest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from recollect.chunking.sentences import sentence_spans
from recollect.retrieval.rerank.base import Candidate
from recollect.retrieval.rerank.late_interaction import BoundedMemory, text_key

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider, Vectors

_SURROGATES = re.compile("[\ud800-\udfff]")

#: Memory that sentences' vectors may take in this process.
CACHE_BYTES = 64 << 20


class BestSentenceReranker:
    """Scores a passage by the greatest cosine similarity between one of its sentences and the question.

    The sentences are embedded the first time they are seen and kept in this process; that first time costs what
    embedding the passages again would.

    Args:
        embedder: Embeds question and sentences.
        language: Of the texts, ISO 639-1; decides where sentences end.
        cache_bytes: Memory for sentences' vectors; 0 keeps none.
    """

    name = "best_sentence"

    def __init__(self, embedder: EmbeddingProvider, *, language: str = "en", cache_bytes: int = CACHE_BYTES) -> None:
        self._embedder = embedder
        self._language = language
        self._memory = BoundedMemory(cache_bytes)

    def rerank(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
        """See `Reranker`."""
        if not candidates:
            return []
        wanted = self._embedder.embed_query(query)
        known = self._vectors([candidate.text for candidate in candidates])
        return [float((vectors @ wanted).max()) for vectors in known]

    def _vectors(self, texts: Sequence[str]) -> list[Vectors]:
        keys = [text_key(text) for text in texts]
        found = self._memory.get_many(keys)
        missing = {key: self._sentences(text) for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            flat = [sentence for sentences in missing.values() for sentence in sentences]
            vectors = self._embedder.embed_documents(flat)
            ends = np.cumsum([len(sentences) for sentences in missing.values()])
            fresh = dict(zip(missing, np.split(vectors, ends[:-1]), strict=True))
            self._memory.put_many(fresh)
            found |= fresh
        return [found[key] for key in keys]

    def _sentences(self, text: str) -> list[str]:
        # The rules for sentences refuse lone surrogates, which a text from outside the store may hold.
        valid = _SURROGATES.sub("\ufffd", text)
        # A text without words is its own only sentence, so that every passage has a vector.
        return [valid[start:end] for start, end in sentence_spans(valid, self._language)] or [valid]
