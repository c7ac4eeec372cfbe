"""The weights of the rule that decides whether to answer, and what they are worth on families they were not fitted on.

    python benchmarks/answer_rule.py --files ../families

Each family of development (see `families.py`) is judged by weights that were fitted on the others: with the reader,
and without it. For a range of weights of what the reader says it prints how often the piece that comes first is right;
with the weight that is installed, the fitted rule, what it does at several thresholds, and the share of wrong or
incomplete ones among its surest answers. An example of the fit is a question, near misses included; it is positive
where the piece that comes first would be a right answer.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import logistic
import numpy as np
from families import QUESTIONS, Asked, Family, Question, Reply, Span, Verdict, figures, judge, read_family
from harness import machine, say, store_folder, table, versions

from recollect.answer import _scoring, extractive
from recollect.answer.refusal import RefusalRule, Support

#: What the rule judges with the reader, and without it; and what it would judge where nothing can be quoted.
FEATURES = {True: ("lead", "similarity", "read", "missing_number"), False: ("score", "margin", "missing_number")}
NOTHING = {True: (-3.0, 0.0, -10.0, 1.0), False: (0.0, 0.0, 1.0)}
THRESHOLDS = (0.3, 0.35, 0.4, 0.45, 0.5)
COVERAGES = (0.1, 0.2, 0.3, 0.5, 1.0)
READ_WEIGHTS = (0.1, 0.15, 0.25)


@dataclass(frozen=True, slots=True)
class Example:
    """A question with what the rule would judge, the answer that it would give, and the reply where it gives none."""

    family: Family
    question: Question
    features: tuple[float, ...]
    answer: Verdict
    other: Reply

    @property
    def right(self) -> bool:
        return self.answer.judged == "right"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=Path, required=True, help="a checkout for each family, under its name")
    folder: Path = parser.parse_args().files
    sources = {path.parent.name: json.loads(path.read_text()) for path in QUESTIONS.glob("*/source.json")}
    names = sorted(name for name, source in sources.items() if source.get("use") == "development")
    found: dict[tuple[bool, float], list[Example]] = {}
    for name in names:
        family = read_family(name, folder / name)
        with store_folder() as data_dir, Asked(family, data_dir) as asked:
            for key, examples in _examples(asked):
                found.setdefault(key, []).extend(examples)
        say(name)
    print(f"{machine()}\n{', '.join(versions())}\n\n### The weight of the reader\n")
    rows = [[weight if reads else "–", sum(one.right for one in every)] for (reads, weight), every in found.items()]
    print(table(["weight", "right piece first"], rows))
    for reads in (True, False):
        _report(found[reads, _scoring.READ], reads=reads)


def _examples(asked: Asked) -> Iterator[tuple[tuple[bool, float], list[Example]]]:
    """By whether the reader is asked and by its weight."""
    kept = _scoring.READ
    for reads, weight in [(False, kept), *((True, weight) for weight in sorted({*READ_WEIGHTS, kept}))]:
        with patch.object(_scoring, "READ", weight):
            yield (reads, weight), [_example(asked, question, reads=reads) for question in asked.family.questions]


def _example(asked: Asked, question: Question, *, reads: bool) -> Example:
    seen: list[extractive.Reading] = []
    read = extractive.read

    def watched(*arguments: object, options: extractive.ExtractionOptions, **named: object) -> extractive.Reading:
        options = options if reads else replace(options, reader=None)
        seen.append(read(*arguments, options=options, **named))  # type: ignore[arg-type]
        return seen[-1]

    with patch.object(extractive, "read", watched), patch.object(RefusalRule, "refuses", lambda *_: True):
        reply = asked.recollect(question.text)
    if not seen or seen[-1].support is None:
        nothing = judge(asked.family, question, Reply("none"))
        return Example(asked.family, question, NOTHING[reads], nothing, reply)
    found = seen[-1]
    support, best = found.support, found.evidence[0]
    begin, source = best.region.start_offset, best.region.passages[0].source
    quotes = tuple(Span(source, begin + start, begin + end) for start, end in best.quotes)
    return Example(
        asked.family,
        question,
        tuple(_value(support, name) for name in FEATURES[reads]),
        judge(asked.family, question, Reply("answer", quotes)),
        reply,
    )


def _value(support: Support, name: str) -> float:
    # Where the model knows the language of the question and not that of a piece, no reader was asked of it.
    value = getattr(support, name)
    return NOTHING[True][2] if value is None else float(value)


def _report(examples: Sequence[Example], *, reads: bool) -> None:
    names = list(dict.fromkeys(one.family.name for one in examples))
    probabilities = np.zeros(len(examples))
    for left_out in names:
        inside = np.array([one.family.name == left_out for one in examples])
        probabilities[inside] = _probability(
            fitted([one for one, at in zip(examples, inside, strict=True) if not at]),
            [one for one, at in zip(examples, inside, strict=True) if at],
        )
    right = np.array([one.right for one in examples])
    weights = fitted(examples)
    print(f"\n### Fitted {'with the reader' if reads else 'without it'}\n")
    print(", ".join(f"{part} {value:.2f}" for part, value in zip(("bias", *FEATURES[reads]), weights, strict=True)))
    surer = logistic.auc(probabilities, right)
    print(f"\nEach family by the others' weights; AUC of right answers against all others {surer:.3f}\n")
    rows = []
    for threshold in THRESHOLDS:
        verdicts = [
            one.answer if probability >= threshold else judge(one.family, one.question, one.other)
            for one, probability in zip(examples, probabilities, strict=True)
        ]
        rows.append([threshold, *(f"{hits / max(1, count):.0%}" for hits, count in figures(verdicts).values())])
    print(table(["threshold", *figures([one.answer for one in examples])], rows))
    order = np.argsort(-probabilities)
    risks = [f"{1 - right[order[: round(share * len(order))]].mean():.0%}" for share in COVERAGES]
    print("\nNot right among the surest", ", ".join(f"{c:.0%}: {r}" for c, r in zip(COVERAGES, risks, strict=True)))


def fitted(examples: Sequence[Example]) -> np.ndarray:
    """Bias and weights of a logistic model."""
    return logistic.fitted(
        np.array([one.features for one in examples]), np.array([one.right for one in examples], float)
    )


def _probability(weights: np.ndarray, examples: Sequence[Example]) -> np.ndarray:
    return 1 / (1 + np.exp(-(weights[0] + np.array([one.features for one in examples]) @ weights[1:])))


if __name__ == "__main__":
    main()
