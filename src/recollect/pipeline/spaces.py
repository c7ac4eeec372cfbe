"""The embedding model of a view's collection: changed while it is searched, changed back, and what stands beside it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.errors import UsageError
from recollect.model.arguments import checked
from recollect.pipeline.standpoint import Group

if TYPE_CHECKING:
    from recollect.ingest.reembedding import FillCallback
    from recollect.model.space import Space, SpaceReport
    from recollect.pipeline.reembedding import Compare, Reembedding, ReembedReport, StageCallback

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

    def drop(self) -> list[Space]:
        """Remove what is kept of the model before, and what was begun of another one; returns what that was.

        Raises:
            NotFoundError: There is no such collection.
            ConflictError: Somebody is filling a space.
        """
        return self._change().drop()

    def status(self) -> SpaceReport:
        """The space that the collection uses, and those beside it.

        Raises:
            NotFoundError: There is no such collection.
        """
        from recollect.model.space import SpaceFill, SpaceReport, kept_until

        scope, spaces = self._at.owner(), self._at.store.spaces
        place = self._at.place(scope)
        beside = []
        for space in spaces.beside(scope, place.collection_id):
            total, filled = spaces.counts(scope, space)
            until = kept_until(space, self._at.config.embedding.keep_previous_days)
            beside.append(SpaceFill(space=space, filled=filled, total=total, kept_until=until))
        return SpaceReport(collection=place.name, used=spaces.used(scope, place.collection_id), beside=tuple(beside))

    def _change(
        self,
        *,
        rest: float = 0.0,
        on_progress: FillCallback | None = None,
        on_stage: StageCallback | None = None,
    ) -> Reembedding:
        from recollect.pipeline.reembedding import Reembedding

        return Reembedding(at=self._at, rest=rest, on_progress=on_progress, on_stage=on_stage)

    def _compare(self, cases: Path | None, samples: int) -> Compare | None:
        from recollect.pipeline.space_trial import compare_on_cases, compare_on_samples

        if cases is not None:
            from recollect.evaluation.case_files import load_suite

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
