"""Fits how relevant passages are (`recollect.retrieval.relevance`), and measures how well that is calibrated.

Asks judged questions of the development data through the engine as it is, and takes of the ten best passages what the
model goes by, similarity and coverage, with the judgement:

- cranfield, scifact: abstracts that the judgements name are relevant, all others are not;
- xquad-en, xquad-de, …: the paragraph that a question was asked of; xquad-across: questions of other languages asked of
  the English paragraphs, which this model hardly understands;
- chunking, locomo: passages that hold characters, or turns, that answer;
- handbook: passages of the sources named that hold the answer's words; its unanswerable questions have none;
- elsewhere: questions of one collection asked of another; gibberish: words that there are not, of several kinds.

Families count alike to one half, and to the other the more, the greater their losses (Sagawa et al. 2020). The losses
that are printed for a family are those of a model fitted to the others alone. Run from the
repository root; the first run ingests the collections into ``--work``, which takes some ten minutes:

    python benchmarks/relevance.py --work ../relevance [--write]
"""

from __future__ import annotations

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from harness import SHARED, say, table

from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.model import RetrievedContext
from recollect.retrieval.relevance import load_model, scale

ROOT = Path(__file__).resolve().parents[1]
MODEL_FILE = ROOT / "src/recollect/retrieval/relevance.json"
LANGUAGES = ("en", "de", "tr", "ar", "zh")
MOST = 300
SYLLABLES = (
    ["b", "d", "f", "gr", "k", "l", "m", "p", "qu", "st"],
    ["a", "e", "i", "o", "oo"],
    ["", "n", "rk", "x"],
)
PARTS = ("features", "relevant", "question")
#: Families without anything to find, or in a language that the model was not made for.
FOREIGN = ("gibberish", "elsewhere", "xquad-across")
Judge = Callable[[RetrievedContext], bool | None]


@dataclass(frozen=True)
class Asked:
    """A question, where it is asked, and what of the answer is relevant (None: not judged)."""

    family: str
    collection: str
    query: str
    judge: Judge


