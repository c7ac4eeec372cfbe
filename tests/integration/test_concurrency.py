"""One pipeline between many threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from recollect import Document, RAGPipeline, RetrievalOptions


def test_eight_threads_ingest_and_search_through_one_pipeline(pipeline: RAGPipeline):
    pipeline.ingest([Document(content=f"seed document {n}", source=f"seed{n}") for n in range(20)])
    barrier = threading.Barrier(8)
    shared = [Document(content=f"shared text {n}", source=f"shared{n}") for n in range(10)]

    def ingest(number: int) -> int:
        barrier.wait()
        added = 0
        for round_number in range(3):
            own = Document(content=f"thread {number} round {round_number}", source=f"own{number}")
            added += sum(result.status == "added" for result in pipeline.ingest([own, *shared]))
        return added

    def search(_: int) -> int:
        barrier.wait()
        empty = 0
        for mode in ("hybrid", "dense", "lexical") * 4:
            reply = pipeline.search("seed document", RetrievalOptions(mode=mode, top_k=5))
            empty += len(reply.results) != 5
            # A passage is always whole: its text is what stands at its offsets, whatever is written meanwhile.
            for result in reply.results:
                assert len(result.content) == result.end_offset - result.start_offset
        return empty

    with ThreadPoolExecutor(8) as pool:
        ingests = [pool.submit(ingest, number) for number in range(4)]
        searches = [pool.submit(search, number) for number in range(4)]
        assert sum(future.result() for future in ingests) == 4 + len(shared)
        assert [future.result() for future in searches] == [0, 0, 0, 0]
    assert pipeline.maintenance.check() == []
    assert pipeline.maintenance.status().total_documents == 34


def test_a_document_is_found_whole_or_not_at_all_while_it_changes(pipeline: RAGPipeline):
    texts = {version: "\n\n".join(f"{version} paragraph {n} " + "filling " * 60 for n in range(8)) for version in "AB"}
    pipeline.ingest(Document(content=texts["A"], source="changing"))
    done = threading.Event()

    def change() -> None:
        for number in range(12):
            pipeline.ingest(Document(content=texts["BA"[number % 2]], source="changing"))
        done.set()

    with ThreadPoolExecutor(1) as pool:
        changing = pool.submit(change)
        while not done.is_set():
            hits = pipeline.search("paragraph filling", RetrievalOptions(mode="dense", top_k=50)).results
            assert len({result.content[0] for result in hits if result.start_offset == 0}) == 1
            assert len(hits) >= 4
        changing.result()


def test_first_uses_at_once_make_one_store_and_one_collection(pipeline: RAGPipeline):
    barrier = threading.Barrier(6)

    def first(number: int) -> int:
        barrier.wait()
        pipeline.ingest(f"text {number}")
        return id(pipeline.store)

    with ThreadPoolExecutor(6) as pool:
        stores = set(pool.map(first, range(6)))
    assert len(stores) == 1
    assert [place.document_count for place in pipeline.collections.list()] == [6]
