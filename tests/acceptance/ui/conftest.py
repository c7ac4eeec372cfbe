"""Browsers for the tests of pages, and servers that they visit."""

from __future__ import annotations

import pytest
from psycopg.conninfo import conninfo_to_dict

from browser import chromium, visitor
from recollect import RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from served import fill, serving


@pytest.fixture(scope="package")
def browser():
    with chromium() as one:
        yield one


@pytest.fixture(scope="session")
def filled(clone, tmp_path_factory):
    """The name of a database with something in it, of which every test has a copy."""
    with clone() as dsn:
        storage = {"data_dir": tmp_path_factory.mktemp("unused"), "dsn": dsn}
        config = RAGConfig.load(storage=storage, embedding={"provider": "hashing"})
        with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
            fill(rag)
        yield conninfo_to_dict(dsn)["dbname"]


@pytest.fixture
def served(filled, clone, tmp_path):
    """A server with its pages, on a store with something in it."""
    with clone(filled) as dsn, serving(dsn, tmp_path, worker=False, pages=True) as one:
        yield one


@pytest.fixture(scope="module")
def served_for_all(filled, clone, tmp_path_factory):
    """Such a server for a module whose tests do not meet: they only look, or each at what it has stored itself."""
    folder = tmp_path_factory.mktemp("served")
    with clone(filled) as dsn, serving(dsn, folder, worker=False, pages=True) as one:
        yield one


@pytest.fixture
def ada(browser, served):
    """Whoever uses the machine that the server is on."""
    with visitor(browser, served.url) as one:
        yield one
