"""The tables of `growth.py`, from the JSON files of its runs. Needs nothing but the standard library."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import table

TITLES = {
    "recollect": "recollect",
    "llamaindex": "LlamaIndex + Chroma + BM25",
    "txtai": "txtai",
    "haystack": "Haystack in memory",
    "lancedb": "LanceDB",
    "chroma": "Chroma (dense only)",
}
MODES = ("hybrid", "hybrid, reranked", "dense", "lexical")
FILTERS = ("none", "10 %", "1 %", "0.01 %")


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

    def callers(self, name: str, callers: int) -> dict | None:
        cells = self.found.get("callers", {}).get("cells", [])
        return next((one for one in cells if (one["filter"], one["callers"]) == (name, callers)), None)

    def value(self, *keys: str) -> float | None:
        """A figure by its place; None where it was not measured."""
        at: object = self.found
        for key in keys:
            at = at.get(key) if isinstance(at, dict) else None
        return at if isinstance(at, int | float) else None


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
        parts += [overview(own), latencies(own), completeness(own), callers(own)]
    ours = [one for one in results if one.system == "recollect"]
    if len(ours) > 1:
        parts += ["### Growth of recollect", growth(ours)]
    notes = {one.title: one.found.get("measure", {}).get("notes", "") for one in results}
    parts += ["### Notes", "\n".join(f"- {title}: {text}" for title, text in notes.items() if text)]
    seen = dict.fromkeys(name for one in results for name in one.found.get("measure", {}).get("versions", ()))
    parts.append(f"Versions: {', '.join(seen)}.")
    return "\n\n".join(part for part in parts if part)


def overview(results: Iterable[Result]) -> str:
    """Ingest, memory, disk, inserts, whole queries."""
    head = [
        "",
        "ingest, rows/s",
        "ingest memory, MB",
        "memory, MB",
        "disk, MB",
        "open, s",
        "new document in both retrievers, ms (most)",
        "question in words, p50 ms",
        "same question again, ms",
    ]
    rows = []
    for one in results:
        insert = f"{shown(one.value('measure', 'insert', 'both_ms'), 1)}"
        slowest = one.value("measure", "insert", "slowest_ms")
        whole = [shown(one.value("whole", mode, "p50_ms")) for mode in ("hybrid", "hybrid, reranked")]
        rows.append(
            [
                one.title,
                shown(one.value("fill", "rows_per_second"), 0),
                shown(one.value("fill", "memory_mb"), 0),
                shown(one.value("measure", "memory_mb", "one caller"), 0),
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
    head = ["p50 / p95, ms", "", *(f"filter: {name}" for name in FILTERS)]
    return table(head, rows)


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
    return table(["share", "", *(f"filter: {name}" for name in FILTERS)], rows)


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
            shown(one.value("measure", "memory_mb", "one caller"), 0),
            shown(one.value("measure", "disk_mb"), 0),
            shown((one.cell("dense", "none") or {}).get("recall"), 4),
            shown((one.cell("lexical", "none") or {}).get("identical"), 4),
            shown(one.value("measure", "insert", "both_ms"), 1),
        ]
        rows.append([label, *cells, *filtered, *figures])
    head = ["chunks", *MODES, *(f"hybrid, {name}" for name in FILTERS[1:])]
    head += ["rows/s", "memory, MB", "disk, MB", "dense recall", "lexical exact", "insert, ms"]
    return table(head, rows)


def shown(value: float | None, digits: int = 2) -> str:
    """A figure, or a dash."""
    return "–" if value is None else f"{value:,.{digits}f}"


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