@dataclass(frozen=True)
class Seen:
    """What a family's passages showed: similarity, coverage and judgement of each, and which question they are of."""

    features: np.ndarray
    relevant: np.ndarray
    question: np.ndarray


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def judgements(folder: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, grade = line.split("\t")
        if int(grade) > 0:
            found[query].add(document)
    return found


class Data:
    """The collections, and the questions about them."""

    def __init__(self, shared: Path) -> None:
        self.shared = shared
        self.sample = random.Random(7)
        conversations = json.loads((shared / "conversations/locomo-dev.json").read_text(encoding="utf-8"))
        self.conversations = conversations["conversations"]

    def collections(self) -> Iterator[tuple[str, Iterable[Document]]]:
        yield "handbook", ()
        for path in sorted((self.shared / "chunking/corpora").glob("*.md")):
            yield f"chunking-{path.stem}", [Document(content=path.read_text(encoding="utf-8"), source=path.name)]
        for language in LANGUAGES:
            corpus = rows(self.shared / f"xquad/{language}/corpus.jsonl")
            yield (
                f"xquad-{language}",
                [Document(content=row["text"], source=row["_id"], language=language) for row in corpus],
            )
        for name in ("cranfield", "scifact"):
            texts = ((row["_id"], f"{row['title']}\n\n{row['text']}".strip()) for row in self._corpus(name))
            yield name, [Document(content=text, source=key) for key, text in texts if text]
        for conversation in self.conversations:
            texts = ((one["id"], self._spoken(one)[0]) for one in conversation["sessions"])
            yield f"locomo-{conversation['id']}", [Document(content=text, source=key) for key, text in texts]

    def _corpus(self, name: str) -> list[dict]:
        return rows(self.shared / name / "corpus.jsonl")

    def _spoken(self, session: dict) -> tuple[str, dict[str, tuple[int, int]]]:
        text, spans = "", {}
        for turn in session["turns"]:
            line = f"{turn['speaker']}: {turn['text']}\n"
            spans[turn["id"]] = (len(text), len(text) + len(line))
            text += line
        return text, spans

    def questions(self) -> Iterator[Asked]:
        yield from self._beir()
        yield from self._spans()
        yield from self._conversations()
        yield from self._handbook()

    def _some(self, items: Sequence, most: int = MOST) -> Sequence:
        return items if len(items) <= most else self.sample.sample(items, most)

    def _beir(self) -> Iterator[Asked]:
        places = [(name, name, name, MOST) for name in ("cranfield", "scifact")]
        places += [(f"xquad-{one}", f"xquad/{one}", f"xquad-{one}", MOST if one == "en" else 150) for one in LANGUAGES]
        places += [("xquad-across", f"xquad/{one}", "xquad-en", 60) for one in LANGUAGES[1:]]
        for family, folder, collection, most in places:
            judged = judgements(self.shared / folder)
            asked = [row for row in rows(self.shared / folder / "queries.jsonl") if judged.get(row["_id"])]
            for row in self._some(asked, most):
                wanted = judged[row["_id"]]
                yield Asked(family, collection, row["text"], lambda passage, wanted=wanted: passage.source in wanted)

    def _spans(self) -> Iterator[Asked]:
        for row in rows(self.shared / "chunking/questions.jsonl"):
            spans = [(one["start"], one["end"]) for one in row["references"]]
            collection = f"chunking-{Path(row['document']).stem}"
            yield Asked("chunking", collection, row["question"], lambda passage, spans=spans: _holds(passage, spans))

    def _conversations(self) -> Iterator[Asked]:
        for conversation in self.conversations:
            spans: dict[str, tuple[str, tuple[int, int]]] = {}
            for session in conversation["sessions"]:
                spans |= {turn: (session["id"], span) for turn, span in self._spoken(session)[1].items()}
            told = [one for one in conversation["questions"] if one["evidence"] and one.get("category") != 5]
            for row in self._some(told, MOST // 5):
                wanted = [spans[turn] for turn in row["evidence"] if turn in spans]
                yield Asked(
                    "locomo",
                    f"locomo-{conversation['id']}",
                    row["question"],
                    lambda passage, wanted=wanted: any(
                        passage.source == session and _holds(passage, [span]) for session, span in wanted
                    ),
                )

    def _handbook(self) -> Iterator[Asked]:
        for row in rows(ROOT / "tests/data/handbook_questions.jsonl"):
            sources, words = set(row.get("sources") or ()), [one.casefold() for one in row.get("answer_contains") or ()]

            def judge(passage: RetrievedContext, sources=sources, words=words, told=row["answerable"]) -> bool | None:
                if not told or passage.source not in sources:
                    return False
                text = " ".join(passage.content.split()).casefold()
                return True if any(word in text for word in words) else None

            yield Asked("handbook", "handbook", row["question"], judge)

    def strangers(self, asked: Sequence[Asked]) -> Iterator[Asked]:
        """Questions of one collection asked of another, and gibberish."""
        families = ("cranfield", "scifact", "xquad-en", "chunking", "locomo", "handbook")
        places = ("cranfield", "scifact", "xquad-en", "handbook", "chunking-finance", f"locomo-{self._first()}")
        for family in families:
            own = [one.query for one in asked if one.family == family]
            for place in places:
                if place.split("-")[0] != family.split("-")[0]:
                    for query in self.sample.sample(own, 12):
                        yield Asked("elsewhere", place, query, lambda _: False)
        for place in (*places, "xquad-de", "xquad-zh"):
            for _ in range(40):
                yield Asked("gibberish", place, self.gibberish(), lambda _: False)

    def _first(self) -> str:
        return self.conversations[0]["id"]

    def gibberish(self) -> str:
        """Letters at random, words that could be but are not, and keys pressed in a row."""
        pick = self.sample

        def letters() -> str:
            return "".join(pick.choices("abcdefghijklmnopqrstuvwxyz", k=pick.randint(3, 10)))

        def syllables() -> str:
            return "".join(pick.choice(kind) for _ in range(pick.randint(1, 3)) for kind in SYLLABLES)

        def keys() -> str:
            row = pick.choice(("qwertyuiop", "asdfghjkl", "zxcvbnm", "йцукенгшщз"))
            start = pick.randrange(len(row) - 3)
            return row[start : start + pick.randint(3, 6)] * pick.randint(1, 2)

        kind = pick.choice((letters, syllables, syllables, keys))
        return " ".join(kind() for _ in range(pick.randint(1, 6))) + pick.choice(("", "", "?"))


def _holds(passage: RetrievedContext, spans: Sequence[tuple[int, int]]) -> bool:
    return any(passage.start_offset < end and start < passage.end_offset for start, end in spans)


def ingest(rag: RAGPipeline, data: Data) -> None:
    there = {place.name for place in rag.collections.each() if place.document_count}
    for name, documents in data.collections():
        if name in there:
            continue
        say(f"ingesting {name}")
        if name == "handbook":
            rag.view(collections=name).ingest(ROOT / "examples/handbook")
        else:
            rag.view(collections=name).ingest(documents)


def observe(rag: RAGPipeline, asked: Sequence[Asked]) -> dict[str, Seen]:
    found: dict[str, list[tuple[float, float, bool, int]]] = defaultdict(list)
    options = RetrievalOptions(top_k=10, min_relevance=0.0, explain=True, use_cache=False)
    for number, one in enumerate(asked):
        for passage in rag.view(collections=one.collection).search(one.query, options).results:
            relevant = one.judge(passage)
            if relevant is not None and passage.similarity is not None and passage.explain is not None:
                coverage = passage.explain.coverage
                found[one.family].append(
                    (passage.similarity, np.nan if coverage is None else coverage, relevant, number)
                )
        if number % 200 == 0:
            say(f"{number:,} of {len(asked):,} questions")
    return {
        family: Seen(np.array([s[:2] for s in seen]), np.array([s[2] for s in seen]), np.array([s[3] for s in seen]))
        for family, seen in found.items()
    }


def kept_observations(file: Path, rag_of: Callable[[], RAGPipeline], shared: Path) -> dict[str, Seen]:
    """What was observed, from the file where it was kept before; delete that to observe anew."""
    if not file.exists():
        data = Data(shared)
        with rag_of() as rag:
            ingest(rag, data)
            own = list(data.questions())
            seen = observe(rag, [*own, *data.strangers(own)])
        parts = {f"{family}/{name}": getattr(one, name) for family, one in seen.items() for name in PARTS}
        np.savez_compressed(file, **parts)
    with np.load(file) as stored:
        families = dict.fromkeys(key.rpartition("/")[0] for key in stored.files)
        return {family: Seen(*(stored[f"{family}/{name}"] for name in PARTS)) for family in families}


def design(seen: Seen, kind: str, scale_of: tuple[float, float]) -> np.ndarray:
    """The features of a family's passages, by what is known of them."""
    unrelated, related = scale_of
    similarity = (seen.features[:, 0] - unrelated) / (related - unrelated)
    # A question without words that count is judged by its similarity alone; few have none.
    coverage = np.nan_to_num(seen.features[:, 1])
    columns = {"both": (similarity, coverage), "similarity": (similarity,), "coverage": (coverage,)}[kind]
    return np.column_stack([np.ones(len(similarity)), *columns])


def probabilities(x: np.ndarray, beta: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(x @ beta, -30, 30)))


def log_loss(p: np.ndarray, y: np.ndarray) -> float:
    p = np.clip(p, 1e-6, 1 - 1e-6)
    return float(-np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)))


