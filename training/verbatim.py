"""Write examples of what passages say themselves, as it stands or with one change: ``python verbatim.py DATA``.

Who writes statements over documents says true ones in other words, and wrong ones mostly in the documents': a network
that sees nothing else learns that whatever repeats its source is wrong. Here a repetition is as often right as wrong.
DATA holds what `statements.py` wrote. Each of its passages gives up to two sentences, some of them shorter or in
another notation, and of each a wrong one: with another number or name of the passage, denied, or from another passage.
Rows of tables and labels with their values give short statements, right ones and such with the value of another.
"""

from __future__ import annotations

import calendar
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
    made += [one for passage in passages for one in cells(passage, dice)]
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


def cells(passage: str, dice: random.Random) -> Iterator[Example]:
    """What a table or labels say of one thing, and the same with the value of another."""
    rows = [[cell.strip(" *`") for cell in line.strip(" |").split("|")] for line in passage.splitlines() if "|" in line]
    rows = [row for row in rows if not all(set(cell) <= set(":- ") for cell in row)]
    facts: list[tuple[str, str, list[str]]] = []  # Written with VALUE in the value's place.
    if len(rows) > 2 and len({len(row) for row in rows}) == 1 and len(rows[0]) > 1:
        head, *body = rows
        for row in body:
            for column in range(1, len(head)):
                others = [other[column] for other in body if other[column] != row[column]]
                form = dice.choice(_CELLS).replace("ROW", row[0]).replace("HEAD", head[column].lower())
                facts.append((form, row[column], others))
    labels = [(match[1].strip(" *"), match[2].strip(" *")) for match in _LABEL.finditer(passage)]
    for label, value in labels:
        others = [other for _, other in labels if other != value and other[:1].isdigit() == value[:1].isdigit()]
        facts.append((dice.choice(("The LABEL is VALUE", "LABEL: VALUE")).replace("LABEL", label), value, others))
    for form, value, others in dice.sample(facts, min(3, len(facts))):
        if 1 < len(value) < 90 and others:
            at = passage.find(value)
            yield Example(
                "verbatim",
                "answer",
                "",
                passage,
                _whole(notation(form.replace("VALUE", value), dice)),
                at,
                at + len(value),
            )
            wrong = form.replace("VALUE", dice.choice(others))
            yield Example("verbatim", "s-mix", "", passage, _whole(notation(wrong, dice)))


def notation(text: str, dice: random.Random) -> str:
    """The same with some numbers written otherwise."""
    for pattern, make in _NOTATIONS:
        if dice.random() < 0.6:
            text = pattern.sub(make, text)
    return text


def _clock(match: re.Match[str]) -> str:
    hour, minute = int(match[1]), match[2]
    if hour > 23:
        return match.group()
    return f"{(hour - 1) % 12 + 1}{'' if minute == '00' else ':' + minute} {'a.m.' if hour < 12 else 'p.m.'}"


def _day(match: re.Match[str]) -> str:
    return f"{int(match[3])} {_MONTHS[int(match[2]) - 1]} {match[1]}" if 1 <= int(match[2]) <= 12 else match.group()


_MONTHS = calendar.month_name[1:]
_MONEY = {"€": "euros", "£": "pounds", "$": "dollars"}
_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_NOTATIONS = (
    (re.compile(r"(?<=\d) ?percent\b"), " %"),
    (re.compile(r"(?<=\d) ?%"), " percent"),
    (re.compile(r"\bEUR (\d[\d.,]*\d|\d)"), r"€\1"),
    (re.compile(r"[€£$](\d[\d.,]*\d|\d)"), lambda match: f"{match[1]} {_MONEY[match.group()[0]]}"),
    (re.compile(r"\b(\d{1,2}):(\d\d)\b(?!:)"), _clock),
    (re.compile(r"\b(\d{4})-(\d\d)-(\d\d)\b"), _day),
    (re.compile(r"(?<![\d.,:-])\b([2-9]|1[0-2]) (?=[a-z]{3})"), lambda match: f"{_WORDS[int(match[1])]} "),
    (re.compile(rf"\b({'|'.join(_WORDS[2:])}) (?=[a-z]{{3}})"), lambda match: f"{_WORDS.index(match[1])} "),
    (re.compile(r"\bper (year|month|day|week|hour)\b"), r"a \1"),
    (re.compile(r"(?<=\d),(?=\d{3}\b)"), ""),
)
_CELLS = ("ROW: VALUE (HEAD)", "The HEAD of ROW is VALUE", "For ROW, the HEAD is VALUE", "ROW – HEAD: VALUE")
_LABEL = re.compile(r"^\W*([A-Z][\w /-]{2,40}?)\**: +([^\n:|]{2,80})$", re.MULTILINE)
# Without what begins so, a sentence says something else.
_CONDITION = re.compile(
    r"\b(?:if|unless|except|only|but|when|until|while|without|not|after|before|provided|as long)\b", re.IGNORECASE
)


def _shorter(sentence: str) -> str:
    """The sentence without its last part, where that is an addition."""
    kept, comma, last = sentence.rpartition(", ")
    return kept if comma and len(kept) >= 30 and len(kept.split()) > 4 and not _CONDITION.search(last) else sentence


def _whole(text: str) -> str:
    return f"{text.rstrip(' .:;')}."


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
    plain = re.sub(r"[*_`#]+|\[([^\]]*)\]\([^)]*\)", r"\1", sentence)
    plain = _shorter(plain) if dice.random() < 0.5 else plain
    lead = dice.choice(_LEAD_INS) if dice.random() < 0.1 else ""
    return _whole(f"{lead}{notation(plain, dice)}")


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
