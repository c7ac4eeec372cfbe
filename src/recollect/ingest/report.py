"""What an ingest did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from recollect.errors import RecollectError
from recollect.model import IngestResult
from recollect.model.record import Public, PublicIfAny, Record

#: Why an import leaves lines aside.
EXPIRED = "expired"

# Files left aside that a report names; their number is counted whatever it is.
_NAMED = 100


@dataclass(frozen=True, slots=True)
class FileError(Record):
    """A file that could not be ingested, and why."""

    path: Public[str]
    error: Public[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestReport(Record):
    """What an ingest of files did.

    Attributes:
        added: Documents that were not current before.
        updated: Documents that have a new version.
        unchanged: Documents whose bytes and settings are those of their current version.
        removed: Documents closed because their file has disappeared (``sync``).
        failed: Files that could not be ingested; ``errors`` says why. A refresh over a server names the first hundred.
        skipped: Files left aside: hidden, too large, of no known type, generated.
        skip_reasons: ``skipped`` by reason.
        too_large: Those that are larger than the limit, with their sizes: the first hundred.
        closed: Pages that were closed, and why: the first hundred.
        without_text: Files of which pages hold no text that was read, and how many, and pictures that cannot be read
            here, and why: the first hundred.
        chunks: Chunks written.
        seconds: From start to end.
    """

    added: Public[int]
    updated: Public[int]
    unchanged: Public[int]
    removed: Public[int]
    failed: Public[int]
    skipped: Public[int]
    skip_reasons: PublicIfAny[dict[str, int]] = field(default_factory=dict)
    too_large: PublicIfAny[tuple[FileError, ...]] = ()
    closed: PublicIfAny[tuple[FileError, ...]] = ()
    without_text: PublicIfAny[tuple[FileError, ...]] = ()
    chunks: Public[int]
    seconds: Public[float]
    errors: Public[tuple[FileError, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadReport:
    """What became of everything that is read from outside.

    Attributes:
        read: The sources and watched folders that were read, by name, sorted.
        skipped: Those that were not there to be read, and why; their documents stay.
        files: What was done, all of them together.
    """

    read: tuple[str, ...]
    skipped: tuple[FileError, ...]
    files: IngestReport


def total(reports: Sequence[IngestReport], *, skipped: Mapping[str, int] | None = None) -> IngestReport:
    """Several reports as one.

    Args:
        reports: In the order in which they were made.
        skipped: By reason, how many other files were left aside.
    """
    reasons = dict(skipped or {})
    for report in reports:
        for reason, count in report.skip_reasons.items():
            reasons[reason] = reasons.get(reason, 0) + count

    def joined(name: str) -> tuple[FileError, ...]:
        return tuple(one for report in reports for one in getattr(report, name))

    counts = ("added", "updated", "unchanged", "removed", "failed", "chunks", "seconds")
    return IngestReport(
        **{name: sum(getattr(report, name) for report in reports) for name in counts},
        skipped=sum(reasons.values()),
        skip_reasons=reasons,
        errors=joined("errors"),
        closed=joined("closed")[:_NAMED],
        too_large=joined("too_large")[:_NAMED],
        without_text=joined("without_text")[:_NAMED],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestProgress:
    """How far an ingest of files has come.

    Attributes:
        done: Files that need nothing more; while a file's pages are recognised, those of all such files that were.
        total: Files found so far; of more than 20,000, the rest are found while these are read. Or pages.
        chunks: Chunks embedded so far.
        stage: ``files``, between them ``recognising`` where pages are pictures, then ``statistics`` or ``index`` where
            one is being made at the end.
    """

    done: int
    total: int
    chunks: int
    stage: Literal["files", "recognising", "statistics", "index"] = "files"


ProgressCallback = Callable[[IngestProgress], None]


@dataclass(slots=True)
class Tally:
    """Counts while an ingest runs; its report at the end."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    chunks: int = 0
    skip_reasons: dict[str, int] = field(default_factory=dict)
    errors: list[FileError] = field(default_factory=list)
    too_large: list[FileError] = field(default_factory=list)
    closed: list[FileError] = field(default_factory=list)
    without_text: list[FileError] = field(default_factory=list)

    def fail(self, path: str, error: str) -> None:
        """Count a failure."""
        self.errors.append(FileError(path, error))

    def count(self, results: Iterable[IngestResult]) -> None:
        """Count what became of stored documents."""
        for result in results:
            if result.status == "unchanged":
                self.unchanged += 1
                continue
            self.chunks += result.chunk_count
            if result.status == "added":
                self.added += 1
            else:
                self.updated += 1

    def count_each(self, paths: Iterable[str], outcomes: Iterable[IngestResult | RecollectError]) -> None:
        """Count what became of documents that were to be stored; the paths are for those that failed."""
        for path, outcome in zip(paths, outcomes, strict=True):
            if isinstance(outcome, RecollectError):
                self.fail(path, str(outcome))
            else:
                self.count([outcome])

    def close(self, path: str, why: str) -> None:
        """Count a document that was closed."""
        self.removed += 1
        if len(self.closed) < _NAMED:
            self.closed.append(FileError(path, why))

    def look_at(self, path: str, metadata: Mapping[str, object]) -> None:
        """Note of a document that was stored which of its pages hold no text."""
        # Here: a client counts too, and loads no parser for that.
        from recollect.documents.ocr.readings import pages_without_text

        told = pages_without_text(metadata)
        if told is not None and len(self.without_text) < _NAMED:
            self.without_text.append(FileError(path, told))

    def skip(self, reason: str, path: str, why: str) -> None:
        """Count a file that is left aside."""
        # Here: a client counts too, and loads no parser for that.
        from recollect.documents.formats import is_picture_name, picture_extra

        if reason == "too_large" and len(self.too_large) < _NAMED:
            self.too_large.append(FileError(path, why))
        if reason == "unsupported" and is_picture_name(path) and len(self.without_text) < _NAMED:
            told = f"is a picture: {picture_extra(path)} reads the text in it"
            self.without_text.append(FileError(path, told))
        self.skip_reasons[reason] = self.skip_reasons.get(reason, 0) + 1

    def report(self, seconds: float) -> IngestReport:
        """The counts, frozen."""
        return IngestReport(
            added=self.added,
            updated=self.updated,
            unchanged=self.unchanged,
            removed=self.removed,
            failed=len(self.errors),
            skipped=sum(self.skip_reasons.values()),
            skip_reasons=dict(self.skip_reasons),
            too_large=tuple(self.too_large),
            closed=tuple(self.closed),
            without_text=tuple(self.without_text),
            chunks=self.chunks,
            seconds=round(seconds, 3),
            errors=tuple(self.errors),
        )
