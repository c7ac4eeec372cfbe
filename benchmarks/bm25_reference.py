"""Does the engine's lexical search return the top 10 of BM25?

Ingests a BEIR collection into a fresh embedded store, asks every query with ``mode="lexical"``, and compares each
top 10 with a plain BM25 that computes every chunk's score from the same tokens (those of the chunk with the title and
the headings it stands under, as it is indexed): no index, no candidates, no stored weights. Ties may be broken either
way, so two rankings agree where the scores at each rank do. Run from the repository root:

    python benchmarks/bm25_reference.py [--data ../shared/data/cranfield] [--depth 10]
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from harness import store_folder

from recollect import RAGConfig, RAGPipeline, RetrievalOptions
from recollect.chunking.registry import make_chunker
from recollect.evaluation.datasets import load_beir
from recollect.ingest.prepare import completed, searchable_text
from recollect.retrieval.analysis import Analyzer

K1 = 1.2
B = 0.75
RELATIVE_TOLERANCE = 1e-4

Place = tuple[str, int]


class ReferenceBM25:
    """BM25 by brute force over lists of tokens (Robertson and Zaragoza 2009)."""

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        self._postings: dict[str, tuple[list[int], list[int]]] = {}
        for number, terms in enumerate(texts):
            for term, count in Counter(terms).items():
                holders, counts = self._postings.setdefault(term, ([], []))
                holders.append(number)
                counts.append(count)
        lengths = np.array([len(terms) for terms in texts], dtype=np.float64)
        self._saturation = K1 * (1 - B + B * lengths / lengths.mean())

    def scores(self, query: Sequence[str]) -> np.ndarray:
        """Every text's score; a term that the query repeats counts each time."""
        scores = np.zeros(len(self._saturation))
        for term in query:
            holders, counts = self._postings.get(term, ([], []))
            tf = np.array(counts, dtype=np.float64)
            df = len(holders)
            idf = np.log(1 + (len(scores) - df + 0.5) / (df + 0.5))
            scores[holders] += idf * tf * (K1 + 1) / (tf + self._saturation[holders])
        return scores


def same_ranking(found: Sequence[int], scores: np.ndarray, depth: int) -> bool:
    """Whether texts found, best first, are the best ones by these scores, ties aside."""
    best = np.sort(scores)[::-1][:depth]
    best = best[best > 0]
    if len(found) != len(best) or len(set(found)) != len(found):
        return False
    return bool(np.allclose(scores[list(found)], best, rtol=RELATIVE_TOLERANCE))


def main() -> None:
    """Print the share of queries whose rankings agree, and the first that do not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/cranfield"))
    parser.add_argument("--depth", type=int, default=10)
    arguments = parser.parse_args()

    dataset = load_beir(arguments.data)
    documents = list(dataset.documents())
    analyzer = Analyzer("en")
    options = RetrievalOptions(mode="lexical", top_k=arguments.depth)
    differing: list[str] = []
    with store_folder() as folder:
        # The fake embedder: vectors play no part here, and 1,400 documents are stored in seconds.
        config = RAGConfig.model_validate({"storage": {"data_dir": folder}, "embedding": {"provider": "hashing"}})
        chunker = make_chunker(config.chunking.strategy, **config.chunking.parameters)
        places: dict[Place, int] = {}
        texts: list[list[str]] = []
        with RAGPipeline(config) as pipeline:
            pipeline.ingest(documents)
            for document in documents:
                complete = completed(document)
                for chunk in chunker.chunk(complete):
                    places[document.source or "", chunk.start_offset] = len(texts)
                    texts.append(analyzer.terms(searchable_text(complete, chunk)))
            reference = ReferenceBM25(texts)
            for query in dataset.questions:
                reply = pipeline.search(query.text, options)
                found = [places[result.source, result.start_offset] for result in reply.results]
                if not same_ranking(found, reference.scores(analyzer.query_terms(query.text)), arguments.depth):
                    differing.append(query.question_id)
    agreeing = len(dataset.questions) - len(differing)
    print(f"{len(texts)} chunks, {len(dataset.questions)} queries, top {arguments.depth}")
    print(f"equal rankings: {agreeing} ({agreeing / len(dataset.questions):.1%})")
    if differing:
        print("differing queries:", ", ".join(differing[:20]))


if __name__ == "__main__":
    main()
