"""The store as a whole: what it holds, whether it is sound, and what has passed its time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from typing_extensions import override

from recollect.errors import ModelChangedError, NotFoundError, ProviderError, StoreCorruptError, StoreError, UsageError
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
from recollect.ingest.prepare import Preparer, average_length
from recollect.model import Scope
from recollect.model.arguments import checked
from recollect.model.status import PipelineStatus, SearchHealth, StoreSearchHealth
from recollect.operations.declaring import implements
from recollect.operations.jobs import MaintenanceOperations
from recollect.pipeline.preparing import make_preparer
from recollect.pipeline.standpoint import Group
from recollect.pipeline.upkeep import clean_up
from recollect.retrieval.indexing import TermIndexer
from recollect.retrieval.rerank.late_interaction import unpack
from recollect.store import verification
from recollect.store.activity import HEALTH_DAYS
from recollect.store.catalogue import read_differences
from recollect.store.collections import CollectionRepository
from recollect.store.indexes import drop_index
from recollect.store.repair import (
    MendedChunk,
    Mender,
    damaged_index,
    mend_schema,
    missing_parts,
    rebuild_index,
    unreadable_tables,
)
from recollect.store.status import Finding
from recollect.store.verification import (
    CHECKS,
    CollectionSnapshot,
    Findings,
    StoredVersion,
    VerifyCheck,
    VerifyProgress,
    VerifyReport,
    index_states,
    misembedded_facts,
    outside,
    snapshot,
    tenant_ids,
)

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider
    from recollect.model.collection import Collection
    from recollect.model.contexts import ContextEstimate, ContextReport
    from recollect.model.history import CleanupReport, ScrubReport
    from recollect.pipeline.assembly import Assembly
    from recollect.store.database import Database
    from recollect.store.dense_index import DenseIndexer
    from recollect.store.store import Store


# What `check` advises where `verify` has nothing to mend.
_PUT_BACK = "What was put back needs nothing more, but somebody had changed it."
_DIFFERENT = "Have an administrator undo what was changed in the schema: it is not recollect's to change back."
_BROKEN = (
    "A broken audit cannot be mended, only compared with an earlier export or backup: recollect audit verify names "
    "the entry."
)


@implements(MaintenanceOperations)
@checked
class Maintenance(Group, MaintenanceOperations):
    """The store as a whole; see `recollect.View`. For its owner, but for `status`."""

    @override
    def status(self) -> PipelineStatus:
        at, scope = self._at, self._at.present()
        only = None if at.named is None else at.place(scope)
        status = read_status(at.store, scope, at.assembly.embedder, collection=at.config.collection, only=only)
        held = at.assembly.held
        if held is None or scope.principal is not None:
            return status
        copies = {one.name: held.copy_of(scope, one) for one in status.collections}
        return replace(status, resident={name: copy for name, copy in copies.items() if copy is not None})

    def check(self) -> list[Finding]:
        """Everything of the tenant that contradicts itself, and of every tenant's audit; empty for a sound store."""
        scope, store = self._at.owner(), self._at.store
        broken = [chain for chain in store.audit.verify_all(scope) if chain.broken]
        return [
            *store.status.check(scope),
            *(Finding(f"{one} (put back when the store was opened)", 1, _PUT_BACK) for one in store.put_back),
            *(
                Finding(one, 1) if one.startswith(("index ", "constraint ")) else Finding(one, 1, _DIFFERENT)
                for one in read_differences(store.database)
            ),
            *(Finding(f"audit of tenant {chain.tenant_id} broken: {chain.broken}", 1, _BROKEN) for chain in broken),
        ]

    def estimate_contexts(self) -> ContextEstimate:
        """What `write_contexts` would ask of the language model of ``[rag.ingest] contextualise``, about.

        Raises:
            UsageError: No model is configured for it.
            NotFoundError: There is no such collection.
        """
        from recollect.pipeline.contexts import estimate

        return estimate(self._at)

    def write_contexts(self, *, on_progress: Callable[[int, int], None] | None = None) -> ContextReport:
        """Have every chunk of the view's collection situated in its document by a sentence, and index it with that.

        Chunks that the present model and prompt were asked about are passed over, and each document is stored by
        itself: interrupted at any moment, it is completed by running it again.

        Args:
            on_progress: Told after each document how many are done, and of how many.

        Raises:
            UsageError: No model is configured for it.
            NotFoundError: There is no such collection.
            ProviderError: The language model or the embedding model failed; what was done before stays.
        """
        from recollect.pipeline.contexts import write

        return write(self._at, on_progress)

    def verify(
        self, *, repair: bool = False, deep: bool = False, on_progress: VerifyCallback | None = None
    ) -> VerifyReport:
        """Compare documents, chunks, vectors, lexical rows and statistics with one another, and mend what differs.

        A view that names neither a tenant nor a collection is of the whole store, every tenant's: every table is read
        whole, and the schema is compared too. A repair makes dropped or changed indexes and constraints again, and
        indexes whose file is damaged; tables, columns and unreadable rows need a backup. A view that names a
        collection is of that, without what belongs to no collection. Each collection is read at one moment, so that
        others may write meanwhile. Every repair is a transaction under the locks that writers take; running it again,
        or after it was interrupted, does no harm.

        Args:
            repair: Mend what can be mended, and check again. Vectors are made by the collections' models.
            deep: Compare every lexical row and every token vector, not a thousand of each collection.
            on_progress: Told how far it has come.

        Returns:
            Every check with what it found and what of that is mended; ``clean`` if nothing is left.

        Raises:
            NotFoundError: There is no such collection.
        """
        scope, collection = self._at.owner(), self._at.named
        whole = self._at.tenant is None and collection is None
        verifier = Verifier(self._at.assembly, repair=repair, deep=deep, on_progress=on_progress)
        return verifier.run(None if whole else [scope], collection=collection)

    def scrub(self, *, look_for: Sequence[str] = ()) -> ScrubReport:
        """Take what was erased out of the database's files, where its bytes stay until they are written over.

        Every table but the audit is written anew with its indexes, and waits for that; so are the planner's statistics.
        On recollect's own server the write-ahead log's segments are removed and the server's log is emptied too, and
        every file is read afterwards. Of another server's files nothing can be proven, which the report says. Files
        hold the rows of all tenants; it is recorded in the audit of the view's.

        Args:
            look_for: Strings of eight bytes or more that must not be in the files; those that rows still hold are not
                looked for.

        Raises:
            StoreUnavailableError: Others hold a table for half a minute, or scrub the store already.
            StoreError: A transaction that began before went on for a minute.
        """
        return self._at.store.scrubber.scrub(self._at.owner(), actor=self._at.actor, texts=look_for)

    def close_expired(self) -> int:
        """Close every document whose time is over, of the tenant or of the collection that the view was given.

        Searches leave them out without it.

        Returns:
            How many documents expired by this call.

        Raises:
            NotFoundError: There is no such collection.
        """
        scope = self._at.owner()
        place = None if self._at.named is None else self._at.place(scope).collection_id
        return self._at.store.expiry.close_all(scope, place)

    @override
    def cleanup(self) -> CleanupReport:
        at, config = self._at, self._at.config
        days = config.embedding.keep_previous_days
        return clean_up(at.store, config.temporal, at.owner(), keep_previous_days=days)


