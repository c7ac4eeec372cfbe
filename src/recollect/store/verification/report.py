"""What a verification found and mended."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

#: Every check, in the order in which they are reported, with what it counts.
CHECKS = {
    "tables": "tables whose files cannot be read: restore a backup (recollect db restore); until then nothing else is "
    "checked",
    "schema": "parts of the schema that are missing, changed or damaged",
    "stateless_collections": "collections without counters",
    "orphaned_documents": "documents without a version",
    "missing_access_lists": "access lists that documents or collections have, and that do not exist: after a repair "
    "their documents are for the collection's owners alone, until somebody is granted them anew",
    "embedding_cache": "cached embeddings of a wrong dimension, not of unit length, or of texts that no chunk has",
    "originals": "originals whose bytes do not have their hash (erase the document and upload it again, or restore a "
    "backup), or that no version has",
    "texts": "texts that no version has",
    "fact_vectors": "facts whose vector is not of their conversation's model: until a repair they are found by words",
    "orphaned_indexes": "vector indexes of no collection",
    "version_copies": "versions with another access list or id than their document's, acronyms in another collection "
    "than their version",
    "overlapping_versions": "versions that were not closed when the next one began",
    "missing_contents": "versions without their text",
    "content_hashes": "versions whose text does not have its hash",
    "chunk_counts": "versions that have more or fewer chunks than were written",
    "chunk_positions": "versions whose chunks are not numbered from 0 without gaps",
    "chunk_texts": "chunks whose text is not the document's at their offsets",
    "chunk_hashes": "chunks whose hash is not that of what is indexed of them",
    "missing_vectors": "chunks without a vector",
    "wrong_vectors": "vectors of a wrong dimension, or not of unit length",
    "stray_vectors": "vectors of a space that their collection does not have, or wrong ones in a space beside the one "
    "that searches use: a repair removes them",
    "stale_vector_copies": "vectors with another version, time or access list than their version",
    "missing_lexical_rows": "chunks without a lexical row",
    "stale_lexical_copies": "lexical rows with another collection, version, time or access list than their version",
    "reference_length": "collections whose weights were made for another reference length than the one kept",
    "lexical_rows": "lexical rows that are not what their text gives",
    "missing_token_vectors": "chunks without token vectors, in a collection that stores them",
    "token_vectors": "token vectors that cannot be read",
    "counters": "counters of documents and chunks, or times of the next expiry, that are wrong",
    "term_statistics": "terms whose frequency is not that of the chunks",
    "dense_index": "vector indexes that are missing although due, or unusable",
}

#: How many of the things that cannot be mended are named.
MAX_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyCheck:
    """One check of a verification.

    Attributes:
        name: One of `CHECKS`.
        found: How many of what the check counts there were.
        repaired: How many of them are mended.
        detail: What is counted and how it was looked for, an instance, and what to do about those that are left.
    """

    name: str
    found: int
    repaired: int
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """What a verification found.

    Attributes:
        checks: Every check that was made.
        collections: Collections that were looked at.
        chunks: Their current chunks.
    """

    checks: tuple[VerifyCheck, ...]
    collections: int
    chunks: int

    @property
    def clean(self) -> bool:
        """Whether there is nothing wrong, or nothing any more."""
        return all(check.found == check.repaired for check in self.checks)


@dataclass(frozen=True, slots=True)
class VerifyProgress:
    """How far a verification has come.

    Attributes:
        stage: What it is at; each stage may come again, and begins at nothing.
        done: Chunks compared, or versions mended.
        total: How many there are of them.
    """

    stage: Literal["checking", "mending"]
    done: int
    total: int


@dataclass(slots=True)
class Findings:
    """What was found so far, by check.

    Attributes:
        counts: How many.
        instances: One of them, in words.
        notes: What a person should know about a check.
    """

    counts: Counter[str] = field(default_factory=Counter)
    instances: dict[str, str] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, count: int, instance: str = "") -> None:
        """Count something; the first instance is kept."""
        if name not in CHECKS:
            raise KeyError(name)
        if count:
            self.counts[name] += count
            if instance:
                self.instances.setdefault(name, instance)

    def note(self, name: str, text: str) -> None:
        """Say something about a check, once."""
        said = self.notes.setdefault(name, [])
        if text not in said and len(said) < MAX_NAMED:
            said.append(text)

    def merge(self, other: Findings) -> None:
        """Take over what another one holds."""
        for name, count in other.counts.items():
            self.add(name, count, other.instances.get(name, ""))
        for name, texts in other.notes.items():
            for text in texts:
                self.note(name, text)
