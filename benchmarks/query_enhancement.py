"""What pseudo-relevance feedback and acronyms do to four kinds of questions at once.

In memory, with the package's own reader, default chunks, titles, neighbour-mixed vectors, analyser, BM25, fusion and
local embedder, so that a setting takes seconds. Run from the repository root (embedding takes about a minute, once)::

    python benchmarks/query_enhancement.py [--shared ../shared/data] [--cache FILE.npz] [--candidates 100]

Columns: Cranfield nDCG@10 and R@100 over documents; share of the answering characters within 4,000 characters (spans);
reciprocal rank@10 of a right document (handbook); recall@10 of the turns that answer (conversations).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from harness import SHARED, model_cache, say, table

from recollect.chunking.registry import make_chunker
from recollect.documents.reader import read_file
from recollect.embedding.local import LocalEmbedder
from recollect.embedding.models import ModelCache
from recollect.evaluation.scoring import Span, fitting, ranking_metrics, span_scores
from recollect.ingest.prepare import completed, searchable_text, with_neighbours
from recollect.model import Document
from recollect.retrieval import fusion
from recollect.retrieval.analysis import Analyzer, lexeme
from recollect.retrieval.enhance.feedback import FeedbackSettings, PseudoRelevanceFeedback, moved_query
from recollect.retrieval.enhance.plan import QueryPlan, enhance, expanded_weights
from recollect.retrieval.enhance.synonyms import SynonymEnhancer, find_acronyms
from recollect.retrieval.lexical import K1, B, idf

ROOT = Path(__file__).resolve().parents[1]
ANALYZER = Analyzer("en")
Ranking = Sequence[int]


class Embeddings:
    """The local embedder, remembered in a file."""

    def __init__(self, cache: Path | None) -> None:
        self.embedder = LocalEmbedder(cache=ModelCache(model_cache()))
        self.cache = cache
        self.known: dict[str, np.ndarray] = {}
        if cache and cache.exists():
            stored = np.load(cache)
            self.known = dict(zip(stored["keys"].tolist(), stored["vectors"], strict=True))

    def documents(self, texts: Sequence[str]) -> np.ndarray:
        return self._get(texts, "d", self.embedder.embed_documents)

    def queries(self, texts: Sequence[str]) -> np.ndarray:
        return self._get(texts, "q", lambda missing: np.array([self.embedder.embed_query(text) for text in missing]))

    def _get(self, texts: Sequence[str], kind: str, embed: Callable[[list[str]], np.ndarray]) -> np.ndarray:
        keys = [kind + hashlib.sha256(text.encode()).hexdigest()[:24] for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self.known}
        if missing:
            say(f"embedding {len(missing):,} texts")
            self.known.update(zip(missing, embed(list(missing.values())), strict=True))
            if self.cache:
                np.savez(self.cache, keys=list(self.known), vectors=np.array(list(self.known.values()), np.float32))
        return np.array([self.known[key] for key in keys], np.float32)


@dataclass
class Corpus:
    """One family's collection in memory, with its questions and what counts as right."""

    documents: list[Document]
    questions: list[str]
    measure: Callable[[Corpus, list[Ranking]], list[float]]
    chunked: bool = True
    texts: list[str] = field(default_factory=list)
    spans: list[tuple[str, Span]] = field(default_factory=list)

    def build(self, embeddings: Embeddings) -> None:
        chunker = make_chunker()
        vectors = []
        for document in map(completed, self.documents):
            chunks = chunker.chunk(document)
            own = [searchable_text(document, chunk) for chunk in chunks] if self.chunked else [document.content]
            self.texts += own
            ends = [(c.start_offset, c.end_offset) for c in chunks] if self.chunked else [(0, len(document.content))]
            self.spans += [(document.source or "", span) for span in ends]
            vectors.append(len(own))
        flat = embeddings.documents(self.texts).astype(np.float16)
        parts = np.split(flat, np.cumsum(vectors)[:-1])
        self.vectors = np.concatenate([with_neighbours(p).astype(np.float16) for p in parts]).astype(np.float32)
        self.query_vectors = embeddings.queries(self.questions)
        self._index()
        self.bm25 = [self.lexical(dict(Counter(ANALYZER.query_terms(question)))) for question in self.questions]

    def _index(self) -> None:
        bags = [Counter(ANALYZER.terms(text)) for text in self.texts]
        lengths = np.array([bag.total() for bag in bags], float)
        norms = K1 * (1 - B + B * lengths / lengths.mean())
        self.postings: dict[str, tuple[list[int], list[float]]] = {}
        for index, bag in enumerate(bags):
            for term, count in bag.items():
                owners, weights = self.postings.setdefault(term, ([], []))
                owners.append(index)
                weights.append(count * (K1 + 1) / (count + norms[index]))
        self.bags = bags

    def idf(self, term: str) -> float:
        owners = self.postings.get(term)
        return idf(len(owners[0]), len(self.texts)) if owners else 0.0

    def lexical(self, query: dict[str, float]) -> np.ndarray:
        scores = np.zeros(len(self.texts), np.float32)
        for term, weight in query.items():
            if term in self.postings:
                owners, weights = self.postings[term]
                scores[owners] += weight * self.idf(term) * np.array(weights, np.float32)
        return scores


