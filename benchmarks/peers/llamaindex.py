"""LlamaIndex: VectorStoreIndex over Chroma, BM25Retriever (bm25s), joined by QueryFusionRetriever."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from growth_measure import whole_queries
from harness import MODEL, model_cache

from peers.base import CANDIDATES, TOP_K, Base, DataSet, Found, Query, Rows

BATCH = 5_000
#: Of Chroma's collection: cosine, and the other settings as they come.
CONFIGURATION = {"hnsw": {"space": "cosine"}}


class System(Base):
    """Its documented hybrid: both retrievers, reciprocal rank fusion, no generated queries, no threads."""

    title = "LlamaIndex + Chroma + BM25"
    packages = (
        "llama-index-core",
        "llama-index-vector-stores-chroma",
        "llama-index-retrievers-bm25",
        "bm25s",
        "chromadb",
        "sentence-transformers",
        "torch",
    )
    notes = (
        "The BM25 retriever has a mask for each filter; the masks are made beforehand, not while it is timed. Below "
        "filters it fills up with chunks that score 0 and that the filter excludes. A new document needs a new BM25 "
        "index of everything; its nodes are held in memory for that, and not counted in the memory shown."
    )

    def __init__(self, store: Path) -> None:
        super().__init__(store)
        import chromadb

        settings = chromadb.Settings(anonymized_telemetry=False)
        self._client = chromadb.PersistentClient(str(store / "chroma"), settings)
        self._retrievers: dict[tuple, object] = {}

    def fill(self, data: DataSet) -> None:
        self._client.create_collection("growth", embedding_function=None, configuration=CONFIGURATION)
        self._open_vectors()
        nodes = []
        for rows in data.rows(BATCH):
            batch = _nodes(rows)
            self._index.insert_nodes(batch)
            nodes += [node.model_copy(update={"embedding": None}) for node in batch]
        self._build_words(nodes)
        self._words.persist(str(self.store / "bm25"))

    def open(self) -> None:
        from llama_index.retrievers.bm25 import BM25Retriever

        self._open_vectors()
        self._words = BM25Retriever.from_persist_dir(str(self.store / "bm25"))
        self._nodes = None

    def search(self, mode: str, query: Query) -> Found:
        from llama_index.core import QueryBundle

        return self._found(mode, QueryBundle(query.text, embedding=query.vector.tolist()), query)

    def add(self, rows: Rows) -> None:
        from llama_index.core.vector_stores.utils import metadata_dict_to_node

        if self._nodes is None:
            self._nodes = [metadata_dict_to_node(entry) for entry in self._words.corpus]
        added = _nodes(rows)
        self._index.insert_nodes(added)
        self._nodes += added
        self._build_words(self._nodes)

    def whole(self, texts: Sequence[str]) -> dict:
        """Questions in words: embedded by sentence-transformers."""
        from llama_index.core import QueryBundle
        from llama_index.embeddings.huggingface import HuggingFaceEmbedding

        self._open_vectors(HuggingFaceEmbedding(model_name=str(model_cache() / MODEL), device="cpu"))
        self._retrievers.clear()
        anything = Query("", None)
        return {"hybrid": whole_queries(lambda text: self._found("hybrid", QueryBundle(text), anything), texts)}

    def _open_vectors(self, embedding: object | None = None) -> None:
        from llama_index.core import MockEmbedding, VectorStoreIndex
        from llama_index.vector_stores.chroma import ChromaVectorStore

        vectors = ChromaVectorStore(chroma_collection=self._client.get_collection("growth", embedding_function=None))
        self._index = VectorStoreIndex.from_vector_store(vectors, embed_model=embedding or MockEmbedding(384))

    def _build_words(self, nodes: list) -> None:
        import Stemmer
        from llama_index.retrievers.bm25 import BM25Retriever

        self._words = BM25Retriever.from_defaults(
            nodes=nodes, similarity_top_k=TOP_K, stemmer=Stemmer.Stemmer("english"), language="english"
        )
        # As it is after loading: retrievers with filters are made around it, and take the nodes from here.
        self._words.bm25.corpus = self._words.corpus
        self._retrievers.clear()

    def _found(self, mode: str, bundle: object, query: Query) -> Found:
        found = self._retriever_of(mode, query).retrieve(bundle)
        return [(one.node.node_id, one.node.get_content()) for one in found]

    def prepare(self, queries: Sequence[Query]) -> None:
        """Make the retrievers of these questions' filters, masks included."""
        for mode in self.modes:
            for query in queries:
                self._retriever_of(mode, query)

    def _retriever_of(self, mode: str, query: Query) -> object:
        key = (mode, query.field, query.value)
        if key not in self._retrievers:
            self._retrievers[key] = self._retriever(mode, query)
        return self._retrievers[key]

    def _retriever(self, mode: str, query: Query) -> object:
        from llama_index.core.retrievers import QueryFusionRetriever

        if mode == "dense":
            return self._dense(query, TOP_K)
        if mode == "lexical":
            return self._lexical(query, TOP_K)
        return QueryFusionRetriever(
            [self._dense(query, CANDIDATES), self._lexical(query, CANDIDATES)],
            llm=_no_model(),
            mode="reciprocal_rerank",
            similarity_top_k=TOP_K,
            num_queries=1,
            use_async=False,
        )

    def _dense(self, query: Query, count: int) -> object:
        return self._index.as_retriever(similarity_top_k=count, filters=_filters(query))

    def _lexical(self, query: Query, count: int) -> object:
        from llama_index.retrievers.bm25 import BM25Retriever

        return BM25Retriever(existing_bm25=self._words.bm25, similarity_top_k=count, filters=_filters(query))


def _no_model() -> object:
    from llama_index.core.llms import MockLLM

    return MockLLM()


def _filters(query: Query) -> object | None:
    from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

    if query.field is None:
        return None
    return MetadataFilters(filters=[MetadataFilter(key=query.field, value=query.value)])


def _nodes(rows: Rows) -> list:
    from llama_index.core.schema import TextNode

    return [
        TextNode(
            id_=identifier,
            text=text,
            embedding=vector,
            metadata=metadata,
            excluded_embed_metadata_keys=list(metadata),
            excluded_llm_metadata_keys=list(metadata),
        )
        for identifier, text, vector, metadata in zip(
            rows.ids, rows.texts, rows.vectors.tolist(), rows.metadata, strict=True
        )
    ]
