"""Where an answer ends that a request limits: at words to stop at, and at a number of tokens."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from recollect.model import Answer, SearchReply

if TYPE_CHECKING:
    from recollect.pipeline.answering import AskEvent


class Cut:
    """Ends one answer.

    Args:
        stop: It ends before the first of these.
        max_tokens: It has so many tokens at most; None: any number.
        count: Counts them.

    Attributes:
        reason: Why it ended: ``length`` where tokens ran out.
    """

    def __init__(self, *, stop: Sequence[str], max_tokens: int | None, count: Callable[[str], int]) -> None:
        self._stop = tuple(stop)
        self._max_tokens = max_tokens
        self._count = count
        self.reason: Literal["stop", "length"] = "stop"

    def applied(self, events: Iterator[AskEvent]) -> Iterator[AskEvent]:
        """The events of an answer, up to its end; what may begin a stop is held back until that is known."""
        if not self._stop and self._max_tokens is None:
            yield from events
            return
        heard = shown = ""
        for event in events:
            if isinstance(event, Answer):
                text = self._end(event.text)
                if text[len(shown) :]:
                    yield text[len(shown) :]
                yield _shortened(event, text)
            elif isinstance(event, str):
                heard += event
                text = self._end(heard)
                text = text if len(text) < len(heard) else heard[: len(heard) - self._held(heard)]
                if text[len(shown) :]:
                    yield text[len(shown) :]
                    shown = text
            elif isinstance(event, SearchReply) or len(shown) == len(heard):
                yield event

    def _end(self, text: str) -> str:
        text = text[: min((at for at in (text.find(one) for one in self._stop) if at >= 0), default=len(text))]
        if self._max_tokens is not None and self._count(text) > self._max_tokens:
            self.reason = "length"
            lengths = range(len(text) + 1)
            text = text[: bisect_right(lengths, self._max_tokens, key=lambda length: self._count(text[:length])) - 1]
        return text

    def _held(self, text: str) -> int:
        beginnings = (length for one in self._stop for length in range(1, len(one)) if text.endswith(one[:length]))
        return max(beginnings, default=0)


def _shortened(answer: Answer, text: str) -> Answer:
    """An answer of which only the beginning is sent, with what belongs to that."""
    if text == answer.text:
        return answer
    return replace(
        answer,
        text=text,
        citations=tuple(one for one in answer.citations if f"[{one.marker}]" in text),
        unsupported=tuple(
            one for one in answer.unsupported if one.end_offset is not None and one.end_offset <= len(text)
        ),
    )
