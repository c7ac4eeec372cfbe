"""The tables of `growth.py`, from the JSON files of its runs. Needs nothing but the standard library."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import table

TITLES = {
    "recollect": "recollect",
    "lancedb": "LanceDB",
    "llamaindex": "LlamaIndex + Chroma + BM25",
    "txtai": "txtai",
    "milvus": "Milvus Lite",
}
MODES = ("hybrid", "hybrid, reranked", "dense", "lexical")
FILTERS = ("none", "10 %", "1 %", "0.01 %", "reads 10 %")
#: A peer is compared only where it returns nearly all of the results that there are.
COMPLETE = 0.95
#: Memory of all processes that is aimed at, in MB, by the number of chunks.
MEMORY_GOALS = {100_000: (700.0,), 1_000_000: (2_500.0,)}


@dataclass(frozen=True)
class Result:
    """What is known of one system at one size."""

    system: str
    chunks: int
    flat: bool
    found: dict

    @property
    def title(self) -> str:
        return TITLES[self.system]

    def cell(self, mode: str, name: str) -> dict | None:
        """One way of searching under one filter."""
        cells = self.found.get("measure", {}).get("cells", [])
        return next((one for one in cells if (one["mode"], one["filter"]) == (mode, name)), None)

    def first_use(self, name: str) -> dict | None:
        """The first searches below each value of a filter."""
        found = self.found.get("measure", {}).get("first_use", [])
        return next((one for one in found if one["filter"] == name), None)

    def complete(self, name: str) -> bool:
        """Whether hybrid searches return nearly everything that they should."""
        return ((self.cell("hybrid", name) or {}).get("returned") or 0) >= COMPLETE

    def callers(self, name: str, callers: int) -> dict | None:
        cells = self.found.get("callers", {}).get("cells", [])
        return next((one for one in cells if (one["filter"], one["callers"]) == (name, callers)), None)

    def value(self, *keys: str) -> float | None:
        """A figure by its place; None where it was not measured."""
        at: object = self.found
        for key in keys:
            at = at.get(key) if isinstance(at, dict) else None
        return at if isinstance(at, int | float) else None


Figure = Callable[[Result], float | None]


def read(folder: Path) -> list[Result]:
    """Every run, smallest first, in the order of the table's systems."""
    results = []
    for file in folder.glob("*.json"):
        found = json.loads(file.read_text(encoding="utf-8"))
        results.append(Result(found["system"], found["chunks"], found["flat"], found))
    order = list(TITLES)
    return sorted(results, key=lambda one: (one.flat, one.chunks, order.index(one.system)))


def tables(results: Sequence[Result]) -> str:
    """Everything as Markdown."""
    if not results:
        return "There are no results yet."
    machines = sorted({one.found["machine"].split("; load")[0] for one in results})
    parts = [f"Machine: {'; '.join(machines)}."]
    for flat, chunks in dict.fromkeys((one.flat, one.chunks) for one in results):
        own = [one for one in results if (one.flat, one.chunks) == (flat, chunks)]
        parts.append(f"### {chunks:,} chunks{', one a document' if flat else ''}")
        parts += [goals(own), overview(own), latencies(own), first_uses(own), completeness(own), callers(own)]
    ours = [one for one in results if one.system == "recollect"]
    if len(ours) > 1:
        parts += ["### Growth of recollect", growth(ours)]
    notes = {one.title: one.found.get("measure", {}).get("notes", "") for one in results}
    parts += ["### Notes", "\n".join(f"- {title}: {text}" for title, text in notes.items() if text)]
    seen = dict.fromkeys(name for one in results for name in one.found.get("measure", {}).get("versions", ()))
    parts.append(f"Versions: {', '.join(seen)}.")
    return "\n\n".join(part for part in parts if part)


@dataclass(frozen=True)
class Goal:
    """A figure of recollect's beside the best peer's.

    Attributes:
        what: The figure.
        figure: Finds it.
        aim: The ratio, or where there is no peer the figure, that is aimed at, and the one that is accepted.
        best: Which of the peers' figures is the best.
        over: Whether the ratio is recollect's figure over the peer's, as of throughput and sizes.
        most: Whether the aim is an upper bound.
    """

    what: str
    figure: Figure
    aim: tuple[float, ...] = ()
    best: Callable[..., float] = min
    over: bool = False
    most: bool = False

    def row(self, ours: Result, peers: Iterable[Result]) -> list[str]:
        """Cells of the table."""
        own = self.figure(ours)
        theirs = {value: one.title for one in peers if (value := self.figure(one))}
        peer = self.best(theirs, default=None)
        ratio = (own / peer if self.over else peer / own) if own and peer else None
        reached = ratio if theirs or self.over or not self.most else own
        verdict = "–"
        if reached is not None and self.aim:
            passed = [reached <= aim if self.most else reached >= aim for aim in self.aim]
            verdict = "reached" if passed[0] else "at least" if passed[-1] else "missed"
        aim = " / ".join(f"{'≤ ' if self.most else ''}{value:,g}" for value in self.aim)
        best = f"{_figure(peer)} {theirs[peer]}" if peer else "–"
        return [self.what, _figure(own), best, shown(ratio), aim or "–", verdict]


