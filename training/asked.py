"""Write examples of questions that were written for documents: ``python asked.py FILES DATA``, recollect installed.

FILES holds a checkout, under its name, for each folder of ``questions`` with facts, and for each family of
``benchmarks/questions``, where its source says ``"use": "training"``. Each question is searched for in its family, as
the reader meets it: the passages found that hold a part of the answer are answerable, and of the others the best ones
are near misses.
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
from families import QUESTIONS, Asked, Family, Part, Question, read_family, read_files
from harness import store_folder

from recollect.model import RetrievedContext

SEED = 28
FACTS = Path(__file__).parent / "questions"
PASSAGES, NEAR_MISSES = 10, 4


def main(files: Path, out: Path) -> None:
    """Search for the questions of all families that are trained on."""
    examples: list[Example] = []
    for family in _families(files):
        with store_folder() as data, Asked(family, data) as asked:
            for question in family.questions:
                found = asked.rag.search(question.text).results[:PASSAGES]
                examples.extend(examples_of(family, question, found))
        print(family.name, len(examples), flush=True)
    # There are far fewer answers than near misses: each is seen twice.
    rows = examples + [one for one in examples if one.start >= 0]
    random.Random(SEED).shuffle(rows)
    (out / "train-asked.jsonl").write_text("".join(json.dumps(asdict(one)) + "\n" for one in rows))


def _families(files: Path) -> Iterator[Family]:
    for path in sorted((*QUESTIONS.glob("*/questions.jsonl"), *FACTS.glob("*/facts.jsonl"))):
        folder = path.parent
        if json.loads((folder / "source.json").read_text()).get("use") == "training":
            checkout = files / folder.name
            yield read_family(folder.name, checkout) if path.name == "questions.jsonl" else read_facts(folder, checkout)


def read_facts(folder: Path, files: Path) -> Family:
    """The questions of ``facts.jsonl``: of each fact some that it answers, and near misses that nothing answers."""
    family, place = read_files(folder, files)
    for line in (folder / "facts.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        span = place(row) if "start" in row else None
        parts = (Part(family.contents[span.document][span.start : span.end], (span,)),) if span else ()
        asked = row.get("questions", []) if parts else []
        for text in asked:
            family.questions.append(Question(f"{family.name}-{len(family.questions)}", text, "fact", parts, ()))
        for text in row.get("near", []):
            family.questions.append(Question(f"{family.name}-{len(family.questions)}", text, "near", (), ()))
    return family


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
        # What repeats a part in another place may answer too, and what holds the beginning of a long one.
        other = any(part.text in passage.content or _begins(passage, part) for part in question.parts)
        if missing < NEAR_MISSES and not other:
            missing += 1
            yield Example(family.name, "p-search", heading, passage.content, question.text)


def _holds(passage: RetrievedContext, document: str, start: int, end: int) -> bool:
    return passage.source == document and passage.start_offset <= start < end <= passage.end_offset


def _begins(passage: RetrievedContext, part: Part) -> bool:
    places = [place for place in part.at if place.document == passage.source]
    return any(passage.start_offset < place.end and place.start < passage.end_offset for place in places)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
