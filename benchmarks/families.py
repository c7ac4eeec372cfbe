"""Answers without a language model, on families of documents that nothing was tuned on.

A family is a set of files of one public repository, with 40 questions that they answer (a fixed number of each kind)
and 20 near misses: another entity, another time, another attribute, a false premise, on topic but absent. The questions
were written by somebody who saw only the documents. ``questions/NAME/source.json`` names the repository, its commit and
the SHA-256 of each file; ``questions.jsonl`` has the questions with the places of their answers, in characters of the
files, and of neighbouring facts that would be wrong. The files themselves are not kept here::

    git clone https://github.com/OWNER/NAME && git -C NAME checkout COMMIT
    python benchmarks/families.py --files ../families [--family NAME …] [--wrong]

``--files`` holds a checkout for each family, under the family's name. The rules were chosen on families whose source
has ``"use": "development"``, and the reader was trained on those with ``"use": "training"``. Of the others each run is
added to ``questions/ledger.jsonl``, and only a family's first is fresh.

Systems, on the same searches: ``recollect``, as installed; ``first``: the first passage is always the answer;
``never``: there is never one. An outcome ``answer`` is

- *right*: its quotes hold every part of the answer, and at most 150 characters beside the sentences that hold them;
- *partly* right: they hold a part of it, or too much beside it;
- *wrong*: they hold none.

The facts are *found* where they are all in the quotes or in at most 1,200 characters of passages. Precision is the
share of right ones among all answers, near misses included; intervals are Wilson's, of 95 %.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
import statistics
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from harness import machine, say, store_folder, table, versions

from recollect import Document, RAGConfig, RAGPipeline
from recollect.answer import extractive
from recollect.answer._scoring import Evidence
from recollect.documents.reader import read_file

QUESTIONS = Path(__file__).parent / "questions"
LEDGER = QUESTIONS / "ledger.jsonl"
#: Of questions with an answer, and of near misses.
KINDS = {
    "fact": 8,
    "number": 5,
    "person": 4,
    "date": 4,
    "command": 5,
    "list": 5,
    "comparison": 3,
    "yes_no": 3,
    "two_parts": 3,
}
NEAR_MISSES = ("another_entity", "another_time", "another_attribute", "false_premise", "absent")
SLACK, ROOM = 150, 1_200
# A gold phrase this long is taken to be the fact wherever it stands; a shorter one only at its places.
_TELLING = 25
_SENTENCE = re.compile(r"[^\n.!?]*(?:[.!?](?=\S)[^\n.!?]*)*(?:[.!?]+(?=\s|\Z)|\n|\Z)")
_MARKUP = re.compile(r"[*`_]|\]\([^)]*\)|[\[\]]")


@dataclass(frozen=True, slots=True)
class Span:
    document: str
    start: int
    end: int

    def overlaps(self, other: Span) -> bool:
        return self.document == other.document and self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True)
class Part:
    """A thing that the answer must hold, at any of its places."""

    text: str
    at: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    text: str
    kind: str
    parts: tuple[Part, ...]
    forbidden: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a system showed: as an answer, or as passages."""

    outcome: str
    shown: tuple[Span, ...] = ()
    passages: tuple[Span, ...] = ()
    confidence: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    question: Question
    reply: Reply
    judged: str
    found: bool
    forbidden: bool


@dataclass
class Family:
    name: str
    folder: Path
    questions: list[Question] = field(default_factory=list)
    documents: list[Document] = field(default_factory=list)
    contents: dict[str, str] = field(default_factory=dict)
    sha256: str = ""
    use: str = ""

    @property
    def fresh(self) -> bool:
        return not self.use


def read_family(name: str, folder: Path) -> Family:
    """The questions, and the files, whose bytes must be those that the questions were written of."""
    family, place = read_files(QUESTIONS / name, folder)
    questions = (QUESTIONS / name / "questions.jsonl").read_bytes()
    family.sha256 = hashlib.sha256(questions).hexdigest()
    family.questions = [_question(json.loads(line), place) for line in questions.decode().splitlines()]
    counted = Counter(question.kind for question in family.questions)
    if any(counted[kind] != count for kind, count in KINDS.items()) or any(counted[kind] != 4 for kind in NEAR_MISSES):
        raise SystemExit(f"{name} has other kinds of questions: {dict(counted)}.")
    return family


