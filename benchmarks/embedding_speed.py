r"""Embedding speed against sentence-transformers: the same texts, the same weights, the same cores.

Run from the repository root, with recollect in this Python and the peers in another (see benchmarks/README.md)::

    python benchmarks/embedding_speed.py --peer-python ../peers/bin/python --texts 256

sentence-transformers ignores what lies beyond the model's window, and recollect does not. So that both do the same
work, every text is cut to the window first.

Each contestant runs in a process of its own, in turn, ``--rounds`` times; the table shows medians. A round warms up
on eight texts, embeds all texts, and then embeds twenty questions one by one.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from harness import CRANFIELD, MODEL, Clock, contestant, machine, model_cache, say, table, versions

PEER = "sentence-transformers"
CONTESTANTS = (PEER, "recollect int8", "recollect fp32")
QUESTIONS = 20
#: Of all-MiniLM-L6-v2, without its two special tokens.
WINDOW_TOKENS = 254


def main() -> None:
    parser = argparse.ArgumentParser(description="Embedding speed against sentence-transformers.")
    parser.add_argument("--corpus", type=Path, default=CRANFIELD / "corpus.jsonl", help="a corpus.jsonl in BEIR form")
    parser.add_argument("--texts", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-python", help="a Python that has sentence-transformers")
    parser.add_argument("--contestant", choices=CONTESTANTS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.contestant:
        print(json.dumps(run(arguments.contestant, arguments.folder)))
        return
    names = [name for name in CONTESTANTS if arguments.peer_python or name != PEER]
    results: dict[str, list[dict]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as temporary:
        texts = texts_within_window(arguments.corpus, arguments.texts)
        (Path(temporary) / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
        for number in range(arguments.rounds):
            for name in names:
                python = arguments.peer_python if name == PEER else sys.executable
                found = contestant(python, __file__, "--contestant", name, "--folder", temporary)
                results[name].append(found)
                say(f"round {number + 1}: {name}: {found}")
        vectors = {name: np.load(Path(temporary) / f"{name}.npy") for name in names}
    print(f"{len(texts)} texts of {arguments.corpus.parent.name}, medians of {arguments.rounds} rounds; {machine()}\n")
    show(results, {name: np.sum(vectors[names[0]] * found, axis=1) for name, found in vectors.items()})


def texts_within_window(corpus: Path, count: int) -> list[str]:
    from recollect.embedding.local import LocalEmbedder
    from recollect.embedding.models import ModelCache

    lines = corpus.read_text(encoding="utf-8").splitlines()[:count]
    texts = [f"{record['title']} {record['text']}".strip() for record in map(json.loads, lines)]
    spans = LocalEmbedder(cache=ModelCache(model_cache())).token_spans_batch(texts)
    return [
        text if len(found) <= WINDOW_TOKENS else text[: found[WINDOW_TOKENS - 1][1]]
        for text, found in zip(texts, spans, strict=True)
    ]


def run(name: str, folder: Path) -> dict:
    texts = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
    questions = [" ".join(text.split()[:12]) for text in texts[:QUESTIONS]]
    documents, query, installed = load(name)
    documents(texts[:8])
    query(questions[0])
    with Clock() as clock:
        vectors = documents(texts)
    latencies = []
    for question in questions:
        started = time.perf_counter()
        query(question)
        latencies.append(time.perf_counter() - started)
    np.save(folder / f"{name}.npy", vectors)
    return {
        "texts_per_second": round(len(texts) / clock.seconds, 1),
        "query_ms": round(statistics.median(latencies) * 1000, 2),
        "versions": versions(installed),
    }


def load(name: str):
    """Functions that embed texts and a question, and the distributions that they come from."""
    if name == PEER:
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(model_cache() / MODEL), device="cpu")

        def documents(texts):
            return model.encode(texts, batch_size=32, normalize_embeddings=True, show_progress_bar=False)

        installed = ("sentence-transformers", "torch", "transformers")
        return documents, lambda text: model.encode(text, normalize_embeddings=True), installed
    from recollect.embedding.local import LocalEmbedder
    from recollect.embedding.models import ModelCache

    embedder = LocalEmbedder(cache=ModelCache(model_cache()), precision=name.split()[-1])
    return embedder.embed_documents, embedder.embed_query, ("onnxruntime", "tokenizers")


def show(results: dict[str, list[dict]], cosines: dict[str, np.ndarray]) -> None:
    first, rows = next(iter(results)), []
    for name, rounds in results.items():
        speed, query = (statistics.median(one[what] for one in rounds) for what in ("texts_per_second", "query_ms"))
        pairs = zip(rounds, results[first], strict=True)
        ratio = statistics.median(own["texts_per_second"] / base["texts_per_second"] for own, base in pairs)
        cosine = f"{cosines[name].mean():.5f} ({cosines[name].min():.4f})"
        rows.append([name, f"{speed:.1f}", f"{ratio:.2f}", f"{query:.2f}", cosine, ", ".join(rounds[0]["versions"])])
    print(table(["", "texts/s", f"times {first}", "one query, ms", "mean cosine (least)", "versions"], rows))


if __name__ == "__main__":
    main()
