"""The default model, which the trained readers are made of, where it is on this machine or can be fetched."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs
import pytest

from recollect.answer.reader import CHECKER, Reader
from recollect.embedding.models import ModelCache
from recollect.errors import ModelUnavailableError


@pytest.fixture(scope="session")
def cache() -> ModelCache:
    named = os.environ.get("RECOLLECT_MODEL_DIR")
    cache = ModelCache(Path(named) if named else platformdirs.user_cache_path("recollect") / "models")
    try:
        cache.pull()
    except ModelUnavailableError as exc:
        pytest.skip(f"the model cannot be fetched: {exc}")
    return cache


@pytest.fixture(scope="session")
def checker(cache: ModelCache) -> Reader:
    return Reader(cache, weights=CHECKER)
