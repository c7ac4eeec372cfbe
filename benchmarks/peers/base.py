"""What `growth.py` asks of a system, its own included: the same questions, answered with ids and texts.

A system is a module of this package with a class ``System``. `growth.py` makes one in a process that fills it
(``fill``), and another one in a fresh process that measures it (``open``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol

import numpy as np

#: How many results every search asks for, and how many each retriever contributes where that can be set.
TOP_K = 10
CANDIDATES = 50

#: By the name of the command line; ``recollect`` runs in this project's environment, the others in the peers'.
NAMES = ("recollect", "lancedb", "llamaindex", "txtai", "milvus")

#: The field that names the only group of readers of a document: a right in recollect, a filter elsewhere.
READER = "reader"

Found = list[tuple[str, str]]


@dataclass(frozen=True)
class Rows:
    """Some chunks: ids, texts, unit vectors (float32, one row each), and metadata of whole numbers."""

    ids: list[str]
    texts: list[str]
    vectors: np.ndarray
    metadata: list[dict[str, int]]


@dataclass(frozen=True)
class Query:
    """A question with its vector, and a value that one field of the metadata must have."""

    text: str
    vector: np.ndarray
    field: str | None = None
    value: int = 0


class DataSet(Protocol):
    """The files of one size; `growth_data.DataSet` is one."""

    documents: Path
    chunks_a_document: int

    def rows(self, batch: int) -> Iterator[Rows]:
        """Every chunk, in batches."""
        ...


class Measured(Protocol):
    """A system.

    Attributes:
        title: For tables.
        packages: Distributions whose versions are named.
        modes: What it can search by: some of ``dense``, ``lexical``, ``hybrid``, ``hybrid, reranked``.
        notes: What one should know about its figures.
        same_words: Whether it indexes the words that the exact lexical answers were computed from.
        path: How the last search found its vectors, where the system tells.
    """

    title: str
    packages: Sequence[str]
    modes: Sequence[str]
    notes: str
    same_words: bool
    path: str

    def fill(self, data: DataSet) -> None:
        """Store everything; when this returns, everything can be searched, also from another process after `open`."""
        ...

    def open(self) -> None:
        """Make ready for searches what `fill` stored."""
        ...

    def prepare(self, queries: Sequence[Query]) -> None:
        """Make what these questions' filters need, before the clock starts."""
        ...

    def search(self, mode: str, query: Query) -> Found:
        """Ids and texts of the ten best."""
        ...

    def add(self, rows: Rows) -> None:
        """Store one more document, and do what it takes for the next search to find it."""
        ...

    def processes(self) -> list[int]:
        """Ids of processes that work for it besides this one and its children."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


def make(name: str, store: Path) -> Measured:
    """A system by its name, with its files in ``store``."""
    return import_module(f"peers.{name}").System(store)


class Base:
    """What most systems have in common."""

    packages: Sequence[str] = ()
    modes: Sequence[str] = ("dense", "lexical", "hybrid")
    notes = ""
    same_words = False
    path = ""

    def __init__(self, store: Path) -> None:
        self.store = store

    def prepare(self, queries: Sequence[Query]) -> None:  # noqa: ARG002 - most need nothing
        return None

    def processes(self) -> list[int]:
        return []

    def close(self) -> None:
        return None