def read_files(source: Path, folder: Path) -> tuple[Family, Callable[[Mapping], Span | None]]:
    """The files that ``source.json`` in a folder names, and what finds a span of them in what was read."""
    named = json.loads((source / "source.json").read_text(encoding="utf-8"))
    folder = folder / "files" if (folder / "files").is_dir() else folder
    family = Family(source.name, folder, use=named.get("use", ""))
    written: dict[str, str] = {}
    for path, sha256 in named["files"].items():
        data = (folder / path).read_bytes()
        if hashlib.sha256(data).hexdigest() != sha256:
            raise SystemExit(f"{folder / path} is not as of {named['repository']}@{named['commit']}.")
        written[path] = data.decode()
        family.documents.append(read_file(folder / path, source=path))
        family.contents[path] = family.documents[-1].content
    return family, partial(_place, written, family.contents)


def _question(row: Mapping, place: Callable[[Mapping], Span | None]) -> Question:
    parts = tuple(Part(part["text"], tuple(filter(None, map(place, part["at"])))) for part in row["parts"])
    return Question(row["id"], row["question"], row["kind"], parts, tuple(filter(None, map(place, row["forbidden"]))))


def _place(written: Mapping[str, str], contents: Mapping[str, str], one: Mapping) -> Span | None:
    """Where a span of a file stands in what was read of it, which differs where a reader left something out."""
    path, start, end = one["document"], one["start"], one["end"]
    if written[path] == contents[path]:
        return Span(path, start, end)
    for around in (40, 0):
        before = max(0, start - around)
        at = contents[path].find(written[path][before : end + around])
        if at >= 0:
            return Span(path, at + start - before, at + end - before)
    return None


# Asking


class Asked:
    """A family in a store, and what is asked of it; offsets are turned into those of the files."""

    def __init__(self, family: Family, data_dir: str) -> None:
        self.family = family
        self.rag = RAGPipeline(RAGConfig.load(storage={"data_dir": data_dir}))

    def __enter__(self) -> Asked:
        self.rag.__enter__()
        self.rag.ingest(self.family.documents)
        self.rag.ask("Is this the first question?")
        return self

    def __exit__(self, *details: object) -> None:
        self.rag.__exit__(*details)

    def recollect(self, question: str) -> Reply:
        begun = time.perf_counter()
        answer = self.rag.ask(question)
        seconds = time.perf_counter() - begun
        quotes = tuple(Span(one.source, one.start_offset, one.end_offset) for one in answer.citations)
        passages = tuple(Span(one.source, one.start_offset, one.end_offset) for one in answer.passages)
        confidence = answer.nearest.probability if answer.nearest else 1.0
        return Reply(answer.outcome, quotes, passages, confidence, seconds)

    def reading(self, question: str, *, reads: bool) -> tuple[extractive.Reading | None, Reply]:
        """What is found out about a question, with the reader or without it, and the reply where there is no answer."""
        seen: list[extractive.Reading] = []
        read = extractive.read

        def watched(
            *arguments: Any,
            options: extractive.ExtractionOptions,
            **named: Any,
        ) -> extractive.Reading:
            options = options if reads else replace(options, reader=None)
            seen.append(read(*arguments, options=options, **named))
            return seen[-1]

        with patch.object(extractive, "read", watched), patch.object(extractive.Reading, "probability", lambda *_: 0.0):
            reply = self.recollect(question)
        return (seen[-1] if seen and seen[-1].evidence else None), reply

    def first(self, question: str) -> Reply:
        begun = time.perf_counter()
        found = self.rag.search(question).results[:1]
        shown = tuple(Span(one.source, one.start_offset, one.end_offset) for one in found)
        return Reply("answer", shown, seconds=time.perf_counter() - begun)

    def never(self, _question: str) -> Reply:
        return Reply("none")


