"""Write examples of statements that were written, not made by rules: ``python statements.py FILES DATA``.

FILES holds a checkout, under its name, for each folder of ``questions``. A line of its ``statements.jsonl`` names a
stretch of a file, statements that it supports, and wrong ones, each with one mistake of a named kind. The statement
takes the place of the question: the stretch, with some of the lines around it, "answers" it where it supports it.
``dense.jsonl`` has the same over short invented documents, which are in the file itself, and ``dense_held.jsonl`` such
that only measure.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from edits import Example

SEED = 28
FOLDERS = Path(__file__).parent / "questions"
#: Their statements only measure.
HELD_OUT = ("hugo", "publiccode")
#: Characters around the stretch that are shown too, one of these at a time; and of a passage that says nothing of it.
AROUND, ELSEWHERE = (0, 80, 200), 500


def main(files: Path, out: Path) -> None:
    """Write the examples of all families."""
    dice = random.Random(SEED)
    made: dict[str, list[Example]] = {"train": [], "held-out": []}
    for path in sorted(FOLDERS.glob("*/statements.jsonl")):
        use = "held-out" if path.parent.name in HELD_OUT else "train"
        made[use] += examples(path, files / path.parent.name, dice)
    made["train"] += invented(FOLDERS.parent / "dense.jsonl")
    made["held-out"] += invented(FOLDERS.parent / "dense_held.jsonl")
    for use, rows in made.items():
        dice.shuffle(rows)
        (out / f"{use}-statements.jsonl").write_text("".join(json.dumps(asdict(one)) + "\n" for one in rows))
        print(use, len(rows), sum(one.start >= 0 for one in rows), "supported")


def examples(path: Path, folder: Path, dice: random.Random) -> Iterator[Example]:
    """The statements of one family with their passages."""
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        text = (folder / row["document"]).read_text(encoding="utf-8")
        stretch = text[row["start"] : row["end"]]
        passage = around(text, row["start"], row["end"], dice.choice(AROUND))
        at = passage.index(stretch)
        for said in row["supported"]:
            yield Example("statement", "answer", "", passage, said, at, at + len(stretch))
        for wrong in row["wrong"]:
            for kind, said in wrong.items():
                yield Example("statement", f"s-{kind}", "", passage, said)
        begin = dice.randrange(max(1, len(text) - ELSEWHERE))
        elsewhere = text[begin : begin + ELSEWHERE]
        if begin >= row["end"] or begin + ELSEWHERE <= row["start"]:
            yield Example("statement", "s-elsewhere", "", elsewhere, row["supported"][0])


def invented(path: Path) -> Iterator[Example]:
    """The statements over invented documents; where in them the evidence stands is not told."""
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        passage = row["passage"]
        for said in row["supported"]:
            yield Example("statement", "answer", "", passage, said, 0, len(passage))
        for wrong in row["wrong"]:
            for kind, said in wrong.items():
                yield Example("statement", f"s-{kind}", "", passage, said)


def around(text: str, start: int, end: int, width: int) -> str:
    """Whole lines around a stretch, about so many characters on each side."""
    begin = text.rfind("\n", 0, max(0, start - width)) + 1
    stop = text.find("\n", min(len(text), end + width))
    return text[begin : stop if stop >= 0 else len(text)] if width else text[start:end]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
