"""The weights of the signs that written answers are checked by, and what they are worth where they were not fitted.

    python benchmarks/citation_weights.py --files FOLDER

FOLDER holds the checkouts of the families whose statements are held out (``training/questions``). Each set of
statements, these and the constructed ones of ``citation_verifier.py``, is judged by weights that were fitted on the
others: with the reader, in English. Sets count alike, and in each the true ones as much as the others. How much of a
statement stands in no source (``unsaid``) is left out: beside the reader it said nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import logistic
import numpy as np
from citation_verifier import HELD, INVENTED, TRAINING, checker, constructed, stated
from harness import machine, table, versions

from recollect.answer.statements import StatementStream
from recollect.answer.verification import Signs, Verdict, Verifier

FAMILIES = ("hugo", "publiccode")
FEATURES = ("numbers", "names", "identifiers", "turned", "read")
FALSE_ALARMS = (0.05, 0.1, 0.15, 0.25)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=Path, required=True, help="a checkout for each family, under its name")
    files: Path = parser.parse_args().files
    families = {name: stated(TRAINING / "questions" / name / "statements.jsonl", files / name) for name in FAMILIES}
    cases = {**families, "invented": stated(INVENTED), "constructed": constructed(), "second set": constructed(HELD)}
    sets = {name: list(_signs(one)) for name, one in cases.items()}
    features = {
        name: np.array([[getattr(signs, one) for one in FEATURES] for _, signs in own], float)
        for name, own in sets.items()
    }
    wrong = {name: np.array([not supported for supported, _ in own]) for name, own in sets.items()}
    print(f"{machine()}\n{', '.join(versions())}\n")
    rows = []
    for left_out in sets:
        weights = _fitted(
            [features[name] for name in sets if name != left_out], [wrong[name] for name in sets if name != left_out]
        )
        doubt, bad = weights[0] + features[left_out] @ weights[1:], wrong[left_out]
        sorted_true = np.sort(doubt[~bad])[::-1]
        found = [f"{(doubt[bad] > sorted_true[int(share * len(sorted_true))]).mean():.0%}" for share in FALSE_ALARMS]
        rows.append([left_out, len(bad), f"{logistic.auc(doubt, bad):.3f}", *found])
    print(table(["set", "statements", "AUC", *(f"found at {share:.0%} flagged" for share in FALSE_ALARMS)], rows))
    weights = _fitted(list(features.values()), list(wrong.values()))
    print(
        f"\nbias {weights[0]:.2f}, "
        + ", ".join(f"{name} {value:.2f}" for name, value in zip(FEATURES, weights[1:], strict=True))
    )


def _fitted(features: list[np.ndarray], wrong: list[np.ndarray]) -> np.ndarray:
    counts = [np.where(bad, 0.5 / bad.sum(), 0.5 / (~bad).sum()) for bad in wrong]
    return logistic.fitted(
        np.vstack(features), np.concatenate(wrong).astype(float), np.concatenate(counts), ridge=0.0001
    )


def _signs(cases) -> Iterator[tuple[bool, Signs]]:
    """Of each answer whether it is true, and the signs of the statement in it that is most doubtful."""
    reader, match = checker(), Verifier.match
    for _, supported, answer, passages in cases:
        matches: list[Verdict] = []

        def watched(self: Verifier, *arguments: object, matches: list[Verdict] = matches) -> Verdict:
            matches.append(match(self, *arguments))
            return matches[-1]

        verifier, stream, first = Verifier(passages, reader=reader), StatementStream(), []
        with patch.object(Verifier, "match", watched):
            for statement in [*stream.feed(answer), *stream.flush()]:
                matches.clear()
                verifier.check(statement)
                first += matches[:1]
        known = [one for one in first if one.signs is not None and one.signs.read is not None]
        if known:
            yield supported, min(known, key=lambda one: one.score).signs


if __name__ == "__main__":
    main()