SYSTEMS = ("recollect", "first", "never")


def quoted(piece: Evidence) -> tuple[Span, ...]:
    """What an answer would quote of a piece."""
    begin, source = piece.region.start_offset, piece.region.passages[0].source
    return tuple(Span(source, begin + start, begin + end) for start, end in piece.quotes)


# Judging


def judge(family: Family, question: Question, reply: Reply) -> Verdict:
    held = [_holds(family, reply.shown, part) for part in question.parts]
    if reply.outcome != "answer":
        judged = reply.outcome
    elif not any(held):
        judged = "wrong"
    elif all(held) and _beside(family, question, reply.shown) <= SLACK:
        judged = "right"
    else:
        judged = "partly"
    spans = (*reply.shown, *_within(reply.passages, ROOM))
    found = bool(question.parts) and all(_holds(family, spans, part) for part in question.parts)
    forbidden = any(one.overlaps(span) for one in reply.shown for span in question.forbidden)
    return Verdict(question, reply, judged, found, forbidden)


def _within(spans: Iterable[Span], room: int) -> Iterator[Span]:
    for span in spans:
        if room <= 0:
            return
        yield Span(span.document, span.start, min(span.end, span.start + room))
        room -= span.end - span.start


def _holds(family: Family, shown: Sequence[Span], part: Part) -> bool:
    if any(_covered(place, shown) for place in part.at):
        return True
    wanted = plain(part.text)
    return len(wanted) >= _TELLING and any(wanted in plain(_text(family, span)) for span in shown)


def _covered(place: Span, shown: Sequence[Span]) -> bool:
    """Whether all characters of a place are shown."""
    at = place.start
    for span in sorted(shown, key=lambda one: one.start):
        if span.document == place.document and span.start <= at < span.end:
            at = span.end
    return at >= place.end


def _beside(family: Family, question: Question, shown: Sequence[Span]) -> int:
    """Characters shown of sentences and lines that hold no part of the answer."""
    count = 0
    for span in shown:
        text = _text(family, span)
        for match in _SENTENCE.finditer(text):
            own = Span(span.document, span.start + match.start(), span.start + match.end())
            wanted = [plain(part.text) for part in question.parts]
            holds = any(own.overlaps(place) for part in question.parts for place in part.at)
            if not holds and not any(phrase in plain(match.group()) for phrase in wanted):
                count += len(match.group().strip())
    return count


def _text(family: Family, span: Span) -> str:
    return family.contents[span.document][span.start : span.end]


def plain(text: str) -> str:
    """Without markup and the difference of small and capital letters."""
    return " ".join(_MARKUP.sub("", text).split()).casefold()


# Reporting


def wilson(hits: int, count: int) -> str:
    """A share and its interval of 95 %."""
    if not count:
        return "–"
    z, share = 1.96, hits / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return f"{share:.0%} ({max(0.0, middle - half):.0%}–{min(1.0, middle + half):.0%})"


def figures(verdicts: Sequence[Verdict]) -> dict[str, tuple[int, int]]:
    answerable = [one for one in verdicts if one.question.parts]
    near = [one for one in verdicts if not one.question.parts]
    answers = [one for one in verdicts if one.reply.outcome == "answer"]

    def count(judged: str) -> tuple[int, int]:
        return sum(one.judged == judged for one in answerable), len(answerable)

    return {
        "right": count("right"),
        "partly": count("partly"),
        "wrong": count("wrong"),
        "found": (sum(one.found for one in answerable), len(answerable)),
        "near misses answered": (sum(one.reply.outcome == "answer" for one in near), len(near)),
        "precision": (sum(one.judged == "right" for one in answers), len(answers)),
        "coverage": (sum(one.reply.outcome == "answer" for one in answerable), len(answerable)),
    }


