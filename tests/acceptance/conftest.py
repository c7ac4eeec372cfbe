"""The command line, run as a person runs it: arguments, a folder, an environment, two streams and an exit status."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from program import Recollect
from recollect.embedding.base import Vectors
from recollect.embedding.local import LocalEmbedder


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
def recollect_with_model(dsn: str, tmp_path: Path, vectors_computed_once: None) -> Recollect:
    """Commands on an empty store, with the real model."""
    return Recollect(tmp_path, _environment(RECOLLECT_DSN=dsn))


@pytest.fixture
def vectors_computed_once(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model computes a text once in a run of the tests: several of them ingest the same handbook.

    With 8 bits a text's vector depends on nothing but the text. The workers share what they computed.
    """
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "vectors"
    folder.mkdir(exist_ok=True)
    compute = LocalEmbedder.embed_documents

    def embed_documents(self: LocalEmbedder, texts: Sequence[str]) -> Vectors:
        files = [folder / sha256(f"{self.model_name}\n{text}".encode()).hexdigest() for text in texts]
        new = {file: text for file, text in zip(files, texts, strict=True) if not file.exists()}
        if new:
            for file, vector in zip(new, compute(self, list(new.values())), strict=True):
                draft = file.with_name(f"{file.name}.{os.getpid()}")
                draft.write_bytes(vector.tobytes())
                draft.replace(file)
        return np.stack([np.fromfile(file, np.float32) for file in files]) if files else compute(self, [])

    monkeypatch.setattr(LocalEmbedder, "embed_documents", embed_documents)


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
