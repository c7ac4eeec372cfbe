"""What searches take while a collection changes to another embedding model, and whether each of them is right.

    python benchmarks/reembed.py [--chunks 100000] [--callers 8] [--seconds 60]

A collection of so many chunks is searched by so many callers, without a re-embedding and during one: filling, building
the index, comparing and changing. Every reply is compared with what the same question found before, or, once the
collection uses the other model, with what it finds then: any other reply is wrong.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions

FIRST, SECOND = 256, 384
QUESTIONS = 200
SYLLABLES = [a + b for a in "bcdfghjklmnprstvw" for b in "aeiou"]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--chunks", type=int, default=100_000)
    options.add_argument("--callers", type=int, default=8)
    options.add_argument("--seconds", type=float, default=60.0, help="searched without a re-embedding")
    options.add_argument("--pause", type=float, default=1.0, help="as of recollect reembed")
    asked = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="recollect-reembed-") as folder:
        Path(folder).chmod(0o711)  # a server that root starts runs as another user
        config = RAGConfig.load(
            storage={"data_dir": Path(folder) / "data"},
            embedding={"provider": "hashing", "dimensions": FIRST},
            retrieval={"probe_rate": 0.0},
        )
        with RAGPipeline(config) as rag:
            measure(rag, Path(folder) / "data", asked)


def measure(rag: RAGPipeline, data_dir: Path, asked: argparse.Namespace) -> None:
    choice = random.Random(7)
    words = ["".join(choice.choices(SYLLABLES, k=choice.choice((2, 3)))) for _ in range(20_000)]
    begun = time.perf_counter()
    stored = rag.ingest(
        Document(content=" ".join(choice.choices(words, k=40)), source=f"{number}", title=f"Note {number}")
        for number in range(asked.chunks)
    )
    (place,) = rag.collections.list()
    print(f"{len(stored):,} documents, {place.chunk_count:,} chunks in {time.perf_counter() - begun:,.0f} s")
    questions = [" ".join(choice.choices(words, k=4)) for _ in range(QUESTIONS)]
    before = answers(rag, questions)
    quiet = Callers(rag, questions, asked.callers, right=[before])
    quiet.run(lambda: time.sleep(asked.seconds))
    quiet.show("without")
    during = Callers(rag, questions, asked.callers, right=[before])
    model = f"hashing:{SECOND}"
    command = [sys.executable, "-m", "recollect", "reembed", "--collection", "default", "--model", model]
    command += ["--data-dir", str(data_dir), "--pause", str(asked.pause)]
    environment = {**os.environ, "RECOLLECT_EMBEDDING__PROVIDER": "hashing"}
    took = during.run(lambda: subprocess.run(command, check=True, env=environment))
    after = answers(rag, questions)
    during.right.append(after)
    during.show(f"during ({took:,.0f} s)")
    changed = Callers(rag, questions, asked.callers, right=[after])
    changed.run(lambda: time.sleep(asked.seconds / 4))
    changed.show("after")
    ratio = during.percentile(95) / quiet.percentile(95)
    print(f"p95 during / without: {ratio:.2f}")
    print(f"wrong replies: {quiet.wrong() + during.wrong() + changed.wrong()}")


def answers(rag: RAGPipeline, questions: list[str]) -> dict[str, tuple[int, ...]]:
    return {question: found(rag, question) for question in questions}


def found(rag: RAGPipeline, question: str) -> tuple[int, ...]:
    reply = rag.search(question, RetrievalOptions(use_cache=False))
    return tuple(one.chunk_id for one in reply.results)


class Callers:
    """Threads that search one question after the other as long as something else goes on."""

    def __init__(
        self, rag: RAGPipeline, questions: list[str], count: int, *, right: list[dict[str, tuple[int, ...]]]
    ) -> None:
        self.rag, self.questions, self.count, self.right = rag, questions, count, right
        self.replies: list[tuple[str, tuple[int, ...], float]] = []

    def run(self, meanwhile: Callable[[], object]) -> float:
        over = threading.Event()

        def search(number: int) -> None:
            choice = random.Random(number)
            while not over.is_set():
                question = choice.choice(self.questions)
                begun = time.perf_counter()
                ids = found(self.rag, question)
                self.replies.append((question, ids, time.perf_counter() - begun))

        threads = [threading.Thread(target=search, args=(number,)) for number in range(self.count)]
        for thread in threads:
            thread.start()
        begun = time.perf_counter()
        meanwhile()
        took = time.perf_counter() - begun
        over.set()
        for thread in threads:
            thread.join()
        return took

    def percentile(self, percent: float) -> float:
        return float(np.percentile([seconds for _, _, seconds in self.replies], percent)) * 1000

    def wrong(self) -> int:
        return sum(ids not in [answer[question] for answer in self.right] for question, ids, _ in self.replies)

    def show(self, name: str) -> None:
        print(
            f"{name}: {len(self.replies):,} searches, p50 {self.percentile(50):,.1f} ms, "
            f"p95 {self.percentile(95):,.1f} ms, {self.wrong():,} wrong"
        )


if __name__ == "__main__":
    main()
