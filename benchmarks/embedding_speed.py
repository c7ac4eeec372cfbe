r"""Embedding speed beside sentence-transformers: the same texts, the same weights, the same cores.

Run from the project's root, with recollect installed in this Python, and sentence-transformers in another::

    python3 -m venv ../peers
    ../peers/bin/pip install torch sentence-transformers
    python benchmarks/embedding_speed.py --peer-python ../peers/bin/python \
        --corpus ../shared/data/cranfield/corpus.jsonl

sentence-transformers ignores what lies beyond the model's window, and recollect does not. So that both do the same
work, every text is cut to the window first; ``--whole`` leaves the texts as they are, and then
cosines of long texts differ.

Each contestant runs in a process of its own, in turn, ``--rounds`` times; the table shows medians. A round warms up
on eight texts, embeds all texts, and then embeds twenty questions one by one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

QUESTIONS = 20
#: Of all-MiniLM-L6-v2, without its two special tokens.
WINDOW_TOKENS = 254


def main() -> None:
    arguments = parse_arguments()
    if arguments.contestant:
        run_contestant(arguments)
        return
    contestants = ["recollect int8", "recollect fp32"]
    if arguments.peer_python:
        contestants.insert(0, "sentence-transformers")
    results: dict[str, list[dict]] = {name: [] for name in contestants}
    with tempfile.TemporaryDirectory() as temporary:
        prepared = Path(temporary) / "texts.json"
        prepared.write_text(json.dumps(read_texts(arguments)), encoding="utf-8")
        for number in range(arguments.rounds):
            for name in contestants:
                vectors = Path(temporary) / f"{name.replace(' ', '-')}.npy"
                results[name].append(start_contestant(name, arguments, prepared, vectors))
                print(f"round {number + 1}: {name}: {results[name][-1]}", file=sys.stderr, flush=True)
        cosines = compare(Path(temporary), contestants)
    print_table(arguments, results, cosines)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Embedding speed beside sentence-transformers.")
    parser.add_argument("--corpus", type=Path, required=True, help="a corpus.jsonl in BEIR form")
    parser.add_argument("--texts", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--whole", action="store_true", help="do not cut texts to the model's window")
    parser.add_argument("--peer-python", help="a Python that has sentence-transformers")
    parser.add_argument("--model-directory", type=Path, help="the model cache; the platform's by default")
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    parser.add_argument("--vectors", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--weights", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def start_contestant(name: str, arguments: argparse.Namespace, prepared: Path, vectors: Path) -> dict:
    python = arguments.peer_python if name == "sentence-transformers" else sys.executable
    command = [python, str(Path(__file__).resolve()), "--contestant", name, "--vectors", str(vectors)]
    command += ["--corpus", str(prepared)]
    command += ["--model-directory", str(model_directory(arguments)), "--weights", str(weights(arguments))]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def model_directory(arguments: argparse.Namespace) -> Path:
    if arguments.model_directory:
        return arguments.model_directory
    import platformdirs

    return Path(platformdirs.user_cache_dir("recollect")) / "models"


def weights(arguments: argparse.Namespace) -> Path:
    from recollect.embedding.models import ModelCache

    return ModelCache(model_directory(arguments)).pull().directory


def read_texts(arguments: argparse.Namespace) -> list[str]:
    from recollect.embedding.local import LocalEmbedder
    from recollect.embedding.models import ModelCache

    lines = arguments.corpus.read_text(encoding="utf-8").splitlines()[: arguments.texts]
    texts = [f"{record['title']} {record['text']}".strip() for record in map(json.loads, lines)]
    if arguments.whole:
        return texts
    spans = LocalEmbedder(cache=ModelCache(model_directory(arguments))).token_spans_batch(texts)
    return [
        text if len(found) <= WINDOW_TOKENS else text[: found[WINDOW_TOKENS - 1][1]]
        for text, found in zip(texts, spans, strict=True)
    ]


def run_contestant(arguments: argparse.Namespace) -> None:
    import numpy as np

    texts = json.loads(arguments.corpus.read_text(encoding="utf-8"))
    questions = [" ".join(text.split()[:12]) for text in texts[:QUESTIONS]]
    started = time.perf_counter()
    documents, query, versions = load(arguments)
    documents(texts[:8])
    query(questions[0])
    loaded = time.perf_counter() - started
    started = time.perf_counter()
    vectors = documents(texts)
    seconds = time.perf_counter() - started
    latencies = []
    for question in questions:
        started = time.perf_counter()
        query(question)
        latencies.append(time.perf_counter() - started)
    np.save(arguments.vectors, vectors)
    result = {
        "texts_per_second": round(len(texts) / seconds, 1),
        "query_ms": round(statistics.median(latencies) * 1000, 2),
        "load_seconds": round(loaded, 2),
        "versions": versions,
    }
    print(json.dumps(result))


def load(arguments: argparse.Namespace):
    if arguments.contestant == "sentence-transformers":
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(arguments.weights), device="cpu")
        names = ("sentence-transformers", "torch", "transformers")

        def documents(texts):
            return model.encode(texts, batch_size=32, normalize_embeddings=True, show_progress_bar=False)

        return (
            documents,
            lambda text: model.encode(text, normalize_embeddings=True),
            [f"{n} {version(n)}" for n in names],
        )
    from recollect.embedding.local import LocalEmbedder
    from recollect.embedding.models import ModelCache

    precision = arguments.contestant.split()[-1]
    embedder = LocalEmbedder(cache=ModelCache(arguments.model_directory), precision=precision)
    names = ("recollect-rag", "onnxruntime", "tokenizers")
    return embedder.embed_documents, embedder.embed_query, [f"{n} {version(n)}" for n in names]


def compare(directory: Path, contestants: list[str]) -> dict[str, tuple[float, float]]:
    """Each contestant's mean and least cosine to the first one."""
    import numpy as np

    vectors = {name: np.load(directory / f"{name.replace(' ', '-')}.npy") for name in contestants}
    reference = vectors[contestants[0]]
    cosines = {name: np.sum(reference * found, axis=1) for name, found in vectors.items()}
    return {name: (float(found.mean()), float(found.min())) for name, found in cosines.items()}


def print_table(arguments: argparse.Namespace, results: dict, cosines: dict) -> None:
    first = next(iter(results))
    base = statistics.median(r["texts_per_second"] for r in results[first])
    print(
        f"{arguments.texts} texts of {arguments.corpus.parent.name}, median of {arguments.rounds} rounds; {machine()}\n"
    )
    print(f"| | texts/s | times {first} | one query, ms | mean cosine (least) to {first} | versions |")
    print("|---|---|---|---|---|---|")
    for name, rounds in results.items():
        speed = statistics.median(r["texts_per_second"] for r in rounds)
        ratio = statistics.median(
            r["texts_per_second"] / b["texts_per_second"] for r, b in zip(rounds, results[first], strict=True)
        )
        query = statistics.median(r["query_ms"] for r in rounds)
        mean, least = cosines[name]
        versions = ", ".join(rounds[0]["versions"])
        print(f"| {name} | {speed:.1f} | {ratio:.2f} | {query:.2f} | {mean:.5f} ({least:.4f}) | {versions} |")
    print(f"\nThe column of times is the median over rounds of the ratio within a round (medians: {base:.1f} texts/s).")


def machine() -> str:
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        lines = [line for line in cpuinfo.read_text(encoding="utf-8").splitlines() if line.startswith("model name")]
        model = lines[0].split(":", 1)[1].strip() if lines else model
    return f"{os.cpu_count()} cores of {model}, {platform.system()}, Python {platform.python_version()}"


if __name__ == "__main__":
    main()
