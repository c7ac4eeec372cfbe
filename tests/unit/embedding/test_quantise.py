from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from recollect.embedding import quantise
from recollect.embedding.models import ModelCache
from recollect.embedding.quantise import ensure_built, load_session
from recollect.errors import ModelUnavailableError

from .tiny_bert import HIDDEN, VOCABULARY, random_tensors, reference_vector, write_model

SAMPLE = [[2, 5, 6, 7, 3], [2, 3], [2, *range(20, 50), 3]]


@pytest.fixture
def files(tmp_path):
    return ModelCache(tmp_path / "cache").pull(str(write_model(tmp_path / "model")))


def vector(path, token_ids):
    return load_session(path).run(None, {"input_ids": np.array([token_ids], np.int32)})[0][0]


def cosine(path, token_ids):
    return float(vector(path, token_ids) @ reference_vector(token_ids, random_tensors()))


def test_both_precisions_give_the_models_vectors(files):
    full = ensure_built(files, precision="fp32", sample=SAMPLE)
    small = ensure_built(files, precision="int8", sample=SAMPLE)
    assert (full.precision, small.precision) == ("fp32", "int8")
    assert cosine(full.path, SAMPLE[2]) == pytest.approx(1.0, abs=1e-6)
    assert 0.97 < cosine(small.path, SAMPLE[2]) < 0.9999999


def test_the_reduced_range_for_processors_without_vnni(files, monkeypatch):
    with_vnni = ensure_built(files, precision="int8", sample=SAMPLE)
    monkeypatch.setattr(quantise, "cpu_class", lambda: "x86")
    without = ensure_built(files, precision="int8", sample=SAMPLE)
    if without.path != with_vnni.path:
        assert without.path.read_bytes() != with_vnni.path.read_bytes()
    assert cosine(without.path, SAMPLE[2]) > 0.95


def test_a_built_file_is_used_again(files):
    first = ensure_built(files, precision="int8", sample=SAMPLE)
    stamp = first.path.stat().st_mtime_ns
    assert ensure_built(files, precision="int8", sample=SAMPLE) == first
    assert first.path.stat().st_mtime_ns == stamp


def test_8_bits_that_differ_too_much_give_way_to_32(files, monkeypatch, caplog):
    monkeypatch.setattr(quantise, "MINIMUM_COSINE", 1.01)
    with caplog.at_level(logging.WARNING, logger="recollect"):
        built = ensure_built(files, precision="int8", sample=SAMPLE)
    assert built.precision == "fp32"
    assert "using 32 bits" in caplog.text
    assert cosine(built.path, SAMPLE[2]) == pytest.approx(1.0, abs=1e-6)
    monkeypatch.setattr(quantise, "build_graph", None)
    assert ensure_built(files, precision="int8", sample=SAMPLE) == built


def test_builders_at_the_same_time_leave_one_whole_file(files):
    with ThreadPoolExecutor(4) as pool:
        built = set(pool.map(lambda _: ensure_built(files, precision="int8", sample=SAMPLE), range(4)))
    assert len(built) == 1
    names = {path.name for path in files.build_directory.iterdir()}
    assert names == {".build.lock", built.pop().path.name}


def test_a_directory_that_cannot_be_written_is_named(tmp_path):
    model = write_model(tmp_path / "model")
    (tmp_path / "cache").write_text("a file where the cache should be", encoding="utf-8")
    files = ModelCache(tmp_path / "cache").pull(str(model))
    with pytest.raises(ModelUnavailableError, match="cannot be written"):
        ensure_built(files, precision="fp32", sample=SAMPLE)


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"not a graph")
    with pytest.raises(ModelUnavailableError, match="Delete it"):
        load_session(path)


def test_a_large_table_of_words_takes_a_quarter_and_gives_the_same_vectors(files, monkeypatch):
    usual = ensure_built(files, precision="int8", sample=SAMPLE)
    size, before = usual.path.stat().st_size, [cosine(usual.path, ids) for ids in SAMPLE]
    usual.path.unlink()
    monkeypatch.setattr(quantise, "LARGE_VOCABULARY", 1)
    small = ensure_built(files, precision="int8", sample=SAMPLE)
    assert small.precision == "int8"
    assert small.path.stat().st_size < size - 10_000
    assert [cosine(small.path, ids) for ids in SAMPLE] == pytest.approx(before, abs=0.01)


def test_a_large_table_that_was_published_in_4_bits_keeps_them_and_loses_nothing(files, monkeypatch):
    random = np.random.default_rng(3)
    scales = random.normal(0, 0.1, (len(VOCABULARY), 1)).astype(np.float16).astype(np.float32)
    values = random.integers(-8, 8, (len(VOCABULARY), HIDDEN))
    values[:, 5] = -8
    table = (values * scales).astype(np.float16)
    table[7] = 0
    tensors = load_file(files.weights) | {"embeddings.word_embeddings.weight": table.astype(np.float32)}
    save_file(tensors, files.weights)
    usual = ensure_built(files, precision="int8", sample=SAMPLE)
    size, before = usual.path.stat().st_size, [vector(usual.path, ids) for ids in SAMPLE]
    usual.path.unlink()
    monkeypatch.setattr(quantise, "LARGE_VOCABULARY", 1)
    small = ensure_built(files, precision="int8", sample=SAMPLE)
    # A quarter of a half of 32 bits for each weight, less the nodes that unpack them.
    assert small.path.stat().st_size < size - 0.8 * table.size * 3.5
    for ids, one in zip(SAMPLE, before, strict=True):
        # Half precision decides how activations near a border are rounded to 8 bits, which a random model amplifies.
        assert float(vector(small.path, ids) @ one) > 0.999


def test_a_table_of_more_than_16_values_in_a_block_is_not_cut_to_4_bits():
    random = np.random.default_rng(3)
    assert quantise.four_bit_blocks(random.normal(0, 1, (50, 64)).astype(np.float32)) is None
    assert quantise.four_bit_blocks(np.zeros((50, 48), np.float32)) is None
    values, scales = quantise.four_bit_blocks(np.zeros((50, 64), np.float32))
    assert (values == 8).all()
    assert not scales.any()
