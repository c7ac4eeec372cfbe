"""recollect: ``RAGPipeline``, the settings as they come or as the environment says, the embedded server."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from growth_data import described
from growth_measure import whole_queries
from harness import OURS, say, server_processes

from peers.base import READER, TOP_K, Base, DataSet, Found, Query, Rows
from recollect import Document, Principal, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.embedding.models import DEFAULT_MODEL
from recollect.ingest.records import ImportedDocument
from recollect.model import Chunk
from recollect.pipeline.ingesting import store_records

COLLECTION = "growth"
#: Searches are made for so long until the collection is resident in this process.
RESIDENT_SECONDS = 300.0


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
        # Settings of the environment count, so that ways of searching can be compared.
        self.config = RAGConfig.load(storage={"data_dir": store.resolve()})
        model = f"{self.config.embedding.model or DEFAULT_MODEL}:{self.config.embedding.precision}"
        self._known = KnownVectors(model)
        self._rag = RAGPipeline(self.config, embedder=self._known)
        plain = {"top_k": TOP_K, "use_cache": False}
        self._options = {
            "dense": RetrievalOptions(mode="dense", rerank="none", collapse_duplicates=False, **plain),
            # Other words for measures of statements would make other answers than BM25 of the question's words.
            "lexical": RetrievalOptions(
                mode="lexical", rerank="none", collapse_duplicates=False, enhance=False, **plain
            ),
            "hybrid": RetrievalOptions(rerank="none", **plain),
            "hybrid, reranked": RetrievalOptions(**plain),
            "from the cache": RetrievalOptions(top_k=TOP_K),
        }

    def fill(self, data: DataSet) -> None:
        view = self._rag.view(collections=COLLECTION)
        if data.documents.is_file():
            report = view.collections.import_file(data.documents)
        else:
            report = store_records(view.standpoint, records(data), named=COLLECTION, force=False)
        if report.failed:
            raise SystemExit(f"not everything is stored: {report.errors[:3]}")

    def open(self) -> None:
        self._rag.collections.ensure(COLLECTION)
        self._until_resident()

    def _until_resident(self) -> None:
        """Search until replies come from the copy in this process, where this version has one."""
        if getattr(self.config.retrieval, "resident_memory_mb", 0) == 0:
            return
        query = Query("a question that nobody asks", np.full(self._known.dimension, 0.051, np.float32))
        end = time.perf_counter() + RESIDENT_SECONDS
        while self.path != "resident" and time.perf_counter() < end:
            self.search("hybrid", query)
            time.sleep(0.05)
        say(f"vectors are found by: {self.path}")

    def search(self, mode: str, query: Query) -> Found:
        self._known.vectors[_key(query.text)] = self._known.now = query.vector
        return self._found(query.text, self._filtered(mode, query), _reader(query))

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
        self._until_resident()
        parts = len(texts) // 2
        # Vectors of questions are kept: no question is asked twice.
        shares = {"hybrid": texts[:parts], "hybrid, reranked": texts[parts:]}
        return {
            mode: whole_queries(lambda text, mode=mode: self._found(text, self._options[mode]), own)
            for mode, own in shares.items()
        }

    def _filtered(self, mode: str, query: Query) -> RetrievalOptions:
        options = self._options[mode]
        if query.field in {None, READER}:
            return options
        return replace(options, metadata_filters={query.field: query.value})

    def _found(self, text: str, options: RetrievalOptions, principal: Principal | None = None) -> Found:
        reply = self._rag.view(collections=COLLECTION, principal=principal).search(text, options)
        self.path = str(reply.paths.get("dense", ""))
        return [(f"{one.source}:{one.start_offset}", one.content) for one in reply.results]


def _reader(query: Query) -> Principal | None:
    """Who asks: the owner, or a member of one of ten groups."""
    if query.field != READER:
        return None
    return Principal(user_id="somebody", groups=(f"{READER}{query.value}",))


def records(data: DataSet) -> Iterator[ImportedDocument]:
    """Every document with its chunks and vectors, as `import_file` reads them out of ``documents.jsonl``."""
    size = data.chunks_a_document
    for rows in data.rows(1_000 * size):
        for start in range(0, len(rows.ids), size):
            texts = rows.texts[start : start + size]
            offsets = [int(identifier.partition(":")[2]) for identifier in rows.ids[start : start + size]]
            chunks = tuple(
                Chunk(text=text, position=position, start_offset=offset, end_offset=offset + len(text))
                for position, (text, offset) in enumerate(zip(texts, offsets, strict=True))
            )
            metadata, permissions = described(rows.metadata[start])
            source = rows.ids[start].partition(":")[0]
            document = Document(
                content="\n\n".join(texts),
                source=source,
                title=source,
                metadata=metadata,
                permissions=tuple(permissions),
            )
            yield ImportedDocument(0, document, chunks, rows.vectors[start : start + size])


def _key(text: str) -> bytes:
    return hashlib.md5(text.encode(), usedforsecurity=False).digest()
