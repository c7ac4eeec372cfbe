from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest
from pydantic import SecretStr

from recollect.errors import ConfigurationError
from recollect.llm import make_chat_model


def test_ollama_needs_no_key_and_has_its_own_address():
    model = make_chat_model("ollama", model="qwen3")
    assert model.model_name == "qwen3"
    assert "localhost:11434/v1" in repr(model)


def test_openai_needs_a_key_unless_the_server_is_another():
    with pytest.raises(ConfigurationError, match="API key"):
        make_chat_model("openai")
    assert make_chat_model("openai", base_url="http://127.0.0.1:1/v1").model_name
    assert make_chat_model("openai", api_key=SecretStr("sk-1")).model_name


def test_a_secret_stays_secret():
    assert "sk-hidden" not in repr(make_chat_model("openai", api_key=SecretStr("sk-hidden")))


def test_an_unknown_provider_is_named_with_the_known_ones():
    with pytest.raises(ConfigurationError, match=r"'watson'.*'openai', 'ollama'"):
        make_chat_model("watson")


@pytest.mark.parametrize(
    ("options", "words"),
    [({"timeout_seconds": 0}, "timeout_seconds"), ({"max_retries": -1}, "max_retries"), ({"model": " "}, "name")],
)
def test_values_out_of_range(options, words):
    with pytest.raises(ConfigurationError, match=words):
        make_chat_model("ollama", **options)


def test_a_missing_sdk_is_named_with_the_extra(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        "recollect.llm.openai_compatible.find_spec", lambda name: None if name == "openai" else real(name)
    )
    with pytest.raises(ConfigurationError, match=r"'openai'.*recollect\[openai\]"):
        make_chat_model("ollama")


def test_making_a_model_does_not_import_the_sdk():
    code = "import sys, recollect.llm as llm; llm.make_chat_model('ollama'); print('openai' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