def best(scores: np.ndarray, limit: int) -> np.ndarray:
    limit = min(limit, len(scores))
    found = np.argpartition(-scores, limit - 1)[:limit]
    return found[np.argsort(-scores[found], kind="stable")]


def candidates(similarities: np.ndarray, bm25: np.ndarray, limit: int) -> np.ndarray:
    lexical = best(bm25, limit)
    return np.union1d(best(similarities, limit), lexical[bm25[lexical] > 0])


def fuse(
    pool: np.ndarray, similarities: np.ndarray, bm25: np.ndarray, weight: float = fusion.DENSE_WEIGHT
) -> np.ndarray:
    """As `recollect.retrieval.fusion.weighted` does with complete scores."""
    z = [
        (retriever[pool] - retriever[pool].mean()) / (retriever[pool].std() + 1e-9)
        for retriever in (similarities, bm25)
    ]
    return pool[np.argsort(-(weight * z[0] + (1 - weight) * z[1]), kind="stable")]


# The families


def cranfield(shared: Path) -> Corpus:
    rows = _rows(shared / "cranfield/corpus.jsonl")
    documents = [
        Document(content=f"{row['title']}\n\n{row['text']}", source=row["_id"], title=row["title"] or None)
        for row in rows
        if (row["title"] + row["text"]).strip()
    ]
    judged: dict[str, dict[str, int]] = {}
    for line in (shared / "cranfield/qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, grade = line.split("\t")
        judged.setdefault(query, {})[document] = int(grade)
    queries = [row for row in _rows(shared / "cranfield/queries.jsonl") if row["_id"] in judged]

    def measure(corpus: Corpus, rankings: list[Ranking]) -> list[float]:
        run = {
            query["_id"]: list(dict.fromkeys(corpus.spans[i].document for i in ranking))[:200]
            for query, ranking in zip(queries, rankings, strict=True)
        }
        figures = ranking_metrics(run, judged)
        return [figures["nDCG@10"], figures["R@100"]]

    return Corpus(documents, [row["text"] for row in queries], measure)


def spans(shared: Path) -> Corpus:
    documents = [
        Document(content=path.read_text(encoding="utf-8"), source=path.name)
        for path in sorted((shared / "chunking/corpora").iterdir())
    ]
    rows = _rows(shared / "chunking/questions.jsonl")

    def measure(corpus: Corpus, rankings: list[Ranking]) -> list[float]:
        recalls = []
        for row, ranking in zip(rows, rankings, strict=True):
            shown = fitting([corpus.spans[i] for i in ranking[:100]], 4000)
            here = [span for document, span in shown if document == row["document"]]
            wanted = [(reference["start"], reference["end"]) for reference in row["references"]]
            recalls.append(span_scores(wanted, here)["recall"])
        return [float(np.mean(recalls))]

    return Corpus(documents, [row["question"] for row in rows], measure)


def handbook() -> Corpus:
    folder = ROOT / "examples/handbook"
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.parent != folder)
    documents = [read_file(path, source=path.relative_to(folder).as_posix()) for path in paths]
    rows = [row for row in _rows(ROOT / "tests/data/handbook_questions.jsonl") if row["answerable"]]

    def measure(corpus: Corpus, rankings: list[Ranking]) -> list[float]:
        ranks = []
        for row, ranking in zip(rows, rankings, strict=True):
            right = [r for r, i in enumerate(ranking[:10], 1) if corpus.spans[i].document in row["sources"]]
            ranks.append(1 / right[0] if right else 0.0)
        return [float(np.mean(ranks))]

    return Corpus(documents, [row["question"] for row in rows], measure)


