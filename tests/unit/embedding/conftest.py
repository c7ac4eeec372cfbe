from __future__ import annotations

from pathlib import Path

import pytest

from recollect.embedding.models import ModelCache

from .tiny_bert import write_model


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory) -> Path:
    return write_model(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory) -> ModelCache:
    return ModelCache(tmp_path_factory.mktemp("cache"))
