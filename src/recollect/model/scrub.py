"""What a scrub rewrote, what it looked for in the files, and what it could not do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from recollect.model.record import Public, Record, public


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubReport(Record):
    """What a scrub did, and what was proven by it.

    Attributes:
        relations: Tables, indexes and statistics whose files were replaced, by ones written from visible rows alone.
        kept: Relations and files that could not be replaced; empty where everything was.
        log_segments: Segments of the write-ahead log that were removed; None: the server is not recollect's own, so
            its log was left alone.
        proven: Whether the files were read afterwards: those of recollect's own server.
        files: How many were read.
        bytes: How much that was.
        strings: How many strings and hashes were looked for in the files.
        held: Strings that were not looked for, because rows of the store hold them.
        found: Files that still hold one of the strings, and how many of them.
        remains: What may still hold what was erased, and until when, in words.
    """

    relations: Public[int]
    kept: Public[tuple[str, ...]]
    log_segments: Public[int | None]
    proven: Public[bool]
    files: Public[int]
    bytes: Public[int]
    strings: Public[int]
    held: Public[int]
    found: Public[Mapping[str, int]] = field(default_factory=dict)
    remains: tuple[str, ...] = ()

    @property
    @public
    def complete(self) -> bool:
        """Whether everything was replaced, and none of the strings was found."""
        return not self.kept and not self.found
