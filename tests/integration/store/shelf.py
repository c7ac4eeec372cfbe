"""A collection with everything that writing and searching it takes, for the tests of the repositories."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, LiteralString

import numpy as np

from recollect.embedding.hashing import HashingEmbedder
from recollect.ingest.prepare import Preparer
from recollect.model import Chunk, Document, IngestResult, Scope
from recollect.model.collection import Collection
from recollect.retrieval.candidates import CandidateRequest
from recollect.retrieval.enhance.plan import QueryPlan
from recollect.retrieval.indexing import TermIndexer
from recollect.retrieval.lexical import LexicalHits
from recollect.retrieval.sql_candidates import SqlCandidates
from recollect.store.prepared import PreparedDocument
from recollect.store.store import Store

EMBEDDER = HashingEmbedder(16)


class Lines:
    """Every line that is not empty is a chunk."""

    def chunk(self, document: Document) -> list[Chunk]:
        chunks: list[Chunk] = []
        start = 0
        for line in document.content.split("\n"):
            end = start + len(line)
            if line:
                chunks.append(Chunk(text=line, position=len(chunks), start_offset=start, end_offset=end))
            start = end + 1
        return chunks


@dataclass
class Shelf:
    """One collection of one tenant. Every line of a document is a chunk."""

    store: Store
    scope: Scope = field(default_factory=Scope)
    name: str = "shelf"

    def __post_init__(self):
        self.collection = self.store.collections.find(self.scope, self.name) or self.store.collections.create(
            self.scope, self.name, embedding_model=EMBEDDER.model_name, embedding_dimension=EMBEDDER.dimension
        )
        self.store.collections.ensure_reference_length(self.scope, self.collection, 3.0)
        self.source = self.store.documents.ensure_source(self.scope, self.now(), "manual", "manual")
        indexer = TermIndexer("en", salt=self.collection.collection_id)
        self.preparer = Preparer(Lines(), indexer, EMBEDDER, settings={})

    def now(self) -> Collection:
        """The collection as it is now."""
        return self.store.collections.get(self.scope, self.name)

    def prepared(self, source: str, text: str, **fields) -> PreparedDocument:
        cut = self.preparer.cut(Document(content=text, source=source, **{"title": "t", **fields}), "fingerprint")
        reference = self.now().reference_length
        return self.preparer.finish([cut], self.preparer.embed([cut]), reference_length=reference)[0]

    def write(self, *documents: PreparedDocument, force: bool = False) -> list[IngestResult]:
        return self.store.writer.write(self.scope, self.collection, self.source, documents, force=force)

    def add(self, source: str, text: str, **fields) -> IngestResult:
        return self.write(self.prepared(source, text, **fields))[0]

    def fill(self, lines: list[str], *, per_document: int = 200, prefix: str = "fill") -> None:
        """Store many lines, each a chunk of its own."""
        for start in range(0, len(lines), per_document):
            self.add(f"{prefix}{start}", "\n".join(lines[start : start + per_document]))

    def dense(self, text: str, *, limit: int = 10, scope: Scope | None = None, **options) -> list[tuple[int, float]]:
        vector = EMBEDDER.embed_query(text)
        return self.store.search.dense(scope or self.scope, self.now(), vector, limit=limit, **options)

    def lexical(
        self, query: str, *, top_k: int = 10, limit: int = 100, scope=None, budget=4000, **options
    ) -> LexicalHits:
        source = SqlCandidates(self.store.search, lexical_budget=budget)
        request = CandidateRequest(
            collection=self.now(), plan=QueryPlan(query=query), mode="lexical", top_k=top_k, limit=limit, **options
        )
        return source.proven(scope or self.scope, request)

    def contents(self, chunk_ids) -> list[str]:
        rows = self.store.search.passages(self.scope, list(chunk_ids))
        return [rows[chunk_id].content for chunk_id in chunk_ids]

    def rows(self, query: str, **params) -> list[tuple]:
        with self.store.database.transaction(self.scope) as connection:
            return connection.execute(query, params).fetchall()

    def vectors(self) -> dict[int, np.ndarray]:
        """Current vectors by chunk."""
        found = self.rows(
            "SELECT chunk_id, embedding FROM chunk_vectors WHERE space_id = %(c)s AND known_to = 'infinity'",
            c=self.now().space_id,
        )
        return {chunk_id: np.asarray(vector.to_numpy(), dtype=np.float32) for chunk_id, vector in found}


def second_tenant(store: Store) -> Scope:
    """A tenant beside the default one, with a scope."""
    with store.database.autocommit() as connection:
        connection.execute("INSERT INTO tenants (tenant_id, name) VALUES (2, 'second') ON CONFLICT DO NOTHING")
    return Scope(tenant_id=2)


def read_in_vain(store: Store, query: LiteralString, params: dict[str, Any]) -> float:
    """How many rows a statement reads, or compares, that it does not want; as a role that policies bind."""

    def of(node: dict[str, Any]) -> float:
        own = sum(node.get(f"Rows Removed by {what}", 0) for what in ("Filter", "Join Filter", "Index Recheck"))
        return own * node["Actual Loops"] + sum(map(of, node.get("Plans", [])))

    with store.database.single_reads(Scope()) as connection:
        assert connection.execute("SELECT row_security_active('chunks')").fetchone() == (True,)
        found = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {query}", params).fetchone()
    assert found is not None
    return of(found[0][0]["Plan"])