# What a store holds and how it is searched, read from it.


def read_status(
    store: Store, scope: Scope, embedder: EmbeddingProvider, *, collection: str, only: Collection | None = None
) -> PipelineStatus:
    """The tenant's totals; the model is that of ``collection``, or the configured one where it does not exist yet.

    Args:
        store: Where everything is.
        scope: Whose, and as somebody sees it.
        embedder: The configured model.
        collection: The configured one.
        only: Count this collection alone.
    """
    totals = store.status.status(scope, only)
    collections = store.collections.list_all(scope) if only is None else [only]
    health = store.search_health.recent(scope)
    if scope.principal is not None or only is not None:
        seen = {place.collection_id for place in collections}
        health = {number: told for number, told in health.items() if number in seen}
    searches = sum(health.values(), start=SearchHealth())
    mine = next((place for place in collections if place.name == (only.name if only else collection)), None)
    return PipelineStatus(
        total_documents=totals.total_documents,
        total_chunks=totals.total_chunks,
        departments=totals.departments,
        collections=tuple(collections),
        embedding_model=mine.embedding_model if mine else embedder.model_name,
        embedding_dimension=mine.embedding_dimension if mine else embedder.dimension,
        schema_version=totals.schema_version,
        # What they may not read takes room as well.
        database_bytes=totals.database_bytes if scope.principal is None else 0,
        search=StoreSearchHealth(
            **{one.name: getattr(searches, one.name) for one in fields(searches)},
            days=HEALTH_DAYS,
            collections={
                place.name: health[place.collection_id] for place in collections if place.collection_id in health
            },
        ),
    )


