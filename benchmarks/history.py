r"""Searches of the present and of the past, of a collection whose every chunk has ten versions.

The same documents are stored again and again, each time with other texts and vectors (see benchmarks/synthetic.py), and
the moment after each time is kept. Beside the collection with a history stands one that holds the last versions alone.
Then real questions are asked of the present of both, and of moments of the past. Run from the repository root::

    python benchmarks/history.py build --work ../history-bench --chunks 100000 --versions 10
    python benchmarks/history.py index --work ../history-bench      # vector indexes, and segments of the history
    python benchmarks/history.py measure --work ../history-bench
    python benchmarks/history.py recall --work ../history-bench     # of the dense retriever, beside a comparison of all
    python benchmarks/history.py plans --work ../history-bench      # EXPLAIN ANALYZE of what a search of the past runs

With ``--made`` the texts come from a folder that ``growth.py`` has made, of at least so many chunks as there are
versions of chunks: making them takes ten times as long as storing them.

Indexes are built when everything is stored. A store in use keeps the one of current vectors up to date with every write
and makes a segment of its history whenever as much as half of it has been replaced; here each segment holds one
version of everything.

Wanted: the present costs the same however much history there is, the past at most three times that.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
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
from recollect.store.search import RowSelection

HISTORY, ALONE = "history", "alone"


class KnownTexts(KnownVectors):
    """As `KnownVectors`, where a text may come twice: two documents may have a paragraph in common."""

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([self.embed_query(text.rpartition("\n")[2]) for text in texts])

    def forget(self) -> None:
        self._vectors.clear()


def main() -> None:
    parser = argparse.ArgumentParser(description="Searches of the present and of the past.")
    parser.add_argument("step", choices=("build", "index", "measure", "recall", "plans"))
    parser.add_argument("--work", type=Path, required=True, help="a folder for the store and the vectors")
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--versions", type=int, default=10)
    parser.add_argument("--made", type=Path, help="texts and vectors made by growth.py")
    parser.add_argument("--mode", default="hybrid,dense,lexical", help="modes to measure")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=2, help="how often every question is asked")
    parser.add_argument("--sources", type=int, help="source texts to draw sentences from; all by default")
    parser.add_argument("--index-threshold", type=int, default=10_000, help="chunks from which on there is an index")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    known = KnownTexts()
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
        steps = {"build": build, "index": index, "measure": measure, "recall": recall, "plans": plans}
        steps[arguments.step](arguments, rag, known)


def build(arguments: argparse.Namespace, rag: RAGPipeline, known: KnownTexts) -> None:
    sentences = None if arguments.made else synthetic.load_sentences(arguments.work, sample=arguments.sources)

    def made(version: int) -> Iterator[synthetic.MadeDocument]:
        if sentences is None:
            return _made_before(arguments.made, arguments.chunks, version)
        return synthetic.documents(sentences, chunks=arguments.chunks, seed=version)

    for name in (HISTORY, ALONE):
        if any(place.name == name for place in rag.collections.each()):
            rag.collections.delete(name)
        rag.collections.create(name)
    moments, rows = [], []
    for version in range(arguments.versions):
        with Clock() as clock:
            fill(rag, known, HISTORY, made(version))
        known.forget()
        moments.append(_now(rag))
        rows.append([HISTORY, version + 1, f"{clock.seconds:.1f}"])
        say(*rows[-1])
        (arguments.work / "moments.json").write_text(json.dumps([one.isoformat() for one in moments]), encoding="utf-8")
    with Clock() as clock:
        fill(rag, known, ALONE, made(arguments.versions - 1))
    rows.append([ALONE, 1, f"{clock.seconds:.1f}"])
    save_questions(arguments)
    print(f"{machine()}\n\n{table(['collection', 'version', 'stored, s'], rows)}")


def _made_before(folder: Path, chunks: int, version: int) -> Iterator[synthetic.MadeDocument]:
    vectors = np.load(folder / "vectors.npy", mmap_mode="r")
    size = synthetic.CHUNKS_A_DOCUMENT
    with (folder / "chunks.jsonl").open(encoding="utf-8") as lines:
        texts = (json.loads(line)["text"] for line in islice(lines, version * chunks, (version + 1) * chunks))
        for number, start in enumerate(range(version * chunks, (version + 1) * chunks, size)):
            paragraphs = list(islice(texts, size))
            yield synthetic.MadeDocument(
                f"made/{number % 12:02}/{number:06}.txt", paragraphs, vectors[start : start + len(paragraphs)]
            )


def index(arguments: argparse.Namespace, rag: RAGPipeline, _: KnownTexts) -> None:
    """What a store in use would have: statistics, vector indexes, and segments of the history."""
    rows, scope = [], Scope()
    for name in (HISTORY, ALONE):
        with Clock() as clock:
            rag.store.collections.refresh_term_stats(scope, rag.store.collections.get(scope, name))
            rag.store.dense_indexer.build(scope, name)
        rows.append([f"statistics and vector index, {name}", f"{clock.seconds:.1f}"])
        say(*rows[-1])
    for number, moment in enumerate(_moments(arguments)[1:], 1):
        with Clock() as clock:
            rag.store.history_indexer.build(scope, HISTORY, until=moment)
        rows.append([f"segment of version {number}", f"{clock.seconds:.1f}"])
        say(*rows[-1])
    with rag.store.database.autocommit() as connection, Clock() as clock:
        connection.execute("VACUUM (ANALYZE) document_versions, chunk_vectors, chunk_lexical, chunks")
    rows.append(["vacuum", f"{clock.seconds:.1f}"])
    print(f"{machine()}\n\n{table(['built', 's'], rows)}")


def fill(rag: RAGPipeline, known: KnownTexts, name: str, made: Iterator[synthetic.MadeDocument]) -> None:
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


def measure(arguments: argparse.Namespace, rag: RAGPipeline, known: KnownTexts) -> None:
    questions = load_questions(arguments, known)[: arguments.questions]
    moments = _moments(arguments)
    asked = [("present, without history", ALONE, None), (f"present, {len(moments)} versions", HISTORY, None)]
    past = sorted({0, len(moments) // 2, len(moments) - 2})
    asked += [(f"as of version {number + 1}", HISTORY, moments[number]) for number in past]
    rows = []
    for mode in arguments.mode.split(","):
        baseline = 0.0
        for title, name, as_of in asked:
            options = RetrievalOptions(mode=mode)
            times, stages, paths = ask(rag, name, questions, options, as_of, arguments.rounds)
            p50 = percentile(times, 50)
            baseline = baseline or p50
            parts = ", ".join(f"{stage} {percentile(found, 50):.1f}" for stage, found in stages.items())
            ratio = f"{p50 / baseline:.2f}"
            rows.append([mode, title, f"{p50:.2f}", f"{percentile(times, 95):.2f}", ratio, paths, parts])
            say(*rows[-1])
    place = rag.store.collections.get(Scope(), HISTORY)
    print(f"{machine()}\n\n{place.chunk_count:,} current chunks, {len(moments)} versions of each.\n")
    print(table(["mode", "search", "p50, ms", "p95, ms", "times the first", "paths", "stages, p50 in ms"], rows))
    print(f"\nVersions: {', '.join([*versions(), server_version(rag.store.database)])}")


def ask(
    rag: RAGPipeline,
    name: str,
    questions: Sequence[str],
    options: RetrievalOptions,
    as_of: datetime | None,
    rounds: int,
) -> tuple[list[float], dict[str, list[float]], str]:
    times: list[float] = []
    stages: dict[str, list[float]] = {}
    paths: Counter[str] = Counter()
    for question in questions[:50]:
        rag.view(collections=name, as_of=as_of).search(question, options)
    for _ in range(rounds):
        for question in questions:
            started = time.perf_counter()
            reply = rag.view(collections=name, as_of=as_of).search(question, options)
            times.append((time.perf_counter() - started) * 1000 - reply.timings_ms.get("embed", 0.0))
            paths[" ".join(f"{retriever} {path}" for retriever, path in reply.paths.items())] += 1
            for stage, milliseconds in reply.timings_ms.items():
                stages.setdefault(stage, []).append(milliseconds)
    return times, stages, ", ".join(f"{path} ({count})" for path, count in paths.most_common(2))


def recall(arguments: argparse.Namespace, rag: RAGPipeline, known: KnownTexts) -> None:
    """How much of the ten nearest of the moment the dense retriever finds through its indexes."""
    questions = load_questions(arguments, known)[: arguments.questions]
    moments = _moments(arguments)
    place, rows = rag.store.collections.get(Scope(), HISTORY), []
    for number in (*sorted({0, len(moments) // 2, len(moments) - 2}), None):
        scope = Scope(as_of=None if number is None else moments[number])
        shares = []
        for question in questions:
            vector = known.embed_query(question)
            parts = rag.store.past.plan(scope, place)
            search = rag.store.search.dense
            found = search(scope, place, vector, limit=50, rows=RowSelection(past=parts), indexed=True)[:10]
            exact = search(scope, place, vector, limit=10)
            shares.append(len({chunk for chunk, _ in found} & {chunk for chunk, _ in exact}) / len(exact))
        title = "present" if number is None else f"as of version {number + 1}"
        rows.append([title, len(questions), f"{np.mean(shares):.3f}", f"{min(shares):.1f}"])
        say(*rows[-1])
    print(table(["search", "questions", "recall of the top 10", "least"], rows))


def plans(arguments: argparse.Namespace, rag: RAGPipeline, known: KnownTexts) -> None:
    """What a search of the past runs, as the server explains it."""
    moments = _moments(arguments)
    moment = moments[len(moments) // 2]
    question = load_questions(arguments, known)[0]
    place = rag.store.collections.get(Scope(), HISTORY)
    found = matching_versions(rag.store.database, Scope(as_of=moment), place.collection_id, DocumentFilter())
    print(f"{len(found.version_ids):,} versions of {found.chunk_count:,} chunks\n")
    params = {
        "c": place.collection_id,
        "s": place.space_id,
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
    "the dense retriever, by these versions": """
        SELECT chunk_id FROM chunk_vectors
        WHERE tenant_id = 1 AND space_id = %(s)s AND known_from <= %(at)s AND known_to > %(at)s
          AND version_id = ANY (%(versions)s)
        ORDER BY embedding <#> %(vector)s, chunk_id LIMIT 50""",
}


if __name__ == "__main__":
    np.seterr(all="raise", under="ignore")
    main()
