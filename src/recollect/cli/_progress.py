"""Progress on standard error: bars on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from recollect.ingest.report import IngestProgress

# Seconds between two lines where there is no terminal to draw a bar on.
_LINE_EVERY = 10.0


class DownloadBar:
    """Shows how the download of a model advances; nothing is shown where nothing is downloaded.

    Args:
        console: Gives the console, when it is needed.
    """

    def __init__(self, console: Callable[[], Console]) -> None:
        self._console = console
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __call__(self, done: int, total: int | None) -> None:
        """Take the bytes so far, and all of them where that is known."""
        if self._progress is None or self._task is None:
            self._progress, self._task = self._start(total)
        self._progress.update(self._task, completed=done, total=total)

    def _start(self, total: int | None) -> tuple[Progress, TaskID]:
        from rich import progress

        console = self._console()
        if not console.is_terminal:
            size = f" ({total / 1e6:.0f} MB)" if total else ""
            console.print(f"Fetching the embedding model, once{size} …")
        bar = progress.Progress(
            progress.TextColumn("Fetching the embedding model, once"),
            progress.BarColumn(bar_width=24),
            progress.DownloadColumn(),
            progress.TransferSpeedColumn(),
            progress.TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        bar.start()
        return bar, bar.add_task("", total=total)

    def close(self) -> None:
        """Take the bar away."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = self._task = None

    def __enter__(self) -> DownloadBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class WorkBar:
    """Shows how long work advances: how much is done, how fast, and how long the rest will take.

    Args:
        console: Where to show it.
        title: What is being done.
        unit: What is counted, in the plural.
    """

    def __init__(self, console: Console, title: str, *, unit: str) -> None:
        from rich import progress

        self._console = console
        self._title = title
        self._unit = unit
        self._started: float | None = None
        self._said = 0.0
        self._chunks = 0
        self._pages: TaskID | None = None
        self._pages_said = 0.0
        self._progress = progress.Progress(
            progress.SpinnerColumn(),
            progress.TextColumn("{task.description}"),
            progress.BarColumn(bar_width=24),
            progress.TextColumn("{task.fields[count]}"),
            progress.TextColumn("{task.fields[rate]}"),
            progress.TimeRemainingColumn(compact=True),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task(title, total=None, start=True, visible=False, rate="", count="")

    def ingest(self, state: IngestProgress) -> None:
        """Take the state of an ingest."""
        stages = {"statistics": "Counting words", "index": "Building the vector index"}
        if state.stage in stages:
            self._progress.update(self._task, description=stages[state.stage], visible=True)
            if state.stage == "index" and not self._console.is_terminal:
                self._console.print("Building the vector index …")
            return
        if state.stage == "recognising":
            self._recognise(state.done, state.total)
            return
        self._chunks = state.chunks
        self.update(state.done, state.total)

    def _recognise(self, done: int, total: int) -> None:
        """Pages that are pictures: a bar of their own, since each takes as long as many files."""
        if self._pages is None:
            self._pages = self._progress.add_task("Recognising text", total=total, count="", rate="")
            self._pages_said = time.monotonic()
        self._progress.update(self._pages, completed=done, total=total, count=f"{done:,}/{total:,} pages")
        if not self._console.is_terminal and time.monotonic() - self._pages_said >= _LINE_EVERY:
            self._pages_said = time.monotonic()
            self._console.print(f"Recognising text: {done:,}/{total:,} pages", soft_wrap=True)

    def update(self, done: int, total: int | None) -> None:
        """Take how many are done, of how many (None: nobody knows)."""
        if self._started is None:
            self._started = self._said = time.monotonic()
        seconds = max(time.monotonic() - self._started, 1e-3)
        count = f"{done:,}{'' if total is None else f'/{total:,}'} {self._unit}"
        rate = f"{self._chunks / seconds:,.0f} chunks/s" if self._chunks else f"{done / seconds:,.1f}/s"
        self._progress.update(self._task, completed=done, total=total, rate=rate, count=count, visible=True)
        if not self._console.is_terminal and time.monotonic() - self._said >= _LINE_EVERY:
            self._said = time.monotonic()
            self._console.print(f"{self._title}: {count}, {rate}", soft_wrap=True)

    def hide(self) -> None:
        """Take the bar away until there is progress again; the next work is measured by itself."""
        self._started = None
        self._chunks = 0
        self._progress.update(self._task, visible=False)

    def __enter__(self) -> WorkBar:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()