def report(results: Mapping[tuple[str, str], Sequence[Verdict]], systems: Sequence[str]) -> None:
    names = list(dict.fromkeys(name for name, _ in results))
    for system in systems:
        by_family = {name: figures(results[name, system]) for name in names}
        everything = figures([one for name in names for one in results[name, system]])
        worst = min(names, key=lambda name: by_family[name]["found"][0])
        print(f"\n### {system} (worst family: {worst})\n")
        head = ["family", *everything, "p50, ms"]
        rows = [
            [name, *(wilson(*value) for value in by_family[name].values()), _milliseconds(results[name, system])]
            for name in names
        ]
        every = [one for name in names for one in results[name, system]]
        rows.append(["all", *(wilson(*value) for value in everything.values()), _milliseconds(every)])
        print(table(head, rows))
    every = [one for name in names for one in results[name, systems[0]]]
    of_kind = defaultdict(list)
    for one in every:
        of_kind[one.question.kind].append(one)
    print(f"\n### {systems[0]}, by kind\n")
    kinds = [*KINDS, *NEAR_MISSES]
    rows = [
        [
            kind,
            len(of_kind[kind]),
            *(_share(of_kind[kind], name) for name in ("right", "partly", "wrong", "passages", "none", "found")),
        ]
        for kind in kinds
    ]
    print(table(["kind", "questions", "right", "partly", "wrong", "passages", "none", "found"], rows))


def _share(verdicts: Sequence[Verdict], judged: str) -> int:
    return sum(one.found if judged == "found" else one.judged == judged for one in verdicts)


def _milliseconds(verdicts: Sequence[Verdict]) -> str:
    return f"{1000 * statistics.median(one.reply.seconds for one in verdicts):.0f}"


def record(family: Family, system: str, verdicts: Sequence[Verdict]) -> None:
    """Add a run to the ledger; the first of a family and a system counts as fresh."""
    known = [json.loads(line) for line in LEDGER.read_text().splitlines()] if LEDGER.exists() else []
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=QUESTIONS, capture_output=True, text=True, check=False)
    row = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": done.stdout.strip(),
        "family": family.name,
        "questions_sha256": family.sha256,
        "system": system,
        "fresh": not any(one["family"] == family.name and one["system"] == system for one in known),
        **{name: list(value) for name, value in figures(verdicts).items()},
    }
    with LEDGER.open("a", encoding="utf-8") as out:
        out.write(json.dumps(row) + "\n")


def explain(verdicts: Sequence[Verdict], family: Family) -> None:
    """What was shown for each question that was not answered rightly, for families of development only."""
    for one in verdicts:
        good = one.judged == "right" if one.question.parts else one.reply.outcome != "answer"
        if good:
            continue
        say(f"\n{one.question.id} [{one.question.kind}] {one.question.text}")
        say(f"   {one.judged}, found: {one.found}, confidence {one.reply.confidence:.2f}")
        say("   wanted:", [part.text for part in one.question.parts])
        for span in one.reply.shown or one.reply.passages:
            say(f"   {span.document} {span.start}-{span.end}: {_text(family, span)[:400]!r}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=Path, required=True, help="a checkout for each family, under its name")
    parser.add_argument("--family", action="append", help="only these (default: all that are under --files)")
    parser.add_argument("--wrong", action="store_true", help="show what went wrong, of families of development")
    arguments = parser.parse_args()
    known = sorted(path.parent.name for path in QUESTIONS.glob("*/source.json"))
    names = arguments.family or [name for name in known if (arguments.files / name).is_dir()]
    results: dict[tuple[str, str], list[Verdict]] = {}
    for name in names:
        family = read_family(name, arguments.files / name)
        with store_folder() as data_dir, Asked(family, data_dir) as asked:
            for system in SYSTEMS:
                ask = getattr(asked, system)
                verdicts = [judge(family, question, ask(question.text)) for question in family.questions]
                results[name, system] = verdicts
                if family.fresh:
                    record(family, system, verdicts)
        say(f"{name}: {figures(results[name, 'recollect'])}")
        if arguments.wrong and not family.fresh:
            explain(results[name, "recollect"], family)
    print(f"{machine()}\n{', '.join(versions())}")
    report(results, SYSTEMS)


if __name__ == "__main__":
    main()
