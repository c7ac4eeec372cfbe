"""What is computed anew of every chunk of a collection: its vectors, and the sentences that situate chunks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recollect.client.calls.base import Call, Calls, Steps, once, reading, segment
from recollect.client.place import given
from recollect.errors import UsageError
from recollect.model.contexts import ContextEstimate
from recollect.model.job import Job
from recollect.model.page import Page
from recollect.model.space import Space, SpaceReport


class SpaceCalls(Calls):
    """The vector spaces of the view's collection; see `recollect.View.spaces`. `jobs.reembed` makes another."""

    def status(self) -> Steps[SpaceReport]:
        """The space that the collection uses, and those beside it."""
        self._at.require_present()
        path = _of((yield from self._collection()), "spaces")
        return (yield from once(Call(method="GET", path=path, read=reading(SpaceReport))))

    def drop(self) -> Steps[Page[Space]]:
        """Remove what is kept of the model before, and what was begun of another one; returns what that was."""
        self._at.require_present()
        path = _of((yield from self._collection()), "spaces")
        return (yield from once(Call(method="DELETE", path=path, read=reading(Page[Space]))))


class ModelCalls(Calls):
    """Jobs that ask a model about everything in the view's collection, and what they would take."""

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
    ) -> Steps[Job]:
        """Ask for everything to be embedded with another model; see `recollect.View.jobs`.

        Raises:
            UsageError: ``cases`` is given: a server compares by questions that it samples.
        """
        self._at.require_present()
        if cases is not None:
            raise UsageError("Leave cases (--cases) out: a server compares the models by questions that it samples.")
        body = given(
            model=model,
            provider=provider,
            dimensions=dimensions,
            samples=samples,
            minimum=dict(minimum or {}),
            switch=switch,
            pause=rest,
        )
        return (yield from _asked(self, "spaces", body))

    def rollback(self, *, rest: float = 0.0) -> Steps[Job]:
        """Ask for the change back to the model before; see `recollect.View.jobs`."""
        self._at.require_present()
        return (yield from _asked(self, "spaces/rollback", {"pause": rest}))

    def contextualise(self) -> Steps[Job]:
        """Ask for every chunk to be situated in its document by a sentence; see `recollect.View.jobs`."""
        self._at.require_present()
        return (yield from _asked(self, "contexts", None))

    def estimate_contexts(self) -> Steps[ContextEstimate]:
        """What `contextualise` would ask of the server's language model, about."""
        self._at.require_present()
        path = _of((yield from self._collection()), "contexts")
        return (yield from once(Call(method="GET", path=path, read=reading(ContextEstimate))))


def _asked(calls: Calls, what: str, body: Mapping[str, Any] | None) -> Steps[Job]:
    path = _of((yield from calls._collection()), what)
    return (yield from once(Call(method="POST", path=path, body=body, read=reading(Job))))


def _of(collection: str, what: str) -> str:
    return f"/v1/collections/{segment(collection)}/{what}"
