"""Browsers for the tests of pages, and servers that they visit."""

from __future__ import annotations

import pytest

from browser import chromium, visitor
from served import fill, serving


@pytest.fixture(scope="module")
def browser():
    with chromium() as one:
        yield one


@pytest.fixture
def served(dsn, tmp_path):
    """A server with its pages, on a store with something in it."""
    with serving(dsn, tmp_path, worker=False, pages=True) as one:
        fill(one.rag)
        yield one


@pytest.fixture
def ada(browser, served):
    """Whoever uses the machine that the server is on."""
    with visitor(browser, served.url) as one:
        yield one
