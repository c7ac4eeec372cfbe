from __future__ import annotations

import subprocess
import sys

import pytest

from recollect.embedding.registry import make_embedder
from recollect.errors import UsageError


def test_embedders_by_name(tmp_path, tiny_model):
    assert make_embedder("hashing", dimension=16).embed_query("a").shape == (16,)
    local = make_embedder("local", str(tiny_model), model_directory=tmp_path, precision="fp32")
    assert local.model_name == f"{tiny_model}:fp32"
    assert local.embed_query("annual leave").shape == (32,)


def test_an_unknown_provider_lists_the_known():
    with pytest.raises(UsageError, match="'nobody'; known are hashing, local"):
        make_embedder("nobody")


def test_local_asks_for_its_directory():
    with pytest.raises(UsageError, match="model_directory"):
        make_embedder("local")


def test_nothing_heavy_is_imported_before_a_text_is_embedded(tmp_path):
    code = f"""
import sys
from pathlib import Path
from recollect.embedding.registry import make_embedder
make_embedder("local", model_directory=Path({str(tmp_path)!r}))
print([name for name in ("onnx", "onnxruntime", "tokenizers", "safetensors", "urllib.request") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
