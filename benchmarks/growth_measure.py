"""What `growth.py` measures of a system, in a process that does nothing else. Needs numpy and psutil only."""

from __future__ import annotations

import itertools
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from growth_data import FILTERS, DataSet
from harness import pss, say, size_on_disk, versions
from peers.base import TOP_K, Found, Measured, Query, Rows

#: A cell of the table takes so many seconds at most, and no fewer than so many queries.
CELL_SECONDS, LEAST_QUERIES = 20.0, 10
CALLERS = (1, 8, 32)
CALLER_SECONDS, QUEUE_SECONDS = 8.0, 60.0
WARM_QUERIES, WARM_SECONDS = 50, 10.0
INSERTS, INSERT_SECONDS = 10, 60.0
FOUND_WITHIN_SECONDS = 30.0
#: Ties, and vectors that are stored in half precision.
DENSE_TOLERANCE, LEXICAL_TOLERANCE = 1e-6, 1e-4


def fill(system: Measured, data: DataSet) -> dict:
    """Store everything, and say how long it took and what it took."""
    with Watch(system) as watch:
        start = time.perf_counter()
        system.fill(data)
        seconds = time.perf_counter() - start
    return {
        "seconds": round(seconds, 2),
        "rows_per_second": round(data.chunks / seconds, 1),
        "memory_mb": round(watch.peak),
        "disk_mb": round(size_on_disk(system.store), 1),
        "versions": versions(system.packages),
    }


def measure(system: Measured, data: DataSet, *, seconds: float = CELL_SECONDS) -> dict:
    """Ask everything that the table shows."""
    bare = memory_of(system)
    start = time.perf_counter()
    system.open()
    opened = time.perf_counter() - start
    start = time.perf_counter()
    system.search(best_mode(system), data.queries[0])
    found: dict = {"open_seconds": round(opened, 3), "first_query_ms": _ms(time.perf_counter() - start)}
    warm(lambda query: system.search(best_mode(system), query), data.queries)
    found["first_use"] = [first_use(system, data, name) for name in FILTERS if FILTERS[name]]
    found["cells"] = [cell(system, data, mode, name, seconds=seconds) for mode in system.modes for name in FILTERS]
    found["memory_mb"] = {"before opening": round(bare), "one caller": round(memory_of(system))}
    found["insert"] = inserts(system, data)
    found["disk_mb"] = round(size_on_disk(system.store), 1)
    found["versions"] = versions(system.packages)
    found["notes"] = system.notes
    return found


def best_mode(system: Measured) -> str:
    """By both retrievers, where it has both."""
    return "hybrid" if "hybrid" in system.modes else system.modes[0]


def first_use(system: Measured, data: DataSet, name: str) -> dict:
    """Milliseconds of the first search below each value of a filter, or as each principal; what it needs included."""
    firsts: dict[int, Query] = {}
    for query in data.filtered(name):
        firsts.setdefault(query.value, query)
    times = []
    for query in firsts.values():
        start = time.perf_counter()
        system.prepare([query])
        system.search(best_mode(system), query)
        times.append(time.perf_counter() - start)
    result = {"filter": name, **latencies(times)}
    say(result)
    return result


def cell(system: Measured, data: DataSet, mode: str, name: str, *, seconds: float) -> dict:
    """One way of searching under one filter."""
    queries = data.filtered(name)
    system.prepare(queries)
    warm(lambda query: system.search(mode, query), queries)
    order = list(range(len(queries)))
    random.Random(5).shuffle(order)
    times, answers = [], {}
    begun = time.perf_counter()
    for number in order:
        start = time.perf_counter()
        answers[number] = system.search(mode, queries[number])
        times.append(time.perf_counter() - start)
        if time.perf_counter() - begun > seconds and len(times) >= LEAST_QUERIES:
            break
    result = {"mode": mode, "filter": name, **latencies(times), **judged(system, data, mode, name, answers)}
    if system.path:
        result["path"] = system.path
    say(result)
    return result


def warm(search: Callable[[Query], object], queries: Sequence[Query]) -> float:
    """Ask some of the questions without counting them; gives the seconds that one took."""
    begun, asked = time.perf_counter(), 0
    for query in queries[:WARM_QUERIES]:
        search(query)
        asked += 1
        if time.perf_counter() - begun > WARM_SECONDS:
            break
    return (time.perf_counter() - begun) / asked


