r"""A hybrid query on 100,000 chunks, beside the query's embedding.

Fills a store through the ingest that documents always take (cut, weighed, one transaction a batch, the HNSW index at
the end), with vectors computed beforehand (see benchmarks/synthetic.py), and beside the large collection a small one in
the same store. Then real questions, embedded beforehand too, are asked through ``RAGPipeline.search`` with the default
settings, and once more without reranking. Run from the repository root::

    python benchmarks/query_speed.py build --work ../query-bench
    python benchmarks/query_speed.py measure --work ../query-bench
    python benchmarks/query_speed.py exact --work ../query-bench     # the lexical top 10 beside that of all candidates
    python benchmarks/query_speed.py plans --work ../query-bench     # EXPLAIN ANALYZE of both retrievers
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import numpy as np
import synthetic
from harness import Clock, Memory, machine, percentile, say, server_version, size_on_disk, table, versions

from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.model import Chunk, Scope
from recollect.model.collection import Collection
from recollect.retrieval.candidates import CandidateRequest
from recollect.retrieval.enhance.plan import QueryPlan
from recollect.retrieval.sql_candidates import SqlCandidates
from recollect.store.search import SearchRepository

DIMENSION = 384


class KnownVectors:
    """Looks vectors up by the last line of a text: what stands above it is the title, which the ingest adds."""

    dimension = DIMENSION
    model_name = "known-beforehand"

    def __init__(self) -> None:
        self._vectors: dict[bytes, np.ndarray] = {}

    def learn(self, texts: Sequence[str], vectors: np.ndarray) -> None:
        for text, vector in zip(texts, vectors, strict=True):
            self._vectors[_key(text)] = vector.astype(np.float16)

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        keys = [_key(text.rpartition("\n")[2]) for text in texts]
        return np.stack([self._vectors.pop(key) for key in keys]).astype(np.float32)

    def embed_query(self, text: str) -> np.ndarray:
        return self._vectors[_key(text)].astype(np.float32)


def _key(text: str) -> bytes:
    return hashlib.md5(text.encode(), usedforsecurity=False).digest()


class ParagraphChunker:
    """Exactly the paragraphs that have vectors."""

    def chunk(self, document: Document) -> list[Chunk]:
        chunks, start = [], 0
        for position, text in enumerate(document.content.split("\n\n")):
            end = start + len(text)
            chunks.append(Chunk(text=text, position=position, start_offset=start, end_offset=end, token_count=1))
            start = end + 2
        return chunks


def main() -> None:
    parser = argparse.ArgumentParser(description="A hybrid query on many chunks.")
    parser.add_argument("step", choices=("build", "measure", "exact", "plans"))
    parser.add_argument("--work", type=Path, required=True, help="a folder for the store and the vectors")
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--small", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5, help="how often every question is asked")
    parser.add_argument("--questions", type=int, default=450)
    parser.add_argument("--sources", type=int, help="source texts to draw sentences from; all by default")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    known = KnownVectors()
    # Questions are asked repeatedly, and a reply that was kept is no search; nor is one repeated exactly meanwhile.
    config = RAGConfig.model_validate(
        {
            "storage": {"data_dir": (arguments.work / "data").resolve()},
            "embedding": {"cache": False},
            "retrieval": {"cache_entries": 0, "probe_rate": 0},
        }
    )
    with RAGPipeline(config, embedder=known) as rag:
        {"build": build, "measure": measure, "exact": exact, "plans": plans}[arguments.step](arguments, rag, known)


def collections(arguments: argparse.Namespace) -> dict[str, int]:
    return {"large": arguments.chunks, "small": arguments.small}


def build(arguments: argparse.Namespace, rag: RAGPipeline, known: KnownVectors) -> None:
    with Clock() as clock:
        sentences = synthetic.load_sentences(arguments.work, sample=arguments.sources)
    say(f"{len(sentences.texts):,} sentences with vectors in {clock.seconds:.0f} s")
    rows = []
    for seed, (name, chunks) in enumerate(collections(arguments).items()):
        if any(place.name == name for place in rag.collections.each()):
            rag.collections.delete(name)
        with Clock() as ingest:
            fill(rag, known, name, synthetic.documents(sentences, chunks=chunks, seed=seed))
        with Clock() as index:
            if rag.store.dense_indexer.due(Scope(), name):
                rag.store.dense_indexer.build(Scope(), name)
        place = rag.store.collections.get(Scope(), name)
        rows.append(
            [name, f"{place.chunk_count:,}", f"{ingest.seconds:.1f}", f"{index.seconds:.1f}" if place.indexed else "–"]
        )
        say(rows[-1])
    save_questions(arguments)
    print(f"{machine()}\n\n{table(['collection', 'chunks', 'made and stored, s', 'HNSW index, s'], rows)}")


def fill(rag: RAGPipeline, known: KnownVectors, name: str, made: Iterator[synthetic.MadeDocument]) -> None:
    from recollect.ingest.documents import BatchWriter, ingest_documents
    from recollect.ingest.prepare import Preparer
    from recollect.retrieval.indexing import TermIndexer

    def stream() -> Iterator[Document]:
        for document in made:
            known.learn(document.paragraphs, document.vectors)
            yield Document(content="\n\n".join(document.paragraphs), source=document.name)

    place = rag.collections.create(name)
    store = rag.store
    preparer = Preparer(ParagraphChunker(), TermIndexer("en", salt=place.collection_id), known, settings={})
    writer = BatchWriter(preparer, store.collections, store.writer, scope=Scope(), collection=place)
    ingest_documents(
        stream(), scope=Scope(), preparer=preparer, batch_writer=writer, repository=store.documents, collection=place
    )


def save_questions(arguments: argparse.Namespace) -> None:
    texts = synthetic.questions(arguments.questions)
    np.save(arguments.work / "questions.npy", synthetic.embed(texts))
    (arguments.work / "questions.json").write_text(json.dumps(texts), encoding="utf-8")


def load_questions(arguments: argparse.Namespace, known: KnownVectors) -> list[str]:
    texts = json.loads((arguments.work / "questions.json").read_text(encoding="utf-8"))
    known.learn(texts, np.load(arguments.work / "questions.npy"))
    return texts


def measure(arguments: argparse.Namespace, rag: RAGPipeline, known: KnownVectors) -> None:
    questions = load_questions(arguments, known)
    folder = arguments.work / "data"
    totals, stages, notes = [], [], []
    memory = Memory(folder)
    for name, rerank in product(collections(arguments), (None, "none")):
        options = RetrievalOptions(rerank=rerank)
        with Clock() as first:
            rag.view(collections=name).search(questions[0], options)
        for question in questions[:50]:
            rag.view(collections=name).search(question, options)
        times, per_stage, paths = ask(rag, name, questions, options, arguments.rounds)
        chunks = rag.store.collections.get(Scope(), name).chunk_count
        p50, p95, p99 = (f"{percentile(times, share):.2f}" for share in (50, 95, 99))
        reranked = rerank or rag.config.retrieval.rerank
        totals.append([name, reranked, f"{chunks:,}", len(times), p50, p95, p99, f"{max(times):.1f}"])
        totals[-1].append(", ".join(f"{path} ({count})" for path, count in paths.most_common()))
        for stage, found in per_stage.items():
            stages.append([name, reranked, stage, f"{percentile(found, 50):.2f}", f"{percentile(found, 95):.2f}"])
        notes.append(f"The first such query of the process on {name}: {first.seconds * 1000:.0f} ms.")
        memory.sample()
    head = ["collection", "reranking", "chunks", "queries", "p50, ms", "p95, ms", "p99, ms", "most, ms", "paths"]
    print(f"{machine()}\n\n{table(head, totals)}\n")
    print(table(["collection", "reranking", "stage", "p50, ms", "p95, ms"], stages), "\n")
    print("\n".join(notes))
    peaks = ", ".join(f"{name} {size:.0f} MB" for name, size in memory.peaks.items())
    database = rag.maintenance.status().database_bytes / 1e6
    print(f"\nMemory at its peak: {peaks}. Database {database:.0f} MB, data directory {size_on_disk(folder):.0f} MB.")
    print(f"\nVersions: {', '.join([*versions(), server_version(rag.store.database)])}")


def ask(
    rag: RAGPipeline, name: str, questions: Sequence[str], options: RetrievalOptions, rounds: int
) -> tuple[list[float], dict[str, list[float]], Counter[str]]:
    times: list[float] = []
    stages: dict[str, list[float]] = {}
    paths: Counter[str] = Counter()
    for _ in range(rounds):
        for question in questions:
            started = time.perf_counter()
            reply = rag.view(collections=name).search(question, options)
            elapsed = (time.perf_counter() - started) * 1000
            times.append(elapsed - reply.timings_ms.get("embed", 0.0))
            paths[" + ".join(f"{retriever} {path}" for retriever, path in sorted(reply.paths.items()))] += 1
            for stage, milliseconds in reply.timings_ms.items():
                stages.setdefault(stage, []).append(milliseconds)
    return times, stages, paths


def exact(arguments: argparse.Namespace, rag: RAGPipeline, known: KnownVectors) -> None:
    """Whether the lexical retriever's top 10 is that of scoring every chunk that holds any of the query's terms."""
    questions = load_questions(arguments, known)
    place = rag.store.collections.get(Scope(), "large")
    pruned, whole = (
        SqlCandidates(rag.store.search, lexical_budget=budget)
        for budget in (rag.config.retrieval.lexical_budget, 10**9)
    )
    equal = proven = 0
    for question in questions:
        found, reference = (
            source.proven(Scope(), by_words(place, question, top_k=10, limit=100)) for source in (pruned, whole)
        )
        scores = [[score for _, score in hits.scores[:10]] for hits in (found, reference)]
        equal += len(scores[0]) == len(scores[1]) and np.allclose(*scores, rtol=1e-4)
        proven += found.exact
    print(f"{len(questions)} questions: top 10 equal for {equal} ({equal / len(questions):.1%}), {proven} proven")


def plans(arguments: argparse.Namespace, rag: RAGPipeline, known: KnownVectors) -> None:
    """EXPLAIN (ANALYZE, BUFFERS) of what the search functions run, for the question whose retrievers took longest."""
    questions = load_questions(arguments, known)
    for name in collections(arguments):
        slowest = max(
            questions[:100], key=lambda question: rag.view(collections=name).search(question).timings_ms["total"]
        )
        print(f"## {name}: {slowest}\n")
        place = rag.store.collections.get(Scope(), name)
        with rag.store.database.autocommit() as connection:
            for function in ("dense_candidates", "lexical_candidates"):
                explaining(connection, function)
            repository = SearchRepository(Explaining(connection))
            limit = rag.config.retrieval.candidates
            repository.dense(Scope(), place, known.embed_query(slowest), limit=limit, indexed=place.indexed)
            source = SqlCandidates(repository, lexical_budget=rag.config.retrieval.lexical_budget)
            source.proven(Scope(), by_words(place, slowest, top_k=rag.config.retrieval.top_k, limit=limit))


def by_words(place: Collection, question: str, **given) -> CandidateRequest:
    return CandidateRequest(collection=place, plan=QueryPlan(query=question), mode="lexical", **given)


def explaining(connection, function: str) -> None:
    """A copy of a search function, for this session only, that explains its statement instead of returning rows."""
    body = connection.execute("SELECT pg_get_functiondef(%s::regproc)", [function]).fetchone()[0]
    body = re.sub(rf"FUNCTION \S*{function}\(", f"FUNCTION pg_temp.explain_{function}(", body, count=1)
    body = re.sub(r"RETURNS TABLE\(.*\)\n", "RETURNS TABLE(line text)\n", body, count=1)
    body = body.replace("EXECUTE format(", "EXECUTE 'EXPLAIN (ANALYZE, BUFFERS) ' || format(")
    connection.execute(body.replace(" STABLE", " VOLATILE"))


class Explaining:
    """Stands in for the database of a repository, and for its connection: every search explains itself first."""

    def __init__(self, connection) -> None:
        self._connection = connection

    @contextmanager
    def transaction(self, scope: Scope) -> Iterator[Explaining]:
        self._connection.execute(f"BEGIN; SET LOCAL recollect.tenant_id = {scope.tenant_id}")
        yield self
        self._connection.execute("COMMIT")

    single_reads = transaction

    def execute(self, query: str, params: dict, *, binary: bool):
        explain = re.sub(r"(?s)SELECT .*FROM (\w+_candidates)", r"SELECT line FROM pg_temp.explain_\1", query)
        if explain != query:
            lines = [row[0] for row in self._connection.execute(explain, params)]
            print("\n".join(line[:200] for line in lines), "\n")
        return self._connection.execute(query, params, binary=binary)


if __name__ == "__main__":
    main()