# A whole store checked against itself, and mended.


#: Told how far a verification has come.
VerifyCallback: TypeAlias = "Callable[[VerifyProgress], None]"


# Checks of the database itself, and of what belongs to no one collection.
_SCHEMA = {"tables", "schema"}
_OUTSIDE = {
    *("stateless_collections", "missing_access_lists", "orphaned_documents", "embedding_cache"),
    *("originals", "texts", "fact_vectors", "orphaned_indexes"),
}


# What is mended can bring to light what it hid, a few times.
_ROUNDS = 3


@dataclass(slots=True)
class _Outcome:
    """What was found wrong, and what of that is left."""

    found: Findings = field(default_factory=Findings)
    left: Findings = field(default_factory=Findings)

    def check(self, name: str, *, repair: bool) -> VerifyCheck:
        # What is mended can bring to light more of the same.
        remaining = self.left.counts[name]
        count = max(self.found.counts[name], remaining)
        instance = self.left.instances.get(name) or self.found.instances.get(name)
        said = [CHECKS[name], *([f"for instance {instance}"] if count and instance else [])]
        said += dict.fromkeys([*self.left.notes.get(name, ()), *self.found.notes.get(name, ())])
        return VerifyCheck(name=name, found=count, repaired=count - remaining if repair else 0, detail="; ".join(said))


