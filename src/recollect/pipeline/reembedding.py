"""Changing a collection's embedding model while it is searched and written to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from recollect.errors import NotFoundError, UsageError
from recollect.ingest.reembedding import FillCallback, SpaceFiller
from recollect.model.space import Space
from recollect.pipeline.preparing import cached_embedder, chunker, token_packer

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider
    from recollect.evaluation.space_comparison import SpaceComparison
    from recollect.model import Scope
    from recollect.model.collection import Collection
    from recollect.model.embedding_spec import EmbeddingSpec
    from recollect.pipeline.standpoint import Standpoint
    from recollect.store.spaces import SpaceRepository

#: Told the name of what begins.
StageCallback: TypeAlias = "Callable[[str], None]"

#: Compares a collection in the space that it uses, and in another.
Compare: TypeAlias = "Callable[[Collection, Collection], SpaceComparison | None]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReembedReport:
    """What became of a collection's embedding model.

    Attributes:
        collection: Its name.
        before: The space that was used.
        after: The other one.
        embedded: Chunks that were embedded for it now.
        switched: Whether the collection uses it from now on.
        dropped: Spaces that were removed, because their time was over.
        comparison: How the two fare; None: they were not compared.
        refused: Why nothing was changed: the figures that are below what was wanted of them.
    """

    collection: str
    before: Space
    after: Space
    embedded: int
    switched: bool
    dropped: tuple[Space, ...] = ()
    comparison: SpaceComparison | None = None
    refused: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """As the command line and a job's result show it."""
        return {
            "collection": self.collection,
            "from": {"model": self.before.model, "dimensions": self.before.dimension},
            "to": {"model": self.after.model, "dimensions": self.after.dimension},
            "embedded": self.embedded,
            "switched": self.switched,
            "comparison": None if self.comparison is None else self.comparison.as_json(),
            "refused": list(self.refused),
            "dropped": [
                {
                    "space": one.space_id,
                    "model": one.model,
                    "dimensions": one.dimension,
                    "status": one.status,
                    "since": one.since.isoformat(),
                }
                for one in self.dropped
            ],
        }


