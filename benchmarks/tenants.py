r"""Searches of a small tenant, alone in a store and among many others of its size.

Two stores are filled with made-up texts: one with a single tenant, one with that tenant and thousands more, each of a
hundred chunks. Then the same questions are asked of the tenant in both stores, in turn, and of tenants drawn from all
of the others. Vectors come from a hash of the words: what is measured is the store. Run from the repository root::

    python benchmarks/tenants.py --work ../tenants-bench --tenants 10000

What is there already is not stored again, so a store can be made larger step by step. Wanted: at most 1.3 times the
time that the tenant takes alone.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from harness import machine, percentile, say, server_version, table, versions

from recollect import Document, MultiTenantRAG, RAGConfig, RetrievalOptions
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import NotFoundError
from recollect.pipeline import RAGPipeline

FIRST = "tenant-00000"
DIMENSION = 384
CHUNKS_A_DOCUMENT = 10
WORDS_A_CHUNK = 70
VOCABULARY = 20_000


def main() -> None:
    parser = argparse.ArgumentParser(description="A small tenant alone, and among many.")
    parser.add_argument("--work", type=Path, required=True, help="Where the two stores are kept.")
    parser.add_argument("--tenants", type=int, default=10_000)
    parser.add_argument("--chunks", type=int, default=100, help="Of each tenant.")
    parser.add_argument("--queries", type=int, default=200, help="Different ones, of each round.")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with _opened(arguments.work / "alone") as alone, _opened(arguments.work / "among") as among:
        _fill(alone, 1, arguments.chunks)
        _fill(among, arguments.tenants, arguments.chunks)
        _report(arguments, alone, among)


@contextmanager
def _opened(folder: Path) -> Iterator[MultiTenantRAG]:
    config = RAGConfig.load(
        storage={"data_dir": folder, "dsn": None}, retrieval={"probe_rate": 0.0}, chunking={"strategy": "paragraph"}
    )
    with RAGPipeline(config, embedder=HashingEmbedder(DIMENSION)) as pipeline:
        yield MultiTenantRAG(pipeline)


def _words(rng: np.random.Generator, count: int) -> list[str]:
    """Words as often as in a language: the second half as often as the first, and so on."""
    ranks = np.minimum(rng.zipf(1.2, count), VOCABULARY)
    return [f"w{rank}" for rank in ranks]


def _documents(number: int, chunks: int) -> list[Document]:
    rng = np.random.default_rng(number)
    found = []
    for first in range(0, chunks, CHUNKS_A_DOCUMENT):
        paragraphs = [" ".join(_words(rng, WORDS_A_CHUNK)) for _ in range(min(CHUNKS_A_DOCUMENT, chunks - first))]
        found.append(Document(content="\n\n".join(paragraphs), source=f"{first}.txt", title=f"Document {first}"))
    return found


def _fill(rag: MultiTenantRAG, tenants: int, chunks: int) -> None:
    started = time.perf_counter()
    for number in range(tenants):
        name = f"tenant-{number:05}"
        try:
            tenant = rag.pipeline.tenants.get(name)
        except NotFoundError:
            tenant = rag.create_tenant(name)
        if not tenant.documents:
            rag.pipeline.view(tenant=tenant.tenant_id, collections=rag.collection_of(tenant.tenant_id)).ingest(
                _documents(number, chunks)
            )
        if (number + 1) % 100 == 0:
            say(f"{number + 1:,} of {tenants:,} tenants after {time.perf_counter() - started:.0f} s")


def _report(arguments: argparse.Namespace, alone: MultiTenantRAG, among: MultiTenantRAG) -> None:
    rng = np.random.default_rng(7)
    queries = [" ".join(sorted(set(_words(rng, 6)))) for _ in range(arguments.queries)]
    others = [f"tenant-{number:05}" for number in rng.integers(0, arguments.tenants, arguments.queries)]
    ways = {
        "alone": (alone, [FIRST] * len(queries)),
        "among the others": (among, [FIRST] * len(queries)),
        "each time another one": (among, others),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(arguments.rounds + 1):
        for name, (rag, tenants) in ways.items():
            times[name].append(percentile(_timed(rag, tenants, queries), 0.5 * 100))
    # The first round warms caches and plans.
    best = {name: percentile(found[1:], 50) for name, found in times.items()}
    totals = among.pipeline.tenants.list(limit=100_000)
    rows = [(name, f"{value:.2f}", f"{value / best['alone']:.2f}") for name, value in best.items()]
    print(table(("100 chunks of one tenant, hybrid", "p50 (ms)", "× alone"), rows))
    facts = {
        "tenants": len(totals) - 1,
        "chunks": sum(one.chunks for one in totals),
        "machine": machine(),
        "server": server_version(among.pipeline.store.database),
        "versions": versions(),
        "p50_ms": best,
    }
    print(json.dumps(facts))


def _timed(rag: MultiTenantRAG, tenants: Sequence[str], queries: Sequence[str]) -> list[float]:
    options = RetrievalOptions(use_cache=False)
    found = []
    for tenant, query in zip(tenants, queries, strict=True):
        started = time.perf_counter()
        rag.search(tenant, query, options)
        found.append(1000 * (time.perf_counter() - started))
    return found


if __name__ == "__main__":
    main()
