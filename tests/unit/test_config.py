"""Settings: where they come from, which one wins, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect import RAGConfig
from recollect.errors import ConfigurationError


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """No settings but the test's own."""
    import os

    for name in list(os.environ):
        if name.startswith("RECOLLECT_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def toml(folder: Path, text: str, name: str = "recollect.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_defaults_then_file_then_environment_then_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert RAGConfig.load().retrieval.top_k == 10
    toml(tmp_path, "[rag.retrieval]\ntop_k = 11\ncandidates = 50")
    assert RAGConfig.load().retrieval.top_k == 11
    monkeypatch.setenv("RECOLLECT_RETRIEVAL__TOP_K", "12")
    assert RAGConfig.load().retrieval.top_k == 12
    loaded = RAGConfig.load(retrieval={"top_k": 13})
    assert (loaded.retrieval.top_k, loaded.retrieval.candidates) == (13, 50)


def test_short_names_win_over_long_ones_and_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    toml(tmp_path, '[rag.storage]\ndata_dir = "/file"\nmax_connections = 7')
    monkeypatch.setenv("RECOLLECT_STORAGE__DATA_DIR", "/long")
    assert RAGConfig.load().storage.data_dir == Path("/long")
    monkeypatch.setenv("RECOLLECT_DATA_DIR", "/short")
    assert RAGConfig.load().storage.data_dir == Path("/short")
    assert RAGConfig().storage.data_dir == Path("/short")
    assert RAGConfig.load().storage.max_connections == 7
    assert RAGConfig.load(storage={"data_dir": Path("/argument")}).storage.data_dir == Path("/argument")


def test_a_named_file_wins_over_the_one_lying_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    toml(tmp_path, '[rag]\ncollection = "here"')
    named = toml(tmp_path, '[rag]\ncollection = "named"', "other.toml")
    assert RAGConfig.load().collection == "here"
    monkeypatch.setenv("RECOLLECT_CONFIG", str(named))
    assert RAGConfig.load().collection == "named"
    assert RAGConfig.load(toml(tmp_path, '[rag]\ncollection = "given"', "given.toml")).collection == "given"


def test_secrets_do_not_show():
    config = RAGConfig.load(storage={"dsn": "postgresql://u:hunter2@h/db"}, answer={"api_key": "sk-secret"})
    assert "hunter2" not in repr(config) and "sk-secret" not in repr(config)
    assert config.storage.dsn.get_secret_value().endswith("@h/db")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[rag.retrieval]\ntopk = 3", r"rag\.retrieval\.topk: there is no such setting"),
        ("[rag]\nnonsense = 1", r"rag\.nonsense: there is no such setting"),
        ("[retrieval]\ntop_k = 3", r"unknown table 'retrieval'.*\[rag\.retrieval\]"),
        ("[rag.retrieval]\ntop_k = 0", r"rag\.retrieval\.top_k.*greater than or equal to 1"),
        ('[rag.retrieval]\nmode = "fuzzy"', r"rag\.retrieval\.mode"),
        ("rag = 3", "rag must be a table"),
        ("[rag\n", "Cannot read the configuration file"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path: Path, text: str, words: str):
    path = toml(tmp_path, text)
    with pytest.raises(ConfigurationError, match=rf"(?s){words}") as caught:
        RAGConfig.load(path)
    assert str(path) in str(caught.value)


def test_what_is_wrong_elsewhere_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ConfigurationError, match=r"There is no configuration file .*missing\.toml"):
        RAGConfig.load(tmp_path / "missing.toml")
    with pytest.raises(ConfigurationError, match=r"rag\.storage\.max_connections"):
        RAGConfig.load(storage={"max_connections": 1})
    (tmp_path / "latin.toml").write_bytes(b"[rag]\ncollection = '\xff'")
    with pytest.raises(ConfigurationError, match="Cannot read"):
        RAGConfig.load(tmp_path / "latin.toml")
    monkeypatch.setenv("RECOLLECT_RETRIEVAL__TOPK", "3")
    with pytest.raises(ConfigurationError, match=r"rag\.retrieval\.topk: there is no such setting"):
        RAGConfig.load()
    monkeypatch.delenv("RECOLLECT_RETRIEVAL__TOPK")
    monkeypatch.setenv("RECOLLECT_RETRIEVAL", "not json")
    with pytest.raises(ConfigurationError, match=r"environment.*retrieval"):
        RAGConfig.load()


def test_a_strategys_own_parameters_pass_through(tmp_path: Path):
    path = toml(tmp_path, '[rag.chunking]\nstrategy = "fixed_size"\nsize = 300\noverlap = 10')
    chunking = RAGConfig.load(path).chunking
    assert (chunking.strategy, chunking.parameters) == ("fixed_size", {"size": 300, "overlap": 10})


def test_settings_cannot_be_changed_afterwards():
    with pytest.raises(ValueError, match="frozen"):
        RAGConfig().retrieval.top_k = 3
