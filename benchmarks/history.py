r"""Searches of the present and of the past, of a collection whose every chunk has ten versions.

The same documents are stored again and again, each time with other texts and vectors, and the moment after each time is
kept. Another collection of the store holds the last versions alone. Then real questions are asked of the present of
both, and of moments of the past. Run from the repository root::

    python benchmarks/growth.py data --work ../growth --sizes 1000000     # ten versions of 100,000 chunks
    python benchmarks/history.py build --work ../history --data ../growth/data/1000000 --versions 10
    python benchmarks/history.py measure --work ../history
    python benchmarks/history.py recall --work ../history                 # of the dense retriever, against all vectors

Indexes are built when everything is stored. A store in use keeps the one of current vectors up to date with every write
and makes a segment of its history whenever as much as half of it has been replaced; here each segment holds one
version of everything.

Wanted: the present costs the same however much history there is, the past at most three times that.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import synthetic
from growth_data import DataSet
from harness import Clock, machine, percentile, say, server_version, table, versions
from peers.recollect import records

from recollect import RAGConfig, RAGPipeline, RetrievalOptions
from recollect.ingest.records import ImportedDocument
from recollect.model import Scope
from recollect.pipeline.ingesting import store_records
from recollect.store.search import RowSelection

HISTORY, ALONE = "history", "alone"


def main() -> None:
    parser = argparse.ArgumentParser(description="Searches of the present and of the past.")
    parser.add_argument("step", choices=("build", "measure", "recall"))
    parser.add_argument("--work", type=Path, required=True, help="a folder for the store")
    parser.add_argument("--data", type=Path, help="data of growth.py, all versions together")
    parser.add_argument("--versions", type=int, default=10)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=2, help="how often every question is asked")
    parser.add_argument("--index-threshold", type=int, default=10_000, help="chunks from which on there is an index")
    arguments = parser.parse_args()
    # Questions are asked repeatedly, and a reply that was kept is no search; nor is one repeated exactly meanwhile.
    config = RAGConfig.model_validate(
        {
            "storage": {
                "data_dir": (arguments.work / "data").resolve(),
                "index_threshold": arguments.index_threshold,
            },
            "retrieval": {"cache_entries": 0, "probe_rate": 0},
        }
    )
    with RAGPipeline(config) as rag:
        {"build": build, "measure": measure, "recall": recall}[arguments.step](arguments, rag)


def build(arguments: argparse.Namespace, rag: RAGPipeline) -> None:
    data = DataSet(arguments.data)
    documents = data.chunks // data.chunks_a_document // arguments.versions
    every, moments, rows, last = records(data), [], [], []
    for version in range(arguments.versions):
        last = [_named(one, number) for number, one in enumerate(islice(every, documents))]
        rows.append([f"version {version + 1}", _stored(rag, HISTORY, last)])
        moments.append(datetime.now(UTC))
        say(*rows[-1])
    (arguments.work / "moments.json").write_text(json.dumps([one.isoformat() for one in moments]), encoding="utf-8")
    rows += [["the last version alone", _stored(rag, ALONE, last)], *_indexes(rag, moments)]
    print(f"{machine()}\n\n{table(['stored and built', 's'], rows)}")


def _named(record: ImportedDocument, number: int) -> ImportedDocument:
    return replace(record, document=replace(record.document, source=f"made/{number:06}.txt"))


def _stored(rag: RAGPipeline, name: str, every: Iterable[ImportedDocument]) -> str:
    with Clock() as clock:
        report = store_records(rag.view(collections=name).standpoint, every, named=name, force=False)
    if report.failed:
        raise SystemExit(f"not everything is stored: {report.errors[:3]}")
    return f"{clock.seconds:.1f}"


def _indexes(rag: RAGPipeline, moments: Sequence[datetime]) -> list[list[str]]:
    """What a store in use has: vector indexes, and segments of the history."""
    rows, scope = [], Scope()
    for name in (HISTORY, ALONE):
        with Clock() as clock:
            rag.store.dense_indexer.build(scope, name)
        rows.append([f"vector index, {name}", f"{clock.seconds:.1f}"])
    for number, moment in enumerate(moments[1:], 1):
        with Clock() as clock:
            rag.store.history_indexer.build(scope, HISTORY, until=moment)
        rows.append([f"segment of version {number}", f"{clock.seconds:.1f}"])
        say(*rows[-1])
    with rag.store.database.autocommit() as connection:
        connection.execute("VACUUM (ANALYZE) document_versions, chunk_vectors, chunk_lexical, chunks")
    return rows


def _moments(arguments: argparse.Namespace) -> dict[str, datetime]:
    """The first, a middle and the last but one."""
    told = json.loads((arguments.work / "moments.json").read_text("utf-8"))
    chosen = sorted({0, len(told) // 2, len(told) - 2})
    return {f"as of version {number + 1}": datetime.fromisoformat(told[number]) for number in chosen}


def measure(arguments: argparse.Namespace, rag: RAGPipeline) -> None:
    questions = synthetic.questions(arguments.questions)
    asked = [("present, without history", ALONE, None), ("present, all versions", HISTORY, None)]
    asked += [(title, HISTORY, moment) for title, moment in _moments(arguments).items()]
    rows = []
    for mode in ("hybrid", "dense", "lexical"):
        baseline = 0.0
        for title, name, as_of in asked:
            options = RetrievalOptions(mode=mode)
            times, path = ask(rag, name, questions, options, as_of, arguments.rounds)
            p50 = percentile(times, 50)
            baseline = baseline or p50
            rows.append([mode, title, f"{p50:.2f}", f"{percentile(times, 95):.2f}", f"{p50 / baseline:.2f}", path])
            say(*rows[-1])
    place = rag.store.collections.get(Scope(), HISTORY)
    print(f"{machine()}\n\n{place.chunk_count:,} current chunks.\n")
    print(table(["mode", "search", "p50, ms", "p95, ms", "times the first", "dense path"], rows))
    print(f"\nVersions: {', '.join([*versions(), server_version(rag.store.database)])}")


def ask(
    rag: RAGPipeline,
    name: str,
    questions: Sequence[str],
    options: RetrievalOptions,
    as_of: datetime | None,
    rounds: int,
) -> tuple[list[float], str]:
    """Milliseconds of each search without those of the embedding, and how the last one found its vectors."""
    view, times = rag.view(collections=name, as_of=as_of), []
    for question in questions[:50]:
        reply = view.search(question, options)
    for question in list(questions) * rounds:
        started = time.perf_counter()
        reply = view.search(question, options)
        times.append((time.perf_counter() - started) * 1000 - reply.timings_ms.get("embed", 0.0))
    return times, str(reply.paths.get("dense", "–"))


def recall(arguments: argparse.Namespace, rag: RAGPipeline) -> None:
    """How much of the ten nearest of the moment the dense retriever finds through its indexes."""
    questions = synthetic.questions(arguments.questions)
    place, rows, search = rag.store.collections.get(Scope(), HISTORY), [], rag.store.search.dense
    for title, moment in {**_moments(arguments), "present": None}.items():
        scope, shares = Scope(as_of=moment), []
        for question in questions:
            vector, parts = rag.embedder.embed_query(question), rag.store.past.plan(scope, place)
            found = search(scope, place, vector, limit=50, rows=RowSelection(past=parts), indexed=True)[:10]
            exact = search(scope, place, vector, limit=10)
            shares.append(len({chunk for chunk, _ in found} & {chunk for chunk, _ in exact}) / len(exact))
        rows.append([title, len(questions), f"{sum(shares) / len(shares):.3f}", f"{min(shares):.1f}"])
        say(*rows[-1])
    print(table(["search", "questions", "recall of the top 10", "least"], rows))


if __name__ == "__main__":
    main()
