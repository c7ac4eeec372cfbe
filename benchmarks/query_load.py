r"""Searches below filters, from several callers at once, from the cache, and of a document that has just come.

Uses the store that ``query_speed.py build`` has made, its questions and vectors; reranking is off. Run from the
repository root::

    python benchmarks/query_speed.py build --work ../query-bench
    python benchmarks/query_load.py --work ../query-bench
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
from harness import Clock, machine, percentile, server_version, table, versions
from query_speed import DIMENSION, KnownVectors, ParagraphChunker, load_questions

from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.ingest.documents import BatchWriter, ingest_documents
from recollect.ingest.prepare import Preparer
from recollect.model import Scope
from recollect.retrieval.indexing import TermIndexer

COLLECTION = "large"
SHARES = (0.0001, 0.01, 0.1)
CALLERS = (1, 8, 32)
PLAIN = RetrievalOptions(rerank="none", use_cache=False)


def main() -> None:
    parser = argparse.ArgumentParser(description="Searches under several conditions.")
    parser.add_argument("--work", type=Path, required=True, help="the folder that query_speed.py build was given")
    parser.add_argument("--questions", type=int, default=200)
    arguments = parser.parse_args()
    known = KnownVectors()
    config = RAGConfig.model_validate(
        {
            "storage": {"data_dir": (arguments.work / "data").resolve()},
            "embedding": {"cache": False},
            "retrieval": {"probe_rate": 0},
        }
    )
    with RAGPipeline(config, embedder=known) as rag:
        questions = load_questions(arguments, known)[: arguments.questions]
        print(f"{machine()}\n")
        print(
            table(["kept", "documents", "mode", "p50, ms", "p95, ms", "found", "exact"], filtered(rag, questions)), "\n"
        )
        print(table(["callers", "queries/s", "p50, ms", "p95, ms"], concurrent(rag, questions)), "\n")
        print(f"The same search again, from the cache: p50 {cached(rag, questions):.3f} ms")
        print(f"A new document, until both retrievers find it: p50 {fresh(rag, known):.1f} ms")
        print(f"\nVersions: {', '.join([*versions(), server_version(rag.store.database)])}")


def timed(search: Callable[[str], object], questions: Sequence[str]) -> list[float]:
    for question in questions[:30]:
        search(question)
    times = []
    for question in questions:
        started = time.perf_counter()
        search(question)
        times.append((time.perf_counter() - started) * 1000)
    return times


def filtered(rag: RAGPipeline, questions: Sequence[str]) -> list[list[object]]:
    """Every hundredth, tenth, … document, by its name, so that what is kept lies all over the collection."""
    documents = list(rag.view(collections=COLLECTION).documents.each())
    rows = []
    for share in SHARES:
        step = round(1 / share)
        kept = tuple(document.source for document in documents[step // 2 :: step])
        for mode in ("dense", "lexical", "hybrid"):
            options = replace(PLAIN, mode=mode, source=kept)
            replies = []

            def search(question: str, options=options, replies=replies) -> None:
                replies.append(rag.view(collections=COLLECTION).search(question, options))

            times = timed(search, questions)
            found = np.mean([len(reply.results) for reply in replies])
            exact = np.mean([reply.exact for reply in replies])
            p50, p95 = (f"{percentile(times, at):.2f}" for at in (50, 95))
            rows.append([f"{share:.2%}", len(kept), mode, p50, p95, f"{found:.1f}", f"{exact:.0%}"])
    return rows


def concurrent(rag: RAGPipeline, questions: Sequence[str]) -> list[list[object]]:
    def one(question: str) -> float:
        started = time.perf_counter()
        rag.view(collections=COLLECTION).search(question, PLAIN)
        return (time.perf_counter() - started) * 1000

    rows = []
    for callers in CALLERS:
        with ThreadPoolExecutor(callers) as pool:
            list(pool.map(one, questions))
            with Clock() as clock:
                times = list(pool.map(one, [*questions, *questions]))
        rate = len(times) / clock.seconds
        rows.append([callers, f"{rate:.0f}", *(f"{percentile(times, at):.1f}" for at in (50, 95))])
    return rows


def cached(rag: RAGPipeline, questions: Sequence[str]) -> float:
    options = replace(PLAIN, use_cache=True)
    return percentile(
        timed(lambda question: rag.view(collections=COLLECTION).search(question, options), questions[:30]), 50
    )


def fresh(rag: RAGPipeline, known: KnownVectors, *, rounds: int = 20) -> float:
    """Milliseconds until a dense and a lexical search have a new document first; then it is erased."""
    generator = np.random.default_rng(int(time.time()))
    store, scope, times = rag.store, Scope(), []
    for number in range(rounds):
        place = store.collections.get(scope, COLLECTION)
        preparer = Preparer(ParagraphChunker(), TermIndexer("en", salt=place.collection_id), known, settings={})
        writer = BatchWriter(preparer, store.collections, store.writer, scope=scope, collection=place)
        text = f"zyx{number}quux has come just now"
        vector = generator.normal(size=(1, DIMENSION)).astype(np.float32)
        vector /= np.linalg.norm(vector)
        known.learn([text], vector)
        question = f"zyx{number}quux"
        known.learn([question], vector)
        document = Document(content=text, source=f"fresh/{number}.txt")
        started = time.perf_counter()
        ingest_documents(
            [document],
            scope=scope,
            preparer=preparer,
            batch_writer=writer,
            repository=store.documents,
            collection=place,
        )
        for mode in ("dense", "lexical"):
            reply = rag.view(collections=COLLECTION).search(question, replace(PLAIN, mode=mode))
            if reply.results[0].content != text:
                raise SystemExit(f"mode {mode} does not find the new document")
        times.append((time.perf_counter() - started) * 1000)
        found = [one.document_id for one in rag.view(collections=COLLECTION).search(question, PLAIN).results[:1]]
        rag.documents.erase(found).counts["documents"]
    return percentile(times, 50)


if __name__ == "__main__":
    main()
