"""Write examples of sentences of passages themselves, as they stand or with one change: ``python verbatim.py DATA``.

Who writes statements over documents says true ones in other words, and wrong ones mostly in the documents': a network
that sees nothing else learns that whatever repeats its source is wrong. Here a repetition is as often right as wrong.
DATA holds what `statements.py` wrote; each of its passages gives up to two sentences, and of each a wrong one: with
another number or name of the passage, denied, or from another passage.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from edits import Example

SEED, SENTENCES = 28, 2
_SENTENCE = re.compile(r"[^\n.!?|]*(?:[.!?](?=\S)[^\n.!?|]*)*(?:[.!?]+(?=\s|\Z)|\n|\Z)")
_BULLET = re.compile(r"^\W*(?:[-*+]|\d+[.)])?\s*")
_NUMBER = re.compile(r"(?<![\w.,])\d+(?:[.,:]\d+)*(?![\w])")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-zà-ÿ]{2,}(?: [A-Z][a-zà-ÿ]{2,})*")
_VERB = re.compile(r"\b(?:is|are|was|were|can|may|must|will|should|has been)\b(?! not)")
_DENIED = re.compile(r"\b(is|are|was|were|can|may|must|will|should|does|do) not\b|\b(can)not\b")
_LEAD_INS = ("According to the document, ", "The text says that ", "In short: ")


def main(data: Path) -> None:
    """Write the examples of all passages."""
    dice = random.Random(SEED)
    rows = (json.loads(line) for line in (data / "train-statements.jsonl").read_text(encoding="utf-8").splitlines())
    passages = sorted({row["passage"] for row in rows})
    dice.shuffle(passages)
    made = [one for at, passage in enumerate(passages) for one in examples(passage, passages[at - 1], dice)]
    dice.shuffle(made)
    (data / "train-verbatim.jsonl").write_text("".join(json.dumps(asdict(one)) + "\n" for one in made))
    print(len(made), sum(one.start >= 0 for one in made), "supported")


def examples(passage: str, other: str, dice: random.Random) -> Iterator[Example]:
    """Sentences of a passage, and as many that are changed."""
    own, strange = sentences(passage), sentences(other)
    for sentence, start, end in dice.sample(own, min(SENTENCES, len(own))):
        yield Example("verbatim", "answer", "", passage, said(sentence, dice), start, end)
        changed = list(changes(sentence, passage))
        if changed and dice.random() < 0.85:
            kind, text = dice.choice(changed)
            yield Example("verbatim", f"s-{kind}", "", passage, said(text, dice))
        elif strange:
            yield Example("verbatim", "s-elsewhere", "", passage, said(dice.choice(strange)[0], dice))


def sentences(passage: str) -> list[tuple[str, int, int]]:
    """The sentences and list items of a passage that say something, with their places."""
    found = []
    for match in _SENTENCE.finditer(passage):
        start = match.start() + len(_BULLET.match(match.group()).group())  # type: ignore[union-attr]
        text = passage[start : match.end()].strip()
        if 20 <= len(text) <= 220 and len(text.split()) >= 4:
            found.append((text, start, start + len(text)))
    return found


def said(sentence: str, dice: random.Random) -> str:
    """A sentence as an assistant repeats it."""
    plain = re.sub(r"[*_`#]+|\[([^\]]*)\]\([^)]*\)", r"\1", sentence).rstrip(" .:;")
    lead = dice.choice(_LEAD_INS) if dice.random() < 0.15 else ""
    return f"{lead}{plain}."


def changes(sentence: str, passage: str) -> Iterator[tuple[str, str]]:
    """The sentence with one thing changed that the passage has elsewhere, or denied."""
    for kind, pattern in (("number", _NUMBER), ("name", _NAME)):
        everywhere = sorted(set(pattern.findall(passage)))
        for match in pattern.finditer(sentence):
            for other in everywhere:
                if other not in sentence:
                    yield kind, sentence[: match.start()] + other + sentence[match.end() :]
    denied = _DENIED.search(sentence)
    if denied:
        yield "polarity", sentence[: denied.start()] + (denied[1] or denied[2]) + sentence[denied.end() :]
    elif match := _VERB.search(sentence):
        yield "polarity", f"{sentence[: match.end()]} not{sentence[match.end() :]}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