def logistic(x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Logistic regression by Newton steps, with a little ridge."""
    beta = np.zeros(x.shape[1])
    ridge = np.diag([0.0, *[1e-4] * (x.shape[1] - 1)])
    for _ in range(25):
        p = probabilities(x, beta)
        hessian = (x * (weight * p * (1 - p))[:, None]).T @ x + ridge + np.eye(len(beta)) * 1e-9
        beta += np.linalg.solve(hessian, x.T @ (weight * (y - p)) - ridge @ beta)
    return beta


def fit(families: dict[str, tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Coefficients for families that count alike to one half, and to the other the more, the greater their losses."""
    x, y = (np.concatenate(parts) for parts in zip(*families.values(), strict=True))
    shares = dict.fromkeys(families, 1 / len(families))
    beta = np.zeros(x.shape[1])
    for _ in range(25):
        weights = {name: (share + 1 / len(families)) / 2 for name, share in shares.items()}
        beta = logistic(x, y, np.concatenate([np.full(len(t), weights[n] / len(t)) for n, (_, t) in families.items()]))
        losses = {name: log_loss(probabilities(x_, beta), y_) for name, (x_, y_) in families.items()}
        grown = {name: share * np.exp(1.5 * losses[name]) for name, share in shares.items()}
        shares = {name: share / sum(grown.values()) for name, share in grown.items()}
    return beta


def calibration_error(p: np.ndarray, y: np.ndarray) -> float:
    """Expected calibration error over ten bins of equal width."""
    bins = np.minimum((p * 10).astype(int), 9)
    parts = [(bins == number) for number in range(10) if (bins == number).any()]
    return float(sum(abs(p[part].mean() - y[part].mean()) * part.mean() for part in parts))


def best_of_questions(p: np.ndarray, seen: Seen) -> tuple[np.ndarray, np.ndarray]:
    """The most relevant passage of each question, and whether it found one that is."""
    numbers = np.unique(seen.question)
    best = np.array([p[seen.question == number].max() for number in numbers])
    return best, np.array([seen.relevant[seen.question == number].any() for number in numbers])


def above(good: np.ndarray, bad: np.ndarray) -> float:
    """How often one of the good ranks above one of the bad (area under the curve)."""
    return float(np.mean((good[:, None] > bad[None, :]) + 0.5 * (good[:, None] == bad[None, :])))


def floor_of(p: dict[str, np.ndarray], seen: dict[str, Seen]) -> float:
    """What stops 98 % of gibberish, unless a family of the model's language lost 1 in 200 of its answered questions."""
    answered = [best[hit] for f in p if f not in FOREIGN for best, hit in [best_of_questions(p[f], seen[f])]]
    nonsense, _ = best_of_questions(p["gibberish"], seen["gibberish"])
    harmless = min(float(np.quantile(best, 0.005)) for best in answered if len(best))
    return round(min(harmless, float(np.quantile(nonsense, 0.98))), 3)


def report(kind: str, seen: dict[str, Seen], scale_of: tuple[float, float]) -> tuple[np.ndarray, float]:
    families = {name: (design(one, kind, scale_of), one.relevant.astype(float)) for name, one in seen.items()}
    beta = fit(families)
    p = {name: probabilities(x, beta) for name, (x, _) in families.items()}
    floor = floor_of(p, seen)
    best = {name: best_of_questions(p[name], seen[name]) for name in seen}
    good = np.concatenate([one[hit] for name, (one, hit) in best.items() if name not in FOREIGN])
    lines = []
    for name, (x, y) in families.items():
        left_out = fit({other: data for other, data in families.items() if other != name})
        q = probabilities(x, left_out)
        one, hit = best[name]
        lines.append(
            (
                name,
                f"{len(one):,}",
                f"{y.mean():.1%}",
                f"{q.mean():.1%}",
                f"{log_loss(q, y):.3f}",
                f"{np.mean((q - y) ** 2):.3f}",
                f"{calibration_error(q, y):.3f}",
                f"{above(q[y > 0], q[y == 0]):.3f}" if 0 < y.sum() < len(y) else "",
                f"{np.mean(one < floor):.1%}",
                f"{np.mean(one[hit] < floor):.1%}" if hit.any() else "",
            )
        )
    head = ("family", "questions", "relevant", "predicted", "log loss", "Brier", "calibration error", "AUC")
    print(f"\n{kind}: {beta.round(3).tolist()}, floor {floor}\n")
    print(table((*head, "find nothing", "of those answered"), lines))
    print(
        f"\nbest passage of an answered question above that of gibberish: {above(good, best['gibberish'][0]):.4f}, "
        f"of a question asked elsewhere: {above(good, best['elsewhere'][0]):.4f}"
    )
    everything = np.concatenate(list(p.values())), np.concatenate([one.relevant for one in seen.values()])
    shown = [(low / 10, everything[0], everything[1]) for low in range(10)]
    bins = [(low, (q >= low) & (q < low + 0.1), q, y) for low, q, y in shown]
    print(
        table(
            ("predicted", "passages", "relevant"),
            [
                (f"{low:.1f}-{low + 0.1:.1f}", f"{part.sum():,}", f"{y[part].mean():.1%}")
                for low, part, q, y in bins
                if part.any()
            ],
        )
    )
    return beta, floor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=SHARED)
    parser.add_argument("--work", type=Path, required=True, help="Keeps the collections and what was observed.")
    parser.add_argument("--write", action="store_true", help="Write the coefficients into the package.")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    config = RAGConfig(storage={"data_dir": arguments.work / "store"})
    with RAGPipeline(config) as rag:
        measured = scale(rag.embedder, load_model().anchors)
        model_name = rag.embedder.model_name.rpartition(":")[0]
    scale_of = (round(measured.unrelated, 4), round(measured.related, 4))
    seen = kept_observations(arguments.work / "observed.npz", lambda: RAGPipeline(config), arguments.shared)
    found = {kind: report(kind, seen, scale_of) for kind in ("both", "similarity", "coverage")}
    if arguments.write:
        stored = json.loads(MODEL_FILE.read_text(encoding="utf-8"))
        stored |= {kind: beta.round(4).tolist() for kind, (beta, _) in found.items()}
        stored |= {"floors": {kind: floor for kind, (_, floor) in found.items() if kind != "coverage"}}
        stored["scales"][model_name] = scale_of
        MODEL_FILE.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
