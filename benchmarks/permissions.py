r"""What permissions cost: questions asked by the owner of a store, and by people who may read more or less of it.

Every document is granted to one group, and to one user of a hundred, so that there are a hundred access lists: 1 % of
the documents to the group ``few``, 50 % to ``half``, the others to ``rest``. Four askers: the owner, somebody in all
three groups, somebody in ``few`` and ``half``, and somebody in ``few``. They take turns, question by question, so that
whatever else the machine does meets all of them. Run from the repository root::

    python benchmarks/permissions.py build --work ../permissions-bench --chunks 20000
    python benchmarks/permissions.py measure --work ../permissions-bench

Wanted: who may read everything waits no longer than the owner, and nobody is given less than there is.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import synthetic
from harness import Clock, machine, percentile, say, server_version, table, versions
from history import KnownTexts
from query_speed import ParagraphChunker, load_questions, save_questions

from recollect import Document, Principal, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.ingest.documents import BatchWriter, ingest_documents
from recollect.ingest.prepare import Preparer
from recollect.model import Scope
from recollect.retrieval.indexing import TermIndexer

NAME = "guarded"
USERS = 100
ASKERS = {
    "the owner": None,
    "all readable": Principal(user_id="ann", groups=("few", "half", "rest")),
    "half readable": Principal(user_id="ben", groups=("few", "half")),
    "1 % readable": Principal(user_id="eve", groups=("few",)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="What permissions cost.")
    parser.add_argument("step", choices=("build", "measure"))
    parser.add_argument("--work", type=Path, required=True, help="a folder for the store and the vectors")
    parser.add_argument("--chunks", type=int, default=20_000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3, help="how often every question is asked")
    parser.add_argument("--mode", default="hybrid,dense,lexical", help="modes to measure")
    parser.add_argument("--sources", type=int, help="source texts to draw sentences from; all by default")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    known = KnownTexts()
    config = RAGConfig.model_validate(
        {
            "storage": {"data_dir": (arguments.work / "data").resolve(), "index_threshold": 10_000},
            "embedding": {"cache": False},
            # A reply that was kept is no search, and searches that are repeated exactly take time of their own.
            "retrieval": {"cache_entries": 0, "probe_rate": 0},
        }
    )
    with RAGPipeline(config, embedder=known) as rag:
        {"build": build, "measure": measure}[arguments.step](arguments, rag, known)


def build(arguments: argparse.Namespace, rag: RAGPipeline, known: KnownTexts) -> None:
    sentences = synthetic.load_sentences(arguments.work, sample=arguments.sources)
    if any(place.name == NAME for place in rag.collections.each()):
        rag.collections.delete(NAME)
    rag.collections.create(NAME)

    def stream() -> Iterator[Document]:
        for number, made in enumerate(synthetic.documents(sentences, chunks=arguments.chunks)):
            known.learn(made.paragraphs, made.vectors)
            group = "few" if number % 100 == 0 else "half" if number % 2 else "rest"
            granted = (f"group:{group}", f"user:u{number % USERS}")
            yield Document(content="\n\n".join(made.paragraphs), source=made.name, permissions=granted)

    scope, store = Scope(), rag.store
    place = store.collections.get(scope, NAME)
    preparer = Preparer(ParagraphChunker(), TermIndexer("en", salt=place.collection_id), known, settings={})
    writer = BatchWriter(preparer, store.collections, store.writer, scope=scope, collection=place)
    with Clock() as clock:
        ingest_documents(
            stream(), scope=scope, preparer=preparer, batch_writer=writer, repository=store.documents, collection=place
        )
    say("stored in", f"{clock.seconds:.1f} s")
    store.collections.refresh_term_stats(scope, place)
    store.dense_indexer.build(scope, NAME)
    save_questions(arguments)


def measure(arguments: argparse.Namespace, rag: RAGPipeline, known: KnownTexts) -> None:
    questions = load_questions(arguments, known)[: arguments.questions]
    rows = []
    for mode in arguments.mode.split(","):
        found = ask(rag, questions, mode, arguments.rounds)
        baseline = percentile(found["the owner"][0], 50)
        for title, (times, shown, paths) in found.items():
            p50 = percentile(times, 50)
            cells = [mode, title, f"{p50:.2f}", f"{percentile(times, 95):.2f}", f"{p50 / baseline:.2f}"]
            rows.append([*cells, min(shown), ", ".join(sorted(paths))])
            say(*rows[-1])
    place = rag.store.collections.get(Scope(), NAME)
    with rag.store.database.autocommit() as connection:
        lists = connection.execute("SELECT count(*) FROM access_lists").fetchone()[0]
    print(
        f"{machine()}\n\n{place.chunk_count:,} chunks of {place.document_count:,} documents, {lists:,} access lists.\n"
    )
    print(table(["mode", "asker", "p50, ms", "p95, ms", "times the owner's", "least results", "paths"], rows))
    print(f"\n{table(['change of grants', 'ms'], changes(rag))}")
    print(f"\nVersions: {', '.join([*versions(), server_version(rag.store.database)])}")


def ask(
    rag: RAGPipeline, questions: Sequence[str], mode: str, rounds: int
) -> dict[str, tuple[list[float], list[int], set[str]]]:
    """Milliseconds without those of the embedding, numbers of results, and paths taken, by asker."""
    found: dict[str, tuple[list[float], list[int], set[str]]] = {title: ([], [], set()) for title in ASKERS}
    options = RetrievalOptions(mode=mode)
    for principal in ASKERS.values():
        for question in questions[:20]:
            rag.view(collections=NAME, principal=principal).search(question, options)
    for _ in range(rounds):
        for question in questions:
            for title, principal in ASKERS.items():
                started = time.perf_counter()
                reply = rag.view(collections=NAME, principal=principal).search(question, options)
                times, shown, paths = found[title]
                times.append((time.perf_counter() - started) * 1000 - reply.timings_ms.get("embed", 0.0))
                shown.append(len(reply.results))
                paths.update(f"{retriever} {path}" for retriever, path in reply.paths.items())
    return found


def changes(rag: RAGPipeline) -> Iterator[list[str]]:
    """What it takes to change who may read, and back."""
    records = rag.view(collections=NAME).documents.list(limit=1_000)
    every = [record.document_id for record in records]
    # Of hardly any list all documents are among them, so they move to other lists, with every row.
    some = random.sample(every, 100)
    steps = [
        ("one document, to a list of its own", lambda: rag.grants.add("user:new", documents=every[0])),
        ("the same again, in its place", lambda: rag.grants.remove("user:new", documents=every[0])),
        (
            f"{len(some)} documents, which leave lists that they share",
            lambda: rag.grants.add("user:new", documents=some),
        ),
        ("the same again, in their place", lambda: rag.grants.remove("user:new", documents=some)),
        ("the collection's default", lambda: rag.view(collections=NAME).grants.add("user:new", default=True)),
    ]
    for title, step in steps:
        with Clock() as clock:
            step()
        yield [title, f"{clock.seconds * 1000:.1f}"]
    rag.view(collections=NAME).grants.remove("user:new", default=True)


if __name__ == "__main__":
    np.seterr(all="raise", under="ignore")
    main()
