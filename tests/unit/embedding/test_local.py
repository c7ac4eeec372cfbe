from __future__ import annotations

import json
import logging
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.context import counter_of
from recollect.embedding._tokens import TextTokenizer
from recollect.embedding.local import LocalEmbedder
from recollect.embedding.models import ModelCache
from recollect.errors import ModelUnavailableError, UsageError

from .tiny_bert import POSITIONS, random_tensors, reference_vector, write_model

ROOM = POSITIONS - 2
TEXTS = ["annual leave policy", "how many days", "", "error code of the year", "leave", "the first code"]


@pytest.fixture(scope="module", params=["fp32", "int8"])
def embedder(request, tiny_model, shared_cache):
    return LocalEmbedder(str(tiny_model), cache=shared_cache, precision=request.param, threads=2)


@pytest.fixture(scope="module")
def tokenizer(tiny_model):
    return TextTokenizer(tiny_model / "tokenizer.json")


def expected(ids):
    return reference_vector([2, *ids, 3], random_tensors())


def test_vectors_are_the_models(embedder, tokenizer):
    found = embedder.embed_documents(TEXTS)
    wanted = np.array([expected(ids) for ids in tokenizer.ids_batch(TEXTS)])
    if embedder.active_precision == "fp32":
        np.testing.assert_allclose(found, wanted, atol=2e-6)
    else:
        assert np.sum(found * wanted, axis=1).min() > 0.97


def test_a_text_beyond_the_window_is_the_mean_of_its_windows(tiny_model, shared_cache, tokenizer):
    embedder = LocalEmbedder(str(tiny_model), cache=shared_cache, precision="fp32", threads=1)
    text = "annual leave policy of the year " * 15
    (ids,) = tokenizer.ids_batch([text])
    assert 2 * ROOM < len(ids) <= 3 * ROOM
    windows = [ids[:ROOM], ids[ROOM : 2 * ROOM], ids[2 * ROOM :]]
    wanted = sum(len(part) * expected(part) for part in windows)
    np.testing.assert_allclose(embedder.embed_query(text), wanted / np.linalg.norm(wanted), atol=2e-6)


def test_a_text_that_just_fits_is_one_window(tiny_model, shared_cache):
    embedder = LocalEmbedder(str(tiny_model), cache=shared_cache, precision="fp32")
    text = " ".join(["leave"] * ROOM)
    leave = embedder.embed_query(text)
    np.testing.assert_allclose(leave, expected([6] * ROOM), atol=2e-6)


def test_8_bit_vectors_depend_on_the_text_alone(tiny_model, shared_cache):
    embedder = LocalEmbedder(str(tiny_model), cache=shared_cache, precision="int8", threads=2)
    together = embedder.embed_documents([*TEXTS, *TEXTS, "x " * 500])
    for row, text in enumerate(TEXTS * 2):
        np.testing.assert_array_equal(together[row], embedder.embed_query(text))


@pytest.mark.parametrize("batch_tokens", [1, 5, 10_000])
def test_the_batch_size_changes_nothing(tiny_model, shared_cache, batch_tokens):
    small = LocalEmbedder(str(tiny_model), cache=shared_cache, precision="fp32", batch_tokens=batch_tokens, threads=1)
    whole = LocalEmbedder(str(tiny_model), cache=shared_cache, precision="fp32", threads=2)
    texts = TEXTS * 3
    np.testing.assert_allclose(small.embed_documents(texts), whole.embed_documents(texts), atol=2e-6)


def test_constructing_needs_no_model(tmp_path):
    embedder = LocalEmbedder("nobody/nothing", cache=ModelCache(tmp_path / "cache"))
    assert embedder.model_name == "nobody/nothing:int8"
    with pytest.raises(ModelUnavailableError, match="known are"):
        embedder.embed_query("a")


def test_a_model_is_loaded_ahead_where_it_is_and_never_fetched_for_it(tiny_model, tmp_path, monkeypatch):
    present = LocalEmbedder(str(tiny_model), cache=ModelCache(tmp_path / "cache"))
    present.load_ahead()
    monkeypatch.setattr(ModelCache, "pull", lambda *_, **__: pytest.fail("fetched"))
    assert present.embed_query("a").shape == (present.dimension,)
    LocalEmbedder(cache=ModelCache(tmp_path / "empty")).load_ahead()
    assert not (tmp_path / "empty").exists()


def test_first_use_by_many_threads_loads_once(tiny_model, tmp_path):
    embedder = LocalEmbedder(str(tiny_model), cache=ModelCache(tmp_path / "cache"), threads=2)
    with ThreadPoolExecutor(8) as pool:
        vectors = list(pool.map(embedder.embed_query, ["annual leave"] * 16))
    assert all(np.array_equal(vector, vectors[0]) for vector in vectors)
    assert len(list((tmp_path / "cache").rglob("encoder.*.onnx"))) == 1


def test_a_damaged_graph_is_built_again(tiny_model, tmp_path, caplog):
    cache = ModelCache(tmp_path / "cache")
    before = LocalEmbedder(str(tiny_model), cache=cache).embed_query("annual leave")
    (graph,) = cache.directory.rglob("encoder.*.onnx")
    graph.write_bytes(graph.read_bytes()[:100])
    with caplog.at_level(logging.WARNING, logger="recollect"):
        after = LocalEmbedder(str(tiny_model), cache=cache).embed_query("annual leave")
    np.testing.assert_array_equal(after, before)
    assert "building it again" in caplog.text


