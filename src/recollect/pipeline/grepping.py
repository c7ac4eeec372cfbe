"""An exact search through texts, within its bounds of matches, time and bytes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from recollect.errors import NotFoundError
from recollect.model.contents import DocumentOutline, ExactMatch, GrepReply, MatchedDocument, Stop
from recollect.model.outline import page_at, section_path

if TYPE_CHECKING:
    from recollect.retrieval.grep import ExactPattern
    from recollect.store.contents import DocumentText, TextSize

# Bytes of text that are read at a time: what is held in memory, as far as the longest document is not longer.
_BATCH_BYTES = 4 << 20

# Characters of its line that are shown on either side of a match, and of a match itself.
_AROUND = 80
_MOST_SHOWN = 400


class _EnoughError(Exception):
    """The search ends here."""

    def __init__(self, stop: Stop, document_id: int, offset: int) -> None:
        self.stop: Stop = stop
        self.document_id = document_id
        self.offset = offset


@dataclass
class Grep:
    """One exact search.

    Attributes:
        pattern: What is looked for.
        limit: Matches at most.
        limit_per_document: Matches of one document at most.
        seconds: How long it looks.
        max_bytes: How much it looks at.
    """

    pattern: ExactPattern
    limit: int
    limit_per_document: int
    seconds: float
    max_bytes: int
    _found: list[MatchedDocument] = field(default_factory=list)
    _searched: int = 0
    _bytes: int = 0

    def run(
        self,
        sizes: Iterable[TextSize],
        *,
        texts: Callable[[Sequence[int]], list[DocumentText]],
        outline: Callable[[int], DocumentOutline],
        begin: tuple[int, int],
    ) -> GrepReply:
        """Look through documents.

        Args:
            sizes: Of their texts, by their ids.
            texts: Reads some of them.
            outline: Reads the headings and pages of one.
            begin: In this document only from this character on.
        """
        deadline = time.monotonic() + self.seconds
        ended: _EnoughError | None = None
        try:
            for batch in self._batches(sizes):
                for text in texts([one.version_id for one in batch]):
                    self._look(text, begin[1] if text.document_id == begin[0] else 0, deadline)
        except _EnoughError as exc:
            ended = exc
        return GrepReply(
            documents=tuple(_placed(one, outline) for one in self._found),
            stopped=ended.stop if ended else None,
            next_document=ended.document_id if ended else None,
            next_offset=ended.offset if ended else None,
            documents_searched=self._searched,
            bytes_searched=self._bytes,
        )

    def _batches(self, sizes: Iterable[TextSize]) -> Iterator[list[TextSize]]:
        batch: list[TextSize] = []
        planned = 0
        for size in sizes:
            if planned and planned + size.byte_count > self.max_bytes:
                if batch:
                    yield batch
                raise _EnoughError("bytes", size.document_id, 0)
            if batch and sum(one.byte_count for one in batch) + size.byte_count > _BATCH_BYTES:
                yield batch
                batch = []
            batch.append(size)
            planned += size.byte_count
        if batch:
            yield batch

    def _look(self, text: DocumentText, from_offset: int, deadline: float) -> None:
        content = text.content
        data = content.encode()
        self._searched += 1
        self._bytes += len(data)
        matches: list[ExactMatch] = []
        shown = sum(len(one.matches) for one in self._found)
        characters = _Characters(data, start=len(content[:from_offset].encode()), offset=min(from_offset, len(content)))
        next_offset: int | None = None
        stopped: _EnoughError | None = None
        for first, last in self.pattern.spans(data, characters.position):
            start = characters.at(first)
            if first == last:
                if time.monotonic() > deadline:
                    stopped = _EnoughError("time", text.document_id, start)
                    break
            elif shown + len(matches) >= self.limit:
                stopped = _EnoughError("matches", text.document_id, start)
                break
            elif len(matches) >= self.limit_per_document:
                next_offset = start
                break
            else:
                end = start + len(data[first:last].decode())
                matches.append(ExactMatch(start_offset=start, end_offset=end, excerpt=_excerpt(content, start, end)))
        if matches:
            self._found.append(
                MatchedDocument(
                    document_id=text.document_id,
                    source=text.source,
                    title=text.title,
                    collection=text.collection,
                    version_id=text.version_id,
                    matches=tuple(matches),
                    next_offset=next_offset,
                )
            )
        if stopped is None and time.monotonic() > deadline:
            stopped = _EnoughError("time", text.document_id + 1, 0)
        if stopped is not None:
            raise stopped


@dataclass
class _Characters:
    """Turns ascending positions in bytes into characters, each byte read once."""

    data: bytes
    start: int
    offset: int

    @property
    def position(self) -> int:
        return self.start

    def at(self, position: int) -> int:
        self.offset += len(self.data[self.start : position].decode())
        self.start = position
        return self.offset


def _excerpt(content: str, start: int, end: int) -> str:
    """The line around a match, as far as it is near."""
    shown = min(end, start + _MOST_SHOWN)
    line = content.rfind("\n", max(0, start - _AROUND), start) + 1
    first = line or max(0, start - _AROUND)
    newline = content.find("\n", shown, shown + _AROUND)
    last = newline if newline >= 0 else min(len(content), shown + _AROUND)
    return content[first:last].strip()


def _placed(found: MatchedDocument, outline: Callable[[int], DocumentOutline]) -> MatchedDocument:
    """With the sections and pages of its matches, unless it is gone, or another version, by now."""
    try:
        where = outline(found.document_id)
    except NotFoundError:
        return found
    if where.version_id != found.version_id:
        return found
    return replace(
        found,
        matches=tuple(
            replace(
                one,
                section=" > ".join(section_path(where.headings, one.start_offset)) or None,
                page=page_at(where.pages, one.start_offset),
            )
            for one in found.matches
        ),
    )
