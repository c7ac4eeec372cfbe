"""Reads what is stored of the chunks that one search found."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from recollect.model import Outline, Scope
    from recollect.retrieval.candidates import CandidateSource
    from recollect.retrieval.targets import Searched
    from recollect.store.search import SearchRepository
    from recollect.store.search_rows import Floats, PassageRow, Span, StretchRow

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class ChunkReader:
    """Reads chunks as whom they were found: no statement sees two tenants, a search may.

    Args:
        repository: Runs the statements.
        found: The collections that were searched, and the chunks that were found in each.

    Attributes:
        models: The embedding model of each chunk.
        namesakes: Chunks that were read of documents whose name another document of their collection has too.
    """

    def __init__(
        self,
        repository: SearchRepository,
        found: Sequence[tuple[Searched, Collection[int]]],
    ) -> None:
        self._repository = repository
        self.models = {chunk_id: one.collection.embedding_model for one, chunks in found for chunk_id in chunks}
        self.namesakes: set[int] = set()
        self._scope = found[0][0].scope
        self._scopes = {one.scope.tenant_id: one.scope for one, _ in found}
        several = len(self._scopes) > 1
        self._tenants = {c: one.scope.tenant_id for one, chunks in found for c in chunks} if several else {}
        self._spaces: dict[int, list[int]] = {}
        for one, _ in found:
            self._spaces.setdefault(one.scope.tenant_id, []).append(one.collection.space_id)
        self._of_versions: dict[int, int] = {}

    def passages(self, chunk_ids: Sequence[int], *, outlined: bool = False) -> dict[int, PassageRow]:
        """What is shown of given chunks, by chunk id; ``outlined``: with what `outlines` gives of the same spans."""
        read = partial(self._repository.passages, outlined=outlined)
        rows = self._each(chunk_ids, read, self._tenants.__getitem__)
        self.namesakes |= {chunk_id for chunk_id, row in rows.items() if row.has_namesake}
        if self._tenants:
            self._of_versions |= {row.version_id: self._tenants[chunk_id] for chunk_id, row in rows.items()}
        return rows

    def vectors(self, chunk_ids: Sequence[int]) -> dict[int, Floats]:
        """Stored vectors of given chunks."""

        def read(scope: Scope, own: Sequence[int]) -> dict[int, Floats]:
            return self._repository.vectors(scope, own, space_ids=self._spaces[scope.tenant_id])

        # Read together, vectors are of one length.
        of_model: dict[str | None, list[int]] = {}
        for chunk_id in chunk_ids:
            of_model.setdefault(self.models.get(chunk_id), []).append(chunk_id)
        parts = [self._each(own, read, self._tenants.__getitem__) for own in of_model.values()]
        return {chunk_id: vector for part in parts for chunk_id, vector in part.items()}

    def similarities(self, source: CandidateSource, embedding: Floats, chunk_ids: Sequence[int]) -> dict[int, float]:
        """Cosine similarities of given chunks."""

        def read(scope: Scope, own: Sequence[int]) -> dict[int, float]:
            return source.similarities(scope, embedding, own, space_ids=self._spaces[scope.tenant_id])

        return self._each(chunk_ids, read, self._tenants.__getitem__)

    def departments(self, scope: Scope, chunk_ids: Sequence[int]) -> dict[int, str | None]:
        """The departments of the documents of given chunks, those of the scope's tenant."""
        own = [chunk_id for chunk_id in chunk_ids if self._tenants.get(chunk_id, scope.tenant_id) == scope.tenant_id]
        return self._repository.departments(scope, own)

    def stretches(self, chunk_ids: Sequence[int], *, neighbours: int) -> dict[int, StretchRow]:
        """Given chunks with so many chunks before and after them."""

        def read(scope: Scope, own: Sequence[int]) -> dict[int, StretchRow]:
            return self._repository.stretches(scope, own, neighbours=neighbours)

        return self._each(chunk_ids, read, self._tenants.__getitem__)

    def spans(self, wanted: Sequence[Span]) -> dict[Span, str]:
        """The characters of versions whose passages were read."""
        return self._each(wanted, self._repository.spans, self._tenant_of)

    def outlines(self, spans: Sequence[Span]) -> dict[Span, Outline]:
        """What tells where the characters of versions stand whose passages were read."""
        return self._each(spans, self._repository.outlines, self._tenant_of)

    def _tenant_of(self, span: Span) -> int:
        return self._of_versions[span[0]]

    def _each(
        self,
        keys: Sequence[_Key],
        read: Callable[[Scope, Sequence[_Key]], dict[_Key, _Value]],
        tenant_of: Callable[[_Key], int],
    ) -> dict[_Key, _Value]:
        if not self._tenants:
            return read(self._scope, keys)
        grouped: dict[int, list[_Key]] = {}
        for key in keys:
            grouped.setdefault(tenant_of(key), []).append(key)
        parts = [read(self._scopes[tenant_id], own) for tenant_id, own in grouped.items()]
        return {key: value for part in parts for key, value in part.items()}
