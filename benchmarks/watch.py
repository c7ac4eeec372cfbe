"""A watched folder: how long until a change is found, and a deletion no longer.

    python watch.py --files 10000 --changes 20

Makes a folder in a temporary directory, watches it as ``recollect watch`` does, in this process, with the local
embedding model (``--provider hashing``: without a model), and times from the moment at which a file was saved or
deleted until a search finds it, or finds it no longer.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from recollect import RAGConfig, RAGPipeline, RetrievalOptions

WORDS = (
    *("leave", "travel", "invoice", "garage", "badge", "laptop", "meeting", "contract", "holiday", "budget"),
    *("printer", "visitor", "training", "pension"),
)
EXACT = RetrievalOptions(mode="lexical", top_k=3)
LIMIT_SECONDS = 60


def text(number: int, note: str = "") -> str:
    words = " ".join(WORDS[(number * step) % len(WORDS)] for step in range(1, 12))
    return f"# Page {number}\n\nThis page is about {words}.\n\nReference reference{number:05d}. {note}\n"


def until(found, started: float) -> float:
    """Seconds from ``started`` until ``found()``."""
    while not found():
        if time.perf_counter() - started > LIMIT_SECONDS:
            sys.exit("not within a minute")
        time.sleep(0.01)
    return time.perf_counter() - started


def shown(name: str, seconds: list[float]) -> None:
    print(f"{name}: p50 {statistics.median(seconds):.2f} s, longest {max(seconds):.2f} s of {len(seconds)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--changes", type=int, default=20)
    parser.add_argument("--at-once", type=int, default=1_000)
    parser.add_argument("--provider", default="local", choices=["local", "hashing"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        Path(work).chmod(0o755)  # the server's own account has to come to its data
        folder = Path(work, "docs")
        for number in range(options.files):
            path = folder / f"part-{number // 100:03d}" / f"page-{number:05d}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text(number), encoding="utf-8")
        config = RAGConfig(storage={"data_dir": Path(work, "data")}, embedding={"provider": options.provider})
        with RAGPipeline(config) as rag:
            measure(rag, folder, options)


def measure(rag: RAGPipeline, folder: Path, options: argparse.Namespace) -> None:
    passes = []
    watching = rag.sources.watch([folder])
    start = time.perf_counter()
    first = next(watching)
    if first.report is None:
        sys.exit(first.problem)
    print(f"first pass: {first.report.added:,} files in {time.perf_counter() - start:.1f} s")
    thread = threading.Thread(target=lambda: passes.extend(watching), daemon=True)
    thread.start()

    def finds(word: str) -> bool:
        return any(word in one.content for one in rag.retrieve(word, EXACT))

    saved, deleted = [], []
    for change in range(options.changes):
        path = folder / f"part-{change:03d}" / f"page-{change * 100:05d}.md"
        path.write_text(text(change * 100, f"changed{change:05d}"), encoding="utf-8")
        saved.append(until(lambda word=f"changed{change:05d}": finds(word), time.perf_counter()))
    for change in range(options.changes):
        path = folder / f"part-{change:03d}" / f"page-{change * 100 + 1:05d}.md"
        path.unlink()
        word = f"reference{change * 100 + 1:05d}"
        deleted.append(until(lambda word=word: not finds(word), time.perf_counter()))
    shown("a saved change is found", saved)
    shown("a deleted file is found no longer", deleted)
    until(lambda: len(passes) >= 2 * options.changes, time.perf_counter())
    before = len(passes)
    start = time.perf_counter()
    for number in range(options.at_once):
        path = folder / f"part-{number // 100:03d}" / f"page-{number:05d}.md"
        path.write_text(text(number, "together"), encoding="utf-8")
    written = time.perf_counter() - start
    last = f"reference{options.at_once - 1:05d}"
    until(lambda: any(last in one.content and "together" in one.content for one in rag.retrieve(last, EXACT)), start)
    watching.stop()
    thread.join()
    done = passes[before:]
    stored = [one.report.updated + one.report.added for one in done if one.report is not None]
    print(
        f"{sum(stored):,} changes at once, written in {written:.2f} s: {len(done)} pass(es), "
        f"{time.perf_counter() - start:.1f} s until the last was found"
    )


if __name__ == "__main__":
    main()