def latencies(times: Sequence[float]) -> dict:
    p50, p95, p99 = (round(float(np.percentile(times, share)) * 1000, 3) for share in (50, 95, 99))
    return {"queries": len(times), "p50_ms": p50, "p95_ms": p95, "p99_ms": p99}


def judged(system: Measured, data: DataSet, mode: str, name: str, answers: dict[int, Found]) -> dict:
    """How answers compare with the exact ones: dense recall, lexical equality, completeness.

    Systems analyse words in their own ways: the exact lexical answers hold for our analysis only.
    """
    queries = data.filtered(name)
    truth = data.truth["lexical" if mode == "lexical" else "dense"][name]
    returned, breaking, recalls, equal = [], 0, [], []
    for number, found in answers.items():
        if not all(text for _, text in found):
            raise SystemExit(f"{mode}: a result has no text")
        allowed = [identifier for identifier, _ in found if data.keeps(queries[number], identifier)]
        breaking += len(found) - len(allowed)
        expected = min(TOP_K, truth[number]["matching"])
        returned.append(min(1.0, len(set(allowed)) / expected) if expected else 1.0)
        if mode == "dense":
            recalls.append(recall(truth[number], allowed))
        elif mode == "lexical":
            equal.append(same_ranking(truth[number], [identifier for identifier, _ in found]))
    result: dict = {"results_breaking_filter": breaking}
    if mode != "lexical" or system.same_words:
        result["returned"] = round(float(np.mean(returned)), 4)
    if recalls:
        result["recall"] = round(float(np.mean(recalls)), 4)
    if equal and system.same_words:
        result["identical"] = round(float(np.mean(equal)), 4)
    return result


def recall(truth: dict, found: Sequence[str]) -> float:
    """The share of the ten best that was found; what scores as much as the tenth is one of them."""
    expected = min(TOP_K, truth["matching"])
    if not expected:
        return 1.0
    least = truth["scores"][expected - 1] - DENSE_TOLERANCE
    good = {chunk for chunk, score in zip(truth["ids"], truth["scores"], strict=True) if score >= least}
    return min(expected, len(good & set(found))) / expected


def same_ranking(truth: dict, found: Sequence[str]) -> bool:
    """Whether these are the ten best in their order, ties aside."""
    expected = truth["scores"][:TOP_K]
    known = dict(zip(truth["ids"], truth["scores"], strict=True))
    scores = [known.get(chunk, -1.0) for chunk in found]
    if len(scores) != len(expected) or len(set(found)) != len(found):
        return False
    return bool(np.allclose(scores, expected, rtol=LEXICAL_TOLERANCE))


def all_callers(system: Measured, data: DataSet) -> dict:
    """Several callers at once, unless they would queue for longer than a minute."""
    system.open()
    mode, cells = best_mode(system), []
    for name in ("none", "1 %"):
        queries = data.filtered(name)
        system.prepare(queries)
        alone = warm(lambda query: system.search(mode, query), queries)
        possible = [callers for callers in CALLERS if callers * alone <= QUEUE_SECONDS]
        cells += [concurrent(system, data, mode, name, callers) for callers in possible]
    return {"cells": cells, "memory_mb": round(memory_of(system))}


@dataclass
class Callers:
    """What callers at the same time have seen."""

    times: list[float]
    errors: list[str]


def concurrent(system: Measured, data: DataSet, mode: str, name: str, callers: int) -> dict:
    """Several threads that ask one question after the other: answers a second, and how long each took."""
    queries = data.filtered(name)
    numbers = itertools.count()
    seen = Callers([], [])
    start = threading.Barrier(callers + 1)
    ending = threading.Event()

    def caller() -> None:
        start.wait()
        while not ending.is_set():
            begun = time.perf_counter()
            try:
                system.search(mode, queries[next(numbers) % len(queries)])
            except Exception as exc:  # noqa: BLE001 - whatever a peer raises is counted, and the first is shown
                seen.errors.append(f"{type(exc).__name__}: {exc}"[:300])
                continue
            seen.times.append(time.perf_counter() - begun)

    threads = [threading.Thread(target=caller, daemon=True) for _ in range(callers)]
    for thread in threads:
        thread.start()
    start.wait()
    begun = time.perf_counter()
    ending.wait(CALLER_SECONDS)
    ending.set()
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter() - begun
    result = {"mode": mode, "filter": name, "callers": callers, "errors": len(seen.errors)}
    if seen.times:
        result |= {"per_second": round(len(seen.times) / elapsed, 1), **latencies(seen.times)}
    if seen.errors:
        result["error"] = seen.errors[0]
    say(result)
    return result


