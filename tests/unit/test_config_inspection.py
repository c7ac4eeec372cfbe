"""What `recollect config` tells of settings: every one with its origin, every problem at once, no secret."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect import RAGConfig
from recollect.config.inspection import HIDDEN, inspect_settings
from recollect.errors import ConfigurationError


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """No settings but the test's own."""
    for name in list(os.environ):
        if name.startswith("RECOLLECT_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def toml(text: str) -> Path:
    path = Path("recollect.toml")
    path.write_text(text, encoding="utf-8")
    return path


def test_each_setting_says_where_it_comes_from(monkeypatch):
    toml("[rag.retrieval]\ntop_k = 7\ncandidates = 60\n[rag.server]\nport = 9000\n")
    monkeypatch.setenv("RECOLLECT_RETRIEVAL__CANDIDATES", "80")
    monkeypatch.setenv("RECOLLECT_SERVER", '{"host": "::1"}')
    found = inspect_settings(collection="hr")
    told = {one.name: (one.value, one.source, one.where) for one in found.settings}
    assert told["rag.collection"] == ("hr", "option", None)
    assert told["rag.retrieval.top_k"] == (7, "file", "recollect.toml")
    assert told["rag.retrieval.candidates"] == (80, "environment", "RECOLLECT_RETRIEVAL__CANDIDATES")
    assert told["rag.server.host"] == ("::1", "environment", "RECOLLECT_SERVER")
    assert told["rag.server.port"] == (9000, "file", "recollect.toml")
    assert told["rag.server.jwt.claims.user"] == ("sub", "default", None)
    assert found.config == RAGConfig.load(collection="hr")


def test_every_problem_is_told_at_once_with_its_place(monkeypatch):
    toml("[rag.retrieval]\ntopk = 7\n[rag.server]\nport = 99999\n")
    monkeypatch.setenv("RECOLLECT_RETREIVAL__TOP_K", "3")
    monkeypatch.setenv("RECOLLECT_SERVER__MAX_STREAMS", "many")
    told = [str(one) for one in inspect_settings(language=5).problems]
    assert len(told) == 5
    text = "\n".join(told)
    assert "recollect.toml: rag.retrieval.topk: there is no such setting. Did you mean rag.retrieval.top_k?" in text
    assert "recollect.toml: rag.server.port: " in text
    assert "RECOLLECT_RETREIVAL__TOP_K in the environment: " in text
    assert "Did you mean RECOLLECT_RETRIEVAL__TOP_K?" in text
    assert "RECOLLECT_SERVER__MAX_STREAMS: rag.server.max_streams: " in text
    assert "an option: rag.language: " in text
    assert "many" not in text.replace("MAX_STREAMS", "")


def test_a_file_that_cannot_be_read_hides_no_other_problem(monkeypatch):
    toml("[rag\n")
    monkeypatch.setenv("RECOLLECT_SERVER__PORT", "x")
    told = [str(one) for one in inspect_settings().problems]
    assert len(told) == 2
    assert "line 1" in told[0]
    toml("[rag]\n[rga]\n[retrieval]\n")
    assert len(inspect_settings().problems) == 3
    assert len(inspect_settings(Path("nothing.toml")).problems) == 2


def test_secrets_are_never_shown(monkeypatch):
    toml('[rag.storage]\ndsn = "postgresql://ann:hunter2@db/x"\n[rag.answer]\nbase_url = "https://u:hunter2@host/v1"\n')
    monkeypatch.setenv("RECOLLECT_EMBEDDING__API_KEY", "sk-hunter2")
    found = inspect_settings()
    assert "hunter2" not in repr(found.settings)
    told = {one.name: one.value for one in found.settings}
    assert told["rag.storage.dsn"] == told["rag.embedding.api_key"] == HIDDEN
    assert told["rag.storage.application_dsn"] is None
    assert told["rag.answer.base_url"] == "https://…@host/v1"


def test_a_secret_may_stand_in_a_file(monkeypatch):
    Path("dsn").write_text("postgresql://ann:hunter2@db/x\n", encoding="utf-8")
    monkeypatch.setenv("RECOLLECT_DSN_FILE", "dsn")
    monkeypatch.setenv("RECOLLECT_ANSWER__API_KEY_FILE", "dsn")
    config = RAGConfig.load()
    assert config.storage.dsn is not None
    assert config.storage.dsn.get_secret_value() == "postgresql://ann:hunter2@db/x"
    assert config.answer.api_key is not None
    told = {one.name: one.where for one in inspect_settings().settings}
    assert told["rag.storage.dsn"] == "RECOLLECT_DSN_FILE"


@pytest.mark.parametrize("name", ["RECOLLECT_DSN_FILE", "RECOLLECT_ANSWER__API_KEY_FILE"])
def test_a_file_of_a_secret_that_is_not_there_is_told(monkeypatch, name):
    monkeypatch.setenv(name, "nothing")
    with pytest.raises(ConfigurationError, match=f"{name} in the environment.*cannot be read"):
        RAGConfig.load()


@pytest.mark.parametrize("name", ["RECOLLECT_LANGUAGE_FILE", "RECOLLECT_SERVER__PORT_FILE", "RECOLLECT__FILE"])
def test_only_secrets_stand_in_files_of_their_own(monkeypatch, name):
    Path("x").write_text("en", encoding="utf-8")
    monkeypatch.setenv(name, "x")
    with pytest.raises(ConfigurationError, match="there is no such setting"):
        RAGConfig.load()


@given(
    table=st.dictionaries(
        st.sampled_from(["retrieval", "server", "storage", "nothing"]),
        st.dictionaries(st.sampled_from(["top_k", "port", "dsn", "x"]), st.integers(-5, 99_999) | st.text(max_size=4)),
        max_size=3,
    )
)
@settings(max_examples=60)
def test_an_inspection_agrees_with_what_loading_does(table):
    found = inspect_settings(**table)
    try:
        loaded = RAGConfig.load(**table)
    except ConfigurationError:
        loaded = None
    assert found.config == loaded
    assert bool(found.problems) == (loaded is None)
