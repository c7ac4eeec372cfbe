r"""Two versions of recollect in turn: whether a change made searching or ingesting slower.

Each version lives in an environment of its own (a checkout of the older one, say, with its own virtual environment) and
keeps a store of its own. Nothing but the public library is used, so that versions with different internals can be
compared. Run from the repository root, with nothing else at work on the machine::

    python benchmarks/two_versions.py --work ../versions --before ../before/.venv/bin/python --after .venv/bin/python

- *ingest*: the Cranfield abstracts from a folder into an empty store, real model, cold embedding cache; one process a
  version and round, B A, A B, B A, ...; seconds without the start of model and server.
- *search*: abstracts of Cranfield and SciFact in one collection, large enough for a vector index. Both processes stay
  open; blocks of questions alternate between them, so that a drift of the machine's speed meets both alike. Replies are
  never taken from the cache.
- *cold*: the command ``recollect query`` as a process, in turn.

Printed are the medians of both and the ratio after/before pair by pair: median, least and most.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from harness import CRANFIELD, SHARED, Clock, contestant, machine, offline, say, store_folder, table

SCIFACT = SHARED / "scifact"
BLOCK = 50
STEPS = ("ingest", "search", "cold")


def main() -> None:
    parser = argparse.ArgumentParser(description="Two versions of recollect in turn.")
    parser.add_argument("--before", help="the older version's Python")
    parser.add_argument("--after", help="the newer version's Python")
    parser.add_argument("--work", type=Path, required=True, help="a folder for files and stores, kept between runs")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="*", default=STEPS, choices=STEPS)
    parser.add_argument("--worker", choices=("ingest", "build", "ask"), help=argparse.SUPPRESS)
    parser.add_argument("--store", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        {"ingest": ingest, "build": build, "ask": answer_blocks}[arguments.worker](arguments)
        return
    arguments.work.mkdir(parents=True, exist_ok=True)
    prepare(arguments.work)
    print(machine())
    rows = []
    for step in arguments.only:
        rows += {"ingest": compare_ingests, "search": compare_searches, "cold": compare_commands}[step](arguments)
    head = ["what", "before", "after", "after/before, median", "least–most", "pairs"]
    print("\n" + table(head, rows))


def prepare(work: Path) -> None:
    """The documents as files, and the questions."""
    for name, folder in (("cranfield", CRANFIELD), ("scifact", SCIFACT)):
        target = work / name
        if target.exists():
            continue
        target.mkdir()
        for line in (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            text = f"{record['title']}\n\n{record['text']}\n"
            (target / f"{record['_id']}.txt").write_text(text, encoding="utf-8")
    questions = [
        json.loads(line)["text"]
        for folder in (CRANFIELD, SCIFACT)
        for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    (work / "questions.json").write_text(json.dumps(questions), encoding="utf-8")


def versions(arguments: argparse.Namespace, number: int) -> list[tuple[str, str]]:
    """Both, the one first in even rounds and the other in odd ones."""
    both = [("before", arguments.before), ("after", arguments.after)]
    return both if number % 2 else both[::-1]


def compared(what: str, unit: str, seen: dict[str, list[float]]) -> list[str]:
    ratios = [after / before for before, after in zip(seen["before"], seen["after"], strict=True)]
    return [
        what,
        f"{statistics.median(seen['before']):.2f} {unit}",
        f"{statistics.median(seen['after']):.2f} {unit}",
        f"{statistics.median(ratios):.3f}",
        f"{min(ratios):.3f}–{max(ratios):.3f}",
        str(len(ratios)),
    ]


def compare_ingests(arguments: argparse.Namespace) -> list[list[str]]:
    seen: dict[str, list[float]] = {"before": [], "after": []}
    for number in range(arguments.rounds + 1):
        for name, python in versions(arguments, number):
            with store_folder() as store:
                options = ("--worker", "ingest", "--work", str(arguments.work), "--store", store)
                seconds = contestant(python, __file__, *options)["seconds"]
            say(f"round {number}, {name}: {seconds:.2f} s")
            if number:  # the first one warms the disk's cache
                seen[name].append(seconds)
    return [compared("ingest, 1,400 files", "s", seen)]


def pipeline(store: Path, **settings: object):
    from recollect import RAGConfig, RAGPipeline

    return RAGPipeline(RAGConfig.load(storage={"data_dir": str(store.resolve() / "data")}, **settings))


def ingest(arguments: argparse.Namespace) -> None:
    from recollect import Document

    with pipeline(arguments.store) as rag:
        rag.ingest(Document(content="The model and the server are warm.", source="warm.txt"))
        with Clock() as clock:
            rag.ingest(arguments.work / "cranfield")
    print(json.dumps({"seconds": clock.seconds}))


def build(arguments: argparse.Namespace) -> None:
    with pipeline(arguments.store) as rag:
        rag.ingest([arguments.work / "cranfield", arguments.work / "scifact"])
    print(json.dumps({}))


def answer_blocks(arguments: argparse.Namespace) -> None:
    """Reads ``mode number`` lines, asks the questions of that block, and writes each one's milliseconds."""
    from recollect import RetrievalOptions

    questions = json.loads((arguments.work / "questions.json").read_text(encoding="utf-8"))
    with pipeline(arguments.store, retrieval={"cache_entries": 0, "probe_rate": 0}) as rag:
        for line in sys.stdin:
            mode, number = line.split()
            start = int(number) * BLOCK % len(questions)
            options = RetrievalOptions(top_k=10, mode=mode)
            taken = []
            for question in questions[start : start + BLOCK]:
                began = time.perf_counter()
                rag.retrieve(question, options)
                taken.append((time.perf_counter() - began) * 1000)
            print(json.dumps(taken), flush=True)


