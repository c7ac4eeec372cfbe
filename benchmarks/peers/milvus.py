"""Milvus Lite: a Faiss HNSW index with 8-bit vectors, its own BM25, inverted indexes of what filters ask for."""

from __future__ import annotations

from pathlib import Path

from peers.base import CANDIDATES, TOP_K, Base, DataSet, Found, Query, Rows

BATCH = 2_000
COLLECTION = "growth"
LONGEST_TEXT, LONGEST_ID, DIMENSION = 8_192, 64, 384


class System(Base):
    """`hybrid_search` with reciprocal rank fusion; filters before the search."""

    title = "Milvus Lite"
    packages = ("milvus-lite", "pymilvus", "faiss-cpu", "numpy")
    notes = "Vectors in HNSW_SQ indexes, one a segment. It speaks gRPC to a server in the same process."

    def __init__(self, store: Path) -> None:
        super().__init__(store)
        from pymilvus import MilvusClient

        self._client = MilvusClient(str(store / "milvus.db"))

    def fill(self, data: DataSet) -> None:
        batches = data.rows(BATCH)
        first = next(batches)
        self._create(list(first.metadata[0]))
        self.add(first)
        for rows in batches:
            self.add(rows)
        self._client.flush(COLLECTION)
        self._client.load_collection(COLLECTION)

    def _create(self, fields: list[str]) -> None:
        from pymilvus import DataType, Function, FunctionType

        schema = self._client.create_schema(auto_id=False)
        schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=LONGEST_ID)
        schema.add_field("text", DataType.VARCHAR, max_length=LONGEST_TEXT, enable_analyzer=True)
        schema.add_field("dense", DataType.FLOAT_VECTOR, dim=DIMENSION)
        schema.add_field("sparse", DataType.SPARSE_FLOAT_VECTOR)
        for field in fields:
            schema.add_field(field, DataType.INT64)
        words = Function(
            name="bm25", function_type=FunctionType.BM25, input_field_names=["text"], output_field_names=["sparse"]
        )
        schema.add_function(words)
        indexes = self._client.prepare_index_params()
        indexes.add_index("dense", index_type="HNSW_SQ", metric_type="COSINE")
        indexes.add_index("sparse", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
        for field in fields:
            indexes.add_index(field, index_type="INVERTED")
        self._client.create_collection(COLLECTION, schema=schema, index_params=indexes)

    def open(self) -> None:
        self._client.load_collection(COLLECTION)

    def search(self, mode: str, query: Query) -> Found:
        condition = f"{query.field} == {query.value}" if query.field else ""
        if mode == "hybrid":
            found = self._hybrid(query, condition)
        else:
            field, asked = ("dense", query.vector.tolist()) if mode == "dense" else ("sparse", query.text)
            found = self._client.search(
                COLLECTION, [asked], anns_field=field, filter=condition, limit=TOP_K, output_fields=["text"]
            )
        return [(one["id"], one["entity"]["text"]) for one in found[0]]

    def _hybrid(self, query: Query, condition: str) -> list:
        from pymilvus import AnnSearchRequest, RRFRanker

        asked = {"dense": [query.vector.tolist()], "sparse": [query.text]}
        requests = [
            AnnSearchRequest(data=data, anns_field=field, param={}, limit=CANDIDATES, expr=condition or None)
            for field, data in asked.items()
        ]
        return self._client.hybrid_search(COLLECTION, requests, RRFRanker(), limit=TOP_K, output_fields=["text"])

    def add(self, rows: Rows) -> None:
        columns = zip(rows.ids, rows.texts, rows.vectors.tolist(), rows.metadata, strict=True)
        self._client.insert(
            COLLECTION,
            [{"id": key, "text": text, "dense": vector, **metadata} for key, text, vector, metadata in columns],
        )

    def close(self) -> None:
        self._client.close()
