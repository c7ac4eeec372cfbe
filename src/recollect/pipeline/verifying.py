"""A whole store checked against itself, and mended."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from recollect.errors import ModelChangedError, NotFoundError, ProviderError, StoreError, UsageError
from recollect.model import Scope
from recollect.pipeline.verifying_collections import CollectionCheck
from recollect.store.collections import CollectionRepository
from recollect.store.indexes import drop_index
from recollect.store.verification.mending import Mender
from recollect.store.verification.reading import index_states, misembedded_facts, outside, tenant_ids
from recollect.store.verification.report import CHECKS, Findings, VerifyCheck, VerifyProgress, VerifyReport
from recollect.store.verification.schema import (
    damaged_index,
    mend_schema,
    missing_parts,
    rebuild_index,
    unreadable_tables,
)

if TYPE_CHECKING:
    from recollect.model.collection import Collection
    from recollect.pipeline.assembly import Assembly

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
