r"""A context of 2,000 tokens from 100,000 chunks, 10,000 turns of conversations and the facts drawn from them.

Documents come from JSON Lines with vectors, as `growth.py data` makes them. Turns are those of the published
conversations (``../shared/data/conversations``), as often as it takes, in each round with other made-up words, in
sessions of one user. Then real questions, of documents and of conversations in turn, are embedded and assembled; no
question is asked twice and no cache is on. Run from the repository root::

    python benchmarks/context_assembly.py build --work ../context --documents ../growth/data/100000/documents.jsonl
    python benchmarks/context_assembly.py measure --work ../context
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path

import synthetic
from harness import SHARED, Clock, machine, percentile, say, server_version, table, versions

from recollect import RAGConfig, RAGPipeline, RecallOptions, Turn
from recollect.context.hybrid import STRATEGIES
from recollect.evaluation.datasets import load_memory

CONVERSATIONS = SHARED / "conversations" / "locomo-dev.json"
USER = "ada"
TURNS = 10_000
BUDGET = 2_000
SHARES = (0.5, 0.95, 0.99)
_LONG_WORD = re.compile(r"\b[^\W\d_]{5,}\b")


def opened(work: Path) -> RAGPipeline:
    return RAGPipeline(
        RAGConfig.model_validate(
            {
                "storage": {"data_dir": (work / "store").resolve()},
                "retrieval": {"cache_entries": 0, "query_cache_entries": 0, "probe_rate": 0},
            }
        )
    )


def sessions(count: int) -> Iterator[tuple[str, list[Turn]]]:
    """Conversations until there are ``count`` turns; from the second round on, every tenth word or so is another."""
    dataset = load_memory(CONVERSATIONS)
    random_ = random.Random(1)
    letters = "bdfgklmnprstvz", "aeiou"
    made = 0
    for round_ in range(100):
        for conversation in dataset.conversations:
            for one in conversation.sessions:
                turns = []
                for turn in one.turns:
                    text = turn.text
                    if round_:
                        text = _LONG_WORD.sub(lambda match: _other(match.group(), random_, letters), text)
                    if text.strip():
                        turns.append(Turn(content=text, role=turn.speaker, at=one.date))
                turns = turns[: count - made]
                made += len(turns)
                yield f"{round_}/{conversation.id}/{one.id}", turns
                if made >= count:
                    return


def _other(word: str, random_: random.Random, letters: tuple[str, str]) -> str:
    if random_.random() > 0.1:
        return word
    return "".join(random_.choice(letters[place % 2]) for place in range(6))


def questions() -> list[str]:
    """Of documents and of conversations in turn, none twice."""
    conversations = [
        question.question
        for one in load_memory(CONVERSATIONS).conversations
        for question in one.questions
        if question.evidence
    ]
    pairs = zip(synthetic.questions(), conversations, strict=False)
    return list(dict.fromkeys(text for pair in pairs for text in pair))


def build(arguments: argparse.Namespace) -> None:
    with opened(arguments.work) as rag:
        with Clock() as clock:
            report = rag.collections.import_file(arguments.documents)
        say(f"{report.chunks:,} chunks in {clock.seconds:,.0f} s")
        with Clock() as clock:
            for name, turns in sessions(arguments.turns):
                rag.view(session=name, user=USER).remember(turns)
        say(f"{arguments.turns:,} turns in {clock.seconds:,.0f} s")
        with Clock() as clock:
            for question in questions()[-200:]:
                rag.view(user=USER).recall(question, RecallOptions(top_k=10))
            drawn = rag.facts.consolidate(min_retrievals=1, limit=1_000)
        say(f"{drawn.added:,} facts of {drawn.examined:,} turns in {clock.seconds:,.0f} s")


def measure(arguments: argparse.Namespace) -> None:
    asked = questions()
    # The last ones are what facts were drawn for; the first warm connections and the model up.
    warm, asked = asked[:20], asked[20 : 20 + arguments.questions]
    rows, figures = [], {}
    with opened(arguments.work) as rag:
        counts = _counts(rag)
        assembler = rag.view(user=USER).memory.assembler()
        for strategy in STRATEGIES:
            for question in warm:
                assembler.assemble(question, strategy, BUDGET)
            milliseconds, tokens = [], []
            for question in asked:
                start = time.perf_counter()
                context = assembler.assemble(question, strategy, BUDGET)
                milliseconds.append((time.perf_counter() - start) * 1000)
                tokens.append(context.token_count)
                assert context.token_count <= BUDGET
            p = [percentile(milliseconds, share * 100) for share in SHARES]
            figures[strategy] = dict(zip(("p50", "p95", "p99"), p, strict=True))
            rows.append([strategy, *(f"{value:.1f}" for value in p), f"{sum(tokens) / len(tokens):,.0f}"])
        server = server_version(rag.store.database)
    say(machine())
    say(server, *versions())
    say(f"{counts}; {len(asked)} questions")
    say(table(("strategy", "p50, ms", "p95, ms", "p99, ms", "tokens"), rows))
    print(json.dumps(figures))


def _counts(rag: RAGPipeline) -> str:
    with rag.store.database.autocommit() as connection:
        names = ("chunks", "episodes", "facts")
        found = [connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names]
    return ", ".join(f"{count:,} {name}" for name, count in zip(names, found, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(dest="step", required=True)
    for step, function in (("build", build), ("measure", measure)):
        one = steps.add_parser(step)
        one.add_argument("--work", type=Path, required=True)
        one.set_defaults(function=function)
        if step == "build":
            one.add_argument("--documents", type=Path, required=True)
            one.add_argument("--turns", type=int, default=TURNS)
        else:
            one.add_argument("--questions", type=int, default=200)
    arguments = parser.parse_args()
    arguments.function(arguments)


if __name__ == "__main__":
    main()
