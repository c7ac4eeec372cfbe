"""One PostgreSQL server for the session, and a migrated database of its own for every test that wants one."""

from __future__ import annotations

import gc
import itertools
import os
import signal
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from unittest import mock

import httpcore2
import platformdirs
import psycopg
import pytest
from hypothesis import settings
from psycopg import sql
from psycopg.conninfo import make_conninfo

from recollect import RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.embedding.models import ModelCache
from recollect.errors import ModelUnavailableError
from recollect.store.embedded import EmbeddedServer
from recollect.store.migrate import migrate
from recollect.store.store import Store
from server import data_directory, remove_leftovers

# Slow machines are no reason to fail; the same examples on every run of `ci` are.
settings.register_profile("dev", deadline=None, max_examples=50)
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=50)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))

# What a shell starts in the background ignores interrupts and hands that on: programs that a test starts and
# interrupts would never hear of it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


_TEMPLATE = "recollect_template"
_NUMBERS = itertools.count(1)
# Nobody misses the test server's data after a power failure, and its tables are small; every database that is dropped
# costs a look at all buffers. Servers that are a test's subject keep what they have.
_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "48MB",
    "max_wal_size": "128MB",
    "autovacuum": "off",
}
# Without fsync, copying files takes a third of the time of copying through the log.
_CLONE = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
_SESSIONS = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = %s"


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Three workers for two cores: a worker waits for its database, or its browser, for half of its time."""
    return max(1, 3 * (os.cpu_count() or 1) // 2)


@cache
def _certificates(file: str | None, folder: str | None, **options: bool) -> ssl.SSLContext:
    return _read_certificates(**options)


_read_certificates = httpcore2.default_ssl_context
# Once, and not for each of the hundreds of requests that tests make without a client: it takes 20 ms.
httpcore2.default_ssl_context = lambda **options: _certificates(
    os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"), **options
)


def pytest_configure(config: pytest.Config) -> None:
    """What is imported and collected stays: a million objects, which nobody needs to look through for garbage."""
    gc.disable()
    if sys.dont_write_bytecode:
        _keep_bytecode(config.rootpath / ".pytest_cache" / "bytecode")


def _keep_bytecode(folder: Path) -> None:
    """Let this process, its workers and the programs that tests start keep what they compile, apart from the sources.

    Where a shell forbids bytecode, each of hundreds of processes would spend seconds on compiling all that it imports.
    """
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(folder)
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    gc.freeze()
    gc.enable()
    # A server that runs in this process would give all of it back at its end.
    mock.patch.multiple(gc, freeze=lambda: None, unfreeze=lambda: None).start()


def pytest_sessionstart(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        remove_leftovers()


@pytest.fixture(scope="session")
def model_cache() -> ModelCache:
    """Where the default model is, on this machine or fetched for the tests that need it."""
    named = os.environ.get("RECOLLECT_MODEL_DIR")
    cache = ModelCache(Path(named) if named else platformdirs.user_cache_path("recollect") / "models")
    try:
        cache.pull()
    except ModelUnavailableError as exc:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"the model cannot be fetched: {exc}")
    return cache


@pytest.fixture(scope="session")
def server_dsn() -> Iterator[str]:
    """An embedded server, running for the whole session, with a migrated template database in it.

    Each worker of pytest-xdist has its own: roles and settings belong to a whole server.
    """
    with data_directory() as folder:
        with EmbeddedServer(folder) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
            for name, setting in _SETTINGS.items():
                connection.execute(sql.SQL("ALTER SYSTEM SET {} = {}").format(sql.Identifier(name), setting))
        with EmbeddedServer(folder) as dsn:
            with psycopg.connect(dsn, autocommit=True) as connection:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(_TEMPLATE)))
            migrate(make_conninfo(dsn, dbname=_TEMPLATE))
            yield dsn


@pytest.fixture(scope="session")
def maintenance(server_dsn: str) -> Iterator[psycopg.Connection]:
    """A connection that makes and drops the tests' databases."""
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def data_dir_of_its_own() -> Iterator[Path]:
    """A data directory for an embedded server of the test's own; not made yet."""
    with data_directory() as folder:
        yield folder


@pytest.fixture(scope="session")
def clone(server_dsn: str, maintenance: psycopg.Connection) -> Callable[..., AbstractContextManager[str]]:
    """Makes databases that are dropped at the end: migrated and empty ones, or copies of another one."""

    @contextmanager
    def cloned(template: str = _TEMPLATE) -> Iterator[str]:
        name = f"test_{next(_NUMBERS)}"
        maintenance.execute(_CLONE.format(sql.Identifier(name), sql.Identifier(template)))
        yield make_conninfo(server_dsn, dbname=name)
        # A DROP DATABASE that meets a session sleeps for a tenth of a second, and the last ones are still ending.
        for _ in range(10_000):
            if maintenance.execute(_SESSIONS, [name]).fetchone() == (0,):
                break
        maintenance.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    return cloned


@pytest.fixture
def dsn(clone: Callable[..., AbstractContextManager[str]]) -> Iterator[str]:
    """A migrated, empty database of the test's own."""
    with clone() as made:
        yield made


@pytest.fixture
def store(dsn: str, tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    opened = Store(data_dir=tmp_path / "unused", dsn=dsn)
    yield opened
    opened.close()


@pytest.fixture
def pipeline(dsn: str, tmp_path: Path) -> Iterator[RAGPipeline]:
    """A pipeline on an empty store, with an embedder that needs no model."""
    config = RAGConfig.load(storage={"data_dir": tmp_path / "unused", "dsn": dsn}, embedding={"provider": "hashing"})
    with RAGPipeline(config, embedder=HashingEmbedder()) as opened:
        yield opened
