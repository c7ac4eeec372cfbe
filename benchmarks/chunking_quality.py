"""How much of what answers a question each way of chunking retrieves.

Hybrid search in memory (MiniLM and BM25, z-scores, 0.6 dense) over the three corpora of the chunking data in one
collection; span recall, precision and IoU as the data's README defines them, for the best passages that fit into
4,000 characters and for the best five. Run from the repository root:

    python benchmarks/chunking_quality.py --model DIR [--data ../shared/data/chunking] [--cache FILE] [NAME …]

DIR holds ``tokenizer.json`` and an ONNX graph of all-MiniLM-L6-v2 (inputs ``input_ids`` and ``mask``, int32; output
``emb``, pooled and normalised). NAME selects the configurations whose label contains it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import onnxruntime as ort
import Stemmer
from tokenizers import Tokenizer

from recollect.chunking.registry import make_chunker
from recollect.model import Document

WINDOW = 254
BUDGET = 4000
DENSE_WEIGHT = 0.6
CANDIDATES = 100


class Embedder:
    """all-MiniLM-L6-v2; texts longer than its window are embedded in windows and averaged."""

    def __init__(self, model: Path, cache: Path | None) -> None:
        graph = next(path for path in sorted(model.glob("*.onnx"), key=lambda p: "int8" not in p.name))
        options = ort.SessionOptions()
        options.intra_op_num_threads = 2
        self.session = ort.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
        self.tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.cache_file = cache
        self.known: dict[str, np.ndarray] = {}
        if cache and cache.exists():
            stored = np.load(cache)
            self.known = dict(zip(stored["keys"].tolist(), stored["vectors"], strict=True))

    def embed(self, texts: list[str]) -> np.ndarray:
        keys = [hashlib.sha256(text.encode()).hexdigest()[:24] for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self.known}
        if missing:
            self.known.update(zip(missing, self._run(list(missing.values())), strict=True))
        return np.array([self.known[key] for key in keys], dtype=np.float32)

    def save(self) -> None:
        if self.cache_file:
            vectors = np.array(list(self.known.values()), dtype=np.float32)
            np.savez(self.cache_file, keys=np.array(list(self.known)), vectors=vectors)

    def _run(self, texts: list[str]) -> np.ndarray:
        windows: list[tuple[int, list[int]]] = []
        for owner, encoding in enumerate(self.tokenizer.encode_batch(texts, add_special_tokens=False)):
            ids = encoding.ids
            parts = max(1, -(-len(ids) // WINDOW))
            step = max(1, -(-len(ids) // parts))
            windows += [(owner, [101, *ids[i : i + step], 102]) for i in range(0, max(len(ids), 1), step)]
        windows.sort(key=lambda window: len(window[1]))
        sums = np.zeros((len(texts), 384), np.float32)
        for first in range(0, len(windows), 32):
            batch = windows[first : first + 32]
            length = max(len(ids) for _, ids in batch)
            ids = np.zeros((len(batch), length), np.int32)
            mask = np.zeros_like(ids)
            for row, (_, tokens) in enumerate(batch):
                ids[row, : len(tokens)], mask[row, : len(tokens)] = tokens, 1
            vectors = self.session.run(None, {"input_ids": ids, "mask": mask})[0]
            for (owner, tokens), vector in zip(batch, vectors, strict=True):
                sums[owner] += vector * len(tokens)
        return sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)


STEM = Stemmer.Stemmer("english")
STOPWORDS = set(
    re.findall(
        r"\w+",
        "a an and are as at be but by for from has have he her his how i if in into is it its of on or our she that "
        "the their them there these they this to was we were what when where which who will with you your did do does",
    )
)


def terms(text: str) -> list[str]:
    return STEM.stemWords([word for word in re.findall(r"\w+", text.lower()) if word not in STOPWORDS])


class BM25:
    def __init__(self, texts: list[str], k1: float = 1.2, b: float = 0.75) -> None:
        self.postings: dict[str, list[tuple[int, float]]] = {}
        bags = [Counter(terms(text)) for text in texts]
        self.count = len(bags)
        average = sum(bag.total() for bag in bags) / max(len(bags), 1)
        for index, bag in enumerate(bags):
            norm = k1 * (1 - b + b * bag.total() / average)
            for term, tf in bag.items():
                self.postings.setdefault(term, []).append((index, tf * (k1 + 1) / (tf + norm)))

    def scores(self, query: str) -> np.ndarray:
        scores = np.zeros(self.count, np.float32)
        for term in set(terms(query)):
            postings = self.postings.get(term, [])
            idf = np.log(1 + (self.count - len(postings) + 0.5) / (len(postings) + 0.5))
            for index, weight in postings:
                scores[index] += idf * weight
        return scores


def fuse(dense: np.ndarray, lexical: np.ndarray) -> np.ndarray:
    """Indices of the best chunks of both retrievers, best first."""
    pool = np.union1d(np.argsort(-dense)[:CANDIDATES], np.argsort(-lexical)[:CANDIDATES])
    z = [(retriever[pool] - retriever[pool].mean()) / (retriever[pool].std() + 1e-9) for retriever in (dense, lexical)]
    return pool[np.argsort(-(DENSE_WEIGHT * z[0] + (1 - DENSE_WEIGHT) * z[1]), kind="stable")]


def span_scores(shown: list[tuple[str, int, int]], document: str, references: list[dict]) -> tuple[float, float, float]:
    wanted = {position for span in references for position in range(span["start"], span["end"])}
    found = {position for name, start, end in shown if name == document for position in range(start, end)} & wanted
    length = sum(end - start for _, start, end in shown)
    return (
        len(found) / len(wanted),
        len(found) / max(length, 1),
        len(found) / (len(wanted) + length - len(found)),
    )


def within_budget(passages: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    kept, left = [], BUDGET
    for passage in passages:
        left -= passage[2] - passage[1]
        if left < 0:
            break
        kept.append(passage)
    return kept


CONFIGURATIONS: list[tuple[str, dict]] = [
    *((f"recursive size={size}", {"strategy": "recursive", "size": size}) for size in (300, 400, 450, 500)),
    *((f"recursive size={size}", {"strategy": "recursive", "size": size}) for size in (520, 550, 600, 800)),
    *(
        (f"recursive size={size} overlap={overlap}", {"strategy": "recursive", "size": size, "overlap": overlap})
        for size, overlap in ((500, 100), (550, 100), (600, 100))
    ),
    ("fixed_size size=500", {"strategy": "fixed_size", "size": 500}),
    ("sliding_window 500/250", {"strategy": "sliding_window", "window_size": 500, "stride": 250}),
    ("paragraph max_size=600", {"strategy": "paragraph", "max_size": 600}),
    ("semantic 200-500", {"strategy": "semantic", "min_size": 200, "max_size": 500}),
    ("semantic 200-500 embeddings", {"strategy": "semantic", "min_size": 200, "max_size": 500, "embeddings": True}),
    ("markdown max_tokens=128", {"strategy": "markdown", "max_tokens": 128}),
    ("markdown max_tokens=256", {"strategy": "markdown", "max_tokens": 256}),
    ("hierarchical 300 in 800", {"strategy": "hierarchical", "size": 300, "parent_max_size": 800}),
]


def measure(embedder: Embedder, data: Path, parameters: dict) -> str:
    similarity = None
    if parameters.pop("embeddings", False):

        def similarity(sentences: list[str]) -> list[float]:
            vectors = embedder.embed(list(sentences))
            return (vectors[1:] * vectors[:-1]).sum(axis=1).tolist()

    chunker = make_chunker(parameters.pop("strategy"), similarity=similarity, **parameters)
    spans, texts = [], []
    for path in sorted((data / "corpora").iterdir()):
        for chunk in chunker.chunk(Document(content=path.read_text(encoding="utf-8"), source=path.name)):
            spans.append((path.name, *(chunk.parent or (chunk.start_offset, chunk.end_offset))))
            texts.append(chunk.text)
    vectors, lexical = embedder.embed(texts), BM25(texts)
    questions = [json.loads(line) for line in (data / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    queries = embedder.embed([question["question"] for question in questions])
    rows: dict[str, list[tuple[float, ...]]] = {}
    for question, query in zip(questions, queries, strict=True):
        order = fuse(vectors @ query, lexical.scores(question["question"]))
        passages = list(dict.fromkeys(spans[index] for index in order))
        scores = (
            *span_scores(within_budget(passages), question["document"], question["references"]),
            *span_scores(passages[:5], question["document"], question["references"]),
        )
        rows.setdefault(question["document"], []).append(scores)
    every = np.array([scores for group in rows.values() for scores in group]).mean(axis=0)
    by_corpus = [np.array(rows[name]).mean(axis=0)[0] for name in sorted(rows)]
    mean_length = sum(len(text) for text in texts) / len(texts)
    cells = [f"{len(texts)}", f"{mean_length:.0f}", *(f"{value:.3f}" for value in (*every, *by_corpus))]
    return " | ".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/chunking"))
    parser.add_argument("--cache", type=Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    embedder = Embedder(arguments.model, arguments.cache)
    corpora = " | ".join(f"recall {path.stem}" for path in sorted((arguments.data / "corpora").iterdir()))
    measures = "chunks | mean length | recall | precision | IoU | recall@5 | precision@5 | IoU@5"
    print(f"| configuration | {measures} | {corpora} |")
    print("|---|" + "---|" * (8 + len(list((arguments.data / "corpora").iterdir()))))
    for label, parameters in CONFIGURATIONS:
        if not arguments.names or any(name in label for name in arguments.names):
            print(f"| {label} | {measure(embedder, arguments.data, dict(parameters))} |", flush=True)
            embedder.save()


if __name__ == "__main__":
    main()
