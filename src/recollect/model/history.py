"""Versions of documents, how evidence changed, and what erasures and scrubs did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from recollect.model.passage import RetrievedContext
from recollect.model.record import Public, PublicIfKnown, Record, public, public_as


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRecord(Record):
    """One version of a document.

    Attributes:
        version: From 1.
        known_from: When it became known.
        known_to: When it was replaced, deleted or expired; None: it is current.
        expires_at: When it expires or was to expire; None: never.
        event_time: When it happened, or began to.
        event_end: When that ended; None: it was an instant, or is not known.
        character_count: Of its content.
        content_hash: SHA-256 of its content, in hexadecimal digits.
    """

    version: Public[int]
    version_id: int = 0
    title: Public[str]
    known_from: Public[datetime]
    known_to: Public[datetime | None]
    expires_at: Public[datetime | None]
    event_time: Public[datetime | None]
    event_end: Public[datetime | None]
    chunk_count: Public[int]
    character_count: Public[int]
    content_hash: Public[str]
    department: Public[str | None]
    tags: Public[tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentHistory(Record):
    """A document and all of its versions.

    Attributes:
        department: Of the last version.
        versions: Oldest first.
        id: The id that it was given (`Document.id`); None: its source identifies it.
    """

    document_id: Public[int]
    source: Public[str]
    collection: Public[str]
    department: Public[str | None]
    versions: Public[tuple[VersionRecord, ...]]
    id: PublicIfKnown[str | None] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionDiff(Record):
    """How the text of a document changed from one version to another.

    Attributes:
        lines: The unified diff, line by line without line ends; empty where the texts are equal.
        added: Lines that came.
        removed: Lines that went.
    """

    document_id: Public[int]
    source: Public[str]
    department: Public[str | None]
    from_version: Public[int]
    to_version: Public[int]
    lines: Annotated[tuple[str, ...], public_as("diff")]
    added: Public[int]
    removed: Public[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedEvidence(Record):
    """A passage that is among the evidence of one moment only.

    Attributes:
        passage: As it was found.
        outranked: Its version was known at the other moment as well, but others were better; otherwise it was not.
    """

    passage: Public[RetrievedContext]
    outranked: Public[bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceDiff(Record):
    """How the evidence for a question changed between two moments.

    Attributes:
        question: As asked.
        from_time: The earlier moment, usually.
        to_time: The other one.
        came: Found at ``to_time`` only, best first.
        went: Found at ``from_time`` only, best first.
        stayed: Found at both in the same words, as found at ``to_time``.
        changed: (before, after): of one document, in other words.
    """

    question: Public[str]
    collection: Public[str]
    from_time: Annotated[datetime, public_as("from")]
    to_time: Annotated[datetime, public_as("to")]
    came: Public[tuple[MovedEvidence, ...]]
    went: Public[tuple[MovedEvidence, ...]]
    stayed: Public[tuple[RetrievedContext, ...]]
    changed: Public[tuple[tuple[RetrievedContext, RetrievedContext], ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedDocument(Record):
    """What a receipt says of one document: nothing of its content, and not its name.

    Attributes:
        version_count: How many versions it had.
        hashes: One a version: SHA-256 of the receipt's salt followed by the SHA-256 of the content. Whoever holds the
            content can prove with it that the receipt means it; whoever holds the receipt learns nothing.
    """

    document_id: Public[int]
    version_count: Annotated[int, public_as("versions")]
    hashes: Public[tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureProbe(Record):
    """What was looked for after an erasure, in every text and every hash of the tenant in the database.

    Attributes:
        phrases: How many phrases that stood in the erased documents alone.
        hashes: How many hashes of contents, files and chunks that the erased documents alone had.
        places: In how many columns of tables was looked.
        found: Rows that hold one of them, by ``table.column``; empty for a complete erasure.
        names: How many titles, paths, tags, headings, metadata values and quotes of fewer than seven words were looked
            for as well.
        mentions: Rows that hold one of those, by ``table.column``: anybody may have said the same, so they stay.
    """

    phrases: Public[int]
    hashes: Public[int]
    places: Public[int]
    found: Public[Mapping[str, int]] = field(default_factory=dict)
    names: Public[int] = 0
    mentions: Public[Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureReceipt(Record):
    """The receipt of an erasure; the audit keeps the same.

    Attributes:
        receipt_id: Of the audit's record.
        erased_by: Who asked for it, as told.
        reason: Why, as told.
        documents: Each of them.
        salt: Of the hashes, in hexadecimal digits.
        counts: Rows removed, by kind.
        copies: Ids of other documents that hold, or held in an older version, the same content: they are not erased.
        remains: What is left outside the tables, and until when, in words.
        scrub: What was rewritten and proven of the database's files; None: nothing.
    """

    receipt_id: Public[int]
    tenant_id: Public[int]
    erased_at: Public[datetime]
    erased_by: Public[str]
    reason: Public[str | None]
    documents: Public[tuple[ErasedDocument, ...]]
    salt: Public[str]
    counts: Public[Mapping[str, int]]
    copies: Public[tuple[int, ...]]
    probe: Public[ErasureProbe]
    remains: Public[tuple[str, ...]]
    scrub: Public[ScrubReport | None] = None

    @property
    @public
    def erased(self) -> int:
        """How many documents."""
        return self.counts["documents"]

    @property
    @public
    def complete(self) -> bool:
        """Whether the probe found nothing, and a scrub left nothing either."""
        return not self.probe.found and (self.scrub is None or self.scrub.complete)


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupReport(Record):
    """What a clean-up did.

    Attributes:
        expired: Documents that were closed because their time was over.
        partitions_dropped: Names of the audit's partitions that were past their retention.
        sessions_ended: Sessions with documents that were removed because their time was over.
    """

    expired: Public[int]
    partitions_dropped: Public[tuple[str, ...]]
    sessions_ended: Public[int] = 0


# What a scrub rewrote, what it looked for in the files, and what it could not do.


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