def goals(results: Sequence[Result]) -> str:
    """Each figure of recollect's beside the fastest peer's, and what is aimed at."""
    ours = next((one for one in results if one.system == "recollect"), None)
    if ours is None:
        return ""
    peers = [one for one in results if one is not ours]
    lance = [one for one in peers if one.system == "lancedb"]
    rows = []
    for name in FILTERS:
        label, able = f"hybrid, {_selection(name)}", [one for one in peers if one.complete(name)]
        aim = (3.0, 2.5) if name == "none" else (4.0, 3.0)
        measured = [Goal(f"{label}, {p}, ms", of_cell("hybrid", name, f"{p}_ms"), aim) for p in ("p50", "p95")]
        if name != "none":
            measured.append(Goal(f"{label}, first use, p50, ms", _of_first_use(name)))
        rows += [one.row(ours, able) for one in measured]
    rows += [
        Goal(f"{mode}, p50, ms", of_cell(mode, "none"), (2, 1.5)).row(ours, lance) for mode in ("dense", "lexical")
    ]
    throughput = Goal("hybrid searches/s, 32 callers", _of_callers("none", 32), (5, 4), best=max, over=True)
    filled = Goal("rows/s, vectors given", _at("fill", "rows_per_second"), (1, 0.8), best=max, over=True)
    disk = Goal("disk, MB", _at("measure", "disk_mb"), (1.3, 1.6), over=True, most=True)
    rows += [throughput.row(ours, peers), filled.row(ours, lance), disk.row(ours, lance)]
    alone = [
        Goal("memory of all processes, MB", memory, MEMORY_GOALS.get(ours.chunks, ()), most=True),
        Goal("a new document is found, ms", _at("measure", "insert", "found_ms"), (30,), most=True),
        Goal("Python calls of a hybrid search", _at("repeated", "calls"), (700, 900), most=True),
    ]
    rows += [one.row(ours, []) for one in alone]
    return table(["", "recollect", "best peer", "ratio", "goal / at least", ""], rows)


def of_cell(mode: str, name: str, measure: str = "p50_ms") -> Figure:
    return lambda one: (one.cell(mode, name) or {}).get(measure)


def _of_first_use(name: str) -> Figure:
    return lambda one: (one.first_use(name) or {}).get("p50_ms")


def _of_callers(name: str, callers: int) -> Figure:
    return lambda one: (one.callers(name, callers) or {}).get("per_second")


def _at(*keys: str) -> Figure:
    return lambda one: one.value(*keys)


def memory(one: Result) -> float | None:
    """Of all processes, with one caller or after 32, whichever is more."""
    found = [one.value("measure", "memory_mb", "one caller"), one.value("callers", "memory_mb")]
    return max((value for value in found if value), default=None)


def overview(results: Iterable[Result]) -> str:
    """Ingest, memory, disk, inserts, whole queries."""
    head = [
        "",
        "ingest, rows/s",
        "ingest memory, MB",
        "memory, MB",
        "disk, MB",
        "open, s",
        "new document found, ms (most)",
        "question in words, p50 ms",
        "same question again, ms",
    ]
    rows = []
    for one in results:
        insert = shown(one.value("measure", "insert", "found_ms"), 1)
        slowest = one.value("measure", "insert", "slowest_ms")
        whole = [shown(one.value("whole", mode, "p50_ms")) for mode in ("hybrid", "hybrid, reranked")]
        rows.append(
            [
                one.title,
                shown(one.value("fill", "rows_per_second"), 0),
                shown(one.value("fill", "memory_mb"), 0),
                shown(memory(one), 0),
                shown(one.value("measure", "disk_mb"), 0),
                shown(one.value("measure", "open_seconds")),
                f"{insert} ({shown(slowest, 1)})",
                " / ".join(text for text in whole if text != "–") or "–",
                shown(one.value("repeated", "p50_ms"), 3),
            ]
        )
    return table(head, rows)


