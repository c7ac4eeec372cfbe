"""What ``recollect status`` says about searches that other processes ran."""

from __future__ import annotations

from recollect import RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder


def test_status_counts_what_other_processes_searched(recollect, office):
    recollect("ingest", office)
    assert recollect("status", "--json").json["search"]["result_cache"] == {"hits": 0, "misses": 0, "hit_rate": None}
    assert "Searches of the last" not in recollect("status").out
    recollect("query", "annual leave")
    recollect("query", "annual leave", "--mode", "lexical")
    config = RAGConfig.load(storage={"dsn": recollect.environment["RECOLLECT_DSN"]}, embedding={"provider": "hashing"})
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        for _ in range(3):
            rag.search("salaries are paid when")

    search = recollect("status", "--json").json["search"]
    assert search["result_cache"] == {"hits": 2, "misses": 3, "hit_rate": 0.4}
    # A search by words alone asks for no embedding.
    assert search["query_embedding_cache"] == {"hits": 0, "misses": 2, "hit_rate": 0.0}
    assert (search["days"], search["probes"], search["recall_dense"], search["last_probe"]) == (30, 0, None, None)
    collection = search["collections"]["default"]
    assert {name: search[name] for name in collection} == collection
    shown = recollect("status").out
    assert "Searches of the last 30 days" in shown and "40% of 5" in shown

    recollect("collections", "delete", "default", "--yes")
    assert recollect("status", "--json").json["search"]["collections"] == {}