def inserts(system: Measured, data: DataSet) -> dict:
    """One document more: from the call that adds it to the reply of a hybrid search that finds it."""
    stored: list[float] = []
    seen: list[float] = []
    searches: list[int] = []
    begun = time.perf_counter()
    run = f"{int(time.time()):x}"
    for rows in (newcomer(rows, run) for rows in data.extra[:INSERTS]):
        start = time.perf_counter()
        system.add(rows)
        stored.append(time.perf_counter() - start)
        searches.append(until_found(system, best_mode(system), rows))
        seen.append(time.perf_counter() - start)
        for retriever in {"dense", "lexical"}.intersection(system.modes):
            until_found(system, retriever, rows)
        if time.perf_counter() - begun > INSERT_SECONDS:
            break
    result = {"documents": len(stored), "stored_ms": _ms(float(np.median(stored)))}
    result |= {"found_ms": _ms(float(np.median(seen))), "slowest_ms": _ms(max(seen)), "searches": max(searches)}
    say(result)
    return result


def newcomer(rows: Rows, run: str) -> Rows:
    """The document under a name and with a word that no run before has used, and that no filter keeps."""
    identifier, text = rows.ids[0].replace("extra", f"extra{run}"), rows.texts[0] + run
    return Rows([identifier], [text], rows.vectors, [dict.fromkeys(rows.metadata[0], -1)])


def until_found(system: Measured, mode: str, rows: Rows) -> int:
    """Search for a document by its vector and the word that only it has, until it is found; gives how many it took."""
    query = Query(rows.texts[0].split()[-1], rows.vectors[0])
    end = time.perf_counter() + FOUND_WITHIN_SECONDS
    document = rows.ids[0].partition(":")[0]
    for number in itertools.count(1):
        if document in [identifier.partition(":")[0] for identifier, _ in system.search(mode, query)]:
            return number
        if time.perf_counter() > end:
            raise SystemExit(f"{system.title}: a new document is not found by a {mode} search")
    raise AssertionError


def memory_of(system: Measured) -> float:
    """PSS of this process, its children and the system's other processes together, in MB."""
    import psutil

    own = psutil.Process()
    pids = {own.pid, *(child.pid for child in own.children(recursive=True)), *system.processes()}
    return pss(pids)


class Watch:
    """The peak of a system's memory."""

    def __init__(self, system: Measured, *, every: float = 0.5) -> None:
        self._system = system
        self._every = every
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.peak = 0.0

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        self._sample()

    def _watch(self) -> None:
        while not self._end.wait(self._every):
            self._sample()

    def _sample(self) -> None:
        self.peak = max(self.peak, memory_of(self._system))


def whole_queries(search: Callable[[str], Found], texts: Sequence[str]) -> dict:
    """Questions in words, each asked once: embedding and everything after it."""
    half = len(texts) // 5
    for text in texts[:half]:
        search(text)
    times = []
    for text in texts[half:]:
        start = time.perf_counter()
        if not search(text):
            raise SystemExit(f"nothing found for {text!r}")
        times.append(time.perf_counter() - start)
    return latencies(times)


def repeated(search: Callable[[Query], object], queries: Sequence[Query]) -> dict:
    """The same question again, right after the first time."""
    times = []
    for query in queries:
        search(query)
        start = time.perf_counter()
        search(query)
        times.append(time.perf_counter() - start)
    return latencies(times)


def function_calls(search: Callable[[Query], object], queries: Sequence[Query]) -> int:
    """Python functions that a warm search calls in the thread of its caller, in the median of some questions."""
    counts = []
    for query in queries[:WARM_QUERIES]:
        search(query)
        called = 0

        def count(_frame: object, event: str, _argument: object) -> None:
            nonlocal called
            called += event == "call"

        sys.setprofile(count)
        try:
            search(query)
        finally:
            sys.setprofile(None)
        counts.append(called)
    return int(np.median(counts))


def write(file: Path, found: dict) -> None:
    """One run's figures."""
    import json

    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
