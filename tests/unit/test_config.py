"""Settings: where they come from, which one wins, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from recollect import RAGConfig
from recollect.config import RetrievalConfig
from recollect.config._reading import places, variable
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
        ('[rag.retrieval]\nfusion = "fuzzy"', r"rag\.retrieval\.fusion"),
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


@pytest.mark.parametrize("read", [RAGConfig, RAGConfig.load], ids=["RAGConfig()", "RAGConfig.load()"])
@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("RECOLLECT_RAG__RETRIEVAL__TOP_K", "3", r"no such setting\. Did you mean RECOLLECT_RETRIEVAL__TOP_K\?"),
        ("RECOLLECT_RAG__COLLECTION", "x", r"Did you mean RECOLLECT_COLLECTION\?"),
        ("RECOLLECT_RETREIVAL__TOP_K", "3", r"Did you mean RECOLLECT_RETRIEVAL__TOP_K\?"),
        ("RECOLLECT_RETRIEVAL_TOP_K", "3", r"Did you mean RECOLLECT_RETRIEVAL__TOP_K\?"),
        ("RECOLLECT_TOP_K", "3", r"Did you mean RECOLLECT_RETRIEVAL__TOP_K\?"),
        ("RECOLLECT_DATADIR", "/x", r"Did you mean RECOLLECT_DATA_DIR\?"),
        ("RECOLLECT_CONFIGURATION", "/x", r"RECOLLECT_CONFIGURATION in the environment: .*no such setting"),
        ("RECOLLECT_NONSENSE", "1", r"RECOLLECT_NONSENSE in the environment: rag\.nonsense: there is no such setting$"),
        ("RECOLLECT_RETRIEVAL__", "1", r"no such setting"),
        ("RECOLLECT_RETRIEVAL__TOP_K__MORE", "1", r"no such setting"),
        ("RECOLLECT_RETRIEVAL__ENHANCE__HIDE", "true", r"Did you mean RECOLLECT_RETRIEVAL__ENHANCE__HYDE\?"),
        (
            "RECOLLECT_RETRIEVAL__TOP_K",
            "many",
            r"RECOLLECT_RETRIEVAL__TOP_K in the environment: rag\.retrieval\.top_k: .*in",
        ),
        (
            "RECOLLECT_RETRIEVAL",
            '{"topk": 3}',
            r"RECOLLECT_RETRIEVAL in .*: rag\.retrieval\.topk: .*rag\.retrieval\.top_k\?",
        ),
        ("RECOLLECT_TEMPORAL__PRESERVE_TAGS", '["a"', r"RECOLLECT_TEMPORAL__PRESERVE_TAGS in .*: a list is given as"),
        (
            "RECOLLECT_ACCESS__ROLE_PREFERENCES__HR",
            "x",
            r"RECOLLECT_ACCESS__ROLE_PREFERENCES__HR in .*: a table is given",
        ),
    ],
)
def test_what_is_wrong_in_the_environment_is_named(read, name: str, value: str, words: str, monkeypatch):
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=rf"(?s){words}"):
        read()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[rag.retrieval]\ntopk = 3", r"Did you mean rag\.retrieval\.top_k\?"),
        ("[rag.retreival]\ntop_k = 3", r"Did you mean rag\.retrieval\?"),
        ("[rag]\ntop_k = 3", r"Did you mean rag\.retrieval\.top_k\?"),
        ("[rag.temporal.index]\ntime_partitions = 'daily'", r"Did you mean rag\.temporal\.indexing\?"),
        (
            "[rag.access.role_preferences.hr]\ndepartment = ['hr']\ndepartments = ['hr']",
            r"hr\.department: there is no such",
        ),
        ("[rga.retrieval]\ntop_k = 3", r"Did you mean \[rag\]\?"),
        ("[retreival]\ntop_k = 3", r"\[rag\.retrieval\]"),
    ],
)
def test_a_file_is_told_the_nearest_key(tmp_path: Path, text: str, words: str):
    with pytest.raises(ConfigurationError, match=words):
        RAGConfig.load(toml(tmp_path, text))


def test_what_a_cluster_sets_for_a_service_of_that_name_is_no_setting(monkeypatch: pytest.MonkeyPatch):
    for name in ("SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "PORT", "PORT_8080_TCP", "PORT_8080_TCP_ADDR"):
        monkeypatch.setenv(f"RECOLLECT_{name}", "tcp://10.0.0.1:8080")
    assert RAGConfig() == RAGConfig.load()


def test_an_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RECOLLECT_DSN", "")
    monkeypatch.setenv("RECOLLECT_RETRIEVAL__TOP_K", "")
    assert (RAGConfig().storage.dsn, RAGConfig().retrieval.top_k) == (None, 10)


def test_arguments_win_over_the_environment_and_are_blamed_for_themselves(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RECOLLECT_RETRIEVAL__TOP_K", "12")
    monkeypatch.setenv("RECOLLECT_RETRIEVAL__MODE", "dense")
    retrieval = RAGConfig(retrieval={"top_k": 13}).retrieval
    assert (retrieval.top_k, retrieval.mode) == (13, "dense")
    with pytest.raises(ConfigurationError) as caught:
        RAGConfig(retrieval={"top_k": 0})
    assert "environment" not in str(caught.value)


def test_a_table_and_its_keys_may_both_be_given_and_the_key_wins(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RECOLLECT_RETRIEVAL__TOP_K", "12")
    monkeypatch.setenv("RECOLLECT_RETRIEVAL", '{"top_k": 3, "enhance": {"hyde": true}}')
    monkeypatch.setenv("RECOLLECT_RETRIEVAL__ENHANCE__MULTI_QUERY", "2")
    retrieval = RAGConfig().retrieval
    assert (retrieval.top_k, retrieval.enhance.hyde, retrieval.enhance.multi_query) == (12, True, 2)


def test_lists_mappings_lifetimes_and_home_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for name, value in {
        "HOME": str(tmp_path),
        "RECOLLECT_TEMPORAL__PRESERVE_TAGS": "legal, audit",
        "RECOLLECT_ACCESS__PRIVILEGED_ROLES": '["Manager, interim", "Auditor"]',
        "RECOLLECT_ACCESS__ROLE_PREFERENCES__SecurityAnalyst__DEPARTMENTS": "security,it",
        "RECOLLECT_ACCESS__ROLE_PREFERENCES__SecurityAnalyst__FACTOR": "1.5",
        "RECOLLECT_RETRIEVAL__ENHANCE__SYNONYMS__HandBook__2": "~/words.txt",
        "RECOLLECT_STORAGE__DATA_DIR": "~/data",
        "RECOLLECT_SESSION__TTL": "never",
        "RECOLLECT_TEMPORAL__DEFAULT_TTL": "3600",
        "RECOLLECT_CHUNKING__SIZE": "300",
        "RECOLLECT_CHUNKING__UNIT": "tokens",
    }.items():
        monkeypatch.setenv(name, value)
    config = RAGConfig()
    assert config.temporal.preserve_tags == ("legal", "audit")
    assert config.access.privileged_roles == ("Manager, interim", "Auditor")
    (preference,) = config.access.role_preferences.items()
    assert (preference[0], preference[1].departments, preference[1].factor) == (
        "SecurityAnalyst",
        ("security", "it"),
        1.5,
    )
    assert config.retrieval.enhance.synonyms == {"HandBook__2": tmp_path / "words.txt"}
    assert config.storage.data_dir == tmp_path / "data"
    assert (config.session.ttl, config.temporal.default_ttl) == (None, 3600)
    assert config.chunking.parameters == {"size": 300, "unit": "tokens"}


def test_errors_never_show_a_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RECOLLECT_ANSWER", '{"api_key": "hunter2", "nope": 1}')
    monkeypatch.setenv("RECOLLECT_STORAGE", '{"dsn": "postgresql://u:hunter2@h/db"')
    monkeypatch.setenv("RECOLLECT_API_KEY", "hunter2")
    file = toml(tmp_path, '[rag.answer]\nprovider = "hunter2"')
    for read in (
        RAGConfig,
        lambda: RAGConfig.load(file),
        lambda: RAGConfig(storage={"dns": "postgresql://:hunter2@h"}),
    ):
        with pytest.raises(ConfigurationError) as caught:
            read()
        for shown in (caught.value, caught.value.__cause__, caught.value.__context__):
            assert "hunter2" not in repr(shown) + str(shown)


# What some settings are refused without.
_AUDIENCE = ("RECOLLECT_SERVER__JWT__AUDIENCE", "recollect")
_CLIENT = ("RECOLLECT_SERVER__LOGIN__OIDC__CLIENT_ID", "recollect")
_BESIDE = {
    ("server", "jwt", "public_key"): _AUDIENCE,
    ("server", "jwt", "jwks_url"): _AUDIENCE,
    ("server", "login", "oidc", "issuer"): _CLIENT,
}


@pytest.mark.parametrize("place", list(places(RAGConfig)), ids=".".join)
def test_every_table_and_key_means_the_same_in_the_file_and_in_the_environment(place, tmp_path: Path, monkeypatch):
    """Whatever value of a setting the file takes, the variable of that name takes as well."""
    if place in _BESIDE:
        monkeypatch.setenv(*_BESIDE[place])
    default = RAGConfig()
    taken = 0
    for value in _candidates(place):
        in_file = _read(
            lambda value=value: RAGConfig.load(toml(tmp_path, f"[rag]\n{'.'.join(place)} = {_toml(value)}"))
        )
        if in_file is None or in_file == default:
            continue
        taken += 1
        for written in _written(value):
            monkeypatch.setenv(variable(place), written)
            (tmp_path / "recollect.toml").unlink(missing_ok=True)
            assert RAGConfig() == RAGConfig.load() == in_file
            monkeypatch.delenv(variable(place))
    assert taken, "no value was tried that this setting takes"


def _candidates(place: tuple[str, ...]) -> list[object]:
    annotation = str(_field(place).annotation)
    if "bool" in annotation:
        return [True, False]
    tables = [{"top_k": 7}, {"strategy": "paragraph", "size": 9}, {"max_documents": 7}, {"threads": 7}, {"readers": 7}]
    tables += [{"token_budget": 7}, {"passages": 7}, {"facts": False}, {"auto_expire": False}, {"hyde": True}]
    tables += [{"time_partitions": "daily"}, {"max_connections": 7}, {"mode": "off"}, {"collection_prefix": "x"}]
    tables += [{"max_attempts": 7}, {"pii": "tag"}, {"max_bytes": 7}, {"port": 7}, {"issuer": "x"}, {"tenant": "x"}]
    tables += [{"search": 7}, {"questions": "hash"}, {"keys": False}, {"name": "x"}, {"ocr": "off"}]
    if annotation.startswith("tuple") and "Config" in annotation:
        return [[{"name": "north", "url": "https://north.example"}]]
    if place[-1] == "allow_origins":
        return [["https://app.example.com"], ["tauri://localhost"]]
    tables += [{"k": "v"}, {"k": ["a"]}, {"k": ["read"]}, {"k": {"departments": ["a"]}}]
    if "Config" in annotation or "Defaults" in annotation or "dict" in annotation:
        return tables
    return [
        7,
        600,
        10**9,
        0.25,
        *re.findall(r"'(\w+)'", annotation),
        "never",
        "hunter",
        "openai/small",
        "env:HUNTER",
        "https://hunter.example",
        ["a", "b"],
        ["US", "FR"],
        ["read", "write"],
        ["openid", "email"],
        ["10.0.0.0/8", "127.0.0.1"],
    ]


def _field(place: tuple[str, ...]):
    model = RAGConfig
    for key in place[:-1]:
        model = model.model_fields[key].annotation
    return model.model_fields[place[-1]]


def _read(load) -> RAGConfig | None:
    try:
        return load()
    except ConfigurationError:
        return None


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)


def _written(value: object) -> list[str]:
    if isinstance(value, list):
        return [json.dumps(value), *([", ".join(value)] if isinstance(value[0], str) else [])]
    return [value if isinstance(value, str) else json.dumps(value)]


def test_a_section_alone_is_refused_by_pydantic_and_in_the_settings_by_recollect():
    with pytest.raises(ValidationError):
        RetrievalConfig(top_k=0)
    with pytest.raises(ConfigurationError, match="top_k"):
        RAGConfig(retrieval={"top_k": 0})
