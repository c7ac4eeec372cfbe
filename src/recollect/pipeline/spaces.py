"""The embedding model of a view's collection: changed while it is searched, changed back, and what stands beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from recollect.errors import NotFoundError, UsageError
from recollect.evaluation.case_files import CaseSearch, Suite, load_suite
from recollect.evaluation.compare import TOP, SpaceComparison, compare_cases, compare_samples, sample_of
from recollect.ingest.reembedding import FillCallback, SpaceFiller
from recollect.model import RetrievalOptions, RetrievedContext, Scope
from recollect.model.arguments import checked
from recollect.model.page import Page
from recollect.model.record import json_of
from recollect.model.scope import Target
from recollect.model.space import Space, SpaceFill, SpaceReport, kept_until
from recollect.pipeline.preparing import cached_embedder, chunker, token_packer
from recollect.pipeline.searching import make_trial_searcher
from recollect.pipeline.standpoint import Group, Standpoint

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider
    from recollect.model.collection import Collection
    from recollect.model.embedding_spec import EmbeddingSpec
    from recollect.store.spaces import SpaceRepository


_MOST_REST = 1_000.0


_MOST_SAMPLES = 1_000


@checked
class Spaces(Group):
    """The vector spaces of a view's collection; see `recollect.View`. For the owner of the store.

    A collection's chunks have vectors of one model. Another model makes another space of them, beside the first, while
    searches and ingests go on; then the collection changes to it, and the one before is kept for the way back.
    """

    def reembed(
        self,
        model: str,
        *,
        provider: str | None = None,
        dimensions: int | None = None,
        cases: Path | str | None = None,
        samples: int = 100,
        minimum: Mapping[str, float] | None = None,
        switch: bool = True,
        rest: float = 1.0,
        on_progress: FillCallback | None = None,
        on_stage: StageCallback | None = None,
    ) -> ReembedReport:
        """Embed everything in the collection with another model, compare the two, and change to it.

        Whatever interrupts it, it goes on where it was when it is called again with the same model. The space of a
        model that was kept before is removed first.

        Args:
            model: As its provider names it, or as collections show theirs.
            provider: As ``[rag.embedding]`` names it; None: the configured one.
            dimensions: The length of a vector; None: the model's own.
            cases: A YAML file of test cases, to compare by; None: questions drawn from the collection's own chunks.
            samples: How many of these, 0 to 1,000; 0: nothing is compared.
            minimum: What figures of the new model must reach, by name; else nothing is changed.
            switch: Whether to change to it in the end.
            rest: How long to rest after each batch, in multiples of what it took, so that searches have the machine.
            on_progress: Told after every batch.
            on_stage: Told when it begins to compare and to change, by the words ``compare`` and ``switch``.

        Raises:
            UsageError: The model is not known here or is the collection's, or an argument is not valid.
            ConflictError: Somebody else is at it, another model was begun, or more is written than can be embedded.
            NotFoundError: There is no such collection or file.
        """
        require_reembedding(cases, samples=samples, minimum=minimum, rest=rest)
        spec = self._at.assembly.embedders.spec_of_name(model, provider=provider, dimensions=dimensions)
        compare = self._compare(None if cases is None else Path(cases), samples)
        change = self._change(rest=rest, on_progress=on_progress, on_stage=on_stage)
        return change.to(spec, compare=compare, minimum=minimum or {}, switch=switch)

    def reembedded(
        self, model: str, *, provider: str | None = None, dimensions: int | None = None
    ) -> ReembedReport | None:
        """What became of a change to a model that the collection has already; None: it has another one.

        The arguments are those of `reembed`.

        Raises:
            UsageError: The model is not known here.
            NotFoundError: There is no such collection.
        """
        spec = self._at.assembly.embedders.spec_of_name(model, provider=provider, dimensions=dimensions)
        return self._change().done(spec)

    def rollback(self, *, rest: float = 0.0, on_progress: FillCallback | None = None) -> ReembedReport:
        """Change back to the model before, after embedding with it what came since; the arguments are `reembed`'s.

        Raises:
            NotFoundError: There is no such collection, or nothing is kept of a model that it had.
            ConflictError: Somebody else is at it.
        """
        return self._change(rest=rest, on_progress=on_progress).back()

    def drop(self) -> Page[Space]:
        """Remove what is kept of the model before, and what was begun of another one; returns what that was.

        Raises:
            NotFoundError: There is no such collection.
            ConflictError: Somebody is filling a space.
        """
        return Page(tuple(self._change().drop()))

    def status(self) -> SpaceReport:
        """The space that the collection uses, and those beside it.

        Raises:
            NotFoundError: There is no such collection.
        """
        scope, spaces = self._at.owner(), self._at.store.spaces
        place = self._at.place(scope)
        beside = []
        for space in spaces.beside(scope, place.collection_id):
            total, filled = spaces.counts(scope, space)
            until = kept_until(space, self._at.config.embedding.keep_previous_days)
            known = {field.name: getattr(space, field.name) for field in fields(space)}
            beside.append(SpaceFill(**known, filled=filled, total=total, kept_until=until))
        return SpaceReport(collection=place.name, used=spaces.used(scope, place.collection_id), beside=tuple(beside))

    def _change(
        self,
        *,
        rest: float = 0.0,
        on_progress: FillCallback | None = None,
        on_stage: StageCallback | None = None,
    ) -> Reembedding:
        return Reembedding(at=self._at, rest=rest, on_progress=on_progress, on_stage=on_stage)

    def _compare(self, cases: Path | None, samples: int) -> Compare | None:
        if cases is not None:
            return partial(compare_on_cases, self._at, load_suite(cases))
        return partial(compare_on_samples, self._at, samples) if samples else None


def require_reembedding(
    cases: Path | str | None, *, samples: int, minimum: Mapping[str, float] | None, rest: float
) -> None:
    """Refuse what a re-embedding could not be asked for; the arguments are those of `Spaces.reembed`.

    Raises:
        UsageError: A number is out of range, or figures are to be reached that are not measured.
    """
    if not 0 <= rest <= _MOST_REST or not 0 <= samples <= _MOST_SAMPLES:
        raise UsageError(
            f"rest is from 0 to {_MOST_REST:,.0f} and samples are from 0 to {_MOST_SAMPLES:,}, not {rest} "
            f"and {samples}."
        )
    if minimum and cases is None and not samples:
        raise UsageError("There are no figures to reach (minimum) without samples or cases.")


# Changing a collection's embedding model while it is searched and written to.


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
            "dropped": [json_of(one) for one in self.dropped],
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


# A collection searched in the space that it uses and in another, on the same questions.


def compare_on_samples(at: Standpoint, count: int, used: Collection, other: Collection) -> SpaceComparison | None:
    """Compare by questions drawn from the collection's own chunks, by vectors alone; None: it has no chunks."""
    scope = at.owner()
    chunks = at.store.spaces.sample(scope, used, limit=count)
    if not chunks:
        return None
    samples = [sample_of(*chunk) for chunk in chunks]
    first, second = (partial(_nearest, at, scope, seen) for seen in (used, other))
    return compare_samples(samples, first, second, names=_names(used, other))


