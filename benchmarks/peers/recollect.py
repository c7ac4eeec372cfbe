"""recollect: ``RAGPipeline``, the settings as they come, the embedded server."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from growth_measure import whole_queries
from harness import OURS, server_processes

from peers.base import TOP_K, Base, DataSet, Found, Query, Rows
from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.embedding.models import DEFAULT_MODEL

COLLECTION = "growth"


class KnownVectors:
    """Query vectors that were computed beforehand, under the name of the model that computed them."""

    dimension = 384

    def __init__(self, model_name: str) -> None:
        self.model_name = model_name
        self.vectors: dict[bytes, np.ndarray] = {}
        self.now: np.ndarray | None = None

    def embed_documents(self, texts: list[str]) -> np.ndarray:
        """Of the document that is being added, or of other wordings of a question, which have the question's own."""
        return np.stack([self.now] * len(texts))

    def embed_query(self, text: str) -> np.ndarray:
        return self.vectors[_key(text)]


class System(Base):
    """Each mode is a set of options; no reply comes from the cache unless that is what is measured."""

    title = "recollect"
    packages = OURS
    modes = ("dense", "lexical", "hybrid", "hybrid, reranked")
    same_words = True
    notes = (
        "Ingest reads JSON Lines with vectors (`import_file`) and builds the index. 'hybrid' is without reranking, "
        "'hybrid, reranked' with the default one. Lexical figures are compared with BM25 of the same words."
    )

    def __init__(self, store: Path) -> None:
        super().__init__(store)
        self.config = RAGConfig.model_validate({"storage": {"data_dir": store.resolve()}})
        model = f"{self.config.embedding.model or DEFAULT_MODEL}:{self.config.embedding.precision}"
        self._known = KnownVectors(model)
        self._rag = RAGPipeline(self.config, embedder=self._known)
        plain = {"top_k": TOP_K, "use_cache": False}
        self._options = {
            "dense": RetrievalOptions(mode="dense", rerank="none", collapse_duplicates=False, **plain),
            "lexical": RetrievalOptions(mode="lexical", rerank="none", collapse_duplicates=False, **plain),
            "hybrid": RetrievalOptions(rerank="none", **plain),
            "hybrid, reranked": RetrievalOptions(**plain),
            "from the cache": RetrievalOptions(top_k=TOP_K),
        }

    def fill(self, data: DataSet) -> None:
        report = self._rag.view(collections=COLLECTION).collections.import_file(data.documents)
        if report.failed:
            raise SystemExit(f"not everything is stored: {report.errors[:3]}")

    def open(self) -> None:
        self._rag.collections.ensure(COLLECTION)

    def search(self, mode: str, query: Query) -> Found:
        self._known.vectors[_key(query.text)] = self._known.now = query.vector
        return self._found(query.text, self._filtered(mode, query))

    def add(self, rows: Rows) -> None:
        self._known.now = rows.vectors[0]
        source = rows.ids[0].partition(":")[0]
        document = Document(content=rows.texts[0], source=source, metadata=rows.metadata[0])
        self._rag.view(collections=COLLECTION).ingest(document)

    def processes(self) -> list[int]:
        return server_processes(self.config.storage.data_dir)

    def close(self) -> None:
        self._rag.close()

    def whole(self, texts: Sequence[str]) -> dict:
        """Questions in words: embedded by the local model, with and without the default reranking."""
        self._rag.close()
        self._rag = RAGPipeline(self.config)
        parts = len(texts) // 2
        # Vectors of questions are kept: no question is asked twice.
        shares = {"hybrid": texts[:parts], "hybrid, reranked": texts[parts:]}
        return {
            mode: whole_queries(lambda text, mode=mode: self._found(text, self._options[mode]), own)
            for mode, own in shares.items()
        }

    def _filtered(self, mode: str, query: Query) -> RetrievalOptions:
        options = self._options[mode]
        if query.field is None:
            return options
        return replace(options, metadata_filters={query.field: query.value})

    def _found(self, text: str, options: RetrievalOptions) -> Found:
        reply = self._rag.view(collections=COLLECTION).search(text, options)
        return [(f"{one.source}:{one.start_offset}", one.content) for one in reply.results]


def _key(text: str) -> bytes:
    return hashlib.md5(text.encode(), usedforsecurity=False).digest()
