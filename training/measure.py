"""Measure the reader as it ships: ``PYTHONPATH=../src python measure.py MIRROR DATA [QUESTIONS]``.

DATA holds the held-out examples that `build.py` wrote; SQuAD 2.0's development questions are read from MIRROR, and
nothing is chosen by them.
"""

from __future__ import annotations

import json
import math
import random
import re
import statistics
import string
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from recollect.answer.reader import Reader, Reading
from recollect.embedding.models import ModelCache

SOURCES = json.loads(Path(__file__).with_name("sources.json").read_text())
_LONGEST_QUOTE = 400
CACHE = Path.home() / ".cache/recollect/models"


def main(mirror: Path, data: Path, most: int = 3000) -> None:
    """Print every figure of the card."""
    reader = Reader(ModelCache(CACHE))
    held_out(reader, data, most)
    squad(reader, mirror, most)
    latency(reader, mirror)


def held_out(reader: Reader, path: Path, most: int) -> None:
    """AUC by family and kind of near miss."""
    examples = [json.loads(line) for file in sorted(path.glob("held-out-*.jsonl")) for line in file.open()]
    examples = random.Random(1).sample(examples, min(len(examples), most))
    found: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for example in examples:
        reading = read_one(reader, example["question"], example["passage"], example["heading"])
        found[example["family"]].append((value(reading), "answer" if example["start"] >= 0 else example["kind"]))
    found["all"] = [one for values in found.values() for one in values]
    for family, values in found.items():
        yes = [score for score, kind in values if kind == "answer"]
        kinds = sorted({kind for _, kind in values} - {"answer"})
        parts = {kind: [score for score, of in values if of == kind] for kind in kinds}
        every = [score for scores in parts.values() for score in scores]
        print(
            family,
            f"{len(yes)} answers",
            f"AUC {auc(yes, every):.3f}",
            {kind: f"{auc(yes, no):.3f} of {len(no)}" for kind, no in parts.items() if len(no) >= 10},
        )


def squad(reader: Reader, mirror: Path, most: int) -> None:
    """SQuAD 2.0's development questions, with their adversarial unanswerable ones."""
    source = next(source for source in SOURCES if source["family"] == "squad2")
    path = next(iter(source["files"]))
    text = _show(mirror, source["repository"], source["commit"], path)
    questions = [(p["context"], q) for a in json.loads(text)["data"] for p in a["paragraphs"] for q in p["qas"]]
    questions = random.Random(2).sample(questions, most)
    scored: list[tuple[float, bool, float, float, bool]] = []
    margins: list[tuple[float, bool]] = []
    for context, asked in questions:
        reading = read_one(reader, asked["question"], context)
        golds = [answer["text"] for answer in asked["answers"]] if not asked["is_impossible"] else []
        said = context[reading.start : reading.end]
        f1 = max((overlap(said, gold) for gold in golds), default=0.0)
        exact = any(normal(said) == normal(gold) for gold in golds)
        # The answer quotes the sentences around the span; all of the passage is no answer.
        sentence = _sentence(context, reading)
        quoted = len(sentence) <= _LONGEST_QUOTE and any(gold in sentence for gold in golds)
        margins.append((reading.begins_within(0, len(context)), bool(golds)))
        scored.append((value(reading), bool(golds), f1, float(exact), quoted))
    yes = [one for one in scored if one[1]]
    no = [one[0] for one in scored if not one[1]]
    print(f"SQuAD 2.0: AUC {auc([one[0] for one in yes], no):.3f} of {len(yes)} and {len(no)}")
    spans = [[score for score, answered in margins if answered is wanted] for wanted in (True, False)]
    print(f"  by the probability that it begins in the passage: AUC {auc(*spans):.3f}")
    for name, at in (("F1", 2), ("exact match", 3), ("a quote of at most 400 characters holds the gold", 4)):
        print(
            f"  answerable, {name}: {statistics.mean(one[at] for one in yes):.3f}",
            wilson(sum(one[at] for one in yes), len(yes)),
        )
    for share in (0.5, 0.6, 0.7, 0.8):
        threshold = float(np.quantile(no, share))
        right = [one for one in yes if one[0] > threshold and one[4]]
        print(
            f"  unanswerable refused {share:.0%}: answer holds the gold {len(right) / len(yes):.3f}",
            wilson(len(right), len(yes)),
            f"threshold {threshold:.3f}",
        )


def latency(reader: Reader, mirror: Path) -> None:
    """Ten passages of about 250 tokens."""
    source = next(source for source in SOURCES if source["family"] == "squad2")
    text = _show(mirror, source["repository"], source["commit"], next(iter(source["files"])))
    contexts = [p["context"] for a in json.loads(text)["data"] for p in a["paragraphs"]]
    passages = [context[:1150] for context in contexts if len(context) > 1150][:10]
    times = []
    for _ in range(30):
        began = time.perf_counter()
        reader.read("When did the university open its doors?", passages)
        times.append(1000 * (time.perf_counter() - began))
    print(f"ten passages: median {statistics.median(times):.0f} ms, least {min(times):.0f} ms")


def value(reading: Reading) -> float:
    """What answers are ranked and refused by."""
    return reading.probability


def read_one(reader: Reader, question: str, passage: str, heading: str = "") -> Reading:
    """One passage."""
    return reader.read(question, [passage], [heading])[0]


def _sentence(context: str, reading: Reading) -> str:
    before = max(
        (m.end() for m in re.finditer(r"[.!?]\s+(?=[A-Z0-9\"(])", context) if m.end() <= reading.start), default=0
    )
    after = next(
        (m.start() + 1 for m in re.finditer(r"[.!?]\s+(?=[A-Z0-9\"(])", context) if m.start() + 1 >= reading.end),
        len(context),
    )
    return context[before:after]


def _show(mirror: Path, repository: str, commit: str, path: str) -> str:
    import subprocess

    folder = mirror / repository.replace("/", "+") / "repo"
    folder = folder / ".git" if (folder / ".git").is_dir() else folder
    command = ["git", f"--git-dir={folder}", "show", f"{commit}:{path}"]
    return subprocess.run(command, capture_output=True, check=True).stdout.decode()


def auc(yes: Sequence[float], no: Sequence[float]) -> float:
    """How often an answerable example scores above one that is not (Mann and Whitney)."""
    ranks = np.argsort(np.argsort(np.array([*no, *yes]), kind="stable")) + 1
    return float((ranks[len(no) :].sum() - len(yes) * (len(yes) + 1) / 2) / max(1, len(yes) * len(no)))


def wilson(hits: float, count: int) -> str:
    """The 95 % interval of a share."""
    z, share = 1.96, hits / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return f"[{middle - half:.3f}, {middle + half:.3f}]"


def normal(text: str) -> str:
    """As SQuAD's own script compares answers."""
    text = "".join(one for one in text.lower() if one not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def overlap(said: str, gold: str) -> float:
    """F1 of words."""
    one, two = normal(said).split(), normal(gold).split()
    common = sum((Counter(one) & Counter(two)).values())
    return 2 * common / (len(one) + len(two)) if common else float(one == two)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:]))