def latencies(results: Iterable[Result]) -> str:
    """Milliseconds of each way of searching under each filter."""
    rows = []
    for mode in MODES:
        for one in results:
            cells = [one.cell(mode, name) for name in FILTERS]
            if any(cells):
                rows.append([mode, one.title, *(_spread(cell) for cell in cells)])
    head = ["p50 / p95, ms", "", *(_selection(name) for name in FILTERS)]
    return table(head, rows)


def first_uses(results: Iterable[Result]) -> str:
    """Milliseconds of the first search below each value of a filter."""
    rows = [[one.title, *(_spread(one.first_use(name)) for name in FILTERS[1:])] for one in results]
    return table(["hybrid, first use, p50 / p95, ms", *(_selection(name) for name in FILTERS[1:])], rows)


def completeness(results: Iterable[Result]) -> str:
    """Recall, equality with exact BM25, and the share of the possible results that came back."""
    rows = []
    for one in results:
        for mode, measure, label in (
            ("dense", "recall", "dense recall@10"),
            ("lexical", "identical", "lexical top 10 exact"),
            ("hybrid", "returned", "hybrid, results returned"),
        ):
            cells = [one.cell(mode, name) for name in FILTERS]
            if any(cell and measure in cell for cell in cells):
                rows.append([label, one.title, *(_complete(cell, measure) for cell in cells)])
    rows.sort(key=lambda row: row[0])
    return table(["share", "", *(_selection(name) for name in FILTERS)], rows)


def callers(results: Iterable[Result]) -> str:
    """Throughput and latency of several callers at once."""
    rows = []
    for one in results:
        crash = one.found.get("callers", {}).get("crashed")
        for name in ("none", "1 %"):
            cells = [one.callers(name, count) for count in (1, 8, 32)]
            if crash:
                rows.append([one.title, name, *[f"crashed ({crash})"] * 3])
                break
            if any(cells):
                rows.append([one.title, name, *(_callers(cell) for cell in cells)])
    if not rows:
        return ""
    return table(["hybrid, answers/s (p50 / p95 ms)", "filter", "1 caller", "8 callers", "32 callers"], rows)


def growth(results: Iterable[Result]) -> str:
    """One row a size."""
    rows = []
    for one in results:
        label = f"{one.chunks:,}{' (flat)' if one.flat else ''}"
        cells = [_spread(one.cell(mode, "none")) for mode in MODES]
        filtered = [_spread(one.cell("hybrid", name)) for name in FILTERS[1:]]
        figures = [
            shown(one.value("fill", "rows_per_second"), 0),
            shown(memory(one), 0),
            shown(one.value("measure", "disk_mb"), 0),
            shown((one.cell("dense", "none") or {}).get("recall"), 4),
            shown((one.cell("lexical", "none") or {}).get("identical"), 4),
            shown(one.value("measure", "insert", "found_ms"), 1),
        ]
        rows.append([label, *cells, *filtered, *figures])
    head = ["chunks", *MODES, *(f"hybrid, {name}" for name in FILTERS[1:])]
    head += ["rows/s", "memory, MB", "disk, MB", "dense recall", "lexical exact", "new document, ms"]
    return table(head, rows)


def shown(value: float | None, digits: int = 2) -> str:
    """A figure, or a dash."""
    return "–" if value is None else f"{value:,.{digits}f}"


def _figure(value: float | None) -> str:
    return shown(value, 0 if value and value >= 100 else 2)


def _selection(name: str) -> str:
    return name if name == "reads 10 %" else f"filter: {name}"


def _spread(cell: dict | None) -> str:
    return "–" if not cell else f"{shown(cell['p50_ms'])} / {shown(cell['p95_ms'])}"


def _complete(cell: dict | None, measure: str) -> str:
    if not cell or measure not in cell:
        return "–"
    breaking = cell["results_breaking_filter"]
    return shown(cell[measure], 3) + (
        f" ({breaking / cell['queries']:.1f} a query break the filter)" if breaking else ""
    )


def _callers(cell: dict | None) -> str:
    if not cell:
        return "–"
    if "p50_ms" not in cell:
        return f"{cell['errors']} errors"
    errors = f", {cell['errors']} errors" if cell["errors"] else ""
    return f"{shown(cell['per_second'], 0)} ({shown(cell['p50_ms'], 1)} / {shown(cell['p95_ms'], 1)}){errors}"
