"""What OpenAI's clients call a model: a collection, and what writes the answers from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from recollect.config import DEFAULT_COLLECTION
from recollect.server.openai.errors import RefusedRequestError

if TYPE_CHECKING:
    from recollect.pipeline import View

#: Stands for every collection that may be read.
EVERYWHERE = "*"


@dataclass(frozen=True, slots=True)
class Choice:
    """What a model's name says.

    Attributes:
        collection: Where is searched; None: everywhere.
        model: What writes the answer, as ``provider/model``; None: as configured.
    """

    collection: str | None
    model: str | None


def chosen(view: View, name: str) -> Choice:
    """What a request means by ``COLLECTION`` or ``COLLECTION@PROVIDER/MODEL``; ``*`` is every collection.

    Args:
        view: Whose collections.
        name: As the request has it.

    Raises:
        RefusedRequestError: There is no such collection that may be read, or the language model may not be named.
    """
    places = {EVERYWHERE, DEFAULT_COLLECTION, *(one.name for one in view.collections.list())}
    for collection, model in _readings(name):
        if collection in places and (model is None or may_be_named(view, model)):
            return Choice(None if collection == EVERYWHERE else collection, model)
    raise unknown_model(name)


def unknown_model(name: str) -> RefusedRequestError:
    """What is said of a model that there is not, or that may not be used."""
    return RefusedRequestError(
        f"The model {name[:200]!r} does not exist or you do not have access to it: GET /v1/models lists those that you "
        "have.",
        param="model",
        code="model_not_found",
        status=404,
    )


def may_be_named(view: View, model: str) -> bool:
    """Whether requests may have this language model write: it is configured, or among ``answer_models``."""
    return model in _always(view) or any(fnmatchcase(model, one) for one in view.config.server.answer_models)


def named_models(view: View) -> list[str]:
    """The language models that requests may name; without those that only a pattern stands for."""
    given = (one for one in view.config.server.answer_models if not set("*?[") & set(one))
    return list(dict.fromkeys([*_always(view), *given]))


def _always(view: View) -> list[str]:
    settings = view.config.answer
    configured = (
        [] if settings.provider == "extractive" else [f"{settings.provider}/{settings.model or ''}".rstrip("/")]
    )
    return ["extractive", *configured]


def _readings(name: str) -> Iterator[tuple[str, str | None]]:
    """A name whole, and cut at each ``@``, which both parts may hold."""
    yield name, None
    cut = name.find("@")
    while cut >= 0:
        yield name[:cut], name[cut + 1 :]
        cut = name.find("@", cut + 1)
