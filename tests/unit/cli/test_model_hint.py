from __future__ import annotations

from types import SimpleNamespace

import pytest

from recollect.cli.providers import mention_models_once


@pytest.fixture
def told(monkeypatch, tmp_path):
    monkeypatch.setattr("platformdirs.user_state_path", lambda name: tmp_path / "state" / name)
    return []


def command(told, *, provider="extractive", terminal=True, json=False):
    return SimpleNamespace(
        config=SimpleNamespace(answer=SimpleNamespace(provider=provider)),
        json=json,
        server=None,
        err=SimpleNamespace(is_terminal=terminal),
        note=told.append,
    )


def test_who_asks_without_a_language_model_is_told_once_that_there_may_be_one(told):
    for options in ({"terminal": False}, {"json": True}, {"provider": "ollama"}):
        mention_models_once(command(told, **options))
    assert told == []
    mention_models_once(command(told))
    mention_models_once(command(told))
    (said,) = told
    assert "recollect providers detect" in said


def test_what_cannot_be_remembered_is_not_said(told, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setattr("platformdirs.user_state_path", lambda name: tmp_path / "file" / name)
    mention_models_once(command(told))
    assert told == []
