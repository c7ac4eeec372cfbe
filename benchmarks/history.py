r"""Searches of the present and of the past, of a collection whose every chunk has ten versions.

The same documents are stored again and again, each time with other texts and vectors (see benchmarks/synthetic.py), and
the moment after each time is kept. Beside the collection with a history stands one that holds the last versions alone.
Then real questions are asked of the present of both, and of moments of the past. Run from the repository root::

    python benchmarks/history.py build --work ../history-bench --chunks 100000 --versions 10
    python benchmarks/history.py measure --work ../history-bench
    python benchmarks/history.py plans --work ../history-bench      # EXPLAIN ANALYZE of what a search of the past runs
    python benchmarks/history.py indexes --work ../history-bench    # what an index over closed rows would give

Wanted: the present costs the same however much history there is, the past at most three times that.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
import synthetic
from harness import Clock, machine, percentile, say, server_version, table, versions
from pgvector import HalfVector
from query_speed import KnownVectors, ParagraphChunker, load_questions, save_questions

from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.ingest.documents import BatchWriter, ingest_documents
from recollect.ingest.prepare import Preparer
from recollect.model import Scope
from recollect.retrieval.indexing import TermIndexer
from recollect.store.filters import DocumentFilter, matching_versions

HISTORY, ALONE = "history", "alone"


def main() -> None:
    parser = argparse.ArgumentParser(description="Searches of the present and of the past.")
    parser.add_argument("step", choices=("build", "measure", "plans", "indexes"))
    parser.add_argument("--work", type=Path, required=True, help="a folder for the store and the vectors")
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--versions", type=int, default=10)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=2, help="how often every question is asked")
    parser.add_argument("--sources", type=int, help="source texts to draw sentences from; all by default")
    parser.add_argument("--index-threshold", type=int, default=10_000, help="chunks from which on there is an index")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    known = KnownVectors()
    # Questions are asked repeatedly, and a reply that was kept is no search; nor is one repeated exactly meanwhile.
    config = RAGConfig.model_validate(
        {
            "storage": {
                "data_dir": (arguments.work / "data").resolve(),
                "index_threshold": arguments.index_threshold,
            },
            "embedding": {"cache": False},
            "retrieval": {"cache_entries": 0, "probe_rate": 0},
        }
    )
    with RAGPipeline(config, embedder=known) as rag:
        steps = {"build": build, "measure": measure, "plans": plans, "indexes": indexes}
        steps[arguments.step](arguments, rag, known)


def build(arguments: argparse.Namespace, rag: RAGPipeline, known: KnownVectors) -> None:
    sentences = synthetic.load_sentences(arguments.work, sample=arguments.sources)
    for name in (HISTORY, ALONE):
        if any(place.name == name for place in rag.list_collections()):
            rag.delete_collection(name)
        rag.create_collection(name)
    moments, rows = [], []
    for version in range(arguments.versions):
        with Clock() as clock:
            fill(rag, known, HISTORY, synthetic.documents(sentences, chunks=arguments.chunks, seed=version))
        moments.append(_now(rag))
        rows.append([HISTORY, version + 1, f"{clock.seconds:.1f}"])
        say(*rows[-1])
        if not version:
            build_index(rag, HISTORY)
    with Clock() as clock:
        last = synthetic.documents(sentences, chunks=arguments.chunks, seed=arguments.versions - 1)
        fill(rag, known, ALONE, last)
        build_index(rag, ALONE)
    rows.append([ALONE, 1, f"{clock.seconds:.1f}"])
    (arguments.work / "moments.json").write_text(json.dumps([one.isoformat() for one in moments]), encoding="utf-8")
    save_questions(arguments)
    print(f"{machine()}\n\n{table(['collection', 'version', 'stored, s'], rows)}")


def build_index(rag: RAGPipeline, name: str) -> None:
    if rag.store.dense_indexer.due(Scope(), name):
        rag.store.dense_indexer.build(Scope(), name)


def fill(rag: RAGPipeline, known: KnownVectors, name: str, made: Iterator[synthetic.MadeDocument]) -> None:
    def stream() -> Iterator[Document]:
        for document in made:
            known.learn(document.paragraphs, document.vectors)
            yield Document(content="\n\n".join(document.paragraphs), source=document.name)

    place, store = rag.store.collections.get(Scope(), name), rag.store
    preparer = Preparer(ParagraphChunker(), TermIndexer("en", salt=place.collection_id), known, settings={})
    writer = BatchWriter(preparer, store.collections, store.writer, scope=Scope(), collection=place)
    ingest_documents(
        stream(), scope=Scope(), preparer=preparer, batch_writer=writer, repository=store.documents, collection=place
    )


def _now(rag: RAGPipeline) -> datetime:
    with rag.store.database.autocommit() as connection:
        row = connection.execute("SELECT clock_timestamp()").fetchone()
    return row[0]


def _moments(arguments: argparse.Namespace) -> list[datetime]:
    return [datetime.fromisoformat(one) for one in json.loads((arguments.work / "moments.json").read_text("utf-8"))]


def measure(arguments: argparse.Namespace, rag: RAGPipeline, known: KnownVectors) -> None:
    questions = load_questions(arguments, known)[: arguments.questions]
    moments = _moments(arguments)
    asked = [("present, without history", ALONE, None), (f"present, {len(moments)} versions", HISTORY, None)]
    past = sorted({0, len(moments) // 2, len(moments) - 2})
    asked += [(f"as of version {number + 1}", HISTORY, moments[number]) for number in past]
    rows, baseline = [], 0.0
    for title, name, as_of in asked:
        times, stages = ask(rag, name, questions, as_of, arguments.rounds)
        p50 = percentile(times, 50)
        baseline = baseline or p50
        parts = ", ".join(f"{stage} {percentile(found, 50):.1f}" for stage, found in stages.items())
        rows.append([title, f"{p50:.2f}", f"{percentile(times, 95):.2f}", f"{p50 / baseline:.2f}", parts])
        say(*rows[-1])
    place = rag.store.collections.get(Scope(), HISTORY)
    print(f"{machine()}\n\n{place.chunk_count:,} current chunks, {len(moments)} versions of each.\n")
    print(table(["search", "p50, ms", "p95, ms", "times the first", "stages, p50 in ms"], rows))
    print(f"\nVersions: {', '.join([*versions(), server_version(rag.store.database)])}")


def ask(
    rag: RAGPipeline, name: str, questions: Sequence[str], as_of: datetime | None, rounds: int
) -> tuple[list[float], dict[str, list[float]]]:
    times: list[float] = []
    stages: dict[str, list[float]] = {}
    for question in questions[:20]:
        rag.search(question, RetrievalOptions(), collection=name, as_of=as_of)
    for _ in range(rounds):
        for question in questions:
            started = time.perf_counter()
            reply = rag.search(question, RetrievalOptions(), collection=name, as_of=as_of)
            times.append((time.perf_counter() - started) * 1000 - reply.timings_ms.get("embed", 0.0))
            for stage, milliseconds in reply.timings_ms.items():
                stages.setdefault(stage, []).append(milliseconds)
    return times, stages


def plans(arguments: argparse.Namespace, rag: RAGPipeline, known: KnownVectors) -> None:
    """What a search of the past runs, as the server explains it."""
    moments = _moments(arguments)
    moment = moments[len(moments) // 2]
    question = load_questions(arguments, known)[0]
    place = rag.store.collections.get(Scope(), HISTORY)
    found = matching_versions(rag.store.database, Scope(as_of=moment), place.collection_id, DocumentFilter())
    print(f"{len(found.version_ids):,} versions of {found.chunk_count:,} chunks\n")
    params = {
        "c": place.collection_id,
        "at": moment,
        "versions": found.version_ids,
        "vector": HalfVector(known.embed_query(question)),
    }
    for title, statement in EXPLAINED.items():
        print(f"## {title}\n")
        with rag.store.database.autocommit() as connection:
            for row in connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, COSTS OFF) {statement}", params):
                print(row[0][:150])
        print()


EXPLAINED = {
    "the versions of then": """
        SELECT array_agg(v.version_id ORDER BY v.version_id), sum(v.chunk_count) FROM document_versions v
        WHERE v.tenant_id = 1 AND v.collection_id = %(c)s AND v.known_from <= %(at)s AND v.known_to > %(at)s
          AND v.expires_at > %(at)s""",
    "the dense arm, by these versions": """
        SELECT chunk_id FROM chunk_vectors
        WHERE tenant_id = 1 AND collection_id = %(c)s AND known_from <= %(at)s AND known_to > %(at)s
          AND version_id = ANY (%(versions)s)
        ORDER BY embedding <#> %(vector)s, chunk_id LIMIT 50""",
}


