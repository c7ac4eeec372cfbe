"""A server for the local user, with something in its store."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from recollect import Client
from served import Served, fill, serving


@pytest.fixture(scope="module")
def served(clone: Callable, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server for the local user, who is the owner of the store."""
    with clone() as dsn, serving(dsn, tmp_path_factory.mktemp("served")) as one:
        fill(one.rag)
        yield one


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with served.client() as made:
        yield made
