"""What every integration does alike: searches a view, says where a passage stands, and reads others' filters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from recollect.errors import UsageError
from recollect.installation import install_command
from recollect.model import RetrievalOptions, RetrievedContext
from recollect.model.filter import FIELDS
from recollect.pipeline.threads import Threads

if TYPE_CHECKING:
    from recollect.pipeline.view import View

#: A filter in recollect's own language (`recollect.model.filter`).
Filter = Mapping[str, Any]

#: What asynchronous retrievals run in: as many at a time as a store has connections, by default.
THREADS = Threads(10, name="recollect-integration")

#: Metadata that tells where a passage stands, and is no help to a language model that reads it.
PLACE_KEYS = ("document_id", "chunk_id", "start_offset", "end_offset", "relevance", "similarity")

_OPERATORS = {
    "==": "eq",
    "!=": "ne",
    ">": "gt",
    ">=": "gte",
    "<": "lt",
    "<=": "lte",
    "in": "in",
    "not in": "nin",
    "nin": "nin",
    "contains": "contains",
}


def missing(package: str, extra: str) -> str:
    """What the error says where a framework is not installed."""
    return f"{package} is not installed: {install_command(extra)}"


def passages(
    view: View,
    query: str,
    *,
    options: RetrievalOptions | None,
    top_k: int | None,
    filters: Filter | None,
) -> Sequence[RetrievedContext]:
    """The passages that answer a query.

    Args:
        view: Through which it searches.
        query: In plain words.
        options: How; None: the configured defaults.
        top_k: How many; None: as the options say.
        filters: Beside those of the options; None: no others.
    """
    given = options or RetrievalOptions()
    if top_k is not None:
        given = replace(given, top_k=top_k)
    if filters:
        both = [dict(one) for one in (given.filters, filters) if one]
        given = replace(given, filters=both[0] if len(both) == 1 else {"and": both})
    return view.retrieve(query, given)


def metadata(passage: RetrievedContext) -> dict[str, Any]:
    """Where a passage stands and what is known of it, beside its document's own metadata; all of it JSON."""
    told = {
        "source": passage.source,
        "given_id": passage.id,
        "title": passage.title,
        "document_id": passage.document_id,
        "chunk_id": passage.chunk_id,
        "start_offset": passage.start_offset,
        "end_offset": passage.end_offset,
        "section": passage.section,
        "page": passage.page,
        "department": passage.department,
        "tags": list(passage.tags) or None,
        "collection": passage.collection,
        "server": passage.server,
        "event_time": passage.event_time.isoformat() if passage.event_time else None,
        "relevance": passage.relevance,
        "similarity": passage.similarity,
        "notes": [note.text for note in passage.notes] or None,
    }
    return {**passage.metadata, **{name: value for name, value in told.items() if value is not None}}


def condition(field: str, operator: str, value: object, *, prefix: str = "") -> dict[str, Any]:
    """One comparison of another framework's filter, in recollect's language.

    Args:
        field: What is compared; what is no field of every document is a key of its metadata.
        operator: As the frameworks write it.
        value: With what.
        prefix: That fields of metadata have there.

    Raises:
        UsageError: There is no such operator.
    """
    name = field.removeprefix(prefix)
    if name not in FIELDS and not name.startswith("metadata."):
        name = f"metadata.{name}"
    if operator in {"==", "!="} and value is None:
        return {name: {"exists": operator == "!="}}
    if operator not in _OPERATORS:
        raise UsageError(f"The filter on {field!r} has the operator {operator!r}; known are {', '.join(_OPERATORS)}.")
    return {name: {_OPERATORS[operator]: value}}


def joined(how: str, parts: Sequence[Filter]) -> dict[str, Any]:
    """Filters joined by ``and``, ``or`` or ``not``; ``not`` of several: not all of them.

    Raises:
        UsageError: They are joined in another way.
    """
    match how.lower():
        case "and":
            return {"and": list(parts)}
        case "or":
            return {"or": list(parts)}
        case "not":
            return {"not": {"and": list(parts)}}
        case _:
            raise UsageError(f"Filters are joined by and, or and not, and not by {how!r}.")


async def in_thread(find: Callable[[], Sequence[RetrievedContext]]) -> Sequence[RetrievedContext]:
    """Search without blocking the event loop; cancelled, the search is ended."""
    return await THREADS.run(find)
