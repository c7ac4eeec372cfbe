"""Making anew what is stored of versions and their chunks, as an ingest makes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from recollect.errors import ProviderError, UsageError
from recollect.ingest.context import searchable_text
from recollect.ingest.examine import examine, key_of, proven_chunks, proven_content
from recollect.ingest.prepare import CutDocument, Embedded, Preparer, average_length
from recollect.model import Chunk, Document
from recollect.store.verification.mending import MendedChunk, Mender
from recollect.store.verification.reading import PARTS

if TYPE_CHECKING:
    from recollect.ingest.prepare import TermIndexer
    from recollect.model import Scope
    from recollect.model.collection import Collection
    from recollect.store.collections import CollectionRepository
    from recollect.store.verification.reading import BrokenParts, StoredVersion
    from recollect.store.verification.report import Findings

_NOTHING = Embedded(np.empty((0, 0), np.float32))

# What the model is needed for: told where there is none.
_BY_THE_MODEL = (
    *("chunk_counts", "chunk_positions", "chunk_texts", "chunk_hashes"),
    *("missing_vectors", "wrong_vectors", "missing_token_vectors", "token_vectors"),
)


class Repairer:
    """Mends one collection's versions.

    Args:
        mender: Changes the store.
        collections: Knows the collection's reference length.
        scope: The tenant.
        collection: What is mended.
        indexer: Counts and weighs terms.
        preparer: Gives what cuts and embeds; called when it is first needed, because it may need a model.
        found: What is wrong with the collection.
        left: Told what cannot be mended.
        on_mended: Told after every version.
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
        found: Findings,
        left: Findings,
        on_mended: Callable[[], None],
    ) -> None:
        self._mender = mender
        self._collections = collections
        self._scope = scope
        self._collection = collection
        self._indexer = indexer
        self._preparer = preparer
        self._found = found
        self._left = left
        self._on_mended = on_mended
        self._model_is_missing = False

    def mend(self, broken: Mapping[int, BrokenParts]) -> None:
        """Mend versions: their texts, how their chunks stand in them, and the parts of chunks that are given."""
        for version_id in sorted(broken):
            version = self._mender.version(version_id)
            if version is not None:
                self._mend_version(version, broken[version_id])
            self._on_mended()

    def _mend_version(self, version: StoredVersion, parts: BrokenParts) -> None:
        content = proven_content(version)
        if content is None:
            self._tell_lost(version)
            # What is beside the chunks is made of what they say.
            self._mend_chunks(version, None, [one.chunk for one in version.chunks], parts)
        elif (chunks := proven_chunks(version, content)) is not None:
            self._mend_chunks(version, content, chunks, parts)
        else:
            self._cut_anew(version, content)

    def _mend_chunks(
        self, version: StoredVersion, content: str | None, chunks: Sequence[Chunk], parts: BrokenParts
    ) -> None:
        ids = [one.chunk_id for one in version.chunks]
        stale, vectors, lexical, tokens = (
            {at for at, chunk_id in enumerate(ids) if chunk_id in wanted}
            for wanted in (set(examine(version).stale), *(parts.get(name, set()) for name in PARTS))
        )
        # A vector holds part of those beside it.
        vectors |= {at + beside for at in stale for beside in (-1, 0, 1) if 0 <= at + beside < len(ids)}
        tokens |= stale if self._collection.token_vectors else set()
        cut = as_stored(version, content or "", chunks, self._indexer)
        embedded = self._embedded(cut, vectors=bool(vectors), tokens=bool(tokens)) if vectors or tokens else _NOTHING
        if embedded is None:
            embedded, stale = _NOTHING, set()
        rows = self._indexer.weigh(cut.terms, reference_length=self._collection.reference_length or 1.0)
        made = [
            MendedChunk(
                chunk=chunk,
                key=key_of(version.title, chunk) if at in stale or chunk != version.chunks[at].chunk else None,
                embedding=embedded.vectors[at] if at in vectors and len(embedded.vectors) else None,
                lexical=rows[at] if at in lexical | stale else None,
                token_vectors=embedded.token_vectors[at] if at in tokens and embedded.token_vectors else None,
            )
            for at, chunk in enumerate(chunks)
        ]
        self._mender.put(self._collection, version, made, content=content)

    def _cut_anew(self, version: StoredVersion, content: str) -> None:
        try:
            preparer = self._preparer()
            cut = preparer.cut(self._mender.document(version, content), "")
        except (UsageError, ProviderError) as exc:
            self._tell_model(f"{version.uri!r}: {exc}")
            return
        embedded = self._embedded(cut, vectors=True, tokens=True)
        if embedded is None:
            return
        length = self._collections.ensure_reference_length(self._scope, self._collection, average_length([cut]))
        (prepared,) = preparer.finish([cut], [embedded], reference_length=length)
        tokens: Sequence[bytes | None] = prepared.token_vectors or [None] * len(prepared.chunks)
        made = [
            MendedChunk(chunk=chunk, key=key, embedding=vector, lexical=row, token_vectors=packed)
            for chunk, key, vector, row, packed in zip(
                prepared.chunks, prepared.embedding_keys, prepared.embeddings, prepared.lexical, tokens, strict=True
            )
        ]
        self._mender.put(self._collection, version, made, content=content, anew=True)

    def _embedded(self, cut: CutDocument, *, vectors: bool, tokens: bool) -> Embedded | None:
        """What the model makes of chunks; None where there is no model, or another one."""
        if self._model_is_missing:
            return None
        try:
            preparer = self._preparer()
            if vectors:
                return preparer.embed([cut])[0]
            nothing = np.zeros((len(cut.chunks), self._collection.embedding_dimension), np.float32)
            return preparer.complete([cut], [nothing])[0] if tokens else None
        except (UsageError, ProviderError) as exc:
            # What needs none can be mended all the same.
            self._model_is_missing = True
            self._tell_model(str(exc))
            return None

    def _tell_model(self, reason: str) -> None:
        for name in _BY_THE_MODEL:
            if self._found.counts[name]:
                self._left.note(name, reason)

    def _tell_lost(self, version: StoredVersion) -> None:
        which = "" if version.current else ", and with it what it said before"
        self._left.note(
            "missing_contents" if version.content is None else "content_hashes",
            f"the text of {version.uri!r} is lost: recollect documents erase {version.document_id} -c '*'{which}, then "
            "ingest the file again",
        )


def as_stored(version: StoredVersion, content: str, chunks: Sequence[Chunk], indexer: TermIndexer) -> CutDocument:
    """Chunks as they are stored, with their words counted anew."""
    document = Document(content=content, title=version.title)
    texts = [searchable_text(document, chunk) for chunk in chunks]
    return CutDocument(document, chunks, texts, indexer.count(texts, indexer.languages(texts, version.analysed_as)), "")
