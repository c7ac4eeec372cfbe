"""Write examples of questions that were written for documents: ``python asked.py FILES DATA``, recollect installed.

FILES holds a checkout, under its name, for each folder of ``questions`` with facts, and for each family of
``benchmarks/questions``, where its source says ``"use": "training"``. Each question is searched for in its family, as
the reader meets it: the passages found that hold a part of the answer are answerable, and of the others the best ones
are near misses (`train-asked.jsonl`). Of the sentences, list items and table rows of these passages, each read alone,
those that answer rightly stand beside those that fit best of the others (`pieces-asked.jsonl`).
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from edits import Example

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from families import QUESTIONS, Asked, Family, Part, Question, Reply, judge, plain, quoted, read_family, read_files
from harness import store_folder

from recollect.answer._scoring import Evidence
from recollect.model import RetrievedContext

SEED = 28
FACTS = Path(__file__).parent / "questions"
PASSAGES, ANSWERS, NEAR_MISSES = 10, 2, 2
#: Of a question's pieces: so many that answer, so many of the best others, and some from further down.
RIGHT, HARD, OTHERS, AMONG = 2, 7, 2, 24
LONGEST_PIECE = 900


@dataclass(frozen=True, slots=True)
class Pieces:
    """A question with pieces of what was found for it: headings, text, and whether it answers rightly."""

    family: str
    question: str
    pieces: list[tuple[str, str, bool]]


def main(files: Path, out: Path) -> None:
    """Search for the questions of all families that are trained on."""
    dice = random.Random(SEED)
    examples: list[Example] = []
    groups: list[Pieces] = []
    for family in _families(files):
        with store_folder() as data, Asked(family, data) as asked:
            for question in family.questions:
                found, _ = asked.reading(question.text, reads=False)
                if found is None:
                    continue
                examples.extend(examples_of(family, question, found.passages[:PASSAGES]))
                pieces = pieces_of(family, question, found.evidence, dice)
                if pieces is not None:
                    groups.append(pieces)
        print(family.name, len(examples), len(groups), flush=True)
    for name, rows in (("train-asked", examples), ("pieces-asked", groups)):
        dice.shuffle(rows)
        (out / f"{name}.jsonl").write_text("".join(json.dumps(asdict(row)) + "\n" for row in rows))


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


def examples_of(family: Family, question: Question, found: Sequence[RetrievedContext]) -> Iterator[Example]:
    """Passages that hold a part of the answer, and some that hold none."""
    answers = missing = 0
    for passage in found:
        places = [
            next((at for at in part.at if _holds(passage, at.document, at.start, at.end)), None)
            for part in question.parts
        ]
        heading = passage.parts[0].section or ""
        for place in filter(None, places):
            if answers < ANSWERS:
                answers += 1
                start, end = place.start - passage.start_offset, place.end - passage.start_offset
                yield Example(family.name, "answer", heading, passage.content, question.text, start, end)
        # What repeats a part in another place may answer too, and what holds the beginning of a long one.
        other = any(part.text in passage.content or _begins(passage, part) for part in question.parts)
        if missing < NEAR_MISSES and not other:
            missing += 1
            yield Example(family.name, "p-search", heading, passage.content, question.text)


def pieces_of(family: Family, question: Question, found: Sequence[Evidence], dice: random.Random) -> Pieces | None:
    """Pieces that answer and pieces that do not; None where none of them answers a question that has an answer."""
    right, wrong = [], {}
    for piece in found:
        spans = quoted(piece)
        said = plain(piece.told)
        if question.parts and judge(family, question, Reply("answer", spans)).judged == "right":
            right.append(piece)
        # What holds a part, or repeats the answer elsewhere, is neither right nor wrong.
        elif not question.parts or not (
            any(span.overlaps(place) for span in spans for part in question.parts for place in part.at)
            or all(plain(part.text) in said for part in question.parts)
        ):
            wrong.setdefault(said, piece)
    if question.parts and not right:
        return None
    others = list(wrong.values())
    hard, rest = others[:HARD], others[HARD:AMONG]
    dice.shuffle(rest)
    kept = [(piece, True) for piece in right[:RIGHT]] + [(piece, False) for piece in hard + rest[:OTHERS]]
    texts = [(piece.headings, piece.statement[:LONGEST_PIECE], yes) for piece, yes in kept]
    return Pieces(family.name, question.text, texts)


def _holds(passage: RetrievedContext, document: str, start: int, end: int) -> bool:
    return passage.source == document and passage.start_offset <= start < end <= passage.end_offset


def _begins(passage: RetrievedContext, part: Part) -> bool:
    places = [place for place in part.at if place.document == passage.source]
    return any(passage.start_offset < place.end and place.start < passage.end_offset for place in places)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
