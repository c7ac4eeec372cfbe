"""``/v1/models``: collections, and the language models that answer from them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from typing_extensions import TypedDict

from recollect.pipeline.models import EXTRACTIVE
from recollect.server.dependencies import Reader
from recollect.server.openai.errors import resource
from recollect.server.openai.model_names import (
    EVERYWHERE,
    chosen,
    configured_model,
    named_models,
    place_of,
)

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
