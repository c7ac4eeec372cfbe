"""The curves of `growth.py`, as SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from growth_report import FILTERS, MODES, TITLES, Result

Figure = Callable[[Result], float | None]
COLOURS = dict(zip(TITLES, ("#1f6feb", "#d1242f", "#9a6700", "#8250df", "#1a7f37", "#57606a"), strict=True))
DASHES = {"hybrid": "-", "hybrid, reranked": "--", "dense": ":", "lexical": "-."}


def draw(results: Sequence[Result], folder: Path) -> list[Path]:
    """One file a subject, over the number of chunks; both axes are logarithmic."""
    import matplotlib as mpl

    mpl.use("Agg")
    # The same picture from the same figures, byte for byte.
    mpl.rcParams.update({"svg.hashsalt": "growth", "svg.fonttype": "none", "font.size": 9, "figure.figsize": (6, 3.6)})
    folder.mkdir(parents=True, exist_ok=True)
    results = [one for one in results if not one.flat]
    return [
        _modes(results, folder / "growth-latency.svg"),
        _filters(results, folder / "growth-filters.svg"),
        _systems(results, folder / "growth-ingest.svg", "chunks stored a second", _at("fill", "rows_per_second")),
        _systems(results, folder / "growth-memory.svg", "memory, MB", _at("measure", "memory_mb", "one caller")),
        _systems(results, folder / "growth-disk.svg", "disk, MB", _at("measure", "disk_mb")),
        _systems(results, folder / "growth-insert.svg", "a new document, ms", _at("measure", "insert", "both_ms")),
    ]


def _modes(results: Sequence[Result], file: Path) -> Path:
    lines = {
        (f"recollect, {mode}", COLOURS["recollect"], DASHES[mode]): _points(results, "recollect", _p50(mode, "none"))
        for mode in MODES
    }
    for system in TITLES:
        mode = "dense" if system == "chroma" else "hybrid"
        if system != "recollect":
            name = TITLES[system] + ("" if system == "chroma" else ", hybrid")
            lines[name, COLOURS[system], DASHES[mode]] = _points(results, system, _p50(mode, "none"))
    return _chart(lines, file, "p50, ms")


def _filters(results: Sequence[Result], file: Path) -> Path:
    lines = {}
    for name, dash in zip(FILTERS, ("-", "--", "-.", ":"), strict=True):
        label = "no filter" if name == "none" else f"a filter that keeps {name}"
        lines[f"recollect, {label}", COLOURS["recollect"], dash] = _points(results, "recollect", _p50("hybrid", name))
    for system in ("llamaindex", "txtai", "haystack", "lancedb"):
        name = f"{TITLES[system]}, 1 %"
        lines[name, COLOURS[system], "-."] = _points(results, system, _p50("hybrid", "1 %"))
    return _chart(lines, file, "hybrid, p50, ms")


def _systems(results: Sequence[Result], file: Path, label: str, figure: Figure) -> Path:
    lines = {(TITLES[name], COLOURS[name], "-"): _points(results, name, figure) for name in TITLES}
    return _chart(lines, file, label)


def _points(results: Sequence[Result], system: str, figure: Figure) -> list[tuple[int, float]]:
    found = [(one.chunks, figure(one)) for one in results if one.system == system]
    return [(chunks, value) for chunks, value in found if value]


def _p50(mode: str, name: str) -> Figure:
    return lambda one: (one.cell(mode, name) or {}).get("p50_ms")


def _at(*keys: str) -> Figure:
    return lambda one: one.value(*keys)


def _chart(lines: dict, file: Path, label: str) -> Path:
    from matplotlib import pyplot, ticker

    figure, axes = pyplot.subplots()
    for (name, colour, dash), points in lines.items():
        if points:
            axes.plot(*zip(*points, strict=True), label=name, color=colour, linestyle=dash, marker="o", markersize=3.5)
    axes.set(xscale="log", yscale="log", xlabel="chunks", ylabel=label)
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_formatter(ticker.NullFormatter())
    axes.yaxis.set_major_formatter("{x:,.10g}")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.grid(which="major", color="#d0d7de", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=7.5, loc="upper left", bbox_to_anchor=(1.01, 1))
    figure.savefig(file, bbox_inches="tight", metadata={"Date": None})
    pyplot.close(figure)
    return file
