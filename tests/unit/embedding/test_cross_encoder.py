from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer, processors

from recollect.embedding.local import MAX_WINDOWS, CrossEncoder
from recollect.embedding.models import ModelCache
from recollect.errors import ModelUnavailableError, UsageError

from .tiny_bert import HIDDEN, POSITIONS, random_tensors, reference_tokens, write_model

QUERY = "how many days"
PASSAGES = ["annual leave policy", "error code", "", "the first year of the annual leave policy"]


def write_classifier(directory, *, labels=1, roberta=False, seed=3):
    """A tiny classifier, and the tensors that it was written with, names as in the file."""
    random = np.random.default_rng(seed)
    write_model(directory, prefix="roberta." if roberta else "bert.", **({"model_type": "roberta"} if roberta else {}))
    tensors = load_file(directory / "model.safetensors")
    dense, final = ("classifier.dense", "classifier.out_proj") if roberta else ("bert.pooler.dense", "classifier")
    for name, shape in ((dense, (HIDDEN, HIDDEN)), (final, (labels, HIDDEN))):
        tensors[f"{name}.weight"] = random.normal(0, 0.3, shape).astype(np.float32)
        tensors[f"{name}.bias"] = random.normal(0, 0.3, shape[:1]).astype(np.float32)
    save_file(tensors, directory / "model.safetensors")
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    pair = "[CLS]:0 $A:0 [SEP]:0 [SEP]:0 $B:0 [SEP]:0" if roberta else "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1"
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair=pair, special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(directory / "tokenizer.json"))
    return tokenizer, [tensors[f"{name}.{kind}"] for name in (dense, final) for kind in ("weight", "bias")]


def reference_logits(token_ids, token_types, head, **options):
    """The same arithmetic in NumPy, on the tested encoder reference; a text's types move into its word vectors."""
    tensors = random_tensors()
    types = tensors["embeddings.token_type_embeddings.weight"]
    # The reference adds row 0 to every token; the difference to row 1 is added through words of their own.
    words = tensors["embeddings.word_embeddings.weight"]
    extra = words[token_ids] + (types[token_types] - types[0])
    tensors["embeddings.word_embeddings.weight"] = extra
    first = reference_tokens(list(range(len(token_ids))), tensors, **options)[0]
    dense, dense_bias, final, final_bias = (array.astype(np.float64) for array in head)
    return np.tanh(first @ dense.T + dense_bias) @ final.T + final_bias


def encoded(tokenizer, query, passage):
    tokenizer.no_truncation()
    tokenizer.no_padding()
    pair = tokenizer.encode(query, passage)
    return pair.ids, pair.type_ids


def make(directory, tmp_path, **options):
    return CrossEncoder(str(directory), cache=ModelCache(tmp_path / "cache"), **{"precision": "fp32", **options})


@pytest.mark.parametrize("labels", [1, 2])
@pytest.mark.parametrize("threads", [1, 3])
def test_scores_are_those_of_an_independent_classifier(tmp_path, labels, threads):
    tokenizer, head = write_classifier(tmp_path / "model", labels=labels)
    found = make(tmp_path / "model", tmp_path, threads=threads).scores(QUERY, PASSAGES)
    logits = [reference_logits(*encoded(tokenizer, QUERY, passage), head) for passage in PASSAGES]
    expected = [row[0] if labels == 1 else row[1] - row[0] for row in logits]
    np.testing.assert_allclose(found, expected, atol=2e-5)
    assert len({round(score, 4) for score in found}) == len(PASSAGES)


def test_roberta_has_its_own_head_and_pairs(tmp_path):
    tokenizer, head = write_classifier(tmp_path / "model", roberta=True)
    found = make(tmp_path / "model", tmp_path).scores(QUERY, PASSAGES)
    logits = [reference_logits(*encoded(tokenizer, QUERY, p), head, first_position=1) for p in PASSAGES]
    np.testing.assert_allclose(found, [row[0] for row in logits], atol=2e-5)


def test_the_order_of_the_texts_matters(tmp_path):
    write_classifier(tmp_path / "model")
    encoder = make(tmp_path / "model", tmp_path)
    assert encoder.scores("leave policy", ["error code"]) != encoder.scores("error code", ["leave policy"])


def test_a_long_passage_counts_by_its_best_window(tmp_path):
    write_classifier(tmp_path / "model")
    encoder = make(tmp_path / "model", tmp_path)
    room = POSITIONS - 3 - 2
    parts = [" ".join([word] * room) for word in ("policy", "error", "leave")]
    alone = encoder.scores("how many", parts)
    assert encoder.scores("how many", [" ".join(parts)]) == pytest.approx([max(alone)], abs=1e-5)


def test_what_is_longer_than_all_windows_is_still_scored(tmp_path):
    write_classifier(tmp_path / "model")
    encoder = make(tmp_path / "model", tmp_path)
    huge = "policy " * (POSITIONS * MAX_WINDOWS * 4)
    scores = encoder.scores("how many days " * 5000, [huge, "\ud800", " \n"])
    assert np.isfinite(scores).all()


def test_eight_bits_agree_with_thirty_two_or_are_not_used(tmp_path):
    write_classifier(tmp_path / "model")
    full = make(tmp_path / "model", tmp_path).scores(QUERY, PASSAGES)
    small = make(tmp_path / "model", tmp_path, precision="int8").scores(QUERY, PASSAGES)
    assert np.corrcoef(full, small)[0, 1] > 0.9


def test_no_passages_have_no_scores(tmp_path):
    write_classifier(tmp_path / "model")
    assert make(tmp_path / "model", tmp_path).scores(QUERY, []) == []


def test_three_labels_are_refused(tmp_path):
    write_classifier(tmp_path / "model", labels=3)
    with pytest.raises(ModelUnavailableError, match="3 labels"):
        make(tmp_path / "model", tmp_path).scores(QUERY, PASSAGES)


def test_an_encoder_without_a_classifier_is_refused_by_name(tmp_path):
    write_model(tmp_path / "model")
    with pytest.raises(ModelUnavailableError, match=r"classifier\.weight"):
        make(tmp_path / "model", tmp_path).scores(QUERY, PASSAGES)


@pytest.mark.parametrize("options", [{"precision": "int4"}, {"threads": 0}])
def test_parameters_out_of_range_are_refused(tmp_path, options):
    with pytest.raises(UsageError):
        make(tmp_path, tmp_path, **options)
