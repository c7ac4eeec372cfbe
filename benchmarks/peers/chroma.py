"""Chroma alone: a persistent collection, its HNSW index, no BM25."""

from __future__ import annotations

from pathlib import Path

from peers.base import TOP_K, Base, DataSet, Found, Query, Rows

BATCH = 5_000
#: Cosine, and Chroma's other settings as they come.
CONFIGURATION = {"hnsw": {"space": "cosine"}}


class System(Base):
    """``collection.query`` with a vector, and ``where`` for filters."""

    title = "Chroma"
    packages = ("chromadb", "numpy")
    modes = ("dense",)
    notes = "Dense only: it has no BM25 for local collections."

    def __init__(self, store: Path) -> None:
        super().__init__(store)
        import chromadb

        settings = chromadb.Settings(anonymized_telemetry=False)
        self._client = chromadb.PersistentClient(str(store / "chroma"), settings)
        self._collection = None

    def fill(self, data: DataSet) -> None:
        self._collection = self._client.create_collection(
            "growth", embedding_function=None, configuration=CONFIGURATION
        )
        for rows in data.rows(BATCH):
            self.add(rows)

    def open(self) -> None:
        self._collection = self._client.get_collection("growth", embedding_function=None)

    def search(self, mode: str, query: Query) -> Found:
        if mode != "dense":
            raise ValueError(f"there is no mode {mode!r}")
        where = {query.field: query.value} if query.field else None
        reply = self._collection.query(
            query_embeddings=[query.vector], n_results=TOP_K, where=where, include=["documents", "distances"]
        )
        return list(zip(reply["ids"][0], reply["documents"][0], strict=True))

    def add(self, rows: Rows) -> None:
        self._collection.add(ids=rows.ids, embeddings=rows.vectors, documents=rows.texts, metadatas=rows.metadata)
