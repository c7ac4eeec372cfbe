"""The pages of a file that are pictures, recognised side by side in the processes that parse."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from recollect.documents.formats import UnreadableError
from recollect.documents.ocr.readings import PageReading
from recollect.documents.workers import INTERRUPTED, ParserWorkers
from recollect.model.scope import asking_tenant

#: Told how many pages of a file were recognised, and how many are to be.
PageCallback = Callable[[int, int], None]


def recognise_pages(
    workers: ParserWorkers,
    data: bytes,
    pages: Sequence[int],
    *,
    name: str,
    mime_type: str | None,
    cancelled: Callable[[], bool],
    on_page: PageCallback | None = None,
) -> tuple[dict[int, PageReading], list[str]]:
    """What is written on some pages, and why others could not be read; pages that the time did not suffice for first.

    Args:
        workers: Who recognises; each page is one process's.
        data: The whole file.
        pages: From 1.
        name: As for `recollect.documents.workers.ParserWorkers.parse`.
        mime_type: The same.
        cancelled: The same.
        on_page: Told before the first page and after each, in the thread of the caller; what it raises ends all.

    Raises:
        UnreadableError: It was cancelled. What was recognised until then is kept, where the workers keep it.
    """
    workers.tidy()
    stopped = threading.Event()
    owner, ends = str(asking_tenant()), time.monotonic() + workers.ocr_seconds

    def unwanted() -> bool:
        return stopped.is_set() or cancelled()

    def read(page: int) -> PageReading | str | None:
        if time.monotonic() >= ends:
            return None
        follows = page not in pages[-workers.at_once :]
        try:
            return workers.recognise(
                data, page, name=name, mime_type=mime_type, more_pages=follows, owner=owner, cancelled=unwanted
            )
        except UnreadableError as error:
            return str(error)

    outcomes: dict[int, PageReading | str | None] = {}
    tell = on_page or _say_nothing
    tell(0, len(pages))
    with ThreadPoolExecutor(min(workers.at_once, len(pages)), thread_name_prefix="pages") as pool:
        numbers = {pool.submit(read, page): page for page in pages}
        try:
            for done, future in enumerate(as_completed(numbers), 1):
                outcomes[numbers[future]] = future.result()
                tell(done, len(pages))
        except BaseException:
            stopped.set()
            raise
    if cancelled():
        raise UnreadableError(INTERRUPTED)
    failed = [one for one in outcomes.values() if isinstance(one, str)]
    late = sorted(page for page, one in outcomes.items() if one is None)
    if late:
        left = f"{', '.join(map(_span, _runs(late)))} were left when {workers.ocr_seconds:g} s were over"
        failed.insert(0, f"pages {left} (rag.documents.ocr_seconds)")
    return {page: one for page, one in outcomes.items() if isinstance(one, PageReading)}, failed


def _runs(pages: Sequence[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for page in pages:
        if runs and runs[-1][1] == page - 1:
            runs[-1] = (runs[-1][0], page)
        else:
            runs.append((page, page))
    return runs


def _span(run: tuple[int, int]) -> str:
    return str(run[0]) if run[0] == run[1] else f"{run[0]}-{run[1]}"


def _say_nothing(done: int, total: int) -> None:
    del done, total