@dataclass(frozen=True, kw_only=True)
class Reembedding:
    """One collection's change to another model.

    Attributes:
        at: Where it stands; its owner asks.
        rest: How long to rest after a batch, in multiples of what it took.
        on_progress: Told how far it is.
        on_stage: Told what begins: ``compare``, ``switch``.
    """

    at: Standpoint
    rest: float = 0.0
    on_progress: FillCallback | None = None
    on_stage: StageCallback | None = None

    def to(
        self, spec: EmbeddingSpec, *, compare: Compare | None, minimum: Mapping[str, float], switch: bool
    ) -> ReembedReport:
        """Embed everything anew, compare, and change to it.

        Args:
            spec: The model.
            compare: Says how the two fare; None: nothing is compared.
            minimum: What the new model's figures must reach, by name; else nothing is changed.
            switch: Whether to change to it.
        """
        scope, place = self._place()
        with self._spaces.claim(scope, place.collection_id, place.name):
            dropped = self._finish_dropping(scope, place)
            embedder, remembered = require_other_model(self.at, place, spec)
            kept = [space for space in self._spaces.beside(scope, place.collection_id) if space.status == "kept"]
            again = [space for space in kept if space.model == embedder.model_name]
            if again:
                space = again[0]
            else:
                space = self._spaces.begin(
                    scope, place, model=embedder.model_name, dimension=embedder.dimension, spec=remembered
                )
                for one in kept:  # once it is sure that there will be another
                    self._spaces.drop(scope, one)
                dropped += kept
            return self._change(
                scope, place, space, compare=compare, minimum=minimum, switch=switch, action="reembed", dropped=dropped
            )

    def done(self, spec: EmbeddingSpec) -> ReembedReport | None:
        """What became of a change to a model that the collection has already; None: it has another one."""
        scope, place = self._place()
        embedder, _ = self.at.assembly.embedders.made(spec)
        if embedder.model_name != place.embedding_model:
            return None
        used = self._spaces.used(scope, place.collection_id)
        kept = [space for space in self._spaces.beside(scope, place.collection_id) if space.status == "kept"]
        return ReembedReport(collection=place.name, before=(*kept, used)[0], after=used, embedded=0, switched=True)

    def kept(self) -> Space:
        """The space of the model before.

        Raises:
            NotFoundError: Nothing is kept of it.
        """
        return self._kept(*self._place())

    def back(self, to: int | None = None) -> ReembedReport:
        """Change back to the model before, after embedding what came since.

        Args:
            to: The space that is meant, by its number: where it is used already, nothing is done; None: what is kept.

        Raises:
            NotFoundError: Nothing is kept of it.
        """
        scope, place = self._place()
        with self._spaces.claim(scope, place.collection_id, place.name):
            used = self._spaces.used(scope, place.collection_id)
            if to == used.space_id:
                before = next(iter(self._spaces.beside(scope, place.collection_id)), used)
                return ReembedReport(collection=place.name, before=before, after=used, embedded=0, switched=True)
            kept = self._kept(scope, place)
            if to is not None and to != kept.space_id:
                raise NotFoundError(
                    f"The model that the collection {place.name!r} was to go back to is kept no longer: it has changed "
                    "since then."
                )
            return self._change(
                scope, place, kept, compare=None, minimum={}, switch=True, action="reembed_rollback", dropped=[]
            )

    def drop(self) -> list[Space]:
        """Remove every space beside the one that is used; returns them."""
        scope, place = self._place()
        with self._spaces.claim(scope, place.collection_id, place.name):
            beside = self._spaces.beside(scope, place.collection_id)
            for space in beside:
                self._spaces.drop(scope, space)
            return beside

    @property
    def _spaces(self) -> SpaceRepository:
        return self.at.store.spaces

    def _place(self) -> tuple[Scope, Collection]:
        scope = self.at.owner()
        return scope, self.at.place(scope)

    def _kept(self, scope: Scope, place: Collection) -> Space:
        beside = self._spaces.beside(scope, place.collection_id)
        kept = next((space for space in beside if space.status == "kept"), None)
        if kept is None:
            raise NotFoundError(
                f"Nothing is kept of a model that the collection {place.name!r} had before: recollect reembed "
                "--model embeds it with any."
            )
        return kept

    def _finish_dropping(self, scope: Scope, place: Collection) -> list[Space]:
        beside = self._spaces.beside(scope, place.collection_id)
        interrupted = [space for space in beside if space.status == "dropping"]
        for space in interrupted:
            self._spaces.drop(scope, space)
        return interrupted

    def _change(
        self,
        scope: Scope,
        place: Collection,
        space: Space,
        *,
        compare: Compare | None,
        minimum: Mapping[str, float],
        switch: bool,
        action: str,
        dropped: list[Space],
    ) -> ReembedReport:
        before = self._spaces.used(scope, place.collection_id)
        filler = self._filler(scope, place, space)
        embedded = filler.fill()
        for indexer in (self.at.store.dense_indexer, self.at.store.history_indexer):
            indexer.build_space(scope, place.name, space)
        self._begin("compare")
        comparison = None if compare is None else compare(place, seen_in(place, space))
        refused = () if comparison is None else comparison.below(minimum)
        switched = switch and not refused
        if switched:
            self._begin("switch")
            embedded += filler.switch(action=action, actor=self.at.actor)
        return ReembedReport(
            collection=place.name,
            before=before,
            after=space,
            embedded=embedded,
            switched=switched,
            dropped=tuple(dropped),
            comparison=comparison,
            refused=refused,
        )

    def _begin(self, stage: str) -> None:
        if self.on_stage is not None:
            self.on_stage(stage)

    def _filler(self, scope: Scope, place: Collection, space: Space) -> SpaceFiller:
        embedder = self.at.assembly.embedders.of(seen_in(place, space))
        keeps = self.at.config.embedding.cache and not place.hidden
        return SpaceFiller(
            self._spaces,
            scope=scope,
            space=space,
            embedder=embedder,
            cached=cached_embedder(self.at.assembly, scope, embedder) if keeps else None,
            token_packer=token_packer(embedder) if place.token_vectors else None,
            rest=self.rest,
            on_progress=self.on_progress,
        )


def seen_in(place: Collection, space: Space) -> Collection:
    """A collection as it would be if it used another of its spaces."""
    return replace(
        place,
        space_id=space.space_id,
        embedding_model=space.model,
        embedding_dimension=space.dimension,
        embedding_spec=space.spec,
    )


def require_other_model(
    at: Standpoint, place: Collection, spec: EmbeddingSpec
) -> tuple[EmbeddingProvider, dict[str, Any]]:
    """The model that is wanted, and what collections remember of it.

    Raises:
        UsageError: It cannot be made, the collection has it already, or cannot be cut or reranked with it.
    """
    embedder, remembered = at.assembly.embedders.made(spec)
    if embedder.model_name == place.embedding_model:
        raise UsageError(f"The collection {place.name!r} is embedded with {embedder.model_name!r} already.")
    chunker(place.chunking, embedder, at.assembly.chunkers)
    if place.token_vectors:
        try:
            token_packer(embedder)
        except UsageError as exc:
            raise UsageError(
                f"The collection {place.name!r} stores token vectors, and {embedder.model_name!r} gives none: take a "
                "local model, or make a collection without them (recollect collections create) for its documents."
            ) from exc
    return embedder, remembered
