"""How often a question is refused wrongly, and how often one is answered that should be refused.

Three families of questions, each answerable somewhere and unanswerable elsewhere:

- handbook: tests/data/handbook_questions.jsonl on examples/handbook; its unanswerable questions are near misses, false
  premises and questions from another world;
- chunking: the chunking data's questions on their own corpora; on the other corpora and on the handbook they have no
  answer. "gap" asks them on their own corpus without the passages that hold the answer: not counted in fits, since
  other passages may answer too;
- cranfield: half of its questions, on its abstracts and on the handbook.

Retrieval is hybrid, in memory, with the package's own reader, default chunks, analyser, fusion and local embedder.
Prints the errors of the default rule, and those of a rule fitted to the other families alone. Run from the repository
root (takes some minutes):

    python benchmarks/refusal.py [--shared ../shared/data] [--models DIR] [--fit]
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from harness import model_cache

from recollect.answer.extractive import ExtractionOptions, read
from recollect.answer.refusal import RefusalRule, Support
from recollect.chunking.registry import make_chunker
from recollect.documents.reader import read_file
from recollect.documents.walk import FoundFile, walk
from recollect.embedding.local import LocalEmbedder
from recollect.embedding.models import ModelCache
from recollect.model import Document, RetrievedContext
from recollect.retrieval.analysis import Analyzer
from recollect.retrieval.fusion import weighted
from recollect.retrieval.lexical import K1, B, idf

ROOT = Path(__file__).resolve().parents[1]
ARM_SIZE = 100
TOP_K = 10
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Case:
    """One question on one collection, and what the refusal rule sees of it."""

    family: str
    group: str
    answerable: bool
    question: str
    support: Support | None
    found: bool


class Collection:
    """Documents searched in memory, the way the engine does."""

    def __init__(self, documents: Sequence[Document], embedder: LocalEmbedder, analyzer: Analyzer) -> None:
        self.documents = documents
        self.embedder = embedder
        self.analyzer = analyzer
        chunker = make_chunker()
        self.chunks = [(number, chunk) for number, doc in enumerate(documents) for chunk in chunker.chunk(doc)]
        self.vectors = embedder.embed_documents([chunk.text for _, chunk in self.chunks])
        self.postings: dict[str, dict[int, int]] = defaultdict(dict)
        lengths = []
        for index, (_, chunk) in enumerate(self.chunks):
            counts = Counter(analyzer.terms(chunk.text))
            lengths.append(sum(counts.values()))
            for term, count in counts.items():
                self.postings[term][index] = count
        self.lengths = np.array(lengths) / max(1.0, float(np.mean(lengths)))

    def search(self, question: str, without: tuple[int, Sequence[Span]] | None = None) -> list[RetrievedContext]:
        similarities = self.vectors @ self.embedder.embed_query(question)
        scores: Counter[int] = Counter()
        for term in self.analyzer.query_terms(question):
            posting = self.postings.get(term, {})
            for index, count in posting.items():
                norm = K1 * (1 - B + B * self.lengths[index])
                scores[index] += idf(len(posting), len(self.chunks)) * count * (K1 + 1) / (count + norm)
        dense = [(int(i), float(similarities[i])) for i in np.argsort(-similarities)[:ARM_SIZE]]
        known = {i: float(similarities[i]) for i in scores}
        ranked = weighted(dense, scores.most_common(ARM_SIZE), known_dense=known, known_lexical=scores)
        hits = [(i, score) for i, score in ranked if not (without and self._holds(i, *without))]
        return [self._passage(rank, i, score, similarities) for rank, (i, score) in enumerate(hits[:TOP_K], start=1)]

    def _holds(self, index: int, number: int, spans: Sequence[Span]) -> bool:
        owner, chunk = self.chunks[index]
        return owner == number and any(chunk.start_offset < end and start < chunk.end_offset for start, end in spans)

    def _passage(self, rank: int, index: int, score: float, similarities: np.ndarray) -> RetrievedContext:
        number, chunk = self.chunks[index]
        document = self.documents[number]
        return RetrievedContext(
            rank=rank,
            score=score,
            content=chunk.text,
            chunk_id=index,
            document_id=number,
            title=document.title or document.source or "",
            source=document.source or "",
            section=" > ".join(chunk.section) or None,
            page=chunk.page,
            start_offset=chunk.start_offset,
            end_offset=chunk.end_offset,
            metadata={},
            similarity=float(similarities[index]),
        )


class Bench:
    def __init__(self, shared: Path, models: Path) -> None:
        self.shared = shared
        self.embedder = LocalEmbedder(cache=ModelCache(models))
        self.analyzer = Analyzer("en")
        folder = ROOT / "examples/handbook"
        files = [found for found in walk([folder]) if isinstance(found, FoundFile)]
        self.handbook = self._collection([read_file(found.path, source=found.source) for found in files])

    def _collection(self, documents: Sequence[Document]) -> Collection:
        return Collection(documents, self.embedder, self.analyzer)

    def cases(self) -> Iterator[Case]:
        yield from self._handbook()
        if self.shared.exists():
            yield from self._chunking()
            yield from self._cranfield()

    def _case(self, family, group, question, collection, *, answerable=False, contains=(), spans=(), without=None):
        passages = collection.search(question, without)
        reading = read(question, passages, embedder=self.embedder, analyzer=self.analyzer, options=ExtractionOptions())
        quotes = " ".join(e.region.text[e.unit.quote_start : e.unit.end] for e in reading.chosen)
        text = " ".join(quotes.split()).casefold()
        found = all(" ".join(part.split()).casefold() in text for part in contains) if contains else False
        if spans:
            found = any(e.start_offset < end and start < e.end_offset for e in reading.chosen for start, end in spans)
        return Case(family, group, answerable, question, reading.support, found)

    def _handbook(self) -> Iterator[Case]:
        for row in _rows(ROOT / "tests/data/handbook_questions.jsonl"):
            group = "answerable" if row["answerable"] else row["kind"]
            yield self._case(
                "handbook",
                group,
                row["question"],
                self.handbook,
                answerable=row["answerable"],
                contains=row.get("answer_contains") or (),
            )

    def _chunking(self) -> Iterator[Case]:
        paths = sorted((self.shared / "chunking/corpora").glob("*.md"))
        corpora = {p.name: self._collection([read_file(p, source=p.name)]) for p in paths}
        for row in _rows(self.shared / "chunking/questions.jsonl"):
            spans = [(reference["start"], reference["end"]) for reference in row["references"]]
            question, own = row["question"], row["document"]
            for name, corpus in corpora.items():
                group = "answerable" if name == own else "another corpus"
                spans_here = spans if name == own else ()
                yield self._case("chunking", group, question, corpus, answerable=name == own, spans=spans_here)
            yield self._case("chunking", "on the handbook", question, self.handbook)
            yield self._case("chunking", "gap", question, corpora[own], without=(0, spans))

    def _cranfield(self) -> Iterator[Case]:
        abstracts = self._collection(
            [
                Document(content=f"{row['title']}\n\n{row['text']}", source=row["_id"])
                for row in _rows(self.shared / "cranfield/corpus.jsonl")
                if (row["title"] + row["text"]).strip()
            ]
        )
        for row in list(_rows(self.shared / "cranfield/queries.jsonl"))[::2]:
            yield self._case("cranfield", "answerable", row["text"], abstracts, answerable=True)
            yield self._case("cranfield", "on the handbook", row["text"], self.handbook)


def _rows(path: Path) -> Iterator[dict]:
    with path.open(encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())


def _refused(case: Case, rule: RefusalRule) -> bool:
    return case.support is None or rule.refuses(case.support)


_WEIGHTS = ("score_weight", "similarity_weight")
_PENALTIES = (
    "missing_number_penalty",
    "missing_name_penalty",
    "unknown_name_penalty",
    "missing_attribute_penalty",
    "wrong_kind_penalty",
)


def _features(support: Support) -> list[float]:
    """1, then what the rule weighs, in the order of ``_WEIGHTS`` and ``_PENALTIES``."""
    return [
        1.0,
        support.total,
        support.similarity,
        support.missing_number,
        support.missing_name,
        support.unknown_name,
        support.missing_attribute,
        support.wrong_kind,
    ]


def fit(cases: Sequence[Case]) -> RefusalRule:
    """Logistic regression (Newton steps, a little ridge), each family's two sides with equal weight.

    The bias is then moved to where the mean of false refusals and false answers is smallest.
    """
    cases = [case for case in cases if case.support is not None and case.group != "gap"]
    x = np.array([_features(case.support) for case in cases], float)
    y = np.array([case.answerable for case in cases], float)
    sizes = Counter((case.family, case.answerable) for case in cases)
    weight = np.array([1 / sizes[case.family, case.answerable] for case in cases])
    weight /= weight.sum()
    ridge = np.diag([0] + [1e-3] * (x.shape[1] - 1))
    beta = np.zeros(x.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ beta))
        hessian = (x * (weight * p * (1 - p))[:, None]).T @ x + ridge
        beta += np.linalg.solve(hessian, x.T @ (weight * (y - p)) - ridge @ beta)
    scores = x[:, 1:] @ beta[1:]
    biases = -np.unique(scores)
    errors = [float(weight @ ((scores + bias > 0) != y)) for bias in biases]
    near_best = biases[np.array(errors) <= min(errors) + 0.002]
    return RefusalRule(
        bias=float(np.median(near_best)),
        **dict(zip(_WEIGHTS, map(float, beta[1:3]), strict=True)),
        **dict(zip(_PENALTIES, map(float, -beta[3:]), strict=True)),
    )


def report(title: str, cases: Sequence[Case], rule: RefusalRule) -> None:
    print(f"\n{title}: {rule}")
    groups: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in cases:
        groups[case.family, case.group].append(case)
    for (family, group), members in groups.items():
        refused = sum(_refused(case, rule) for case in members)
        if members[0].answerable:
            share, words = refused / len(members), "false refusals"
        else:
            share, words = 1 - refused / len(members), "false answers"
        line = f"  {family:10} {group:16} {len(members):4} questions  {words:14} {share:6.1%}"
        if members[0].answerable and any(case.found for case in members):
            answered = [case for case in members if not _refused(case, rule)]
            line += (
                f"   answer among the quotes {sum(c.found for c in answered) / max(1, len(answered)):.1%} of answers"
            )
            line += f" ({sum(c.found for c in members) / len(members):.1%} without the rule)"
        print(line)
    for family in sorted({case.family for case in cases}):
        wrong = [c for c in cases if c.family == family and not c.answerable and c.group != "gap"]
        if wrong:
            share = sum(not _refused(case, rule) for case in wrong) / len(wrong)
            print(f"  {family:10} all unanswerable  {len(wrong):4} questions  false answers  {share:6.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=ROOT / "../shared/data")
    parser.add_argument("--models", type=Path, default=model_cache())
    parser.add_argument("--fit", action="store_true", help="also print a rule fitted to everything")
    arguments = parser.parse_args()
    cases = list(Bench(arguments.shared, arguments.models).cases())
    report("Default rule", cases, RefusalRule())
    families = sorted({case.family for case in cases})
    for family in families if len(families) > 1 else ():
        rule = fit([case for case in cases if case.family != family])
        report(f"Fitted without {family}", [case for case in cases if case.family == family], rule)
    if arguments.fit:
        report("Fitted to everything", cases, fit(cases))


if __name__ == "__main__":
    main()
