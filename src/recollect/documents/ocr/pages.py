"""The pages of a file that are pictures, recognised side by side in the processes that parse."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING

from recollect.documents.formats import UnreadableError
from recollect.documents.workers import INTERRUPTED

if TYPE_CHECKING:
    from recollect.documents.ocr.readings import PageReading
    from recollect.documents.workers import ParserWorkers

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
    """What is written on some pages, and why others could not be read.

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

    def unwanted() -> bool:
        return stopped.is_set() or cancelled()

    def read(page: int) -> PageReading | str:
        follows = page not in pages[-workers.at_once :]
        try:
            return workers.recognise(data, page, name=name, mime_type=mime_type, more_pages=follows, cancelled=unwanted)
        except UnreadableError as error:
            return str(error)

    found: dict[int, PageReading] = {}
    failed: list[str] = []
    tell = on_page or _say_nothing
    tell(0, len(pages))
    with ThreadPoolExecutor(min(workers.at_once, len(pages)), thread_name_prefix="pages") as pool:
        numbers = {pool.submit(read, page): page for page in pages}
        try:
            for done, future in enumerate(as_completed(numbers), 1):
                if isinstance(result := future.result(), str):
                    failed.append(result)
                else:
                    found[numbers[future]] = result
                tell(done, len(pages))
        except BaseException:
            stopped.set()
            raise
    if cancelled():
        raise UnreadableError(INTERRUPTED)
    return found, failed


def _say_nothing(done: int, total: int) -> None:
    del done, total
