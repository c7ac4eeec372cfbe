"""``/v1/models``: collections, and the language models that answer from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal

from typing_extensions import TypedDict

from recollect.config import DEFAULT_COLLECTION
from recollect.pipeline.models import EXTRACTIVE, model_name
from recollect.server.dependencies import Reader
from recollect.server.openai.errors import RefusedRequestError, resource

if TYPE_CHECKING:
    from recollect.pipeline import View


router = resource()


class ModelJson(TypedDict):
    """Something that can be asked."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelListJson(TypedDict):
    """All that can be asked."""

    object: Literal["list"]
    data: list[ModelJson]


@router.get("/models", summary="List what OpenAI's clients can ask")
def models(caller: Reader) -> ModelListJson:
    """`recollect` for all collections that may be read, `recollect/hr` for the collection `hr`.

    Each is listed with the language models, too, that may be named instead of the configured one.
    """
    return {"object": "list", "data": list(_models(caller))}


@router.get("/models/{model:named_path}", summary="Show one of them")
def model(model: str, caller: Reader) -> ModelJson:
    """Also one that is not listed, because a pattern of `answer_models` stands for it."""
    choice = chosen(caller, model)
    created = {one.name: int(one.created_at.timestamp()) for one in caller.collections.each()}
    return _model(model, created.get(choice.collection or "", 0))


def _models(view: View) -> Iterator[ModelJson]:
    found = view.collections.each()
    others = [one for one in named_models(view) if one != (configured_model(view) or EXTRACTIVE)]
    for name, created in [(EVERYWHERE, 0), *((place_of(c.name), int(c.created_at.timestamp())) for c in found)]:
        yield _model(name, created)
        for written_by in others:
            yield _model(f"{name}@{written_by}", created)


def _model(name: str, created: int) -> ModelJson:
    return {"id": name, "object": "model", "created": created, "owned_by": "recollect"}


# What OpenAI's clients call a model: a collection, and what writes the answers from it.


#: Every collection that may be read; a collection's name stands behind it and a slash.
EVERYWHERE = "recollect"


# A message names so many collections and language models at most.
_NAMED = 20


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
    """What a request means by a model.

    ``recollect`` (or ``*``) is every collection, ``recollect/COLLECTION`` (or ``COLLECTION``) one of them; ``@MODEL``
    behind it, or a language model alone, names what writes the answer. A language model alone answers from the
    configured collection.

    Args:
        view: Whose collections.
        name: As the request has it.

    Raises:
        RefusedRequestError: There is no such collection that may be read, or the language model may not be named.
    """
    names = {DEFAULT_COLLECTION, *(one.name for one in view.collections.each())}
    # The names that are listed count before those that were listed once.
    places: dict[str, str | None] = {one: one for one in names}
    places |= {place_of(one): one for one in names}
    places |= {EVERYWHERE: None, "*": None}
    for place, model in _readings(name):
        if place in places and (model is None or may_be_named(view, model)):
            return Choice(places[place], written_by(view, model))
    if may_be_named(view, name):
        return Choice(view.config.collection, written_by(view, name))
    raise unknown_model(view, name)


def place_of(collection: str) -> str:
    """The name under which a collection is listed."""
    return f"{EVERYWHERE}/{collection}"


def unknown_model(view: View, name: str, *others: str) -> RefusedRequestError:
    """The error for a model that does not exist, or that may not be used; it lists those that may.

    Args:
        view: Of whoever asks.
        name: As the request has it.
        others: What exists beside collections; nothing: language models.
    """
    places = [EVERYWHERE, *(place_of(one.name) for one in view.collections.list(limit=_NAMED))]
    models = others or tuple(named_models(view)[:_NAMED])
    return RefusedRequestError(
        f"The model {name[:200]!r} does not exist or you do not have access to it. You have: {', '.join(places)}; "
        f"{', '.join(models)}. GET /v1/models lists them all.",
        param="model",
        code="model_not_found",
        status=404,
    )


def may_be_named(view: View, model: str) -> bool:
    """Whether requests may have this language model write: it is configured, or among ``answer_models``."""
    return model in _names(view) or any(fnmatchcase(model, one) for one in view.config.server.answer_models)


def written_by(view: View, model: str | None) -> str | None:
    """A language model that may be named as `Conversation` takes it; None: as configured."""
    return None if model is None else _names(view).get(model, model)


def named_models(view: View) -> list[str]:
    """The language models that requests may name; without those that only a pattern stands for."""
    return list(dict.fromkeys(one for one in _names(view).values() if one is not None))


def configured_model(view: View) -> str | None:
    """The language model that writes where none is named, without loading it; None: answers are quotes."""
    given = view.standpoint.assembly.given_chat_model
    configured = model_name(view.config.answer) if given is None else given.model_name
    return None if configured == EXTRACTIVE else configured


def _names(view: View) -> dict[str, str | None]:
    """By each name of a language model, whole or without its provider, what `Conversation` takes for it."""
    given = view.standpoint.assembly.given_chat_model
    names: dict[str, str | None] = {} if given is None else {given.model_name: None}
    listed = [EXTRACTIVE, model_name(view.config.answer), *view.config.server.answer_models]
    whole = [one for one in listed if not set("*?[") & set(one)]
    names |= {one: one for one in whole}
    for one in whole:
        names.setdefault(one.partition("/")[2] or one, one)
    return names


def _readings(name: str) -> Iterator[tuple[str, str | None]]:
    """A name whole, and cut at each ``@``, which both parts may hold."""
    yield name, None
    cut = name.find("@")
    while cut >= 0:
        yield name[:cut], name[cut + 1 :]
        cut = name.find("@", cut + 1)