def test_pooling_window_and_prefixes_come_from_the_models_files(tmp_path, tokenizer):
    model = write_model(tmp_path / "model")
    (model / "1_Pooling").mkdir()
    pooling = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    (model / "1_Pooling" / "config.json").write_text(json.dumps(pooling), encoding="utf-8")
    prompts = {"prompts": {"query": "how many ", "passage": "the "}}
    (model / "config_sentence_transformers.json").write_text(json.dumps(prompts), encoding="utf-8")
    (model / "sentence_bert_config.json").write_text('{"max_seq_length": 8}', encoding="utf-8")
    embedder = LocalEmbedder(str(model), cache=ModelCache(tmp_path / "cache"), precision="fp32")

    def first_token(text):
        return reference_vector([2, *tokenizer.ids_batch([text])[0], 3], random_tensors(), pooling="cls")

    np.testing.assert_allclose(embedder.embed_query("days"), first_token("how many days"), atol=2e-6)
    np.testing.assert_allclose(embedder.embed_documents(["days"])[0], first_token("the days"), atol=2e-6)
    # Eight tokens, less two specials and the prefix's two: four of the text in a window.
    halves = first_token("how many days days days days") + first_token("how many code code code code")
    found = embedder.embed_query("days days days days code code code code")
    np.testing.assert_allclose(found, halves / np.linalg.norm(halves), atol=2e-6)


@pytest.mark.parametrize(
    ("file", "content", "named"),
    [
        ("modules.json", '[{"type": "sentence_transformers.models.Dense"}]', "Dense"),
        ("1_Pooling/config.json", '{"pooling_mode_max_tokens": true}', "pooling_mode_max_tokens"),
        ("sentence_bert_config.json", "{", "cannot be read"),
        ("tokenizer.json", "{}", "tokenizer"),
    ],
)
def test_what_would_give_wrong_vectors_is_refused(tmp_path, file, content, named):
    model = write_model(tmp_path / "model")
    (model / file).parent.mkdir(exist_ok=True)
    (model / file).write_text(content, encoding="utf-8")
    with pytest.raises(ModelUnavailableError, match=named):
        LocalEmbedder(str(model), cache=ModelCache(tmp_path / "cache"), precision="fp32").embed_query("a")


@pytest.mark.parametrize("options", [{"precision": "int4"}, {"threads": 0}, {"batch_tokens": 0}])
def test_parameters_out_of_range_are_named(tmp_path, options):
    with pytest.raises(UsageError, match=next(iter(options))):
        LocalEmbedder(cache=ModelCache(tmp_path), **options)


def test_one_text_in_place_of_many_is_refused(embedder):
    with pytest.raises(UsageError, match="sequence of texts"):
        embedder.embed_documents("annual leave")


def test_spans_are_the_tokens_places(tiny_model, shared_cache):
    embedder = LocalEmbedder(str(tiny_model), cache=shared_cache)
    text = "Annual  leave: $5"
    assert [text[start:end] for start, end in embedder.token_spans(text)] == ["Annual", "leave", ":", "$", "5"]
    assert embedder.token_spans("") == []
    assert embedder.token_spans_batch(["leave", "", "é leave"]) == [[(0, 5)], [], [(0, 1), (2, 7)]]
    assert embedder.token_spans_batch([]) == []


@settings(max_examples=200, deadline=None)
@given(parts=st.lists(st.text(st.characters()) | st.sampled_from(["leave", " ", "\n\n", "[MASK]", "\u0301", "A" * 70])))
def test_words_count_for_themselves_what_they_count_in_a_text(tiny_model, shared_cache, parts):
    embedder = LocalEmbedder(str(tiny_model), cache=shared_cache)
    assert embedder.splits_at_blanks()
    text = "".join(parts)
    by_words = counter_of(embedder.token_spans, by_words=embedder.splits_at_blanks)
    assert by_words(text) == counter_of(embedder.token_spans)(text)


@settings(max_examples=50, deadline=None)
@given(text=st.text(st.characters()))
def test_spans_are_in_order_within_the_text(tokenizer, text):
    edges = [edge for span in tokenizer.spans(text) for edge in span]
    assert edges == sorted(edges)
    assert not edges or (edges[0] >= 0 and edges[-1] <= len(text))


@settings(max_examples=20, deadline=None)
@given(
    words=st.lists(st.text(st.sampled_from("ab c\n\u00e9"), min_size=1), min_size=1, max_size=9), repeat=st.just(9000)
)
def test_long_texts_have_the_spans_of_their_pieces_joined(tokenizer, words, repeat):
    text = " ".join(words * (repeat // len(words)))
    pieces = list(TextTokenizer.pieces(text))
    assert "".join(text[start:end] for start, end in pieces) == text
    joined = [(s + start, e + start) for start, end in pieces for s, e in tokenizer.spans(text[start:end])]
    assert tokenizer.spans(text) == joined


def test_a_cut_at_white_space_cuts_no_token(tokenizer):
    text = "annual leave policy " * 6000
    assert len(list(TextTokenizer.pieces(text))) > 1
    assert {text[start:end] for start, end in tokenizer.spans(text)} == {"annual", "leave", "policy"}
    assert len(tokenizer.spans(text)) == 18_000
