"""A server for the local user, with something in its store."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pytest

from recollect import Client
from recollect.retrieval import search
from served import Served, fill, serving


@pytest.fixture(scope="module")
def served(clone: Callable, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server for the local user, who is the owner of the store."""
    with pytest.MonkeyPatch.context() as patched:
        # When a collection is held in memory is a matter of moments, and replies tell it.
        patched.setattr(search, "LOADED_AFTER", sys.maxsize)
        with clone() as dsn, serving(dsn, tmp_path_factory.mktemp("served")) as one:
            fill(one.rag)
            yield one


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with served.client() as made:
        yield made
