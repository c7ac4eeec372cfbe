"""Tokens are counted by a model's own tokenizer where its files are here, and never fetched."""

from __future__ import annotations

import itertools
import shutil
import socket
from importlib.util import find_spec
from pathlib import Path

import pytest

from recollect.context import estimate_tokens
from recollect.providers import Connection, make_chat_model
from recollect.providers.embedder import _openai_encoding, estimated_spans, openai_counter, openai_spans

# A package that brings the files of both encodings; it is found and not imported, which takes seconds.
FILES = Path(find_spec("llama_index.core").origin).parent / "_static/tiktoken_cache"
TEXT = "Urlaubsanspruch: 30 Tage; 2026-05-01 | 17.5 % | ERR-4012"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    import tiktoken

    def refuse(*args, **kwargs):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tiktoken.registry, "ENCODINGS", {})
    _openai_encoding.cache_clear()
    yield tmp_path
    _openai_encoding.cache_clear()


def model(name="gpt-4o"):
    return make_chat_model("openai", name, connection=Connection(base_url="http://127.0.0.1:9"))


def test_tokens_are_those_of_the_models_tokenizer(cache):
    shutil.copytree(FILES, cache, dirs_exist_ok=True)
    assert (model().count_tokens(TEXT), model("gpt-4").count_tokens(TEXT)) != (estimate_tokens(TEXT),) * 2
    assert model().count_tokens("hello world") == 2
    # What looks like a mark of the model's own is text, as half a surrogate pair is.
    assert model().count_tokens("<|endoftext|>") > 1
    assert model().count_tokens("\ud800") >= 1


@pytest.mark.parametrize("content", [None, b"", b"something else"])
def test_without_its_file_tokens_are_estimated_and_nothing_is_fetched(cache, content):
    if content is not None:
        for file in FILES.iterdir():
            (cache / file.name).write_bytes(content)
    assert model().count_tokens(TEXT) == estimate_tokens(TEXT)


def test_a_model_that_is_not_openais_is_estimated(cache):
    shutil.copytree(FILES, cache, dirs_exist_ok=True)
    assert model("qwen3").count_tokens(TEXT) == estimate_tokens(TEXT)


def test_spans_are_the_models_tokens_in_the_text(cache):
    assert openai_spans("text-embedding-3-small") is None
    shutil.copytree(FILES, cache, dirs_exist_ok=True)
    _openai_encoding.cache_clear()
    spans = openai_spans("text-embedding-3-small")
    text = TEXT * 600
    found = spans(text)
    assert abs(len(found) - openai_counter("text-embedding-3-small")(text)) < 10
    assert (found[0][0], found[-1][1]) == (0, len(text))
    assert all(before[1] == after[0] for before, after in itertools.pairwise(found))
    assert spans("") == []


def test_estimated_spans_are_short_in_every_script():
    for text, longest in (("x" * 5_000, 4), ("Ж" * 500, 2), ("假" * 100, 1), ("=" * 100, 1)):
        assert max(end - start for start, end in estimated_spans(text)) == longest
