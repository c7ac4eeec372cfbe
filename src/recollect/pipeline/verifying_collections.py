"""One collection checked against itself, and mended: what is stored of it made anew, as an ingest makes it."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from recollect.errors import ProviderError, StoreCorruptError, UsageError
from recollect.ingest.examine import (
    as_stored,
    differs,
    faults,
    key_of,
    proven_chunks,
    proven_content,
    recovered_length,
    wrong_rows,
)
from recollect.ingest.prepare import average_length
from recollect.pipeline.preparing import make_preparer
from recollect.retrieval.indexing import TermIndexer
from recollect.retrieval.rerank.packing import unpack
from recollect.store.collections import CollectionRepository
from recollect.store.indexes import drop_index
from recollect.store.verification import reading
from recollect.store.verification.mending import MendedChunk, Mender
from recollect.store.verification.reading import CollectionSnapshot, index_states, snapshot
from recollect.store.verification.report import Findings

if TYPE_CHECKING:
    from recollect.ingest.prepare import Preparer
    from recollect.model import Scope
    from recollect.model.collection import Collection
    from recollect.pipeline.assembly import Assembly
    from recollect.store.database import Database
    from recollect.store.dense_index import DenseIndexer
    from recollect.store.verification.reading import StoredVersion

# As long as an ingest is under way, this share of the chunks is not counted yet, and the index comes after the count.
_UNCOUNTED_SHARE = 0.01
_LOOK_AGAIN_SECONDS = 0.2

# What the model is needed for: told where there is none.
_BY_THE_MODEL = (
    *("chunk_counts", "chunk_positions", "chunk_texts", "chunk_hashes"),
    *("missing_vectors", "wrong_vectors", "missing_token_vectors", "token_vectors"),
)


class CollectionCheck:
    """One collection, compared with itself at one moment when this is made.

    Args:
        assembly: Makes the model, where it is needed.
        database: The store's connections.
        scope: The tenant.
        collection: As it was found.
        deep: Compare every lexical row and token vector with its text, not a sample of them.
        on_chunks: Told how many chunks were compared.

    Attributes:
        found: What is wrong.
    """

    def __init__(
        self,
        assembly: Assembly,
        database: Database,
        scope: Scope,
        collection: Collection,
        *,
        deep: bool,
        on_chunks: Callable[[int], None],
    ) -> None:
        self._assembly = assembly
        self._database = database
        self._collections = CollectionRepository(database)
        self._scope = scope
        self._collection = collection
        self._indexer = TermIndexer(collection.language, salt=collection.collection_id)
        self._mender = Mender(database, scope)
        self._called = f"collection {collection.name!r}"
        # By version, whether the model is needed to mend it.
        self._broken: dict[int, bool] = {}
        # The one that the stored weights were made with, where another is kept.
        self._reference_length: float | None = None
        self.found = Findings()
        with snapshot(database, scope) as connection:
            moment = CollectionSnapshot(connection, scope, collection)
            if not moment.exists():
                return
            self.found.merge(moment.rows_beside())
            self.found.merge(moment.counters())
            self._look_at_texts(moment, on_chunks)
            self._look_at_terms(moment, deep=deep)
            self._look_at_tokens(moment, deep=deep)
        self.found.add("dense_index", self._index_missing(), self._called)

    def _break(self, version_id: int, *, by_the_model: bool) -> None:
        self._broken[version_id] = self._broken.get(version_id, False) or by_the_model

    def _look_at_texts(self, moment: CollectionSnapshot, on_chunks: Callable[[int], None]) -> None:
        seen = 0
        for version in moment.versions():
            wrong = faults(version)
            for name, count in wrong.items():
                self.found.add(name, count, f"document {version.document_id} ({version.uri})")
            if wrong:
                self._break(version.version_id, by_the_model="chunk_hashes" in wrong)
            seen += len(version.chunks) if version.current else 0
            on_chunks(min(seen, self._collection.chunk_count))

    def _look_at_terms(self, moment: CollectionSnapshot, *, deep: bool) -> None:
        kept = moment.reference_length()
        length, compared = kept or 0.0, 0
        for page in moment.terms(deep=deep):
            wrong = list(wrong_rows(page, self._indexer, reference_length=length)) if length else page
            if compared == 0 and len(wrong) > len(page) // 2:
                recovered = recovered_length(page, self._indexer) or kept or 1.0
                if differs(kept, recovered):
                    self.found.add("reference_length", 1, self._called)
                    self._reference_length = length = recovered
                    wrong = list(wrong_rows(page, self._indexer, reference_length=length))
            compared += len(page)
            for one in wrong:
                self.found.add("lexical_rows", 1, f"chunk {one.chunk_id}")
                self._break(one.version_id, by_the_model=False)
        if not deep and compared == reading.SAMPLE_ROWS:
            self.found.note(
                "lexical_rows", f"{compared:,} rows a collection were compared, chosen by hash; --deep compares all"
            )

    def _look_at_tokens(self, moment: CollectionSnapshot, *, deep: bool) -> None:
        for chunk_id, version_id, packed in moment.token_vectors(deep=deep):
            try:
                unpack(packed)
            except StoreCorruptError:
                self.found.add("token_vectors", 1, f"chunk {chunk_id}")
                self._break(version_id, by_the_model=True)

    def _index_missing(self) -> bool:
        # Twice: an index that is being built this very moment is neither missing nor broken.
        for wait in (_LOOK_AGAIN_SECONDS, 0):
            now = self._collections.find(self._scope, self._collection.name)
            if now is None:
                return False
            state = next((s for s in index_states(self._database) if s.space_id == now.space_id), None)
            counted = now.stats_pending < _UNCOUNTED_SHARE * max(now.stats_chunks, 1)
            due = counted and self._dense_indexer.due(self._scope, now.name)
            unusable = state is not None and not state.valid
            if (state is not None and state.busy) or not (due or unusable):
                return False
            time.sleep(wait)
        return True

    def mend(self, left: Findings, on_mended: Callable[[int, int], None]) -> None:
        """Mend what was found, in an order in which nothing is made of what is wrong still.

        Args:
            left: Told why something cannot be mended.
            on_mended: Told after every version how many there were, and of how many.

        Raises:
            NotFoundError: The collection was deleted meanwhile.
            ModelChangedError: It has another model meanwhile.
        """
        scope = self._scope
        if self._reference_length is not None:
            self._mender.set_reference_length(self._collection, self._reference_length)
        self._mender.mend_copies(self._collection)
        self._collection = self._collections.get(scope, self._collection.name)
        with snapshot(self._database, scope) as connection:
            for version_id, by_the_model in CollectionSnapshot(connection, scope, self._collection).remade(self.found):
                self._break(version_id, by_the_model=by_the_model)
        has_model = True
        for done, version_id in enumerate(sorted(self._broken), start=1):
            # What needs no model is mended without one.
            for with_model in (True, False) if has_model and self._broken[version_id] else (False,):
                try:
                    self._mend_version(version_id, left, with_model=with_model)
                    break
                except (UsageError, ProviderError) as exc:
                    has_model = False
                    for name in _BY_THE_MODEL:
                        if self.found.counts[name]:
                            left.note(name, str(exc))
            on_mended(done, len(self._broken))
        self._mender.recount(self._collection)
        self._collections.refresh_term_stats(scope, self._collection)
        if self.found.counts["dense_index"]:
            if self._dense_indexer.due(scope, self._collection.name):
                self._dense_indexer.build(scope, self._collection.name)
            else:
                drop_index(self._database, self._collection.space_id)

    def _mend_version(self, version_id: int, left: Findings, *, with_model: bool) -> None:
        version = self._mender.version(version_id)
        if version is None:
            return
        content = proven_content(version)
        if content is None:
            self._tell_lost(version, left)
        # Of a lost text, what is beside the chunks is made of what they say.
        chunks = [one.chunk for one in version.chunks] if content is None else proven_chunks(version, content)
        anew = chunks is None
        if chunks is None:
            cut = self._preparer.cut(self._mender.document(version, content or ""), "")
        else:
            cut = as_stored(version, content or "", chunks, self._indexer)
        embedded = self._preparer.embed([cut])[0] if anew or with_model else None
        length = self._collections.ensure_reference_length(self._scope, self._collection, average_length([cut]))
        made = []
        for at, (chunk, row) in enumerate(
            zip(cut.chunks, self._indexer.weigh(cut.terms, reference_length=length), strict=True)
        ):
            key = key_of(version.title, chunk)
            tokens = embedded.token_vectors if embedded else None
            made.append(
                MendedChunk(
                    chunk=chunk,
                    # A wrong one stays, to be found again, until its chunk is embedded.
                    key=key if embedded or key == version.chunks[at].key else None,
                    embedding=embedded.vectors[at] if embedded else None,
                    lexical=row,
                    token_vectors=tokens[at] if tokens else None,
                )
            )
        self._mender.put(self._collection, version, made, content=content, anew=anew)

    @cached_property
    def _preparer(self) -> Preparer:
        return make_preparer(self._assembly, self._scope, self._collection)

    @property
    def _dense_indexer(self) -> DenseIndexer:
        return self._assembly.store.dense_indexer.over(self._database, self._collections)

    def _tell_lost(self, version: StoredVersion, left: Findings) -> None:
        which = "" if version.current else ", and with it what it said before"
        left.note(
            "missing_contents" if version.content is None else "content_hashes",
            f"the text of {version.uri!r} is lost: recollect documents erase {version.document_id} -c '*'{which}, then "
            "ingest the file again",
        )
