"""A compiled vocabulary gives token for token what the library gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from recollect.embedding import _tokens
from recollect.embedding._tokens import (
    COMPILED,
    TextTokenizer,
    UncompilableError,
    UnigramVocabulary,
    compile_vocabulary,
)

SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]
#: Some characters are missing on purpose, others are there only within longer pieces, and scores are equal.
PIECES = {
    "▁": -3.0, "a": -4.0, "b": -4.0, "ab": -8.0, "aba": -8.5, "ba": -6.0, "▁a": -5.0, "▁ab": -6.0, "▁abab": -12.0,
    "e": -4.0, "▁die": -2.5, "d": -5.0, "i": -5.0, "ie": -5.5, "die": -6.0, "上": -6.0, "上海": -7.0, "在": -6.0,
    "ال": -4.5, "ل": -5.0, "كتاب": -9.0, "ك": -7.0, "😀": -9.0, "😀😀": -17.5, "1": -5.0, "2": -5.0, "12": -10.0,
    "▁▁": -11.0, "न": -6.0, "ि": -6.0, "नि": -11.0, "<": -8.0, "s": -5.0, ">": -8.0, "/": -8.0, "ß": -7.0, "ss": -6.0,
    "\u0627": -5.0, "½": -9.0, "\u200f": -9.0, "é": -7.0,
}  # fmt: skip


def made(path: Path, *, added: tuple[str, ...] = (), normalised: bool = False, **model: Any) -> Path:
    """A tokenizer.json of the form that XLM-RoBERTa's has."""
    vocabulary = [(piece, 0.0) for piece in SPECIALS] + list(PIECES.items())
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=3, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.add_special_tokens([AddedToken(one, normalized=normalised, special=True) for one in (*SPECIALS, *added)])
    content = json.loads(tokenizer.to_str())
    content["model"] |= model
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tokens, "LARGE_VOCABULARY", 10)
    monkeypatch.setattr(_tokens, "_LARGE_BYTES", 10)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[TextTokenizer, TextTokenizer]:
    """The same tokenizer compiled, and as the library reads it."""
    folder = tmp_path_factory.mktemp("unigram")
    path = made(folder / "tokenizer.json", added=("<mask>",))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_tokens, "LARGE_VOCABULARY", 10)
        patch.setattr(_tokens, "_LARGE_BYTES", 10)
        light = TextTokenizer(path, compiled=folder)
    assert (folder / COMPILED).is_file()
    return light, TextTokenizer(path)


def test_words_names_and_signs(both: tuple[TextTokenizer, TextTokenizer]) -> None:
    light, full = both
    texts = [
        "", " ", "die ababab", "  die   die ", "在上海 上 海海海", "الكتاب كتاب", "😀😀😀", "½ 12 1212", "Straße",
        "fi\u0301e\u0301", "<s>die</s>", "a<mask>b <unk> <mask>", "＜s＞", "c c", "cücü", "\u200fab\u200f", "नि न ि",
        "▁die▁▁a", "a\tb\nc\u00a0d\u3000e", "x" * 300,
    ]  # fmt: skip
    assert light.ids_batch(texts) == full.ids_batch(texts)
    assert light.specials == full.specials == ((0,), (2,))
    assert not full.splits_at_blanks


@given(st.text(st.sampled_from([*"".join(PIECES), *"cü海 \t\u0301\u200dX"])))
def test_texts_of_the_vocabulary_s_characters(both: tuple[TextTokenizer, TextTokenizer], text: str) -> None:
    light, full = both
    assert light.ids_batch([text]) == full.ids_batch([text])


@given(st.lists(st.one_of(st.sampled_from([*PIECES, *SPECIALS, "<mask>", " "]), st.text(max_size=5))).map("".join))
def test_any_text(both: tuple[TextTokenizer, TextTokenizer], text: str) -> None:
    light, full = both
    assert light.ids_batch([text, text]) == full.ids_batch([text]) * 2
    assert light.spans(text) == full.spans(text)


def test_pairs_and_spans_are_the_library_s(both: tuple[TextTokenizer, TextTokenizer]) -> None:
    light, full = both
    assert light.pair_template() == full.pair_template()
    assert light.spans("die 上海") == full.spans("die 上海")


def test_another_tokenizer_in_its_place_is_compiled_anew(tmp_path: Path) -> None:
    path = made(tmp_path / "tokenizer.json")
    TextTokenizer(path, compiled=tmp_path)
    before = (tmp_path / COMPILED).read_bytes()
    content = json.loads(path.read_text("utf-8"))
    content["model"]["vocab"].append(["▁ababab", -1.0])
    path.write_text(json.dumps(content), encoding="utf-8")
    light = TextTokenizer(path, compiled=tmp_path)
    assert light.ids_batch(["ababab"]) == TextTokenizer(path).ids_batch(["ababab"]) == [[len(SPECIALS) + len(PIECES)]]
    assert (tmp_path / COMPILED).read_bytes() != before


@pytest.mark.parametrize("damage", [b"", b"RCUNI001", None])
def test_a_damaged_file_is_written_anew(tmp_path: Path, damage: bytes | None) -> None:
    path = made(tmp_path / "tokenizer.json")
    TextTokenizer(path, compiled=tmp_path)
    whole = (tmp_path / COMPILED).read_bytes()
    (tmp_path / COMPILED).write_bytes(whole[:-7] if damage is None else damage)
    assert TextTokenizer(path, compiled=tmp_path).ids_batch(["die"]) == TextTokenizer(path).ids_batch(["die"])
    assert (tmp_path / COMPILED).read_bytes() == whole


def test_what_cannot_be_written_is_read_by_the_library(tmp_path: Path) -> None:
    path = made(tmp_path / "tokenizer.json")
    (tmp_path / "file").write_text("")
    # A directory below a file cannot be made, whoever asks.
    light = TextTokenizer(path, compiled=tmp_path / "file" / "below")
    assert light.ids_batch(["die ab"]) == TextTokenizer(path).ids_batch(["die ab"])
    assert {one.name for one in tmp_path.iterdir()} == {"tokenizer.json", "file"}


@pytest.mark.parametrize(
    "change",
    [
        {"byte_fallback": True},
        {"vocab": [["<s>", 0.0], ["<unk>", 0.0]]},
        {"vocab": [[piece, 0.0] for piece in ("<unk>", *"abcdefghijk", "a")]},
        {"unk_id": None},
        {"vocab": 3},
    ],
)
def test_what_is_of_another_kind_is_not_compiled(tmp_path: Path, change: dict[str, Any]) -> None:
    path = made(tmp_path / "tokenizer.json", **change)
    with pytest.raises(UncompilableError):
        compile_vocabulary(path, tmp_path / COMPILED, bytes(16))
    assert [one.name for one in tmp_path.iterdir()] == ["tokenizer.json"]


def test_special_tokens_that_are_normalised_are_not_compiled(tmp_path: Path) -> None:
    path = made(tmp_path / "tokenizer.json", normalised=True)
    with pytest.raises(UncompilableError):
        compile_vocabulary(path, tmp_path / COMPILED, bytes(16))


def test_a_file_of_another_identity_is_refused(tmp_path: Path) -> None:
    path = made(tmp_path / "tokenizer.json")
    compile_vocabulary(path, tmp_path / COMPILED, bytes(16))
    with pytest.raises(ValueError, match="another"):
        UnigramVocabulary(tmp_path / COMPILED, bytes(15) + b"1")
