"""What a chunk does not say itself: the title and headings it stands under, and the chunks around it.

``docs/explanation/fusion.md`` has the measurements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recollect.embedding.models import known_model
from recollect.model import Chunk, Document

if TYPE_CHECKING:
    from recollect.embedding.base import Vectors

#: How much of its neighbours' vectors is mixed into a chunk's, where its model says nothing else.
NEIGHBOUR_WEIGHT = 0.25

# A heading is taken as standing in the chunk already if it is found this close to its beginning.
_MARKUP_CHARACTERS = 8


def searchable_text(document: Document, chunk: Chunk) -> str:
    """The text that both retrievers index of a chunk: title and headings, what situates it, then its own characters.

    A piece of a table is situated by the line above the table and the names of its columns.
    """
    table = [_plain(chunk.metadata.get(name)) for name in ("table_caption", "table_header")]
    wanted = dict.fromkeys(line for line in (document.title, *chunk.section, chunk.context, *table) if line)
    missing = [line for line in wanted if line not in chunk.text[: len(line) + _MARKUP_CHARACTERS]]
    return "\n".join((*missing, chunk.text))


def _plain(line: object) -> str:
    """A line of a table without its pipes."""
    return "; ".join(cell.strip() for cell in line.split("|") if cell.strip()) if isinstance(line, str) else ""


def neighbour_weight(model_name: str) -> float:
    """How much of its neighbours' vectors is mixed into a chunk's that a model embedded.

    Args:
        model_name: Of the model, as embedders give it.
    """
    known = known_model(model_name)
    return NEIGHBOUR_WEIGHT if known is None or known.neighbours is None else known.neighbours


def with_neighbours(vectors: Vectors, *, weight: float = NEIGHBOUR_WEIGHT) -> Vectors:
    """Mix the vectors of the chunks before and after into each chunk's, and bring it back to unit length.

    A passage is often about something that only the passage beside it names.

    Args:
        vectors: float array of shape (chunks of one document in order, dimension).
        weight: Of each neighbour, beside 1 for the chunk itself; 0 changes nothing.

    Returns:
        float32 array of the same shape.
    """
    mixed = vectors.astype(np.float32)
    if len(vectors) > 1 and weight:
        mixed[1:] += weight * vectors[:-1]
        mixed[:-1] += weight * vectors[1:]
    norms = np.linalg.norm(mixed, axis=1, keepdims=True)
    result: Vectors = mixed / np.maximum(norms, np.finfo(np.float32).tiny)
    return result