def conversations(shared: Path) -> list[Corpus]:
    made = []
    for conversation in json.loads((shared / "conversations/locomo-dev.json").read_text(encoding="utf-8"))[
        "conversations"
    ]:
        turns = [turn for session in conversation["sessions"] for turn in session["turns"] if turn["text"].strip()]
        documents = [Document(content=f"{turn['speaker']}: {turn['text']}", source=turn["id"]) for turn in turns]
        rows = [row for row in conversation["questions"] if row["evidence"]]

        def measure(corpus: Corpus, rankings: list[Ranking], rows: list[dict] = rows) -> list[float]:
            return [
                float(
                    np.mean(
                        [
                            len({corpus.spans[i].document for i in ranking[:10]} & set(row["evidence"]))
                            / len(set(row["evidence"]))
                            for row, ranking in zip(rows, rankings, strict=True)
                        ]
                    )
                )
            ]

        made.append(Corpus(documents, [row["question"] for row in rows], measure, chunked=False))
    return made


def _rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


class Bench:
    """All families, built once."""

    def __init__(self, shared: Path, cache: Path | None) -> None:
        embeddings = Embeddings(cache)
        self.families = {
            "cranfield": [cranfield(shared)],
            "spans": [spans(shared)],
            "handbook": [handbook()],
            "conversations": conversations(shared),
        }
        for corpora in self.families.values():
            for corpus in corpora:
                corpus.build(embeddings)

    def run(self, search: Callable[[Corpus, int], Ranking]) -> list[float]:
        figures: list[float] = []
        for corpora in self.families.values():
            measured = [c.measure(c, [search(c, q) for q in range(len(c.questions))]) for c in corpora]
            sizes = [len(c.questions) for c in corpora]
            figures += np.average(np.array(measured), axis=0, weights=sizes).tolist()
        return figures


# The searches

Search = Callable[[Corpus, int], Ranking]


def plain(limit: int) -> Search:
    def search(corpus: Corpus, question: int) -> Ranking:
        similarities = corpus.vectors @ corpus.query_vectors[question]
        return fuse(candidates(similarities, corpus.bm25[question], limit), similarities, corpus.bm25[question])

    return search


def with_feedback(limit: int, **settings: float) -> Search:
    """The package's own second round over the first round's candidates."""
    feedback = PseudoRelevanceFeedback(FeedbackSettings(**{"depth": 200, **settings}))

    def search(corpus: Corpus, question: int) -> Ranking:
        query, bm25 = corpus.query_vectors[question], corpus.bm25[question]
        similarities = corpus.vectors @ query
        pool = candidates(similarities, bm25, limit)
        everything = {int(i): (float(similarities[i]), float(bm25[i])) for i in pool}
        ranking = fusion.weighted(
            [(i, dense) for i, (dense, _) in everything.items()], [(i, words) for i, (_, words) in everything.items()]
        )
        head = [i for i, _ in ranking[: feedback.settings.depth]]
        found = feedback.rerank(
            query,
            ranking,
            vectors={i: corpus.vectors[i] for i in head},
            fuse=lambda new: fusion.weighted(list(new.items()), [(i, float(bm25[i])) for i in new]),
        )
        return [i for i, _ in found]

    return search


def searched_again(limit: int, *, passages: int, weight: float) -> Search:
    """The classic form, for comparison: a second dense search over everything, fused again."""

    def search(corpus: Corpus, question: int) -> Ranking:
        query, bm25 = corpus.query_vectors[question], corpus.bm25[question]
        first = plain(limit)(corpus, question)
        similarities = corpus.vectors @ moved_query(query, corpus.vectors[first[:passages]], weight=weight)
        return fuse(candidates(similarities, bm25, limit), similarities, bm25)

    return search


