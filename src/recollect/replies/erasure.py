"""Receipts of what was removed for good."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.replies._shape import Shape, Timestamp, iso

if TYPE_CHECKING:
    from recollect.model.history import ErasureReceipt
    from recollect.model.scrub import ScrubReport


class ErasedDocumentJson(Shape):
    """What a receipt says of one document: nothing of its content, and not its name."""

    document_id: int
    versions: int
    """How many it had."""
    hashes: list[str]
    """One a version: SHA-256 of the receipt's salt followed by the SHA-256 of the content, in hexadecimal digits."""


class ErasureProbeJson(Shape):
    """What was looked for after an erasure, in every text and every hash of the tenant."""

    phrases: int
    """Phrases that stood in the erased documents alone."""
    hashes: int
    """Hashes of contents, files and chunks that the erased documents alone had."""
    places: int
    """Columns of tables that were looked through."""
    found: dict[str, int]
    """Rows that hold one of them, by `table.column`; empty for a complete erasure."""
    names: int
    """Titles, paths, tags, headings, metadata values and short quotes that were looked for as well."""
    mentions: dict[str, int]
    """Rows that hold one of those, by `table.column`: anybody may have said the same, so they stay."""


class ScrubJson(Shape):
    """What was rewritten of the database's files, and proven."""

    relations: int
    """Tables, indexes and statistics whose files were written anew."""
    log_segments: int | None
    """Segments of the write-ahead log that were removed; null: the server is not recollect's own."""
    proven: bool
    """Whether the files were read afterwards."""
    files: int
    """How many were read."""
    bytes: int
    """How much that was."""
    strings: int
    """Strings and hashes that were looked for in them."""
    held: int
    """Strings that were not looked for, because rows of the store hold them."""
    kept: list[str]
    """Relations and files that could not be written anew."""
    found: dict[str, int]
    """Files that still hold one of the strings, and how many of them."""
    complete: bool
    """Whether everything was written anew, and none of the strings was found."""


class ErasureReceiptJson(Shape):
    """The receipt of an erasure of documents; the audit keeps the same."""

    receipt_id: int
    """Of the audit's record."""
    tenant_id: int
    erased_by: str
    """Who asked for it."""
    reason: str | None
    salt: str
    """Of the hashes, in hexadecimal digits."""
    erased: int
    """How many documents."""
    erased_at: Timestamp
    documents: list[ErasedDocumentJson]
    counts: dict[str, int]
    """Rows removed, by kind."""
    copies: list[int]
    """Other documents that hold, or held in an older version, the same content: they are not erased."""
    complete: bool
    """Whether nothing was found afterwards."""
    probe: ErasureProbeJson
    scrub: ScrubJson | None
    """Null: the database's files were not written anew."""
    remains: list[str]
    """What is left outside the tables, and until when, in words."""


def erasure_receipt_json(receipt: ErasureReceipt) -> ErasureReceiptJson:
    """The receipt of an erasure of documents."""
    probe = receipt.probe
    return {
        "receipt_id": receipt.receipt_id,
        "tenant_id": receipt.tenant_id,
        "erased_by": receipt.erased_by,
        "reason": receipt.reason,
        "salt": receipt.salt,
        "erased": receipt.counts["documents"],
        "erased_at": iso(receipt.erased_at),
        "documents": [
            {"document_id": one.document_id, "versions": one.version_count, "hashes": list(one.hashes)}
            for one in receipt.documents
        ],
        "counts": dict(receipt.counts),
        "copies": list(receipt.copies),
        "complete": receipt.complete,
        "probe": {
            "phrases": probe.phrases,
            "hashes": probe.hashes,
            "places": probe.places,
            "found": dict(probe.found),
            "names": probe.names,
            "mentions": dict(probe.mentions),
        },
        "scrub": None if receipt.scrub is None else scrub_json(receipt.scrub),
        "remains": list(receipt.remains),
    }


def scrub_json(report: ScrubReport) -> ScrubJson:
    """What was rewritten of the database's files, and proven."""
    return {
        "relations": report.relations,
        "log_segments": report.log_segments,
        "proven": report.proven,
        "files": report.files,
        "bytes": report.bytes,
        "strings": report.strings,
        "held": report.held,
        "kept": list(report.kept),
        "found": dict(report.found),
        "complete": report.complete,
    }