def compare_searches(arguments: argparse.Namespace) -> list[list[str]]:
    workers = {}
    for name, python in versions(arguments, 1):
        store = arguments.work / f"store-{name}"
        if not (store / "built").exists():
            say(f"building the store of {name}")
            contestant(python, __file__, "--worker", "build", "--work", str(arguments.work), "--store", str(store))
            (store / "built").touch()
        command = [python, __file__, "--worker", "ask", "--work", str(arguments.work), "--store", str(store)]
        workers[name] = subprocess.Popen(
            command, env=offline(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
    rows = []
    try:
        for mode in ("hybrid", "dense", "lexical"):
            seen: dict[str, list[float]] = {"before": [], "after": []}
            for number in range(-1, 4 * arguments.rounds):
                for name, _ in versions(arguments, number):
                    taken = ask(workers[name], mode, max(number, 0))
                    if number >= 0:
                        seen[name].append(statistics.median(taken))
            rows.append(compared(f"search, {mode}, median of {BLOCK}", "ms", seen))
            say(rows[-1])
    finally:
        for worker in workers.values():
            worker.communicate(timeout=60)
    return rows


def ask(worker: subprocess.Popen[str], mode: str, number: int) -> list[float]:
    worker.stdin.write(f"{mode} {number}\n")
    return json.loads(worker.stdout.readline())


def compare_commands(arguments: argparse.Namespace) -> list[list[str]]:
    seen: dict[str, list[float]] = {"before": [], "after": []}
    for number in range(2 * arguments.rounds + 1):
        for name, python in versions(arguments, number):
            data = (arguments.work / f"store-{name}" / "data").resolve()
            command = [python, "-m", "recollect", "--data-dir", str(data), "query", "boundary layer", "--json"]
            with Clock() as clock:
                subprocess.run(command, env=offline(), capture_output=True, check=True, cwd=arguments.work)
            if number:
                seen[name].append(clock.seconds)
    return [compared("`recollect query`, cold process", "s", seen)]


if __name__ == "__main__":
    main()