def compare_on_cases(at: Standpoint, suite: Suite, used: Collection, other: Collection) -> SpaceComparison:
    """Compare by test cases, searched for as people search.

    Raises:
        UsageError: No case has must-haves.
    """
    first, second = (_searching(at, seen) for seen in (used, other))
    return compare_cases(suite, first, second, names=_names(used, other))


def _names(used: Collection, other: Collection) -> tuple[str, str]:
    return used.embedding_model, other.embedding_model


def _nearest(at: Standpoint, scope: Scope, place: Collection, query: str) -> list[int]:
    vector = at.assembly.embedders.of(place).embed_query(query)
    found = at.store.search.dense(scope, place, vector, limit=TOP, indexed=place.indexed)
    return [chunk_id for chunk_id, _ in found]


def _searching(at: Standpoint, place: Collection) -> Callable[[CaseSearch], Sequence[RetrievedContext]]:
    def seen(found: Collection) -> Collection:
        if found.collection_id != place.collection_id:
            return found
        changed = {
            name: getattr(place, name)
            for name in ("space_id", "embedding_model", "embedding_dimension", "embedding_spec", "indexed")
        }
        return replace(found, **changed)

    searcher = make_trial_searcher(
        at.store, at.assembly.embedders, at.config, seen=seen, rerankers=at.assembly.rerankers
    )
    scope, options = at.owner(), RetrievalOptions()

    def search(asked: CaseSearch) -> Sequence[RetrievedContext]:
        target = Target(collections=(place.name,))
        return searcher.search(replace(scope, as_of=asked.as_of), asked.query, asked.options(options), target).results

    return search
