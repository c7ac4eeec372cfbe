"""The curves of `growth.py`, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from growth_report import FILTERS, MODES, TITLES, Figure, Result, of_cell

COLOURS = dict(zip(TITLES, ("#1f6feb", "#1a7f37", "#d1242f", "#9a6700", "#8250df"), strict=True))
DASHES = ("-", "--", "-.", ":", (0, (1, 3)))


def draw(results: Sequence[Result], folder: Path) -> list[Path]:
    """One file a subject, over the number of chunks; both axes are logarithmic."""
    import matplotlib as mpl

    mpl.use("Agg")
    # The same picture from the same figures, byte for byte.
    mpl.rcParams.update({"svg.hashsalt": "growth", "svg.fonttype": "none", "font.size": 9, "figure.figsize": (6, 3.6)})
    folder.mkdir(parents=True, exist_ok=True)
    results = [one for one in results if not one.flat]
    ours = {f"recollect, {mode}": of_cell(mode, "none") for mode in MODES}
    below = {f"recollect, {name}": of_cell("hybrid", name) for name in FILTERS}
    return [
        _chart(results, ours, of_cell("hybrid", "none"), folder / "growth-latency.svg"),
        _chart(results, below, of_cell("hybrid", "1 %"), folder / "growth-filters.svg"),
    ]


def _chart(results: Sequence[Result], ours: dict[str, Figure], peers: Figure, file: Path) -> Path:
    """Lines of recollect's by their labels, and one line for each peer."""
    from matplotlib import pyplot, ticker

    lines = [(label, "recollect", figure, dash) for (label, figure), dash in zip(ours.items(), DASHES, strict=False)]
    lines += [(title, name, peers, "-") for name, title in TITLES.items() if name != "recollect"]
    figure, axes = pyplot.subplots()
    for label, name, found, dash in lines:
        points = [(one.chunks, value) for one in results if one.system == name and (value := found(one))]
        if points:
            style = {"color": COLOURS[name], "linestyle": dash, "marker": "o", "markersize": 3.5}
            axes.plot(*zip(*points, strict=True), label=label, **style)
    axes.set(xscale="log", yscale="log", xlabel="chunks", ylabel=f"{file.stem.partition('-')[2]}: p50, ms")
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
