"""Servers of their own for the tests of the store's foundations, each in a data directory that a test may ruin."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from recollect.store.embedded import EmbeddedServer
from server import reachable_folder


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder of the test's own in which a server may run, also as root."""
    with reachable_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def pristine_data_dir() -> Iterator[Path]:
    """A data directory whose server has been made and stopped: copied, because making one takes a second."""
    with reachable_folder() as folder:
        with EmbeddedServer(folder / "data"):
            pass
        yield folder / "data"


@pytest.fixture
def data_dir(pristine_data_dir: Path, tmp_path: Path) -> Iterator[Path]:
    """A stopped store of the test's own. Whatever of it still runs after the test is ended."""
    folder = tmp_path / "data"
    subprocess.run(["cp", "-a", str(pristine_data_dir), str(folder)], check=True)
    yield folder
    end_server(folder)


@pytest.fixture
def python(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a Python process that runs some source with arguments; ended after the test."""
    started: list[subprocess.Popen[str]] = []

    def start(source: str, *arguments: object, **options) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", source, *map(str, arguments)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(command, text=True, cwd="/", **pipes, **options)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def postmaster(data_dir: Path) -> psutil.Process | None:
    """The server of a data directory, if it runs, found without the code under test."""
    for process in psutil.process_iter():
        try:
            if process.name() == "postgres" and process.cwd() == str(data_dir / "pg"):
                parent = process.parent()
                if parent is None or parent.name() != "postgres":
                    return process if process.status() != psutil.STATUS_ZOMBIE else None
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    return None


def end_server(data_dir: Path) -> None:
    """End whatever server still runs in a data directory."""
    if (process := postmaster(data_dir)) is not None:
        process.terminate()
        process.kill()


def value(dsn: str, query: str) -> object:
    """The one value of a query."""
    with psycopg.connect(dsn) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]
