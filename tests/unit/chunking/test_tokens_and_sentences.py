"""The default tokeniser and the sentence boundaries."""

from __future__ import annotations

import pytest

from recollect.chunking.base import LONGEST_TOKEN, count_tokens, tokenize
from recollect.chunking.sentences import sentence_spans


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("It works, in 3.5 s.", ["It", "works", ",", "in", "3", ".", "5", "s", "."]),
        ("用户手册v2", ["用", "户", "手", "册", "v2"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("cafe\u0301 au lait", ["cafe\u0301", "au", "lait"]),
        ("مرحبا بالعالم", ["مرحبا", "بالعالم"]),
        ("a\x1cb\u2003c", ["a", "b", "c"]),
        ("𝔘nit", ["𝔘nit"]),
        ("", []),
    ],
)
def test_tokens(text, tokens):
    assert [text[start:end] for start, end in tokenize(text)] == tokens


def test_an_endless_word_is_many_tokens():
    assert count_tokens("x" * 10 * LONGEST_TOKEN) == 10


@pytest.mark.parametrize(
    ("text", "language", "sentences"),
    [
        ("Dr. Wu left. Nobody saw it.", "en", ["Dr. Wu left.", "Nobody saw it."]),
        ("One\n\ntwo. Three", "en", ["One", "two.", "Three"]),
        ("你好。我们来了。", "zh", ["你好。", "我们来了。"]),
        ("  \n ", "en", []),
        ("Só um. É dois!", "no-such-language", ["Só um.", "É dois!"]),
    ],
)
def test_sentences(text, language, sentences):
    assert [text[start:end] for start, end in sentence_spans(text, language)] == sentences


def test_a_long_text_is_cut_like_a_short_one():
    sentence = "This is sentence number one of many. "
    assert len(sentence_spans(sentence * 1000)) == 1000


def test_half_a_surrogate_pair_is_a_character_like_another():
    text = "One \ud83d here. Two there."
    assert [text[start:end] for start, end in sentence_spans(text)] == ["One \ud83d here.", "Two there."]
