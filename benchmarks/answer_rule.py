"""What pieces are ordered by and the rule that decides whether to answer, and what they are worth on other families.

    python benchmarks/answer_rule.py --files ../families

Each family of development (see `families.py`) is judged by weights that were fitted on the others: with the reader,
and without it. It prints the weights that order the pieces (a conditional logistic model: which piece answers rightly),
those of the rule (a logistic model: whether the piece that comes first is a right answer; near misses have none), what
the rule does at several thresholds, and the share of wrong or incomplete ones among its surest answers.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import logistic
import numpy as np
from families import QUESTIONS, Asked, Family, Question, Reply, Verdict, figures, judge, quoted, read_family
from harness import machine, say, store_folder, table, versions

from recollect.answer import extractive
from recollect.answer._scoring import FEATURES, OLD

#: What the rule judges with the reader, and without it; and what it would judge where nothing can be quoted.
JUDGED = {True: ("lead", "similarity", "alone", "missing_number"), False: ("score", "margin", "missing_number")}
NOTHING = {True: (-3.0, 0.0, -6.0, 1.0), False: (0.0, 0.0, 1.0)}
THRESHOLDS = (0.4, 0.45, 0.5, 0.55, 0.6, 0.65)
COVERAGES = (0.1, 0.2, 0.3, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Example:
    """A question with its pieces, what an answer with each would be worth, and the reply where there is none.

    ``fits`` has a row for each piece and a column for each of `FEATURES`; ``old`` is what a piece loses by age.
    """

    family: Family
    question: Question
    fits: np.ndarray
    old: np.ndarray
    verdicts: Sequence[Verdict]
    missing_number: bool
    other: Reply

    @property
    def right(self) -> np.ndarray:
        return np.array([one.judged == "right" for one in self.verdicts])

    def best(self, weights: np.ndarray, *, reads: bool) -> tuple[Verdict, tuple[float, ...]]:
        """The answer with the piece that comes first, and what the rule judges of it."""
        if not self.verdicts:
            return judge(self.family, self.question, Reply("none")), NOTHING[reads]
        order = self.fits @ weights - self.old
        first = int(order.argmax())
        ahead = np.sort(order)[::-1]
        known = dict(zip(FEATURES, self.fits[first], strict=True)) | {
            "score": order[first] + self.old[first],
            "margin": ahead[0] - ahead[1] if len(ahead) > 1 else extractive.USUAL_MARGIN,
            "lead": -math.log(np.exp(order - order[first]).sum()),
            "missing_number": float(self.missing_number),
        }
        return self.verdicts[first], tuple(known[name] for name in JUDGED[reads])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=Path, required=True, help="a checkout for each family, under its name")
    folder: Path = parser.parse_args().files
    sources = {path.parent.name: json.loads(path.read_text()) for path in QUESTIONS.glob("*/source.json")}
    names = sorted(name for name, source in sources.items() if source.get("use") == "development")
    found: dict[bool, list[Example]] = {True: [], False: []}
    for name in names:
        family = read_family(name, folder / name)
        with store_folder() as data_dir, Asked(family, data_dir) as asked:
            for reads, examples in found.items():
                examples.extend(example(asked, question, reads=reads) for question in family.questions)
        say(name)
    print(f"{machine()}\n{', '.join(versions())}")
    for reads, examples in found.items():
        _report(examples, reads=reads)


def example(asked: Asked, question: Question, *, reads: bool) -> Example:
    reading, other = asked.reading(question.text, reads=reads)
    pieces = reading.evidence if reading else ()
    return Example(
        asked.family,
        question,
        np.array([[getattr(piece.fit, name) for name in FEATURES] for piece in pieces], float),
        np.array([OLD * piece.old for piece in pieces]),
        [judge(asked.family, question, Reply("answer", quoted(piece), other.passages)) for piece in pieces],
        bool(reading and reading.support and reading.support.missing_number),
        other,
    )


def ordering(examples: Sequence[Example]) -> np.ndarray:
    """The weights of pieces; 0 for what is the same of all."""
    return logistic.chosen([(one.fits, one.right) for one in examples if one.verdicts])


def rule(examples: Sequence[Example], weights: np.ndarray, *, reads: bool) -> np.ndarray:
    """Bias and weights of the rule."""
    best = [one.best(weights, reads=reads) for one in examples]
    features = np.array([judged for _, judged in best])
    return logistic.fitted(features, np.array([float(verdict.judged == "right") for verdict, _ in best]))


def _report(examples: Sequence[Example], *, reads: bool) -> None:
    answers: list[Verdict] = []
    said: list[float] = []
    order: list[Example] = []
    for left_out in dict.fromkeys(one.family.name for one in examples):
        others = [one for one in examples if one.family.name != left_out]
        weights = ordering(others)
        judged = rule(others, weights, reads=reads)
        for one in (one for one in examples if one.family.name == left_out):
            verdict, features = one.best(weights, reads=reads)
            answers.append(verdict)
            order.append(one)
            said.append(1 / (1 + math.exp(-(judged[0] + np.array(features) @ judged[1:]))))
    probabilities, right = np.array(said), np.array([one.judged == "right" for one in answers])
    weights = ordering(examples)
    print(f"\n### {'With the reader' if reads else 'Without it'}\n")
    _weights("pieces", FEATURES, weights)
    _weights("rule", ("bias", *JUDGED[reads]), rule(examples, weights, reads=reads))
    with_one = sum(one.right.any() for one in examples)
    print(f"\nEach family by the others' weights: the right piece first for {right.sum()} of {with_one} questions;")
    print(f"AUC of the rule {logistic.auc(probabilities, right):.3f}\n")
    rows = []
    for threshold in THRESHOLDS:
        verdicts = [
            answer if probability >= threshold else judge(one.family, one.question, one.other)
            for one, answer, probability in zip(order, answers, probabilities, strict=True)
        ]
        rows.append([threshold, *(f"{hits / max(1, count):.0%}" for hits, count in figures(verdicts).values())])
    print(table(["threshold", *figures(answers)], rows))
    surest = np.argsort(-probabilities)
    risks = [f"{1 - right[surest[: round(share * len(surest))]].mean():.0%}" for share in COVERAGES]
    print("\nNot right among the surest", ", ".join(f"{c:.0%}: {r}" for c, r in zip(COVERAGES, risks, strict=True)))


def _weights(title: str, names: Sequence[str], values: np.ndarray) -> None:
    print(f"{title}:", ", ".join(f"{name} {value:.2f}" for name, value in zip(names, values, strict=True)))


if __name__ == "__main__":
    main()
