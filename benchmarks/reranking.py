"""What each reranker is worth and what it costs, on four kinds of text.

The first stage is rebuilt in memory from the product's own parts (chunks of 500 characters with titles and neighbours,
int8 MiniLM, BM25, weighted fusion of 100 candidates a retriever); the rerankers and the way they are mixed in are the
product's. Run from the repository root:

    python benchmarks/reranking.py [--sets cranfield,spans,handbook,conversations] NAME[:WEIGHT[:DEPTH]] …

Several names joined with ``+`` run one after the other. Token vectors and sentences are computed once a chunk (most of
the time that this takes) and count as stored: the milliseconds are those of a query whose passages are known.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from harness import CHUNKING, CRANFIELD, SHARED, model_cache, percentile, say

from recollect.chunking.registry import make_chunker
from recollect.documents.reader import read_file
from recollect.embedding.local import LocalEmbedder
from recollect.embedding.models import ModelCache
from recollect.ingest.prepare import searchable_text, with_neighbours
from recollect.model import Chunk, Document
from recollect.retrieval import fusion, lexical
from recollect.retrieval.analysis import Analyzer
from recollect.retrieval.rerank.apply import apply
from recollect.retrieval.rerank.base import Candidate
from recollect.retrieval.rerank.registry import DEFAULTS, make_reranker

CANDIDATES = 100
BUDGET = 4000
ANALYZER = Analyzer("en")


@dataclass
class Collection:
    """Chunks with all that retrievers and rerankers need; ``key`` names the document, ``start`` the place."""

    documents: list[Document]
    chunks: list[tuple[int, Chunk]]
    texts: list[str]
    vectors: np.ndarray
    lexical: Lexical


class Lexical:
    def __init__(self, texts: list[str]) -> None:
        bags = [Counter(ANALYZER.terms(text)) for text in texts]
        average = sum(bag.total() for bag in bags) / len(bags)
        self.count = len(bags)
        self.postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for index, bag in enumerate(bags):
            saturation = lexical.K1 * (1 - lexical.B + lexical.B * bag.total() / average)
            for term, frequency in bag.items():
                self.postings[term].append((index, frequency * lexical.MAX_WEIGHT / (frequency + saturation)))

    def scores(self, query: str) -> np.ndarray:
        scores = np.zeros(self.count)
        for term, count in Counter(ANALYZER.query_terms(query)).items():
            postings = self.postings.get(term, ())
            weight = count * lexical.idf(len(postings), self.count)
            for index, value in postings:
                scores[index] += weight * value
        return scores


def build(documents: list[Document], embedder: LocalEmbedder, *, size: int = 500) -> Collection:
    chunker = make_chunker("recursive", size=size, overlap=0)
    chunks = [(number, chunk) for number, document in enumerate(documents) for chunk in chunker.chunk(document)]
    texts = [searchable_text(documents[number], chunk) for number, chunk in chunks]
    vectors = embedder.embed_documents(texts)
    owners = np.array([number for number, _ in chunks])
    ends = np.flatnonzero(np.diff(owners)) + 1
    mixed = np.concatenate([with_neighbours(part) for part in np.split(vectors, ends)])
    return Collection(documents, chunks, texts, mixed.astype(np.float16), Lexical(texts))


def first_stage(collection: Collection, query: str, embedder: LocalEmbedder) -> list[Candidate]:
    similarities = collection.vectors.astype(np.float32) @ embedder.embed_query(query)
    lexical = collection.lexical.scores(query)
    dense_best = [(int(i), float(similarities[i])) for i in np.argsort(-similarities)[:CANDIDATES]]
    lexical_best = [(int(i), float(lexical[i])) for i in np.argsort(-lexical)[:CANDIDATES] if lexical[i] > 0]
    fused = fusion.weighted(
        dense_best,
        lexical_best,
        known_dense={i: float(similarities[i]) for i, _ in lexical_best},
        known_lexical={i: float(lexical[i]) for i, _ in dense_best},
    )
    return [
        Candidate(chunk_id=i, text=collection.texts[i], score=score, embedding=collection.vectors[i])
        for i, score in fused
    ]


class Cranfield:
    """nDCG@10, a document ranked by its best chunk."""

    def __init__(self, embedder: LocalEmbedder) -> None:
        records = [json.loads(line) for line in (CRANFIELD / "corpus.jsonl").open(encoding="utf-8")]
        documents = [
            Document(content=f"{r['title']}\n\n{r['text']}".strip(), source=r["_id"], title=r["title"] or None)
            for r in records
            if (r["title"] + r["text"]).strip()
        ]
        self.judged: dict[str, dict[str, int]] = defaultdict(dict)
        for line in (CRANFIELD / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
            query, document, grade = line.split()
            self.judged[query][document] = int(grade)
        queries = [json.loads(line) for line in (CRANFIELD / "queries.jsonl").open(encoding="utf-8")]
        built = build(documents, embedder)
        self.questions = [(query["text"], built, query) for query in queries if query["_id"] in self.judged]

    def score(self, collection: Collection, query: dict, order: list[int]) -> dict[str, float]:
        ranking = list(dict.fromkeys(collection.documents[collection.chunks[i][0]].source for i in order))
        grades = self.judged[query["_id"]]
        best = sorted(grades.values(), reverse=True)
        found = sum(grades.get(name, 0) / math.log2(i + 2) for i, name in enumerate(ranking[:10]))
        return {"Cranfield nDCG@10": found / sum(grade / math.log2(i + 2) for i, grade in enumerate(best[:10]))}


class Spans:
    """Share of the answering characters within a budget of characters, and within five passages."""

    def __init__(self, embedder: LocalEmbedder) -> None:
        documents = [
            Document(content=path.read_text(encoding="utf-8"), source=path.name, title=path.stem.replace("_", " "))
            for path in sorted((CHUNKING / "corpora").iterdir())
        ]
        built = build(documents, embedder)
        questions = [json.loads(line) for line in (CHUNKING / "questions.jsonl").open(encoding="utf-8")]
        self.questions = [(question["question"], built, question) for question in questions]

    def score(self, collection: Collection, question: dict, order: list[int]) -> dict[str, float]:
        wanted = {at for span in question["references"] for at in range(span["start"], span["end"])}
        chunks = [collection.chunks[i] for i in order]
        room = np.cumsum([len(chunk.text) for _, chunk in chunks])
        within = chunks[: int(np.searchsorted(room, BUDGET, side="right"))]
        five, shown = chunks[:5], int(room[min(4, len(room) - 1)])
        found = [len(wanted & self._characters(collection, question, some)) for some in (within, five)]
        iou = found[1] / (len(wanted) + shown - found[1])
        return {"spans recall": found[0] / len(wanted), "spans recall@5": found[1] / len(wanted), "spans IoU@5": iou}

    @staticmethod
    def _characters(collection: Collection, question: dict, chunks: list[tuple[int, Chunk]]) -> set[int]:
        return {
            at
            for number, chunk in chunks
            if collection.documents[number].source == question["document"]
            for at in range(chunk.start_offset, chunk.end_offset)
        }


class Handbook:
    """Reciprocal rank of the first chunk of a right document that holds the answer, in the top 10."""

    def __init__(self, embedder: LocalEmbedder) -> None:
        root = Path("examples/handbook")
        paths = sorted(path for path in root.glob("*/*") if path.is_file())
        documents = [read_file(path, source=str(path.relative_to(root))) for path in paths]
        built = build(documents, embedder)
        lines = Path("tests/data/handbook_questions.jsonl").read_text(encoding="utf-8").splitlines()
        questions = [question for question in map(json.loads, lines) if question["answerable"]]
        self.questions = [(question["question"], built, question) for question in questions]

    def score(self, collection: Collection, question: dict, order: list[int]) -> dict[str, float]:
        for rank, i in enumerate(order[:10], 1):
            number, chunk = collection.chunks[i]
            text = " ".join(chunk.text.lower().split())
            answers = any(" ".join(answer.lower().split()) in text for answer in question["answer_contains"])
            if answers and collection.documents[number].source in question["sources"]:
                return {"handbook MRR@10": 1 / rank}
        return {"handbook MRR@10": 0.0}


class Conversations:
    """Share of the turns that answer in the top 10, a turn a chunk."""

    def __init__(self, embedder: LocalEmbedder) -> None:
        data = json.loads((SHARED / "conversations" / "locomo-dev.json").read_text(encoding="utf-8"))
        self.questions = []
        for conversation in data["conversations"]:
            turns = [(i, turn) for i, session in enumerate(conversation["sessions"]) for turn in session["turns"]]
            texts = [f"{turn['speaker']}: {turn['text']}" for _, turn in turns]
            vectors = embedder.embed_documents(texts)
            ends = np.flatnonzero(np.diff([i for i, _ in turns])) + 1
            mixed = np.concatenate([with_neighbours(part) for part in np.split(vectors, ends)]).astype(np.float16)
            documents = [
                Document(content=text, source=turn["id"]) for text, (_, turn) in zip(texts, turns, strict=True)
            ]
            chunks = [
                (i, Chunk(text=text, position=0, start_offset=0, end_offset=len(text))) for i, text in enumerate(texts)
            ]
            built = Collection(documents, chunks, texts, mixed, Lexical(texts))
            known = {turn["id"] for _, turn in turns}
            self.questions += [
                (question["question"], built, question)
                for question in conversation["questions"]
                if question["evidence"] and known.issuperset(question["evidence"])
            ]

    def score(self, collection: Collection, question: dict, order: list[int]) -> dict[str, float]:
        shown = {collection.documents[i].source for i in order[:10]}
        return {"conversations R@10": len(shown & set(question["evidence"])) / len(set(question["evidence"]))}


SETS = {"cranfield": Cranfield, "spans": Spans, "handbook": Handbook, "conversations": Conversations}


def rerank(steps: list[tuple], query: str, candidates: list[Candidate]) -> list[Candidate]:
    for reranker, weight, depth in steps:
        outcome = apply(reranker, query, candidates[:depth], weight=weight, timeout_seconds=600)
        assert outcome.reranked, outcome.reason
        head = [replace(item.candidate, score=item.score) for item in outcome.ranking]
        candidates = head + candidates[depth:]
    return candidates


def parse(configuration: str, rerankers: dict) -> list[tuple]:
    steps = []
    for part in configuration.split("+"):
        name, _, rest = part.partition(":")
        weight, _, depth = rest.partition(":")
        defaults = DEFAULTS[name]
        steps.append((rerankers[name], float(weight or defaults.weight), int(depth or defaults.depth)))
    return steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("configurations", nargs="*", default=["consensus"])
    arguments = parser.parse_args()
    embedder = LocalEmbedder(cache=ModelCache(model_cache()))
    names = {part.partition(":")[0] for one in arguments.configurations for part in one.split("+")}
    rerankers = {name: make_reranker(name, embedder=embedder) for name in names}
    rows: dict[str, dict[str, float]] = defaultdict(dict)
    for name in arguments.sets.split(","):
        data = SETS[name](embedder)
        found = [
            (query, built, question, first_stage(built, query, embedder)) for query, built, question in data.questions
        ]
        say(name, len(found), "questions")
        for configuration in ["", *arguments.configurations]:
            steps = parse(configuration, rerankers) if configuration else []
            scores, times = defaultdict(list), []
            for query, built, question, candidates in found:
                rerank(steps, query, candidates)  # what is computed once is computed here
                started = time.perf_counter()
                order = [candidate.chunk_id for candidate in rerank(steps, query, candidates)]
                times.append((time.perf_counter() - started) * 1000)
                for measure, value in data.score(built, question, order).items():
                    scores[measure].append(value)
            label = configuration or "fusion alone"
            rows[label] |= {measure: float(np.mean(values)) for measure, values in scores.items()}
            rows[label][f"{name} ms p50"] = percentile(times, 50)
            say(label, rows[label])
    columns = list(next(iter(rows.values())))
    print(f"| | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for label, row in rows.items():
        print(f"| {label} | {' | '.join(f'{row[c]:.1f}' if 'ms' in c else f'{row[c]:.3f}' for c in columns)} |")


if __name__ == "__main__":
    main()
