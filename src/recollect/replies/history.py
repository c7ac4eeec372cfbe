"""What became of documents, and of the evidence for a question, over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NotRequired

from typing_extensions import TypedDict

from recollect.replies._shape import Shape, Timestamp, iso
from recollect.replies.passages import PassagePlaceJson, passage_place_json

if TYPE_CHECKING:
    from recollect.model import IngestResult, RetrievedContext
    from recollect.model.history import DocumentHistory, EvidenceDiff, MovedEvidence, VersionDiff, VersionRecord


class VersionJson(Shape):
    """One version of a document."""

    version: int
    """From 1."""
    title: str
    department: str | None
    chunk_count: int
    character_count: int
    """Of its content."""
    content_hash: str
    """SHA-256 of its content, in hexadecimal digits."""
    known_from: Timestamp
    """When it became known."""
    known_to: Timestamp | None
    """When it was replaced, deleted or expired; null: it is current."""
    expires_at: Timestamp | None
    """When it expires or was to expire; null: never."""
    event_time: Timestamp | None
    """When it happened, or began to."""
    event_end: Timestamp | None
    """When that ended; null: it was an instant, or is not known."""
    tags: list[str]


class DocumentHistoryJson(Shape):
    """A document and all of its versions."""

    document_id: int
    source: str
    collection: str
    department: str | None
    """Of the last version."""
    versions: list[VersionJson]
    """Oldest first."""
    id: NotRequired[str]
    """That the document was given; left out: its source identifies it."""


class VersionDiffJson(Shape):
    """How the text of a document changed from one version to another."""

    document_id: int
    source: str
    department: str | None
    from_version: int
    to_version: int
    added: int
    """Lines that came."""
    removed: int
    """Lines that went."""
    diff: list[str]
    """The unified diff, line by line; empty where the texts are equal."""


class EvidenceJson(PassagePlaceJson):
    """A passage that was found at a moment."""

    rank: int
    """From 1."""
    score: float
    """What the results are ordered by, best first; comparable within one search only."""
    relevance: float | None
    """How likely it answers the question, 0 to 1."""
    content: str
    chunk_id: int
    version_id: int | None
    """The version of the document that it was cut from."""


class MovedEvidenceJson(EvidenceJson):
    """A passage that is among the evidence of one moment only."""

    outranked: bool
    """Whether its version was known at the other moment as well, but others were better."""


class ChangedEvidenceJson(Shape):
    """Passages of one document, in other words."""

    before: EvidenceJson
    after: EvidenceJson


# "from" cannot be written as an attribute.
_Moments = TypedDict("_Moments", {"from": Timestamp, "to": Timestamp})


class EvidenceDiffJson(Shape, _Moments):
    """How the evidence for a question changed from one moment to another."""

    question: str
    """As asked."""
    collection: str
    """The collection searched."""
    came: list[MovedEvidenceJson]
    """Found at `to` only, best first."""
    went: list[MovedEvidenceJson]
    """Found at `from` only, best first."""
    changed: list[ChangedEvidenceJson]
    """Found at both, in other words."""
    stayed: list[EvidenceJson]
    """Found at both in the same words, as found at `to`."""


class RestoredVersionJson(Shape):
    """An old version of a document, made the newest one."""

    document_id: int
    department: str | None
    version: int
    """The one that is current now."""
    status: Literal["added", "updated", "unchanged"]
    """`unchanged` where it was the current one already."""


class LifetimeJson(Shape):
    """How long a document is found."""

    document_id: int
    department: str | None
    expires_at: Timestamp | None
    """When it expires; null: never."""


def lifetime_json(document_id: int, history: DocumentHistory) -> LifetimeJson:
    """How long a document is found.

    Args:
        document_id: Which.
        history: Its own.
    """
    return {
        "document_id": document_id,
        "department": history.department,
        "expires_at": iso(history.versions[-1].expires_at),
    }


def document_history_json(history: DocumentHistory) -> DocumentHistoryJson:
    """A document and all of its versions."""
    shown: DocumentHistoryJson = {
        "document_id": history.document_id,
        "source": history.source,
        "collection": history.collection,
        "department": history.department,
        "versions": [version_json(version) for version in history.versions],
    }
    if history.id is not None:
        shown["id"] = history.id
    return shown


def version_json(version: VersionRecord) -> VersionJson:
    """One version of a document."""
    return {
        "version": version.version,
        "title": version.title,
        "department": version.department,
        "chunk_count": version.chunk_count,
        "character_count": version.character_count,
        "content_hash": version.content_hash,
        "known_from": iso(version.known_from),
        "known_to": iso(version.known_to),
        "expires_at": iso(version.expires_at),
        "event_time": iso(version.event_time),
        "event_end": iso(version.event_end),
        "tags": list(version.tags),
    }


def version_diff_json(diff: VersionDiff) -> VersionDiffJson:
    """How the text of a document changed."""
    return {
        "document_id": diff.document_id,
        "source": diff.source,
        "department": diff.department,
        "from_version": diff.from_version,
        "to_version": diff.to_version,
        "added": diff.added,
        "removed": diff.removed,
        "diff": list(diff.lines),
    }


def restored_version_json(written: IngestResult, *, department: str | None) -> RestoredVersionJson:
    """An old version of a document, made the newest one.

    Args:
        written: What became of it.
        department: The document's.
    """
    return {
        "document_id": written.document_id,
        "department": department,
        "version": written.version,
        "status": written.status,
    }


def evidence_diff_json(diff: EvidenceDiff) -> EvidenceDiffJson:
    """How the evidence for a question changed."""
    return {
        "question": diff.question,
        "collection": diff.collection,
        "from": iso(diff.from_time),
        "to": iso(diff.to_time),
        "came": _moved(diff.came),
        "went": _moved(diff.went),
        "changed": [{"before": _evidence(old), "after": _evidence(new)} for old, new in diff.changed],
        "stayed": [_evidence(one) for one in diff.stayed],
    }


def _moved(found: Sequence[MovedEvidence]) -> list[MovedEvidenceJson]:
    return [{**_evidence(one.passage), "outranked": one.outranked} for one in found]


def _evidence(passage: RetrievedContext) -> EvidenceJson:
    return {
        "rank": passage.rank,
        "score": passage.score,
        "relevance": passage.relevance,
        "content": passage.content,
        "chunk_id": passage.chunk_id,
        "version_id": passage.version_id,
        **passage_place_json(passage),
    }
