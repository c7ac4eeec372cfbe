"""Making anew what is stored of chunks and versions, as an ingest makes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from recollect.errors import ProviderError, UsageError
from recollect.ingest.context import searchable_text
from recollect.ingest.examine import key_of, proven_chunks, proven_content, same_cut
from recollect.ingest.flow import windows
from recollect.ingest.prepare import CutDocument, Embedded, Preparer, average_length
from recollect.model import Chunk, Document
from recollect.store.verification.mending import ChunkParts, MendedText, Mender, Neighbour

if TYPE_CHECKING:
    from recollect.ingest.prepare import TermIndexer
    from recollect.model import Scope
    from recollect.store.collections import Collection, CollectionRepository
    from recollect.store.verification.reading import StoredVersion
    from recollect.store.verification.report import Findings

#: What is stored of a chunk beside its text.
Part: TypeAlias = Literal["key", "vector", "lexical", "tokens"]

# Chunks mended in one transaction; with their neighbours three times as many are embedded.
_BATCH_CHUNKS = 128


class Repairer:
    """Mends one collection's versions and chunks.

    Args:
        mender: Changes the store.
        collections: Knows the collection's reference length.
        scope: The tenant.
        collection: What is mended.
        indexer: Counts and weighs terms.
        preparer: Gives what cuts and embeds; called when it is first needed, because it may need a model.
        findings: Told what cannot be mended.
        on_mended: Told how many versions and chunks were looked after since it was told last.
    """

    def __init__(
        self,
        mender: Mender,
        collections: CollectionRepository,
        *,
        scope: Scope,
        collection: Collection,
        indexer: TermIndexer,
        preparer: Callable[[], Preparer],
        findings: Findings,
        on_mended: Callable[[int], None],
    ) -> None:
        self._mender = mender
        self._collections = collections
        self._scope = scope
        self._collection = collection
        self._indexer = indexer
        self._preparer = preparer
        self._findings = findings
        self._on_mended = on_mended

    def mend_versions(self, version_ids: Iterable[int]) -> None:
        """Mend texts, and how chunks stand in them; what is lost is reported."""
        for version_id in version_ids:
            version = self._mender.version(version_id)
            if version is not None:
                self._mend_version(version)
            self._on_mended(1)

    def mend_chunks(self, chunk_ids: Iterable[int], part: Part, *, check: str) -> bool:
        """Make one part of some chunks anew.

        Args:
            chunk_ids: Any number.
            part: What is wrong with them.
            check: What found them; told why they are left, if they are.

        Returns:
            False where the rest was left, because it cannot be made now.
        """
        return all(
            self._try(check, {chunk_id: {part} for chunk_id in window}, count=len(window))
            for window in windows(chunk_ids, _BATCH_CHUNKS)
        )

    def mend_stale(self, chunk_ids: Iterable[int]) -> None:
        """Make chunks anew whose text is not what was indexed; the vectors of those beside them hold part of it."""
        for window in windows(chunk_ids, _BATCH_CHUNKS):
            parts: dict[int, set[Part]] = {one.chunk_id: {"vector"} for one in self._mender.neighbourhood(window)}
            for chunk_id in window:
                parts.setdefault(chunk_id, set()).update(("key", "vector", "lexical"))
                if self._collection.token_vectors:
                    parts[chunk_id].add("tokens")
            if not self._try("chunk_hashes", parts, count=len(window)):
                return

    def _try(self, check: str, parts: Mapping[int, set[Part]], *, count: int) -> bool:
        try:
            self._mender.put_parts(self._collection, self._made(parts))
        except (UsageError, ProviderError) as exc:
            # No model, or another one: what needs none can be mended all the same.
            self._findings.note(check, str(exc))
            return False
        self._on_mended(count)
        return True

    def _made(self, parts: Mapping[int, set[Part]]) -> list[ChunkParts]:
        around = self._mender.neighbourhood(list(parts))
        asked = set().union(*parts.values())
        lexical = [one for one in around if "lexical" in parts.get(one.chunk_id, ())]
        terms = self._indexer.count([_text(one) for one in lexical])
        weighed = self._indexer.weigh(terms, reference_length=self._reference_length())
        rows = dict(zip([one.chunk_id for one in lexical], weighed, strict=True))
        runs = list(_runs(around)) if asked & {"vector", "tokens"} else []
        embedded = self._embedded(runs, asked) if runs else []
        vectors = {
            one.chunk_id: (own.vectors[at], own.token_vectors[at] if own.token_vectors is not None else None)
            for run, own in zip(runs, embedded, strict=True)
            for at, one in enumerate(run)
        }
        made = []
        for one in around:
            wanted = parts.get(one.chunk_id, set())
            vector, tokens = vectors.get(one.chunk_id, (None, None))
            made.append(
                ChunkParts(
                    document_id=one.document_id,
                    chunk_id=one.chunk_id,
                    key=key_of(one.title, one.chunk) if "key" in wanted else None,
                    embedding=vector if "vector" in wanted else None,
                    lexical=rows.get(one.chunk_id),
                    token_vectors=tokens if "tokens" in wanted else None,
                )
            )
        return [one for one in made if one.chunk_id in parts]

    def _embedded(self, runs: Sequence[Sequence[Neighbour]], asked: set[Part]) -> list[Embedded]:
        preparer = self._preparer()
        wide = {one.version_id for run in runs for one in run if one.chunk.parent} if "tokens" in asked else set()
        contents = self._mender.contents(sorted(wide)) if wide else {}
        cuts = [_cut(run, contents.get(run[0].version_id, "")) for run in runs]
        if "vector" in asked:
            return preparer.embed(cuts)
        empty = [np.zeros((len(run), self._collection.embedding_dimension), np.float32) for run in runs]
        return preparer.complete(cuts, empty)

    def _reference_length(self) -> float:
        return self._collection.reference_length or 1.0

    def _mend_version(self, version: StoredVersion) -> None:
        content = proven_content(version)
        if content is None:
            which = "" if version.current else ", and with it what it said before"
            self._findings.note(
                "missing_contents" if version.content is None else "content_hashes",
                f"the text of {version.uri!r} is lost: recollect documents erase {version.document_id}{which}, then "
                "ingest the file again",
            )
            return
        chunks = proven_chunks(version, content)
        if chunks is not None and len(chunks) == version.chunk_count:
            moved = any(old.chunk != new for old, (_, new) in zip(version.chunks, chunks, strict=True))
            self._mender.set_text(
                self._collection,
                version,
                MendedText(
                    content=content,
                    content_hash=Document(content=content).content_hash,
                    chunk_count=len(chunks),
                    chunks=chunks if moved else (),
                ),
            )
            return
        try:
            self._cut_anew(version, content, chunks)
        except (UsageError, ProviderError) as exc:
            self._findings.note("chunk_counts" if chunks is not None else "chunk_texts", f"{version.uri!r}: {exc}")

    def _cut_anew(self, version: StoredVersion, content: str, chunks: Sequence[tuple[int, Chunk]] | None) -> None:
        preparer = self._preparer()
        cut = preparer.cut(self._mender.document(version, content), "")
        if chunks is not None and same_cut([chunk for _, chunk in chunks], cut.chunks):
            # No chunk is lost: it was the count that was changed.
            text = MendedText(
                content=content, content_hash=cut.document.content_hash, chunk_count=len(chunks), chunks=chunks
            )
            self._mender.set_text(self._collection, version, text)
            return
        length = self._collections.ensure_reference_length(self._scope, self._collection, average_length([cut]))
        (prepared,) = preparer.finish([cut], preparer.embed([cut]), reference_length=length)
        self._mender.rebuild(self._collection, version, prepared)


def _runs(around: Sequence[Neighbour]) -> Iterator[list[Neighbour]]:
    """Chunks that follow one another in their document: what an ingest mixes their vectors of."""
    run: list[Neighbour] = []
    for one in around:
        if run and (run[-1].version_id, run[-1].chunk.position + 1) != (one.version_id, one.chunk.position):
            yield run
            run = []
        run.append(one)
    if run:
        yield run


def _cut(run: Sequence[Neighbour], content: str) -> CutDocument:
    document = Document(content=content, title=run[0].title)
    chunks = [one.chunk for one in run]
    return CutDocument(document, chunks, [_text(one) for one in run], (), "")


def _text(one: Neighbour) -> str:
    return searchable_text(Document(content="", title=one.title), one.chunk)
