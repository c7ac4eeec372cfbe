"""Chunking strategies by name, recollect's own and those of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, TypeAlias

from recollect.chunking.chunkers import (
    FixedSizeChunker,
    HierarchicalChunker,
    MarkdownChunker,
    ParagraphChunker,
    RecursiveChunker,
    SemanticChunker,
    SlidingWindowChunker,
)
from recollect.errors import PluginError, UsageError
from recollect.familiar_names import meant_argument
from recollect.model import Chunk, Document
from recollect.plugins import Plugins, told

if TYPE_CHECKING:
    from recollect.chunking.base import ChunkingStrategy, NeighbourSimilarity, Tokenize


# A chunker that is not recollect's own: what it gives is looked at before anything is stored.


@dataclass(frozen=True, slots=True)
class PluggedChunker:
    """Cuts as another chunker does, and keeps its promise (`ChunkingStrategy`) or raises.

    Attributes:
        name: Of the strategy.
        inner: Cuts.
        parameters: What it was made with.
    """

    name: str
    inner: ChunkingStrategy
    parameters: Mapping[str, Any]

    def chunk(self, document: Document) -> list[Chunk]:
        """The document's chunks, in order.

        Raises:
            PluginError: The chunker failed, or some text would be lost or found in a wrong place.
        """
        where = f" on {document.source!r}" if document.source else ""
        try:
            chunks = list(self.inner.chunk(document))
        except Exception as exc:
            raise PluginError(f"The chunking strategy {self.name!r} failed{where}: {told(exc)}.") from exc
        wrong = _wrong_with(document.content, chunks)
        if wrong:
            raise PluginError(f"The chunking strategy {self.name!r} gave wrong chunks{where}: {wrong}.")
        return chunks


def _wrong_with(content: str, chunks: Sequence[object]) -> str:
    """What breaks the promise of `ChunkingStrategy`; empty: nothing."""
    begins, covered = 0, 0
    for place, chunk in enumerate(chunks):
        if not isinstance(chunk, Chunk):
            return f"number {place} is no Chunk, but {type(chunk).__name__}"
        start, end = chunk.start_offset, chunk.end_offset
        span = f"chunk {place} ({start!r} to {end!r})"
        if not _lies(start, end, len(content)) or content[start:end] != chunk.text:
            return f"{span} does not hold the document's characters from there to there"
        if not chunk.text.strip():
            return f"{span} is empty"
        if chunk.position != place or start < begins:
            return f"{span} is out of order: position is {chunk.position!r}"
        if chunk.parent is not None and not _holds(chunk.parent, start, end, len(content)):
            return f"{span} does not lie in its parent {chunk.parent!r}"
        if not all(isinstance(title, str) for title in chunk.section):
            return f"{span} has a section that is no tuple of titles: {chunk.section!r}"
        page: object = chunk.page
        if not isinstance(page, int | None):
            return f"{span} has a page that is no whole number: {page!r}"
        if content[covered:start].strip():
            return f"the characters {covered} to {start} are in no chunk"
        begins, covered = start, max(covered, end)
    return f"the characters from {covered} on are in no chunk" if content[covered:].strip() else ""


def _lies(start: object, end: object, length: int) -> bool:
    return isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= length


def _holds(parent: object, start: int, end: int, length: int) -> bool:
    return (
        isinstance(parent, tuple)
        and len(parent) == 2
        and _lies(*parent, length)
        and parent[0] <= start < end <= parent[1]
    )


Chunker: TypeAlias = (
    FixedSizeChunker
    | HierarchicalChunker
    | MarkdownChunker
    | ParagraphChunker
    | RecursiveChunker
    | SemanticChunker
    | SlidingWindowChunker
)

DEFAULT_STRATEGY = "recursive"

_STRATEGIES: dict[str, type[Chunker]] = {
    "fixed_size": FixedSizeChunker,
    "hierarchical": HierarchicalChunker,
    "markdown": MarkdownChunker,
    "paragraph": ParagraphChunker,
    "recursive": RecursiveChunker,
    "semantic": SemanticChunker,
    "sliding_window": SlidingWindowChunker,
}
#: Other packages add strategies by entry points of its group: a name, and a class whose arguments are the parameters.
CHUNKERS = Plugins(kind="chunking strategy", group="recollect.chunkers", own=_STRATEGIES, methods=("chunk",))

_SIZE_NAMES = ("size", "window_size", "max_size", "max_tokens")
# The default of sliding_window's window_size, for an overlap that is given without a size.
_SLIDING_WINDOW = 500
_NAMED = (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_CALLABLES = frozenset({"similarity", "tokenize"})
# Raised whenever the same parameters cut the same text differently, so that stored documents are chunked again.
_ALGORITHM = 1


def strategy_names(chunkers: Plugins = CHUNKERS) -> tuple[str, ...]:
    """The names that ``make_chunker`` knows, in alphabetical order."""
    return tuple(chunkers.names())


def parameter_names(strategy: str, chunkers: Plugins = CHUNKERS) -> tuple[str, ...]:
    """The parameters of a strategy that a setting can hold, in the order of its constructor.

    Raises:
        UsageError: There is no such strategy.
    """
    return tuple(name for name in _arguments(chunkers.find(strategy)) if name not in _CALLABLES)


def size_parameters(
    strategy: str,
    *,
    size: int | None = None,
    overlap: int | None = None,
    window_size: int | None = None,
    chunkers: Plugins = CHUNKERS,
) -> dict[str, int]:
    """What a strategy calls the size of its chunks and what neighbouring ones have in common.

    Args:
        strategy: One of ``strategy_names()``.
        size: Of the longest chunk, in the strategy's unit; None: not said.
        overlap: Of neighbouring chunks; None: not said.
        window_size: Of the window that an overlap without a size is of, where windows slide; None: the default.
        chunkers: The strategies.

    Raises:
        UsageError: There is no such strategy, or its chunks have no size or nothing in common.
    """
    known = parameter_names(strategy, chunkers)
    values: dict[str, int] = {}
    if size is not None:
        named = next((name for name in _SIZE_NAMES if name in known), None)
        if named is None:
            raise UsageError(f"{strategy} chunking has no size: leave it out.")
        values[named] = size
    if overlap is not None:
        if "stride" in known:
            values["stride"] = (size or window_size or _SLIDING_WINDOW) - overlap
        elif "overlap" in known:
            values["overlap"] = overlap
        else:
            raise UsageError(f"{strategy} chunking has no overlap: leave it out.")
    return values


def make_chunker(
    strategy: str = DEFAULT_STRATEGY,
    *,
    tokenize: Tokenize | None = None,
    similarity: NeighbourSimilarity | None = None,
    chunkers: Plugins = CHUNKERS,
    **parameters: object,
) -> ChunkingStrategy:
    """Build a chunker from its name and parameters.

    Args:
        strategy: One of ``strategy_names()``.
        tokenize: Finds tokens, for every strategy; None: words, punctuation marks and single CJK characters.
        similarity: Compares neighbouring sentences, for ``semantic``; the others do without.
        chunkers: The strategies.
        parameters: The strategy's own; what is left out has its default.

    Raises:
        UsageError: The strategy or a parameter is unknown, or a value is not allowed.
        PluginError: The strategy is another package's, and cannot be made.

    Example:
        >>> make_chunker("recursive", size=400, overlap=50).overlap
        50
    """
    part = chunkers.find(strategy)
    known = _arguments(part)
    allowed = [name for name in known if name not in _CALLABLES]
    unknown = sorted(set(parameters) - set(allowed))
    if unknown:
        raise UsageError(
            f"{strategy} chunking has no parameter {', '.join(map(repr, unknown))}; it has "
            f"{', '.join(allowed) or 'none'}.{meant_argument(unknown[0], allowed)}"
        )
    given = {"tokenize": tokenize, "similarity": similarity, **parameters}
    arguments = {name: value for name, value in given.items() if name in known}
    made: ChunkingStrategy = chunkers.made(strategy, **arguments)
    return made if chunkers.is_own(strategy) else PluggedChunker(strategy, made, {**known, **arguments})


def describe_chunker(chunker: ChunkingStrategy) -> dict[str, str | int | float | bool | Sequence[str] | None]:
    """What decides how a chunker cuts: two equal descriptions give equal chunks of the same document.

    Store it beside the chunks, serialised with sorted keys, and chunk again where it differs.

    Args:
        chunker: Made by ``make_chunker`` or by a constructor.

    Returns:
        ``strategy``, ``algorithm`` (a version number), every parameter with its value, and for ``tokenize`` and
        ``similarity`` the function's or class's qualified name, or None.

    Raises:
        UsageError: The chunker is none of recollect's.
    """
    if isinstance(chunker, PluggedChunker):
        return {"strategy": chunker.name, "algorithm": _ALGORITHM, **_described(chunker.parameters)}
    for name, class_ in _STRATEGIES.items():
        if isinstance(chunker, class_):
            values = {field.name: getattr(chunker, field.name) for field in fields(class_)}
            return {"strategy": name, "algorithm": _algorithm_of(chunker), **_described(values)}
    raise UsageError(f"{type(chunker).__qualname__} is not one of the strategies {', '.join(_STRATEGIES)}")


def _described(values: Mapping[str, Any]) -> dict[str, Any]:
    described = {
        key: _name_of(value) if key in _CALLABLES and value is not None else value for key, value in values.items()
    }
    return {key: list(value) if isinstance(value, tuple) else value for key, value in described.items()}


def _algorithm_of(chunker: ChunkingStrategy) -> int:
    """The version of what a chunker does; this strategy keeps sections apart since the third."""
    return _ALGORITHM + 2 if isinstance(chunker, RecursiveChunker) else _ALGORITHM


def _arguments(part: object) -> dict[str, Any]:
    """What a strategy is made with, with the defaults; an object is made already."""
    if not isinstance(part, type):
        return {}
    named = (one for one in signature(part).parameters.values() if one.kind in _NAMED)
    return {one.name: None if one.default is Parameter.empty else one.default for one in named}


def _name_of(function: object) -> str:
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{getattr(named, '__qualname__', type(function).__qualname__)}"
