"""Searches as OpenAI's API asks for them: its filters, its vector stores, and its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from recollect.model.filter import FIELDS
from recollect.operations.values import Name
from recollect.server.bodies import Body
from recollect.server.openai.errors import RefusedRequestError
from recollect.server.openai.files import file_id

if TYPE_CHECKING:
    from recollect.model import RetrievedContext
    from recollect.model.collection import Collection
    from recollect.pipeline import View
    from recollect.server.openai.files import Made

Attributes = dict[str, str | float | bool]

_STORE = "vs_"
_OPERATORS = frozenset({"eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"})
_DEPTH = 16
_ATTRIBUTES = 16
_VALUE_CHARACTERS = 512


class RankingOptions(Body):
    """How results are ordered, and which are left out."""

    # ``ranker`` and weights are OpenAI's: how results are ranked is configured.
    model_config = ConfigDict(extra="ignore", frozen=True)

    score_threshold: float | None = Field(None, ge=0, le=1, description="Only results at least so relevant.")


class FileSearchTool(Body):
    """Where an answer is searched, in place of the collection that the model names."""

    type: Literal["file_search"]
    vector_store_ids: tuple[Name, ...] = Field(min_length=1, max_length=100)
    max_num_results: int | None = Field(None, ge=1, le=50)
    filters: dict[str, Any] | None = None
    ranking_options: RankingOptions | None = None


class FileSearchResultJson(TypedDict):
    """A passage that was found."""

    file_id: str
    filename: str
    score: float
    text: str
    attributes: Attributes


def store_id(place: Collection) -> str:
    """What a collection is called as a vector store."""
    return f"{_STORE}{place.collection_id}"


def vector_store(view: View, name: str) -> Collection:
    """The collection that a vector store's id means, or that has this name.

    Raises:
        RefusedRequestError: There is none that may be read.
    """
    for place in view.collections.each():
        if name in {store_id(place), place.name}:
            return place
    raise RefusedRequestError(
        f"Vector store with id {name[:200]!r} not found.", param=None, code="vector_store_not_found", status=404
    )


def read_filters(given: Mapping[str, Any] | None, *, param: str = "filters") -> dict[str, Any] | None:
    """A filter of OpenAI's API in the language of `recollect.model.filter`.

    A key is a field of documents (``department``, ``source``, …), or otherwise of their metadata.

    Raises:
        RefusedRequestError: It is none.
    """
    return None if given is None else _read(given, param, _DEPTH)


def _read(given: object, param: str, depth: int) -> dict[str, Any]:
    if not isinstance(given, Mapping) or not depth:
        raise _no_filter(param)
    kind = given.get("type")
    if kind in {"and", "or"}:
        parts = given.get("filters")
        if not isinstance(parts, Sequence) or isinstance(parts, str) or not parts:
            raise _no_filter(param)
        return {str(kind): [_read(part, f"{param}.filters", depth - 1) for part in parts]}
    key = given.get("key")
    if kind not in _OPERATORS or not isinstance(key, str) or not key or "value" not in given:
        raise _no_filter(param)
    return {key if key in FIELDS else f"metadata.{key}": {str(kind): given["value"]}}


def _no_filter(param: str) -> RefusedRequestError:
    return RefusedRequestError(
        'A filter is {"type": "eq", "key": …, "value": …} with eq, ne, gt, gte, lt, lte, in or nin, or {"type": "and", '
        '"filters": […]} with and or or.',
        param=param,
        code="invalid_value",
    )


def attributes_of(metadata: Mapping[str, Any], department: str | None) -> Attributes:
    """What this API can tell of a document: single values, by name."""
    told: Attributes = {} if department is None else {"department": department}
    for key, value in metadata.items():
        if len(told) == _ATTRIBUTES:
            break
        if isinstance(value, str | int | float | bool):
            told[str(key)[:64]] = value[:_VALUE_CHARACTERS] if isinstance(value, str) else value
    return told


def result_json(found: RetrievedContext, made: Made) -> FileSearchResultJson:
    """A passage.

    Args:
        found: Which.
        made: The files that documents were made from.
    """
    return {
        "file_id": file_id(found.document_id, made),
        "filename": found.source,
        # Of passages by words alone nothing is known but their order.
        "score": found.score if found.relevance is None else found.relevance,
        "text": found.content,
        "attributes": attributes_of(found.metadata, found.department),
    }
