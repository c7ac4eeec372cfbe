"""txtai: a hybrid index (Faiss and its own BM25) with content in SQLite."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from peers.base import TOP_K, Base, DataSet, Found, Query, Rows

BATCH = 5_000
#: Of the vectors retriever: ``weights`` of a search.
WEIGHTS = {"dense": 1.0, "lexical": 0.0, "hybrid": 0.5}
_known: dict[str, np.ndarray] = {}


def vectors_of(texts: list[str]) -> np.ndarray:
    """What txtai calls in place of a model: the vectors that were computed beforehand."""
    return np.stack([_known[text] for text in texts])


class System(Base):
    """``similar()`` in SQL, whose WHERE applies to what the index has found."""

    title = "txtai"
    packages = ("txtai", "faiss-cpu", "numpy")
    notes = (
        "Both retrievers run always; 'dense' and 'lexical' give one of them the whole weight. Filters apply to what "
        "the index found first (candidates as they come), so few results remain."
    )

    def __init__(self, store: Path) -> None:
        super().__init__(store)
        from txtai import Embeddings

        self._folder = str(store / "txtai")
        self._embeddings = Embeddings(method="external", transform="peers.txtai.vectors_of", hybrid=True, content=True)

    def fill(self, data: DataSet) -> None:
        self._embeddings.index(document for rows in data.rows(BATCH) for document in _documents(rows))
        self._embeddings.save(self._folder)

    def open(self) -> None:
        self._embeddings.load(self._folder)

    def search(self, mode: str, query: Query) -> Found:
        _known[query.text] = query.vector
        condition = f" AND {query.field} = {query.value}" if query.field else ""
        statement = f"SELECT id, text, score FROM txtai WHERE similar(:question){condition} LIMIT {TOP_K}"
        found = self._embeddings.search(statement, TOP_K, weights=WEIGHTS[mode], parameters={"question": query.text})
        return [(one["id"], one["text"]) for one in found]

    def add(self, rows: Rows) -> None:
        self._embeddings.upsert(_documents(rows))

    def close(self) -> None:
        self._embeddings.close()


def _documents(rows: Rows) -> list[tuple[str, dict, None]]:
    _known.update(zip(rows.texts, rows.vectors, strict=True))
    return [
        (identifier, {"text": text, **metadata}, None)
        for identifier, text, metadata in zip(rows.ids, rows.texts, rows.metadata, strict=True)
    ]