def indexes(arguments: argparse.Namespace, rag: RAGPipeline, known: KnownVectors) -> None:
    """What an index over the closed rows of the collection would give: build it, and compare with the exact search."""
    moments = _moments(arguments)
    questions = load_questions(arguments, known)[: arguments.questions]
    place = rag.store.collections.get(Scope(), HISTORY)
    name = f"proposed_history_{place.collection_id}"
    dimension = place.embedding_dimension
    with rag.store.database.autocommit() as connection, Clock() as clock:
        connection.execute("SET maintenance_work_mem = '1GB'")
        connection.execute(
            f"CREATE INDEX IF NOT EXISTS {name} ON chunk_vectors USING hnsw "
            f"((embedding::halfvec({dimension})) halfvec_ip_ops) "
            f"WHERE collection_id = {place.collection_id} AND known_to < 'infinity'"
        )
    print(f"{machine()}\n\nAn HNSW index over the closed rows was built in {clock.seconds:.0f} s.\n")
    rows = []
    for number in sorted({0, len(moments) // 2, len(moments) - 2}):
        for ef_search in (100, 200, 400):
            recall, exact_ms, index_ms = _compared(rag, known, questions, moments[number], place, ef_search)
            rows.append([number + 1, ef_search, f"{exact_ms:.1f}", f"{index_ms:.1f}", f"{recall:.3f}"])
    print(table(["as of version", "ef_search", "exact, ms", "both indexes, ms", "recall of the top 50"], rows))


def _compared(rag, known, questions, moment, place, ef_search) -> tuple[float, float, float]:
    dimension = place.embedding_dimension
    distance = f"embedding::halfvec({dimension}) <#> %(vector)s::halfvec({dimension})"
    half = (
        f"(SELECT chunk_id, {distance} AS d FROM chunk_vectors WHERE tenant_id = 1 AND "
        f"collection_id = {place.collection_id} AND known_from <= %(at)s AND known_to {{end}} ORDER BY d LIMIT 50)"
    )
    closed = half.format(end="< 'infinity' AND known_to > %(at)s")
    current = half.format(end="= 'infinity'")
    joined = f"SELECT chunk_id FROM ({current} UNION ALL {closed}) AS both_halves ORDER BY d LIMIT 50"
    found = matching_versions(rag.store.database, Scope(as_of=moment), place.collection_id, DocumentFilter())
    hits, times = [], {"exact": [], "index": []}
    with rag.store.database.autocommit() as connection:
        connection.execute(f"SET hnsw.ef_search = {ef_search}")
        for question in questions:
            params = {"vector": HalfVector(known.embed_query(question)), "at": moment}
            versions_too = {**params, "c": place.collection_id, "versions": found.version_ids}
            ids = {}
            for kind, statement in (("exact", EXPLAINED["the dense arm, by these versions"]), ("index", joined)):
                started = time.perf_counter()
                ids[kind] = {row[0] for row in connection.execute(statement, versions_too, prepare=False)}
                times[kind].append((time.perf_counter() - started) * 1000)
            hits.append(len(ids["exact"] & ids["index"]) / max(1, len(ids["exact"])))
        connection.execute("RESET hnsw.ef_search")
    return float(np.mean(hits)), percentile(times["exact"], 50), percentile(times["index"], 50)


if __name__ == "__main__":
    np.seterr(all="raise", under="ignore")
    main()
