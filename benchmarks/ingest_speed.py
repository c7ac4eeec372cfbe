r"""Ingest end to end: beside embedding alone, and beside LlamaIndex with Chroma on the same weights.

Run from the repository root, with recollect in this Python and the peers in another (see benchmarks/README.md)::

    python benchmarks/ingest_speed.py --peer-python ../peers/bin/python

Each contestant runs in a process of its own, in turn, ``--rounds`` times. In every one the model is loaded and warm and
the store is open and empty before the clock starts; the clock stops when everything can be searched:

- *embedding alone*: recollect's embedder over the texts that recollect embeds of these documents, in one call, no
  store; once for the stream's texts and once for the folder's (which differ by the titles found);
- *recollect, stream* and *recollect, folder*: ``ingest`` of an iterator, and of a folder of text
  files; the embedding cache is on and empty;
- *recollect, folder again*: the same call, nothing changed; and the command line, whole process, server to be started;
- *LlamaIndex + Chroma*: IngestionPipeline into a persistent Chroma collection, the original weights through
  sentence-transformers, in batches of 64; with SentenceSplitter's chunks of about recollect's length, and with each
  document as one node, of which the model sees its first 256 tokens only.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from harness import (
    CRANFIELD,
    MODEL,
    Clock,
    contestant,
    machine,
    model_cache,
    offline,
    say,
    server_version,
    store_folder,
    table,
)
from harness import versions as installed

CONTESTANTS = (
    "embedding alone, stream",
    "recollect, stream",
    "embedding alone, folder",
    "recollect, folder",
    "LlamaIndex + Chroma, chunks",
    "LlamaIndex + Chroma, whole documents",
)
#: Tokens of SentenceSplitter's (tiktoken's) in a chunk, which makes chunks of about 500 characters of English.
PEER_CHUNK_TOKENS = 128
PEER_BATCH = 64


def main() -> None:
    parser = argparse.ArgumentParser(description="Ingest end to end, beside its peers.")
    parser.add_argument("--corpus", type=Path, default=CRANFIELD / "corpus.jsonl")
    parser.add_argument("--documents", type=int, default=1400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-python", help="a Python that has the peers of benchmarks/peers.txt")
    parser.add_argument("--only", nargs="*", default=CONTESTANTS, help="some of the contestants")
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.contestant:
        print(json.dumps(run(arguments)))
        return
    names = [name for name in arguments.only if arguments.peer_python or not name.startswith("LlamaIndex")]
    results: dict[str, list[dict]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as temporary:
        prepared = prepare(arguments, Path(temporary))
        for number in range(arguments.rounds):
            for name in names:
                peer = name.startswith("LlamaIndex")
                python = arguments.peer_python if peer else sys.executable
                found = contestant(python, __file__, "--contestant", name, "--folder", str(prepared))
                results[name].append(found)
                say(f"round {number + 1}: {name}: {found}")
    show(results)


def prepare(arguments: argparse.Namespace, folder: Path) -> Path:
    """The documents once as records and once as files, the same text in both."""
    (folder / "files").mkdir()
    lines = arguments.corpus.read_text(encoding="utf-8").splitlines()[: arguments.documents]
    with (folder / "documents.jsonl").open("w", encoding="utf-8") as out:
        for record in map(json.loads, lines):
            text = f"{record['title']}\n\n{record['text']}".strip() + "\n"
            if not text.strip():
                continue
            out.write(json.dumps([record["_id"], record["title"].strip(), text]) + "\n")
            (folder / "files" / f"{record['_id']}.txt").write_text(text, encoding="utf-8")
    return folder


def records(folder: Path) -> Iterator[tuple[str, str, str]]:
    with (folder / "documents.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            yield tuple(json.loads(line))


def run(arguments: argparse.Namespace) -> dict:
    kind = "folder" if arguments.contestant.endswith("folder") else "stream"
    with store_folder() as store:
        if arguments.contestant.startswith("LlamaIndex"):
            return run_peer(arguments.folder, Path(store), whole=arguments.contestant.endswith("documents"))
        if arguments.contestant.startswith("embedding"):
            return run_embedding(arguments.folder, kind)
        return run_recollect(arguments.folder, Path(store), kind)


def stream(folder: Path) -> Iterator:
    from recollect import Document

    for source, title, text in records(folder):
        yield Document(content=text, source=source, title=title or None)


def run_embedding(folder: Path, kind: str) -> dict:
    from recollect import RAGConfig
    from recollect.chunking.registry import make_chunker
    from recollect.documents.reader import read_file
    from recollect.embedding.local import LocalEmbedder
    from recollect.embedding.models import ModelCache
    from recollect.ingest.prepare import completed, searchable_text

    chunking = RAGConfig().chunking
    chunker = make_chunker(chunking.strategy, **chunking.parameters)
    documents = list(stream(folder))
    if kind == "folder":
        documents = [read_file(file, source=file.name) for file in sorted((folder / "files").iterdir())]
    whole = [completed(document) for document in documents]
    texts = [searchable_text(document, chunk) for document in whole for chunk in chunker.chunk(document)]
    embedder = LocalEmbedder(cache=ModelCache(model_cache()))
    embedder.embed_documents(texts[:8])
    with Clock() as clock:
        embedder.embed_documents(texts)
    return result(len(documents), len(texts), clock.seconds, installed())


def run_recollect(folder: Path, store: Path, kind: str) -> dict:
    from recollect import RAGConfig, RAGPipeline

    config = RAGConfig.model_validate({"storage": {"data_dir": store / "data"}})
    with RAGPipeline(config) as rag:
        rag.embedder.embed_documents(["The model is loaded, and its first call is behind it."] * 8)
        place = rag.collections.ensure()
        versions = [*installed(), server_version(rag.store.database)]
        with Clock() as clock:
            if kind == "folder":
                report = rag.ingest(folder / "files")
                count, chunks = report.added, report.chunks
            else:
                results = rag.ingest(stream(folder))
                count, chunks = len(results), sum(one.chunk_count for one in results)
        found = result(count, chunks, clock.seconds, versions)
        found["database_mb"] = round(rag.maintenance.status().database_bytes / 1e6, 1)
        if rag.store.collections.get(scope(), place.name).chunk_count != chunks:
            raise SystemExit("not everything is stored")
        if kind == "folder":
            with Clock() as clock:
                again = rag.ingest(folder / "files")
            found |= {"again_seconds": round(clock.seconds, 3), "again_unchanged": again.unchanged}
    if kind == "folder":
        found["again_command_seconds"] = round(command_line(folder / "files", store / "data"), 3)
    return found


def scope():
    from recollect.model import Scope

    return Scope()


def command_line(files: Path, data: Path) -> float:
    """``recollect ingest`` once more, from the start of the process to its end."""
    command = [sys.executable, "-m", "recollect.cli.main", "ingest", str(files), "--data-dir", str(data), "--json"]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, check=True, text=True, env=offline())
    seconds = time.perf_counter() - start
    counts = json.loads(done.stdout)
    if counts["added"] or counts["updated"] or not counts["unchanged"]:
        raise SystemExit(f"the second run is not unchanged: {counts}")
    return seconds


def run_peer(folder: Path, store: Path, *, whole: bool) -> dict:
    import chromadb
    from llama_index.core import Document
    from llama_index.core.ingestion import IngestionPipeline
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.core.schema import TextNode
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding
    from llama_index.vector_stores.chroma import ChromaVectorStore

    embedding = HuggingFaceEmbedding(model_name=str(model_cache() / MODEL), device="cpu", embed_batch_size=PEER_BATCH)
    embedding.get_text_embedding_batch(["The model is loaded, and its first call is behind it."] * 8)
    client = chromadb.PersistentClient(str(store / "chroma"), chromadb.Settings(anonymized_telemetry=False))
    vectors = ChromaVectorStore(chroma_collection=client.create_collection("cranfield"))
    texts = list(records(folder))
    splitter = SentenceSplitter(chunk_size=PEER_CHUNK_TOKENS, chunk_overlap=0)
    pipeline = IngestionPipeline(
        transformations=[embedding] if whole else [splitter, embedding], vector_store=vectors, disable_cache=True
    )
    with Clock() as clock:
        if whole:
            nodes = pipeline.run(nodes=[TextNode(text=text, id_=source) for source, _, text in texts])
        else:
            nodes = pipeline.run(documents=[Document(text=text, doc_id=source) for source, _, text in texts])
    if client.get_collection("cranfield").count() != len(nodes):
        raise SystemExit("not everything is stored")
    names = ("llama-index-core", "llama-index-vector-stores-chroma", "chromadb", "sentence-transformers", "torch")
    found = result(len(texts), len(nodes), clock.seconds, installed((*names, "transformers")))
    found["characters_a_chunk"] = round(statistics.mean(len(node.get_content()) for node in nodes))
    return found


def result(documents: int, chunks: int, seconds: float, versions: list[str]) -> dict:
    return {
        "documents": documents,
        "chunks": chunks,
        "seconds": round(seconds, 2),
        "documents_per_second": round(documents / seconds, 1),
        "versions": versions,
    }


def show(results: dict[str, list[dict]]) -> None:
    speed = {name: statistics.median(one["documents_per_second"] for one in runs) for name, runs in results.items()}
    rows = []
    for name, runs in results.items():
        kind = name.rpartition(" ")[2]
        alone = results.get(f"embedding alone, {kind}") if name.startswith("recollect") else None
        share = f"{ratio(runs, alone):.1%}" if alone else ""
        spread = (
            f"{min(r['documents_per_second'] for r in runs):.1f}–{max(r['documents_per_second'] for r in runs):.1f}"
        )
        first = runs[0]
        rows.append([name, first["documents"], first["chunks"], f"{speed[name]:.1f}", spread, share])
    print(f"{machine()}; {len(next(iter(results.values())))} rounds, medians\n")
    print(table(["", "documents", "chunks", "documents/s", "least–most", "of embedding alone"], rows))
    for ours in (name for name in results if name.startswith("recollect")):
        for peer in (name for name in results if name.startswith("LlamaIndex")):
            print(f"\n{ours}: {ratio(results[ours], results[peer]):.2f} times {peer}")
        if "again_seconds" in results[ours][0]:
            again = statistics.median(one["again_seconds"] for one in results[ours])
            command = statistics.median(one["again_command_seconds"] for one in results[ours])
            print(f"\n{ours}, nothing changed: {again:.2f} s; as a command, whole process: {command:.2f} s")
    seen = dict.fromkeys(version for runs in results.values() for version in runs[0]["versions"])
    print(f"\nVersions: {', '.join(seen)}")


def ratio(ours: list[dict], theirs: list[dict]) -> float:
    """The median over rounds of the ratio within a round."""
    pairs = zip(ours, theirs, strict=True)
    return statistics.median(a["documents_per_second"] / b["documents_per_second"] for a, b in pairs)


if __name__ == "__main__":
    main()
