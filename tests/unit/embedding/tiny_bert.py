"""A random BERT of a few kilobytes, and the same arithmetic in plain NumPy to hold the graph against."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

HIDDEN, LAYERS, HEADS, INNER, POSITIONS = 32, 2, 4, 64, 40
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["the", "leave", "policy", "days", "annual", "how", "many", "of", "error", "code", "year", "first"]
CHARACTERS = [chr(code) for code in range(33, 127)]
VOCABULARY = SPECIALS + WORDS + CHARACTERS + [f"##{character}" for character in CHARACTERS]


def random_tensors(*, seed: int = 7, layers: int = LAYERS, positions: int = POSITIONS) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)

    def draw(*shape: int, mean: float = 0.0, scale: float = 0.2) -> np.ndarray:
        return random.normal(mean, scale, shape).astype(np.float32)

    tensors = {
        "embeddings.word_embeddings.weight": draw(len(VOCABULARY), HIDDEN, scale=1.0),
        "embeddings.position_embeddings.weight": draw(positions, HIDDEN),
        "embeddings.token_type_embeddings.weight": draw(2, HIDDEN),
        "embeddings.LayerNorm.weight": draw(HIDDEN, mean=1.0),
        "embeddings.LayerNorm.bias": draw(HIDDEN),
        "pooler.dense.weight": draw(HIDDEN, HIDDEN),
    }
    for layer in range(layers):
        linears = {
            "attention.self.query": (HIDDEN, HIDDEN),
            "attention.self.key": (HIDDEN, HIDDEN),
            "attention.self.value": (HIDDEN, HIDDEN),
            "attention.output.dense": (HIDDEN, HIDDEN),
            "intermediate.dense": (INNER, HIDDEN),
            "output.dense": (HIDDEN, INNER),
        }
        for name, (out, into) in linears.items():
            tensors[f"encoder.layer.{layer}.{name}.weight"] = draw(out, into)
            tensors[f"encoder.layer.{layer}.{name}.bias"] = draw(out)
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            tensors[f"encoder.layer.{layer}.{name}.weight"] = draw(HIDDEN, mean=1.0)
            tensors[f"encoder.layer.{layer}.{name}.bias"] = draw(HIDDEN)
    return tensors


def write_model(
    directory: Path, *, prefix: str = "", dtype: type = np.float32, seed: int = 7, **config: object
) -> Path:
    """Write weights, configuration and tokenizer; ``config`` overrides members of config.json."""
    directory.mkdir(parents=True, exist_ok=True)
    tensors = {prefix + name: array.astype(dtype) for name, array in random_tensors().items()}
    save_file(tensors, directory / "model.safetensors")
    members = {
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": POSITIONS,
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "pad_token_id": 0,
        "type_vocab_size": 2,
        **config,
    }
    (directory / "config.json").write_text(json.dumps(members), encoding="utf-8")
    tokenizer = Tokenizer(models.WordPiece({word: i for i, word in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    # As published tokenizers often are: what they truncate and pad must not reach our vectors.
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8)
    tokenizer.save(str(directory / "tokenizer.json"))
    return directory


def reference_tokens(token_ids: list[int], tensors: dict[str, np.ndarray], *, first_position: int = 0, gelu="erf"):
    """The last layer's vectors of one text, in float64."""
    weights = {name: array.astype(np.float64) for name, array in tensors.items()}
    hidden = (
        weights["embeddings.word_embeddings.weight"][token_ids]
        + weights["embeddings.position_embeddings.weight"][first_position : first_position + len(token_ids)]
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    hidden = _normalise(hidden, weights, "embeddings.LayerNorm")
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}."
        attended = _attention(hidden, weights, prefix)
        projected = _linear(attended, weights, prefix + "attention.output.dense")
        middle = _normalise(projected + hidden, weights, prefix + "attention.output.LayerNorm")
        inner = _gelu(_linear(middle, weights, prefix + "intermediate.dense"), gelu)
        hidden = _normalise(
            _linear(inner, weights, prefix + "output.dense") + middle, weights, prefix + "output.LayerNorm"
        )
    return hidden


def reference_vector(token_ids: list[int], tensors: dict[str, np.ndarray], *, pooling: str = "mean", **options):
    tokens = reference_tokens(token_ids, tensors, **options)
    pooled = tokens.mean(axis=0) if pooling == "mean" else tokens[0]
    return pooled / np.linalg.norm(pooled)


def _linear(values, weights, name):
    return values @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def _normalise(values, weights, name):
    centred = values - values.mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
    return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def _attention(hidden, weights, prefix):
    size = HIDDEN // HEADS
    query, key, value = (_linear(hidden, weights, f"{prefix}attention.self.{n}") for n in ("query", "key", "value"))
    heads = []
    for head in range(HEADS):
        part = slice(head * size, (head + 1) * size)
        scores = query[:, part] @ key[:, part].T / math.sqrt(size)
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        heads.append(shares / shares.sum(axis=-1, keepdims=True) @ value[:, part])
    return np.concatenate(heads, axis=-1)


def _gelu(values, kind):
    if kind == "tanh":
        return 0.5 * values * (1 + np.tanh(math.sqrt(2 / math.pi) * (values + 0.044715 * values**3)))
    return 0.5 * values * (1 + np.vectorize(math.erf)(values / math.sqrt(2)))
