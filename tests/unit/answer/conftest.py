"""The trained checker, made of the default model."""

from __future__ import annotations

import pytest

from recollect.answer.reader import CHECKER, Reader
from recollect.embedding.models import ModelCache


@pytest.fixture(scope="session")
def checker(model_cache: ModelCache) -> Reader:
    return Reader(model_cache, weights=CHECKER)
