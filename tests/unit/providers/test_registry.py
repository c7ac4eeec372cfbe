from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest
from embedding.tiny_bert import write_model

from recollect.errors import ConfigurationError, UsageError
from recollect.providers import PROVIDERS, Connection, make_chat_model, make_embedder, make_scorer
from recollect.providers.connection import Secret
from recollect.providers.registry import installed

HOSTED = sorted(name for name, row in PROVIDERS.items() if row.sdk)


def test_embedders_by_name(tmp_path):
    tiny_model = write_model(tmp_path / "model")
    assert make_embedder("hashing", dimensions=16).embed_query("a").shape == (16,)
    local = make_embedder("local", str(tiny_model), model_directory=tmp_path, precision="fp32")
    assert local.model_name == f"{tiny_model}:fp32"
    assert local.embed_query("annual leave").shape == (32,)


def test_an_unknown_provider_lists_the_known():
    with pytest.raises(UsageError, match="'nobody'; for embedding there are local, hashing, openai, "):
        make_embedder("nobody")
    with pytest.raises(ConfigurationError, match="Unknown provider 'watson'; for chat there are openai, "):
        make_chat_model("watson")
    with pytest.raises(ConfigurationError, match="ollama offers no reranking models; for reranking there are local, "):
        make_scorer("ollama")


def test_local_asks_for_its_directory():
    with pytest.raises(UsageError, match="model_directory"):
        make_embedder("local")


def test_ollama_needs_no_key_and_has_its_own_address():
    model = make_chat_model("ollama", "qwen3")
    assert model.model_name == "qwen3"
    assert "localhost:11434" in repr(model)


def test_a_providers_own_address_needs_its_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigurationError, match="needs an API key: set OPENAI_API_KEY in the environment"):
        make_chat_model("openai")
    assert make_chat_model("openai", connection=Connection(base_url="http://127.0.0.1:1/v1")).model_name
    assert make_chat_model("openai", connection=Connection(api_key=Secret("sk-1"))).model_name
    monkeypatch.setenv("OPENAI_API_KEY", "sk-2")
    assert make_chat_model("openai").model_name


def test_an_unknown_model_must_be_given_its_dimensions():
    connection = Connection(base_url="http://127.0.0.1:1/v1")
    with pytest.raises(ConfigurationError, match=r"'bge-m3' \(openai\) have: set rag\.embedding\.dimensions"):
        make_embedder("openai", "bge-m3", connection=connection)
    assert make_embedder("openai", "bge-m3", connection=connection, dimensions=1024).model_name == "openai/bge-m3:1024"


@pytest.mark.parametrize(
    ("model", "wanted", "dimension"),
    [
        ("text-embedding-3-small", None, 1536),
        ("text-embedding-3-large", None, 3072),
        ("text-embedding-3-large", 256, 256),
        ("text-embedding-ada-002", None, 1536),
    ],
)
def test_known_models_have_known_dimensions(model, wanted, dimension):
    made = make_embedder("openai", model, connection=Connection(api_key=Secret("sk-1")), dimensions=wanted)
    assert (made.dimension, made.model_name) == (dimension, f"openai/{model}:{dimension}")


@pytest.mark.parametrize(("model", "wanted"), [("text-embedding-3-small", 3072), ("text-embedding-ada-002", 512)])
def test_a_known_model_is_not_asked_for_what_it_does_not_give(model, wanted):
    with pytest.raises(ConfigurationError, match=f"not {wanted}"):
        make_embedder("openai", model, connection=Connection(api_key=Secret("sk-1")), dimensions=wanted)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"timeout_seconds": 0}, "timeout_seconds"),
        ({"max_retries": -1}, "max_retries"),
        ({"batch_size": 0}, "batch_size"),
        ({"base_url": "ftp://user:password@host/"}, "not 'ftp://host/'"),
    ],
)
def test_values_out_of_range(given, words):
    with pytest.raises(ConfigurationError, match=words):
        Connection(**given)


def test_a_model_needs_a_name():
    with pytest.raises(ConfigurationError, match=r"needs a name: set rag\.answer\.model"):
        make_chat_model("ollama", " ")


@pytest.mark.parametrize("name", HOSTED)
def test_a_missing_sdk_is_named_with_the_extra(monkeypatch, name):
    row = PROVIDERS[name]
    real = importlib.util.find_spec
    monkeypatch.setattr(
        "recollect.providers.registry.find_spec", lambda package: None if package == row.sdk else real(package)
    )
    make = {"embedding": make_embedder, "reranking": make_scorer, "chat": make_chat_model}[min(row.capabilities)]
    options = {"dimensions": 8} if make is make_embedder else {}
    with pytest.raises(ConfigurationError, match=rf"pip install '\.\[{row.extra}\]'"):
        make(name, "m", connection=Connection(api_key=Secret("k")), **options)


def test_making_models_imports_no_sdk():
    code = """
import sys
import recollect
from recollect.providers import Connection, make_chat_model, make_embedder
make_chat_model("ollama")
make_embedder("openai", "m", connection=Connection(base_url="http://127.0.0.1:1"), dimensions=8)
print([name for name in ("openai", "ollama", "tenacity", "httpx", "numpy.linalg") if name in sys.modules][:3])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "openai" not in done.stdout
    assert "ollama" not in done.stdout


def test_nothing_heavy_is_imported_before_a_text_is_embedded(tmp_path):
    code = f"""
import sys
from pathlib import Path
from recollect.providers.registry import make_embedder
make_embedder("local", model_directory=Path({str(tmp_path)!r}))
print([name for name in ("onnx", "onnxruntime", "tokenizers", "safetensors", "urllib.request") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_sdk_that_something_else_brought_is_not_the_whole_extra(monkeypatch):
    """tokenizers depends on huggingface_hub, so that one is there without the extra."""
    monkeypatch.setitem(sys.modules, "tenacity", None)
    row = PROVIDERS["huggingface"]
    assert not installed(row)
    with pytest.raises(ConfigurationError, match=r"'tenacity' is needed .* pip install '\.\[huggingface\]'"):
        make_embedder("huggingface", "x", connection=Connection(base_url="http://127.0.0.1:9"), dimensions=8)
