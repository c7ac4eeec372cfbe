"""Exact text and regular expressions, found in a text in time that grows with its length and nothing else.

The patterns are anybody's: a language model writes them, and a document may have told it what to write. RE2 runs them
as automata, without going back, in memory that is set beforehand, and without the interpreter's lock. What it costs
still grows with the size of the pattern, so that is bounded, and a text is looked at in windows between which the
caller may stop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from recollect.errors import UsageError
from recollect.forking import computes_properties

MAX_PATTERN_CHARACTERS = 1_000

# Instructions of the automaton.
_MAX_PROGRAM = 5_000
_MAX_MEMORY = 4 << 20

# Bytes that are looked at at a time: fewer where the pattern is large, because the slowest patterns take time in
# proportion to both, half a second for so many instructions times bytes.
WINDOW = 64 << 10
_LEAST_WINDOW = 8 << 10
_WINDOW_TIMES_PROGRAM = 16 << 20

# How far a window reaches back into the one before: as long as matches are that are found wherever they stand.
OVERLAP = 4 << 10


@computes_properties
@dataclass(frozen=True)
class ExactPattern:
    """What to look for.

    Attributes:
        pattern: Exact text, whose white space stands for any white space, because documents break lines; or RE2's
            syntax, in which ``^`` and ``$`` are the ends of lines.
        regex: Whether it is a regular expression.
        case_sensitive: Whether ``a`` is another letter than ``A``.
        whole_words: Only matches with no letter, digit or underscore on either side of them, of any script.

    Raises:
        UsageError: It is empty, too long or too large, or no regular expression.
    """

    pattern: str
    regex: bool = False
    case_sensitive: bool = False
    whole_words: bool = False

    def __post_init__(self) -> None:
        if not self.pattern.strip():
            raise UsageError("The pattern is empty: give the text to look for.")
        if len(self.pattern) > MAX_PATTERN_CHARACTERS:
            raise UsageError(
                f"The pattern has {len(self.pattern):,} characters, and may have {MAX_PATTERN_CHARACTERS:,}: look for "
                "a shorter piece of it."
            )
        _ = self._compiled

    def spans(self, text: bytes, start: int = 0) -> Iterator[tuple[int, int]]:
        """Where it matches a text in UTF-8, as bytes; after every window an empty span: what lies before is done.

        Matches up to `OVERLAP` bytes long are found wherever they stand; a longer one may be missed, or end where a
        window does.

        Args:
            text: Valid UTF-8.
            start: The first byte that a match may begin at.
        """
        position = start
        size = min(WINDOW, max(_LEAST_WINDOW, _WINDOW_TIMES_PROGRAM // self._compiled.programsize))
        while position < len(text):
            window = min(len(text), position + size)
            found = self._compiled.search(text, position, window)
            if found is None:
                if window == len(text):
                    return
                position = _character(text, max(window - OVERLAP, position + 1))
                yield position, position
                continue
            first, last = found.span()
            if last == window < len(text) and first > position:
                # Cut by the window's end: the next window begins with it.
                position = first
                yield position, position
                continue
            if first < last and not (self.whole_words and _within_word(text, first, last)):
                yield first, last
                position = last
            else:
                position = _character(text, first + 1)

    @cached_property
    def _compiled(self) -> Any:  # noqa: ANN401 - the library has no types
        import re2

        options = re2.Options()
        options.max_mem = _MAX_MEMORY
        options.log_errors = False
        options.never_capture = True
        options.case_sensitive = self.case_sensitive
        source = f"(?m){self.pattern}" if self.regex else r"[\s\pZ]+".join(map(re2.escape, self.pattern.split()))
        try:
            # As bytes, matches are told in bytes: nothing is translated to characters but what is shown.
            compiled = re2.compile(source.encode(), options)
        except re2.error as exc:
            raise UsageError(_wrong(exc)) from exc
        finally:
            # Its own cache keeps the last 128 patterns, each with its automata.
            re2.purge()
        if compiled.programsize > _MAX_PROGRAM:
            raise UsageError(
                "The pattern is too large: repeat less ({1000} of something long is as large as writing it a thousand "
                "times), or look for a piece of it."
            )
        return compiled


def _wrong(exc: Exception) -> str:
    told = exc.args[0] if exc.args else ""
    reason = told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)
    return (
        f"The pattern is no regular expression in RE2's syntax: {reason}. Look-around and back-references do not exist "
        "there; to look for the characters as they are, leave regex out."
    )


def _character(text: bytes, position: int) -> int:
    """Where the next character begins, at a position or behind it."""
    while position < len(text) and text[position] & 0xC0 == 0x80:
        position += 1
    return position


def _within_word(text: bytes, first: int, last: int) -> bool:
    before = text[max(0, first - 4) : first].decode("utf-8", "ignore")[-1:]
    after = text[last : last + 4].decode("utf-8", "ignore")[:1]
    return any(one == "_" or one.isalnum() for one in (before, after) if one)