def with_terms(limit: int, *, passages: int, terms: int, weight: float) -> Search:
    """Lexical feedback in the manner of RM3: the heaviest terms of the first results join the query."""

    def search(corpus: Corpus, question: int) -> Ranking:
        similarities = corpus.vectors @ corpus.query_vectors[question]
        pool = candidates(similarities, corpus.bm25[question], limit)
        heavy: Counter[str] = Counter()
        for index in fuse(pool, similarities, corpus.bm25[question])[:passages]:
            bag = corpus.bags[index]
            for term, count in bag.items():
                heavy[term] += count / bag.total() * corpus.idf(term)
        query = Counter(ANALYZER.query_terms(corpus.questions[question]))
        fresh = [(term, value) for term, value in heavy.most_common(terms + len(query)) if term not in query][:terms]
        top = max((value for _, value in fresh), default=1.0)
        added = {term: weight * value / top for term, value in fresh}
        return fuse(pool, similarities, corpus.lexical({**query, **added}))

    return search


def with_acronyms(limit: int) -> Search:
    """Acronyms that the corpus explains itself, both ways."""
    enhancers: dict[int, SynonymEnhancer] = {}

    def search(corpus: Corpus, question: int) -> Ranking:
        key = id(corpus)
        if key not in enhancers:
            rules = find_acronyms(document.content for document in corpus.documents)
            enhancers[key] = SynonymEnhancer(rules, ANALYZER, name="acronyms")
            say(
                f"{len(rules.rules)} acronyms in {corpus.documents[0].source}: {[r.originals for r in rules.rules][:8]}"
            )
        plan: QueryPlan = enhance(corpus.questions[question], [enhancers[key]])
        if not plan.expansions:
            return plain(limit)(corpus, question)
        say(f"  {plan.query!r}: {plan.notes[0].detail}")
        names = {lexeme(term, 0): term for term in corpus.postings}
        weights = {
            lexeme(term, 0): count * corpus.idf(term)
            for term, count in Counter(ANALYZER.query_terms(plan.query)).items()
            if term in corpus.postings
        }
        rarity = {number: corpus.idf(term) for number, term in names.items()}
        full = expanded_weights(weights, plan.expansions, analyzer=ANALYZER, salt=0, idf=rarity)
        bm25 = corpus.lexical({names[number]: value / rarity[number] for number, value in full.items()})
        similarities = corpus.vectors @ corpus.query_vectors[question]
        return fuse(candidates(similarities, bm25, limit), similarities, bm25)

    return search


def variants(limit: int) -> dict[str, Search]:
    found = {"plain": plain(limit)}
    for passages, weight in ((3, 0.5), (5, 0.5)):
        label = f"query moved, n={passages}, β={weight}"
        found[f"{label}: searched again"] = searched_again(limit, passages=passages, weight=weight)
        found[f"{label}: candidates only"] = with_feedback(limit, passages=passages, weight=weight, neighbours=0)
    for passages, terms, weight in ((5, 10, 0.3), (10, 20, 0.3)):
        label = f"terms of the first {passages} ({terms}, ×{weight})"
        found[label] = with_terms(limit, passages=passages, terms=terms, weight=weight)
    for neighbours, smoothing in ((3, 0.3), (5, 0.4), (8, 0.3), (8, 0.4), (12, 0.4)):
        label = f"smoothed, k={neighbours}, α={smoothing}"
        found[label] = with_feedback(limit, passages=0, neighbours=neighbours, smoothing=smoothing)
    for depth in (50, 100, 200):
        label = f"moved n=3, β=0.3 and smoothed k=8, α=0.4, depth {depth}"
        found[label] = with_feedback(limit, depth=depth)
    found["acronyms of the documents"] = with_acronyms(limit)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=SHARED)
    parser.add_argument("--cache", type=Path, help="where embeddings are kept between runs")
    parser.add_argument("--candidates", type=int, default=100, help="of each retriever")
    parser.add_argument("names", nargs="*", help="only variants that contain one of these")
    arguments = parser.parse_args()
    bench = Bench(arguments.shared, arguments.cache)
    rows = []
    for label, search in variants(arguments.candidates).items():
        if not arguments.names or any(name in label for name in arguments.names):
            start = time.perf_counter()
            rows.append([label, *(f"{figure:.3f}" for figure in bench.run(search))])
            say(*rows[-1], f"{time.perf_counter() - start:.1f} s")
    print(table(["", "Cranfield nDCG@10", "R@100", "spans", "handbook", "conversations"], rows))


if __name__ == "__main__":
    main()