class Verifier:
    """Checks a store, and mends it where that is wanted.

    Args:
        assembly: Of the store; a model is made only where vectors must be made anew.
        repair: Mend what can be mended, and check again.
        deep: Compare every lexical row and token vector with its text, not a sample of them.
        on_progress: Told how far it has come.
    """

    def __init__(
        self, assembly: Assembly, *, repair: bool = False, deep: bool = False, on_progress: VerifyCallback | None = None
    ) -> None:
        self._assembly = assembly
        # Suspended tenants' rows are verified like all others.
        self._database = assembly.store.caretaking
        self._collections = CollectionRepository(self._database)
        self._repair = repair
        self._deep = deep
        self._on_progress = on_progress
        # Indexes whose file could not be read.
        self._damaged: list[str] = []

    def run(self, scopes: Sequence[Scope] | None, *, collection: str | None = None) -> VerifyReport:
        """Check everything, or one collection.

        Args:
            scopes: The tenants; None: every one of the store.
            collection: Only this collection of them; what belongs to no collection is not looked for then.

        Raises:
            NotFoundError: There is no such collection.
        """
        whole = scopes is None and collection is None
        tenants = [Scope(tenant_id=number) for number in tenant_ids(self._database)] if scopes is None else scopes
        self._outcome = _Outcome()
        names: Set[str] = _SCHEMA
        places: list[Collection] | None = None
        if not whole or self._schema():
            try:
                places = self._contents(tenants, collection)
                names = CHECKS.keys() - (() if whole else _SCHEMA if collection is None else _SCHEMA | _OUTSIDE)
            except StoreError as exc:
                index = damaged_index(self._database, exc)
                if index is None or index in self._damaged:
                    raise
                self._damaged.append(index)
                if self._repair:
                    rebuild_index(self._database, index)
                    return self.run(scopes, collection=collection)
        found, left = self._outcome.found, self._outcome.left
        if left.counts["schema"] and self._repair and places is not None:
            # A key can be made again once no rows contradict it.
            self._mend_schema()
        for index in self._damaged:
            names = names | {"schema"}
            found.add("schema", 1)
            found.note("schema", f"index {index}: its file is damaged")
            left.add("schema", 0 if self._repair else 1)
        checks = tuple(self._outcome.check(name, repair=self._repair) for name in CHECKS if name in names)
        seen = places or ()
        return VerifyReport(checks=checks, collections=len(seen), chunks=sum(one.chunk_count for one in seen))

    def _schema(self) -> bool:
        """Read every table and compare the schema; returns whether the rest can be checked."""
        found, left = self._outcome.found, self._outcome.left
        for table, reason in unreadable_tables(self._database):
            for findings in (found, left):
                findings.add("tables", 1)
                findings.note("tables", f"table {table}: {reason}")
        lost = missing_parts(self._database)
        for findings in (found, left):
            findings.add("schema", len(lost))
        for subject, definition in lost.items():
            found.note("schema", f"{subject}: should be {definition}")
        if self._repair and lost and not left.counts["tables"]:
            lost = self._mend_schema()
        return not left.counts["tables"] and not any(subject.startswith(("table ", "column ")) for subject in lost)

    def _mend_schema(self) -> dict[str, str]:
        left, lost = self._outcome.left, mend_schema(self._database)
        left.counts["schema"], left.notes["schema"] = len(lost), []
        for subject, reason in lost.items():
            left.note("schema", f"{subject}: {reason}")
        return lost

    def _contents(self, scopes: Sequence[Scope], collection: str | None) -> list[Collection]:
        """Check what the tables hold; returns the collections that were looked at."""
        if collection is None:
            self._outside(scopes)
            places = [(scope, one) for scope in scopes for one in self._collections.list_all(scope, hidden=True)]
        else:
            places = [(scope, self._collections.get(scope, collection)) for scope in scopes]
        done, total = 0, sum(one.chunk_count for _, one in places)

        def show(seen: int) -> None:
            self._show("checking", done + seen, total)

        for scope, one in places:
            # A session's collection exists for whoever names it.
            self._collection(replace(scope, session=one.collection_id) if one.hidden else scope, one, show)
            done += one.chunk_count
            show(0)
        return [one for _, one in places]

    def _outside(self, scopes: Sequence[Scope]) -> None:
        found, left = self._outcome.found, self._outcome.left
        for scope in scopes:
            before = outside(self._database, scope)
            found.merge(before)
            if self._repair and before.counts:
                Mender(self._database, scope).mend_outside()
                self._mend_facts(scope)
                before = outside(self._database, scope)
            left.merge(before)
        for state in index_states(self._database):
            if not state.owned and not state.busy:
                found.add("orphaned_indexes", 1, f"chunk_vectors_hnsw_{state.space_id}")
                if self._repair:
                    drop_index(self._database, state.space_id)
                else:
                    left.add("orphaned_indexes", 1)

    def _mend_facts(self, scope: Scope) -> None:
        """Embed anew what another model than its conversation's embedded, as when facts are drawn."""
        from recollect.memory.indexing import named
        from recollect.model.memory import Turn

        facts = misembedded_facts(self._database, scope)
        for model in dict.fromkeys(one[1] for one in facts):
            texts = {
                fact_id: named(Turn(content=statement, role=role))
                for fact_id, wanted, role, statement in facts
                if wanted == model
            }
            try:
                vectors = self._assembly.embedders.of_session(model).embed_documents(list(texts.values()))
            except (UsageError, ProviderError) as exc:
                self._outcome.left.note("fact_vectors", str(exc))
                continue
            Mender(self._database, scope).put_fact_vectors(dict(zip(texts, vectors, strict=True)))

    def _collection(self, scope: Scope, collection: Collection, show: Callable[[int], None]) -> None:
        deep = self._deep

        def checked() -> CollectionCheck:
            # Another model may have become the collection's meanwhile.
            now = self._collections.find(scope, collection.name) or collection
            return CollectionCheck(self._assembly, self._database, scope, now, deep=deep, on_chunks=show)

        check = checked()
        if self._repair and not deep and check.found.counts.keys() & {"lexical_rows", "token_vectors"}:
            # What is wrong in a sample is wrong elsewhere too.
            deep = True
            check = checked()
        self._outcome.found.merge(check.found)
        for _ in range(_ROUNDS if self._repair else 0):
            if not check.found.counts:
                break
            reasons = Findings()
            # Where it was deleted or has another model meanwhile, what is wrong now is looked up.
            with suppress(NotFoundError, ModelChangedError):
                check.mend(reasons, lambda done, total: self._show("mending", done, total))
            check = checked()
            check.found.merge(reasons)
        self._outcome.left.merge(check.found)

    def _show(self, stage: Literal["checking", "mending"], done: int, total: int) -> None:
        if self._on_progress:
            self._on_progress(VerifyProgress(stage, done, total))


# One collection checked against itself, and mended: what is stored of it made anew, as an ingest makes it.

# As long as an ingest is under way, this share of the chunks is not counted yet, and the index comes after the count.
_UNCOUNTED_SHARE = 0.01
_LOOK_AGAIN_SECONDS = 1.0

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
        if not deep and compared == verification.SAMPLE_ROWS:
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
