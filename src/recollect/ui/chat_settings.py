"""What a question is asked of, and by whom it is answered: collections, model, moment; chosen in the page's address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Query

from recollect.errors import UsageError
from recollect.pipeline import View
from recollect.server.openai.model_names import EXTRACTIVE, configured_model, may_be_named, named_models, written_by
from recollect.server.schemas.base import Moment, Name


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What somebody has chosen.

    Attributes:
        collections: Where is searched; none: everywhere.
        model: What writes; None: as configured.
        as_of: What was known then.
    """

    collections: tuple[str, ...] = ()
    model: str | None = None
    as_of: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What there is to choose from, and what is chosen.

    Attributes:
        collections: Those that may be read.
        models: Those that may be named.
        configured: Which model writes where none is chosen; None: none does.
        chosen: What is chosen.
    """

    collections: Sequence[str]
    models: Sequence[str]
    configured: str | None
    chosen: Choices

    @property
    def writer(self) -> str | None:
        """Which model writes the next answer; None: answers are quotes."""
        chosen = self.chosen.model
        return self.configured if chosen is None else None if chosen == EXTRACTIVE else chosen


async def _choices(
    collection: Annotated[tuple[Name, ...], Query(max_length=100)] = (),
    model: Annotated[str, Query(max_length=500)] = "",
    as_of: Annotated[Moment, Query()] = "",
) -> Choices:
    return Choices(collections=collection, model=model or None, as_of=as_of or None)


#: What the page's address says.
Given = Annotated[Choices, Depends(_choices)]


def settings_of(view: View, chosen: Choices) -> Settings:
    """What there is to choose from.

    Args:
        view: Of whoever asks.
        chosen: What is chosen; what there is not is passed over.
    """
    names = sorted(one.name for one in view.collections.list())
    models = named_models(view)
    known = chosen.model is not None and may_be_named(view, chosen.model)
    return Settings(
        collections=names,
        models=[one for one in models if one != EXTRACTIVE],
        configured=configured_model(view),
        chosen=Choices(
            collections=tuple(one for one in chosen.collections if one in names),
            model=chosen.model if known else None,
            as_of=chosen.as_of,
        ),
    )


def require_model(view: View, model: str | None) -> str | None:
    """The language model as `Conversation` takes it, where it may be named.

    Raises:
        UsageError: It may not.
    """
    if model is not None and not may_be_named(view, model):
        raise UsageError(
            f"There is no language model {model[:200]!r} to choose here. You can choose: "
            f"{', '.join(named_models(view))}. `answer_models` in [rag.server] names them."
        )
    return written_by(view, model)
