from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
from safetensors.numpy import load_file, save_file

from recollect.embedding.bert_graph import build_graph
from recollect.errors import ModelUnavailableError

from .tiny_bert import random_tensors, reference_tokens, reference_vector, write_model

TEXTS = [[2, 3], [2, 5, 6, 7, 3], [2, *range(20, 50), 3]]


def run(directory, token_ids, **options):
    model = build_graph(directory / "model.safetensors", directory / "config.json", **options)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"input_ids": np.array([token_ids], np.int32)})[0][0]


@pytest.mark.parametrize("token_ids", TEXTS)
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_vectors_are_those_of_an_independent_bert(tmp_path, token_ids, pooling):
    directory = write_model(tmp_path)
    found = run(directory, token_ids, pooling=pooling)
    np.testing.assert_allclose(found, reference_vector(token_ids, random_tensors(), pooling=pooling), atol=2e-6)


def test_token_vectors_are_the_last_layer(tmp_path):
    directory = write_model(tmp_path)
    found = run(directory, TEXTS[1], head="tokens")
    np.testing.assert_allclose(found, reference_tokens(TEXTS[1], random_tensors()), atol=2e-5)


def test_changes_are_merged_into_the_weights(tmp_path):
    directory = write_model(tmp_path)
    tensors, random = random_tensors(), np.random.default_rng(5)
    name = "encoder.layer.1.output.dense"
    up, down = (random.normal(0, 0.2, shape).astype(np.float32) for shape in ((32, 3), (3, 64)))
    bias, segments = tensors[f"{name}.bias"] + 0.5, tensors["embeddings.token_type_embeddings.weight"][::-1].copy()
    changed = {f"{name}.bias": bias, "embeddings.token_type_embeddings.weight": segments}
    factors = {f"{name}.up": up, f"{name}.down": down, "heads.other": bias}
    save_file(changed | factors, tmp_path / "changes.safetensors")
    expected = tensors | changed | {f"{name}.weight": tensors[f"{name}.weight"] + up @ down}
    found = run(directory, TEXTS[1], head="tokens", deltas=tmp_path / "changes.safetensors")
    np.testing.assert_allclose(found, reference_tokens(TEXTS[1], expected), atol=2e-5)


def test_pairs_tell_the_texts_apart(tmp_path):
    directory = write_model(tmp_path)
    model = build_graph(directory / "model.safetensors", directory / "config.json", head="pairs")
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    ids = np.array([TEXTS[1]], np.int32)
    alone, pair = (
        session.run(None, {"input_ids": ids, "token_types": np.array([types], np.int32)})[0][0]
        for types in ([0] * 5, [0, 0, 1, 1, 1])
    )
    np.testing.assert_allclose(alone, reference_tokens(TEXTS[1], random_tensors()), atol=2e-5)
    assert np.abs(pair - alone).max() > 0.01


def test_texts_of_one_batch_do_not_touch(tmp_path):
    directory = write_model(tmp_path)
    model = build_graph(directory / "model.safetensors", directory / "config.json")
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    batch = np.array([[2, 5, 6, 3], [2, 9, 30, 3]], np.int32)
    found = session.run(None, {"input_ids": batch})[0]
    for row, vector in zip(batch, found, strict=True):
        np.testing.assert_allclose(vector, reference_vector(list(row), random_tensors()), atol=2e-6)


def test_a_prefix_on_the_tensor_names_changes_nothing(tmp_path):
    directory = write_model(tmp_path, prefix="bert.")
    np.testing.assert_allclose(run(directory, TEXTS[1]), reference_vector(TEXTS[1], random_tensors()), atol=2e-6)


def test_roberta_numbers_its_positions_after_the_padding(tmp_path):
    directory = write_model(tmp_path, prefix="roberta.", model_type="roberta", pad_token_id=1)
    expected = reference_vector(TEXTS[1], random_tensors(), first_position=2)
    np.testing.assert_allclose(run(directory, TEXTS[1]), expected, atol=2e-6)


def test_the_tanh_form_of_gelu(tmp_path):
    directory = write_model(tmp_path, hidden_act="gelu_new")
    expected = reference_vector(TEXTS[2], random_tensors(), gelu="tanh")
    np.testing.assert_allclose(run(directory, TEXTS[2]), expected, atol=2e-6)


def test_half_precision_weights(tmp_path):
    directory = write_model(tmp_path, dtype=np.float16)
    halved = {name: array.astype(np.float16) for name, array in random_tensors().items()}
    np.testing.assert_allclose(run(directory, TEXTS[1]), reference_vector(TEXTS[1], halved), atol=2e-6)


@pytest.mark.parametrize(
    ("members", "named"),
    [
        ({"model_type": "t5"}, "'t5'"),
        ({"hidden_act": "relu"}, "'relu'"),
        ({"position_embedding_type": "relative_key"}, "'relative_key'"),
        ({"num_attention_heads": 5}, "do not fit together"),
        ({"num_hidden_layers": "many"}, "cannot be read"),
        ({"num_hidden_layers": 3}, "encoder.layer.2"),
        ({"hidden_size": 16}, "contradict"),
    ],
)
def test_what_it_cannot_build_is_refused_by_name(tmp_path, members, named):
    directory = write_model(tmp_path, **members)
    with pytest.raises(ModelUnavailableError, match=named):
        run(directory, TEXTS[0])


def test_damaged_weights_are_refused(tmp_path):
    directory = write_model(tmp_path)
    weights = directory / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ModelUnavailableError, match="safetensors"):
        run(directory, TEXTS[0])


def test_weights_of_something_else_are_refused(tmp_path):
    directory = write_model(tmp_path)
    tensors = load_file(directory / "model.safetensors")
    del tensors["embeddings.word_embeddings.weight"]
    save_file(tensors, directory / "model.safetensors")
    with pytest.raises(ModelUnavailableError, match="no BERT encoder"):
        run(directory, TEXTS[0])
