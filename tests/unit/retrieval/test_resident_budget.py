"""How much memory copies of collections may take."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from recollect.retrieval.resident import collections
from recollect.retrieval.resident.collections import budget_bytes


def test_copies_take_what_is_configured_or_an_eighth_of_what_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(collections, "_CONTAINER_LIMIT", limit)
    machine = psutil.virtual_memory().total
    assert budget_bytes(0) == 0
    assert budget_bytes(3) == 3 * 1024 * 1024
    assert budget_bytes(None) == machine // 8
    limit.write_text("max\n")
    assert budget_bytes(None) == machine // 8
    limit.write_text("80000000\n")
    assert budget_bytes(None) == 10_000_000
