"""LanceDB: a table with an IVF-HNSW index, a full-text index, and bitmap indexes of what filters ask for."""

from __future__ import annotations

from pathlib import Path

from peers.base import TOP_K, Base, DataSet, Found, Query, Rows

BATCH = 10_000


class System(Base):
    """Its hybrid search with reciprocal rank fusion; filters before the search (``prefilter``, its default)."""

    title = "LanceDB"
    packages = ("lancedb", "pyarrow", "numpy")
    notes = "Vectors in an HNSW_SQ index. New rows are scanned until the indexes are brought up to date."

    def __init__(self, store: Path) -> None:
        super().__init__(store)
        import lancedb

        self._database = lancedb.connect(str(store / "lancedb"))

    def fill(self, data: DataSet) -> None:
        from lancedb.index import FTS, Bitmap, HnswSq

        batches = data.rows(BATCH)
        first = next(batches)
        self._table = self._database.create_table("growth", _table(first))
        for rows in batches:
            self.add(rows)
        self._table.create_index("vector", config=HnswSq(distance_type="cosine"))
        self._table.create_index("text", config=FTS())
        for field in first.metadata[0]:
            self._table.create_index(field, config=Bitmap())
        self._table.optimize()

    def open(self) -> None:
        from lancedb.rerankers import RRFReranker

        self._table = self._database.open_table("growth")
        self._reranker = RRFReranker()

    def search(self, mode: str, query: Query) -> Found:
        if mode == "dense":
            search = self._table.search(query.vector, query_type="vector").distance_type("cosine")
        elif mode == "lexical":
            search = self._table.search(query.text, query_type="fts")
        else:
            search = self._table.search(query_type="hybrid").vector(query.vector).text(query.text)
            search = search.distance_type("cosine").rerank(self._reranker)
        if query.field:
            search = search.where(f"{query.field} = {query.value}")
        found = search.select(["id", "text"]).limit(TOP_K).to_arrow()
        return list(zip(found["id"].to_pylist(), found["text"].to_pylist(), strict=True))

    def add(self, rows: Rows) -> None:
        self._table.add(_table(rows))


def _table(rows: Rows) -> object:
    import pyarrow as pa

    count, dimension = rows.vectors.shape
    columns = {
        "id": pa.array(rows.ids),
        "text": pa.array(rows.texts),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(rows.vectors.reshape(count * dimension)), dimension),
    }
    columns |= {field: pa.array([one[field] for one in rows.metadata], pa.int32()) for field in rows.metadata[0]}
    return pa.table(columns)
