"""A whole store checked against itself, and mended."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from recollect.errors import ModelChangedError, NotFoundError, ProviderError, StoreError, UsageError
from recollect.ingest.examine import differs, examine, recovered_length, wrong_rows
from recollect.ingest.repair import Repairer
from recollect.model import Scope
from recollect.store.indexes import drop_index
from recollect.store.verification.mending import Mender
from recollect.store.verification.reading import (
    SAMPLE_ROWS,
    BrokenParts,
    CollectionSnapshot,
    MisembeddedFact,
    Part,
    index_states,
    misembedded_facts,
    outside,
    snapshot,
    tenant_ids,
)
from recollect.store.verification.report import CHECKS, Findings, VerifyCheck, VerifyProgress, VerifyReport
from recollect.store.verification.schema import (
    damaged_index,
    mend_schema,
    missing_parts,
    rebuild_index,
    unreadable_tables,
)

if TYPE_CHECKING:
    from recollect.ingest.prepare import Preparer, TermIndexer
    from recollect.model.collection import Collection
    from recollect.store.collections import CollectionRepository
    from recollect.store.database import Database
    from recollect.store.dense_index import DenseIndexer
    from recollect.store.search_rows import Floats

#: Told how far a verification has come.
VerifyCallback: TypeAlias = "Callable[[VerifyProgress], None]"

# Checks of the database itself.
_SCHEMA = {"tables", "schema"}
# Checks of what belongs to no one collection.
_OUTSIDE = {
    "stateless_collections",
    "missing_access_lists",
    "orphaned_documents",
    "embedding_cache",
    "originals",
    "texts",
    "fact_vectors",
    "orphaned_indexes",
}

# What is mended can bring to light what it hid, a few times.
_ROUNDS = 3

# As long as an ingest is under way, this share of the chunks is not counted yet, and the index comes after the count.
_UNCOUNTED_SHARE = 0.01
_LOOK_AGAIN_SECONDS = 0.2


@dataclass(slots=True)
class _Diagnosis:
    """What is wrong in one collection; of which versions, and of what beside their chunks."""

    findings: Findings = field(default_factory=Findings)
    broken: dict[int, BrokenParts] = field(default_factory=dict)
    reference_length: float | None = None
    sampled: bool = False

    @property
    def sound(self) -> bool:
        return not self.findings.counts

    def add_broken(self, version_id: int, chunk_id: int, part: Part) -> None:
        self.broken.setdefault(version_id, {}).setdefault(part, set()).add(chunk_id)


@dataclass(slots=True)
class _Outcome:
    """What was found wrong, and what of that is left."""

    found: Findings = field(default_factory=Findings)
    left: Findings = field(default_factory=Findings)

    def add_index(self, name: str, *, repaired: bool) -> bool:
        """Count an index whose file is damaged; returns whether it was not counted before."""
        told = f"index {name}: its file is damaged"
        if told in self.found.notes.get("schema", ()):
            return False
        self.found.add("schema", 1)
        self.found.note("schema", told)
        self.left.add("schema", 0 if repaired else 1)
        return True

    def merge(self, other: _Outcome) -> None:
        self.found.merge(other.found)
        self.left.merge(other.left)

    def report(self, names: Container[str], *, repair: bool, collections: int = 0, chunks: int = 0) -> VerifyReport:
        checks = [_check(name, self.found, self.left, repair=repair) for name in CHECKS if name in names]
        return VerifyReport(checks=tuple(checks), collections=collections, chunks=chunks)


class Verifier:
    """Checks a store, and mends it where that is wanted.

    Args:
        database: The store's connections.
        collections: Knows the collections and their statistics.
        dense_indexer: Knows when a vector index is due, and builds it.
        indexer: Gives what counts and weighs the terms of a collection.
        preparer: Gives what cuts and embeds for a collection; called only where something must be made anew.
        readable: Whether packed token vectors can be read.
        embed_facts: Gives the vectors of facts of conversations of one model; called only where some are wrong.
        on_progress: Told how far it has come.
    """

    def __init__(
        self,
        database: Database,
        collections: CollectionRepository,
        dense_indexer: DenseIndexer,
        *,
        indexer: Callable[[Collection], TermIndexer],
        preparer: Callable[[Scope, Collection], Preparer],
        readable: Callable[[bytes], bool],
        embed_facts: Callable[[str, Sequence[MisembeddedFact]], Sequence[Floats]],
        on_progress: VerifyCallback | None = None,
    ) -> None:
        self._database = database
        self._collections = collections
        self._dense_indexer = dense_indexer
        self._indexer = indexer
        self._preparer = preparer
        self._readable = readable
        self._embed_facts = embed_facts
        self._on_progress = on_progress
        self._done = 0
        self._total = 0

    def run(
        self, scopes: Sequence[Scope] | None, *, collection: str | None = None, repair: bool = False, deep: bool = False
    ) -> VerifyReport:
        """Check everything, or one collection.

        Args:
            scopes: The tenants; None: every one of the store.
            collection: Only this collection of them; what belongs to no collection is not looked for then.
            repair: Mend what can be mended, and check again.
            deep: Compare every lexical row and token vector with its text, not a sample of them.

        Raises:
            NotFoundError: There is no such collection.
        """
        whole = scopes is None and collection is None
        scopes = [Scope(tenant_id=number) for number in tenant_ids(self._database)] if scopes is None else scopes
        first = _Outcome()
        if whole and not self._schema(first, repair=repair):
            return first.report(_SCHEMA, repair=repair)
        while True:
            outcome = _Outcome()
            try:
                collections = self._contents(scopes, collection, outcome, repair=repair, deep=deep)
            except StoreError as exc:
                index = damaged_index(self._database, exc)
                if index is None or not first.add_index(index, repaired=repair):
                    raise
                if not repair:
                    return first.report(_SCHEMA, repair=False)
                rebuild_index(self._database, index)
                continue
            first.merge(outcome)
            if first.left.counts["schema"] and repair:
                # A key can be made again once no rows contradict it.
                self._mend_schema(first.left)
            left_out = set() if whole else _SCHEMA if collection is None else _SCHEMA | _OUTSIDE
            names = [name for name in CHECKS if name not in left_out or first.found.counts[name]]
            return first.report(names, repair=repair, collections=collections, chunks=self._total)

    def _contents(
        self, scopes: Sequence[Scope], collection: str | None, outcome: _Outcome, *, repair: bool, deep: bool
    ) -> int:
        """Check what the tables hold; returns how many collections were looked at."""
        found, left = outcome.found, outcome.left
        if collection is None:
            self._outside(scopes, found, left, repair=repair)
            collections = [
                # A session's collection exists for whoever names it.
                (replace(scope, session=one.collection_id) if one.hidden else scope, one)
                for scope in scopes
                for one in self._collections.list_all(scope, hidden=True)
            ]
        else:
            collections = [(scope, self._collections.get(scope, collection)) for scope in scopes]
        self._done, self._total = 0, sum(one.chunk_count for _, one in collections)
        for scope, one in collections:
            self._collection(scope, one, found, left, repair=repair, deep=deep)
        return len(collections)

    def _schema(self, outcome: _Outcome, *, repair: bool) -> bool:
        """Read every table and compare the schema; returns whether the rest can be checked."""
        found, left = outcome.found, outcome.left
        for table, reason in unreadable_tables(self._database):
            for findings in (found, left):
                findings.add("tables", 1)
                findings.note("tables", f"table {table}: {reason}")
        missing = missing_parts(self._database)
        found.add("schema", len(missing))
        for subject, definition in missing.items():
            found.note("schema", f"{subject}: should be {definition}")
        left.add("schema", len(missing))
        mends = repair and missing and not left.counts["tables"]
        lost = self._mend_schema(left) if mends else missing
        return not left.counts["tables"] and not any(subject.startswith(("table ", "column ")) for subject in lost)

    def _mend_schema(self, left: Findings) -> dict[str, str]:
        lost = mend_schema(self._database)
        left.counts["schema"], left.notes["schema"] = len(lost), []
        for subject, reason in lost.items():
            left.note("schema", f"{subject}: {reason}")
        return lost

    def _outside(self, scopes: Sequence[Scope], found: Findings, left: Findings, *, repair: bool) -> None:
        for scope in scopes:
            before = outside(self._database, scope)
            found.merge(before)
            if repair and before.counts:
                Mender(self._database, scope).mend_outside()
                self._mend_facts(scope, left)
                before = outside(self._database, scope)
            left.merge(before)
        lost = [state for state in index_states(self._database) if not state.owned and not state.busy]
        for state in lost:
            instance = f"chunk_vectors_hnsw_{state.space_id}"
            found.add("orphaned_indexes", 1, instance)
            if repair:
                drop_index(self._database, state.space_id)
            else:
                left.add("orphaned_indexes", 1, instance)

    def _mend_facts(self, scope: Scope, left: Findings) -> None:
        """Embed anew what another model than its conversation's embedded."""
        wrong: dict[str, list[MisembeddedFact]] = {}
        for fact in misembedded_facts(self._database, scope):
            wrong.setdefault(fact.model, []).append(fact)
        for model, facts in wrong.items():
            try:
                vectors = self._embed_facts(model, facts)
            except (UsageError, ProviderError) as exc:
                left.note("fact_vectors", str(exc))
                continue
            made = {fact.fact_id: vector for fact, vector in zip(facts, vectors, strict=True)}
            Mender(self._database, scope).put_fact_vectors(made)

    def _collection(
        self, scope: Scope, collection: Collection, found: Findings, left: Findings, *, repair: bool, deep: bool
    ) -> None:
        before = self._diagnose(scope, collection, deep=deep)
        if repair and before.sampled and not deep:
            # What is wrong in a sample is wrong elsewhere too.
            deep = True
            before = self._diagnose(scope, collection, deep=True)
        found.merge(before.findings)
        after = before
        for _ in range(_ROUNDS if repair else 0):
            if after.sound:
                break
            try:
                reasons = self._mend(scope, collection, after)
            except NotFoundError:
                reasons = Findings()  # the collection was deleted meanwhile, and with it what was wrong
            except ModelChangedError:
                collection, reasons = self._collections.get(scope, collection.name), Findings()
            after = self._diagnose(scope, collection, deep=deep)
            after.findings.merge(reasons)
        left.merge(after.findings)
        self._advance(collection.chunk_count)

    def _diagnose(self, scope: Scope, collection: Collection, *, deep: bool) -> _Diagnosis:
        diagnosis = _Diagnosis()
        with snapshot(self._database, scope) as connection:
            moment = CollectionSnapshot(connection, scope, collection)
            if not moment.exists():
                return diagnosis
            diagnosis.findings.merge(moment.rows_beside())
            diagnosis.findings.merge(moment.counters())
            self._look_at_texts(moment, diagnosis, collection)
            self._look_at_terms(moment, diagnosis, collection, deep=deep)
            self._look_at_tokens(moment, diagnosis, deep=deep)
        diagnosis.findings.add("dense_index", self._index_missing(scope, collection), f"collection {collection.name!r}")
        return diagnosis

    def _look_at_texts(self, moment: CollectionSnapshot, diagnosis: _Diagnosis, collection: Collection) -> None:
        findings, seen = diagnosis.findings, 0
        for version in moment.versions():
            faults = examine(version)
            which = f"document {version.document_id} ({version.uri})"
            findings.add("missing_contents", faults.content_missing, which)
            findings.add("content_hashes", faults.content_changed, which)
            findings.add("chunk_counts", faults.chunks_miscounted, which)
            findings.add("chunk_positions", faults.positions_broken, which)
            findings.add("chunk_texts", len(faults.misplaced), which)
            findings.add("chunk_hashes", len(faults.stale), which)
            if faults.of_the_text or faults.stale:
                diagnosis.broken.setdefault(version.version_id, {})
            seen += len(version.chunks) if version.current else 0
            self._show(min(seen, collection.chunk_count))

    def _look_at_terms(
        self, moment: CollectionSnapshot, diagnosis: _Diagnosis, collection: Collection, *, deep: bool
    ) -> None:
        indexer, kept = self._indexer(collection), moment.reference_length()
        length, compared = kept or 0.0, 0
        found: list[int] = []
        for page in moment.terms(deep=deep):
            wrong = list(wrong_rows(page, indexer, reference_length=length)) if length else None
            if compared == 0 and page and (wrong is None or len(wrong) > len(page) // 2):
                recovered = recovered_length(page, indexer) or kept or 1.0
                if differs(kept, recovered):
                    diagnosis.findings.add("reference_length", 1, f"collection {collection.name!r}")
                    diagnosis.reference_length = length = recovered
                    wrong = list(wrong_rows(page, indexer, reference_length=length))
            compared += len(page)
            for one in wrong or ():
                found.append(one.chunk_id)
                diagnosis.add_broken(one.version_id, one.chunk_id, "lexical")
        diagnosis.findings.add("lexical_rows", len(found), f"chunk {min(found, default=0)}")
        diagnosis.sampled |= bool(found)
        if not deep and compared == SAMPLE_ROWS:
            diagnosis.findings.note(
                "lexical_rows", f"{SAMPLE_ROWS:,} rows a collection were compared, chosen by hash; --deep compares all"
            )

    def _look_at_tokens(self, moment: CollectionSnapshot, diagnosis: _Diagnosis, *, deep: bool) -> None:
        unreadable = []
        for chunk_id, version_id, packed in moment.token_vectors(deep=deep):
            if not self._readable(packed):
                unreadable.append(chunk_id)
                diagnosis.add_broken(version_id, chunk_id, "tokens")
        diagnosis.findings.add("token_vectors", len(unreadable), f"chunk {min(unreadable, default=0)}")
        diagnosis.sampled |= bool(unreadable)

    def _index_missing(self, scope: Scope, collection: Collection) -> bool:
        # Twice: an index that is being built this very moment is neither missing nor broken.
        for wait in (_LOOK_AGAIN_SECONDS, 0):
            now = self._collections.find(scope, collection.name)
            if now is None:
                return False
            state = next((s for s in index_states(self._database) if s.space_id == now.space_id), None)
            counted = now.stats_pending < _UNCOUNTED_SHARE * max(now.stats_chunks, 1)
            due = counted and self._dense_indexer.due(scope, now.name)
            unusable = state is not None and not state.valid
            if (state is not None and state.busy) or not (due or unusable):
                return False
            time.sleep(wait)
        return True

    def _mend(self, scope: Scope, collection: Collection, diagnosis: _Diagnosis) -> Findings:
        """Mend what was found, in an order in which nothing is made of what is wrong still; returns what is left."""
        reasons = Findings()
        mender = Mender(self._database, scope)
        if diagnosis.reference_length is not None:
            mender.set_reference_length(collection, diagnosis.reference_length)
        mender.mend_copies(collection)
        collection = self._collections.get(scope, collection.name)
        with snapshot(self._database, scope) as connection:
            for version_id, chunk_id, part in CollectionSnapshot(connection, scope, collection).broken(
                diagnosis.findings
            ):
                diagnosis.add_broken(version_id, chunk_id, part)
        repairer = Repairer(
            mender,
            self._collections,
            scope=scope,
            collection=collection,
            indexer=self._indexer(collection),
            preparer=lambda: self._preparer(scope, collection),
            found=diagnosis.findings,
            left=reasons,
            on_mended=self._mended(len(diagnosis.broken)),
        )
        repairer.mend(diagnosis.broken)
        mender.recount(collection)
        self._collections.refresh_term_stats(scope, collection)
        if "dense_index" in diagnosis.findings.counts:
            self._mend_index(scope, collection)
        return reasons

    def _mend_index(self, scope: Scope, collection: Collection) -> None:
        if self._dense_indexer.due(scope, collection.name):
            self._dense_indexer.build(scope, collection.name)
        else:
            drop_index(self._database, collection.space_id)

    def _show(self, seen: int) -> None:
        if self._on_progress:
            self._on_progress(VerifyProgress("checking", self._done + seen, self._total))

    def _mended(self, total: int) -> Callable[[], None]:
        done = 0

        def count() -> None:
            nonlocal done
            done += 1
            if self._on_progress:
                self._on_progress(VerifyProgress("mending", done, total))

        return count

    def _advance(self, chunks: int) -> None:
        self._done += chunks
        self._show(0)


def _check(name: str, found: Findings, left: Findings, *, repair: bool) -> VerifyCheck:
    # What is mended can bring to light more of the same.
    remaining = left.counts[name]
    count = max(found.counts[name], remaining)
    said = [CHECKS[name]]
    instance = left.instances.get(name) or found.instances.get(name)
    if count and instance:
        said.append(f"for instance {instance}")
    notes = [*left.notes.get(name, ()), *found.notes.get(name, ())]
    said += dict.fromkeys(notes)
    return VerifyCheck(name=name, found=count, repaired=count - remaining if repair else 0, detail="; ".join(said))
