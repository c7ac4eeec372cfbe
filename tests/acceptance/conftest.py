"""The command line, run as a person runs it: arguments, a folder, an environment, two streams and an exit status."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from program import Recollect


def _environment(**settings: str) -> dict[str, str]:
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("RECOLLECT_", "FORCE_COLOR"))
    }
    kept = {name: os.environ[name] for name in ("RECOLLECT_MODEL_DIR",) if name in os.environ}
    return {**inherited, **kept, **settings}


@pytest.fixture
def recollect(dsn: str, tmp_path: Path) -> Recollect:
    """Commands on an empty store, with an embedder that needs no model."""
    return Recollect(tmp_path, _environment(RECOLLECT_DSN=dsn, RECOLLECT_EMBEDDING__PROVIDER="hashing"))


@pytest.fixture
def recollect_with_model(dsn: str, tmp_path: Path) -> Recollect:
    """Commands on an empty store, with the real model."""
    return Recollect(tmp_path, _environment(RECOLLECT_DSN=dsn))


@pytest.fixture
def recollect_embedded(tmp_path: Path, data_dir_of_its_own: Path) -> Recollect:
    """Commands on an embedded store of the test's own, with an embedder that needs no model."""
    settings = {"RECOLLECT_DATA_DIR": str(data_dir_of_its_own), "RECOLLECT_EMBEDDING__PROVIDER": "hashing"}
    return Recollect(tmp_path, _environment(**settings))


@pytest.fixture
def write(tmp_path: Path) -> Callable[[dict[str, str | bytes]], Path]:
    """Write files below ``docs`` in the test's folder, given by their paths there; returns that folder."""

    def write_files(contents: dict[str, str | bytes]) -> Path:
        for name, content in contents.items():
            path = tmp_path / "docs" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path / "docs"

    return write_files


OFFICE = {
    "hr/leave.md": "# Leave\n\n## Annual leave\n\nEvery employee has 30 days of annual leave.\n",
    "hr/pay.txt": "PAY\n\nSalaries are paid on the 25th of each month.\n",
    "it/errors.md": "# Errors\n\n## ERR-4012\n\nToo many sessions are open. Sign out elsewhere.\n",
    "readme.txt": "This folder holds the rules of the office.\n",
}


@pytest.fixture
def office(write: Callable[[dict[str, str | bytes]], Path]) -> Path:
    """A folder of four small documents in two departments."""
    return write(OFFICE)
