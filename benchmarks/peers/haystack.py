"""Haystack: InMemoryDocumentStore, its BM25 and embedding retrievers, DocumentJoiner, as one pipeline."""

from __future__ import annotations

from pathlib import Path

from peers.base import CANDIDATES, TOP_K, Base, DataSet, Found, Query, Rows

BATCH = 5_000


class System(Base):
    """Everything is in memory; between processes it is one JSON file."""

    title = "Haystack in memory"
    packages = ("haystack-ai", "numpy")
    notes = "Lives in memory; filling includes writing its JSON file, opening reads it."

    def __init__(self, store: Path) -> None:
        super().__init__(store)
        from haystack.document_stores.in_memory import InMemoryDocumentStore

        self._file = str(store / "documents.json")
        self._documents = InMemoryDocumentStore(embedding_similarity_function="cosine")
        self._retrievers: dict = {}

    def fill(self, data: DataSet) -> None:
        for rows in data.rows(BATCH):
            self.add(rows)
        self._documents.save_to_disk(self._file)

    def open(self) -> None:
        from haystack import Pipeline
        from haystack.components.joiners import DocumentJoiner
        from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
        from haystack.document_stores.in_memory import InMemoryDocumentStore

        self._documents = InMemoryDocumentStore.load_from_disk(self._file)
        self._dense = InMemoryEmbeddingRetriever(self._documents, top_k=TOP_K)
        self._lexical = InMemoryBM25Retriever(self._documents, top_k=TOP_K)
        self._pipeline = Pipeline()
        self._pipeline.add_component("dense", InMemoryEmbeddingRetriever(self._documents, top_k=CANDIDATES))
        self._pipeline.add_component("lexical", InMemoryBM25Retriever(self._documents, top_k=CANDIDATES))
        self._pipeline.add_component("joiner", DocumentJoiner(join_mode="reciprocal_rank_fusion", top_k=TOP_K))
        self._pipeline.connect("dense", "joiner")
        self._pipeline.connect("lexical", "joiner")

    def search(self, mode: str, query: Query) -> Found:
        filters = None
        if query.field:
            filters = {"field": f"meta.{query.field}", "operator": "==", "value": query.value}
        dense = {"query_embedding": query.vector.tolist(), "filters": filters}
        lexical = {"query": query.text, "filters": filters}
        if mode == "dense":
            found = self._dense.run(**dense)["documents"]
        elif mode == "lexical":
            found = self._lexical.run(**lexical)["documents"]
        else:
            found = self._pipeline.run({"dense": dense, "lexical": lexical})["joiner"]["documents"]
        return [(one.id, one.content) for one in found]

    def add(self, rows: Rows) -> None:
        from haystack import Document

        self._documents.write_documents(
            [
                Document(id=identifier, content=text, embedding=vector, meta=metadata)
                for identifier, text, vector, metadata in zip(
                    rows.ids, rows.texts, rows.vectors.tolist(), rows.metadata, strict=True
                )
            ]
        )
