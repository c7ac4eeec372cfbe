"""Write examples of questions that people asked: ``python asked.py FILES DATA``, with recollect installed.

FILES holds a checkout for each family of ``benchmarks/questions`` whose source says ``"use": "training"``, under its
name. Each question is searched for in its family, as the reader meets it: the passages found that hold a part of the
answer are answerable, and of the others the best ones are near misses.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from edits import Example

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from families import QUESTIONS, Asked, Family, Question, read_family
from harness import store_folder

from recollect.model import RetrievedContext

SEED = 28
#: There are few of them: each is seen so often, and an answer twice as often.
TIMES = 4
PASSAGES, NEAR_MISSES = 10, 4


def main(files: Path, out: Path) -> None:
    """Search for the questions of all families that are trained on."""
    examples: list[Example] = []
    for folder in sorted(QUESTIONS.iterdir()):
        if folder.is_dir() and json.loads((folder / "source.json").read_text()).get("use") == "training":
            family = read_family(folder.name, files / folder.name)
            with store_folder() as data, Asked(family, data) as asked:
                for question in family.questions:
                    found = asked.rag.search(question.text).results[:PASSAGES]
                    examples.extend(examples_of(family, question, found))
    answered = [one for one in examples if one.start >= 0]
    rows = (examples + answered) * TIMES
    random.Random(SEED).shuffle(rows)
    (out / "train-asked.jsonl").write_text("".join(json.dumps(asdict(one)) + "\n" for one in rows))
    print(len(answered), "with an answer,", len(examples) - len(answered), "without")


def examples_of(family: Family, question: Question, found: list[RetrievedContext]) -> Iterator[Example]:
    """One example for each part of the answer that a passage holds, and some for passages that hold none."""
    missing = 0
    for passage in found:
        places = [
            next((at for at in part.at if _holds(passage, at.document, at.start, at.end)), None)
            for part in question.parts
        ]
        heading = passage.parts[0].section or ""
        for place in filter(None, places):
            start, end = place.start - passage.start_offset, place.end - passage.start_offset
            yield Example(family.name, "answer", heading, passage.content, question.text, start, end)
        # What repeats a part in another place may answer too.
        if missing < NEAR_MISSES and not any(part.text in passage.content for part in question.parts):
            missing += 1
            yield Example(family.name, "p-search", heading, passage.content, question.text)


def _holds(passage: RetrievedContext, document: str, start: int, end: int) -> bool:
    return passage.source == document and passage.start_offset <= start < end <= passage.end_offset


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
