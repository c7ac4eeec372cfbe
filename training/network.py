"""The reader as a PyTorch module: MiniLM's encoder with low-rank deltas, and heads for spans and answerability."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

LAYERS, HEADS, HIDDEN, EPSILON = 6, 12, 384, 1e-12
#: The matrices of a layer that get a delta, as BERT's tensors are called.
MATRICES = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)
NORMS = ("attention.output.LayerNorm", "output.LayerNorm")


class LowRank(torch.autograd.Function):
    """A linear layer whose weight stays while its delta is trained: two thirds of the arithmetic of training both."""

    @staticmethod
    def forward(
        context: Any,  # noqa: ANN401 - PyTorch's own
        values: Tensor,
        weight: Tensor,
        up: Tensor,
        down: Tensor,
        bias: Tensor,
    ) -> Tensor:
        """Values (…, columns) by weight (rows, columns) and delta: up (rows, rank) by down (rank, columns)."""
        merged = weight + up @ down
        context.save_for_backward(values, merged, up, down)
        return functional.linear(values, merged, bias)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401 - PyTorch's own
        """Gradients of the values, both halves of the delta and the bias; none of the weight."""
        values, merged, up, down = context.saved_tensors
        flat, rows = values.reshape(-1, values.shape[-1]), gradient.reshape(-1, gradient.shape[-1])
        of_values = (rows @ merged).view(values.shape)
        of_down = (rows @ up).T @ flat
        return of_values, None, rows.T @ (flat @ down.T), of_down, rows.sum(0)


class Reader(nn.Module):
    """Gives, for each token, the logits of a span's start and end, and one logit of answerability for each pair.

    Args:
        weights: MiniLM's ``model.safetensors``, which stay as they are.
        rank: Of the deltas.
        kind: Of the arithmetic: 16 bits where the processor has instructions for them (twice as fast), otherwise 32.
            What is trained is kept in 32 bits.
    """

    def __init__(self, weights: Path, rank: int, kind: torch.dtype | None = None) -> None:
        super().__init__()
        # amx_bf16 or avx512_bf16
        fast = "_bf16" in Path("/proc/cpuinfo").read_text(encoding="utf-8")
        self.kind = kind or (torch.bfloat16 if fast else torch.float32)
        for name, tensor in load_file(weights).items():
            if name.startswith(("embeddings.", "encoder.")) and tensor.is_floating_point():
                self.register_buffer(_flat(name), tensor.float())
        self.trained = nn.ParameterDict()
        for layer in range(LAYERS):
            for matrix in MATRICES:
                name = f"encoder.layer.{layer}.{matrix}"
                rows, columns = self.base(f"{name}.weight").shape
                self.trained[_flat(f"{name}.down")] = torch.randn(rank, columns) / columns**0.5
                self.trained[_flat(f"{name}.up")] = torch.zeros(rows, rank).T.contiguous().T
                self.trained[_flat(f"{name}.bias")] = self.base(f"{name}.bias").clone()
            for norm in NORMS:
                for part in ("weight", "bias"):
                    name = f"encoder.layer.{layer}.{norm}.{part}"
                    self.trained[_flat(name)] = self.base(name).clone()
        name = "embeddings.token_type_embeddings.weight"
        self.trained[_flat(name)] = self.base(name).clone()
        self.trained["heads|span"] = torch.randn(2, HIDDEN) * 0.02
        self.trained["heads|pooler|weight"] = torch.randn(HIDDEN, HIDDEN) * 0.02
        self.trained["heads|pooler|bias"] = torch.zeros(HIDDEN)
        self.trained["heads|answerable|weight"] = torch.randn(1, HIDDEN) * 0.02
        self.trained["heads|answerable|bias"] = torch.zeros(1)

    def base(self, name: str) -> Tensor:
        """A tensor of MiniLM's."""
        return getattr(self, _flat(name))

    def _linear(self, values: Tensor, name: str) -> Tensor:
        up, down, bias = (self.trained[_flat(f"{name}.{part}")].to(self.kind) for part in ("up", "down", "bias"))
        return LowRank.apply(values, self.base(f"{name}.weight").to(self.kind), up, down, bias)

    def _normal(self, values: Tensor, name: str) -> Tensor:
        weight, bias = (self.trained[_flat(f"{name}.{part}")].to(self.kind) for part in ("weight", "bias"))
        return functional.layer_norm(values, (HIDDEN,), weight, bias, EPSILON)

    def forward(self, ids: Tensor, types: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Read pairs.

        Args:
            ids: Token ids (pairs, tokens), padded.
            types: 0 for the question's tokens, 1 for the passage's.
            mask: True where there is a token.

        Returns:
            Logits of start and end (pairs, tokens, 2), and of answerability (pairs).
        """
        embedded = functional.embedding(ids, self.base("embeddings.word_embeddings.weight"))
        embedded = embedded + self.base("embeddings.position_embeddings.weight")[: ids.shape[1]]
        first, second = self.trained[_flat("embeddings.token_type_embeddings.weight")]
        embedded = embedded + first + types[..., None] * (second - first)
        weight, bias = (self.base(f"embeddings.LayerNorm.{part}") for part in ("weight", "bias"))
        hidden = functional.layer_norm(embedded, (HIDDEN,), weight, bias, EPSILON).to(self.kind)
        seen = torch.where(mask, 0.0, -1e4).to(self.kind)[:, None, None, :]
        for layer in range(LAYERS):
            hidden = self._layer(f"encoder.layer.{layer}", hidden, seen)
        hidden = hidden.float()
        heads = self.trained
        span = functional.linear(hidden, heads["heads|span"])
        first = torch.tanh(functional.linear(hidden[:, 0], heads["heads|pooler|weight"], heads["heads|pooler|bias"]))
        answerable = functional.linear(first, heads["heads|answerable|weight"], heads["heads|answerable|bias"])
        return span, answerable.squeeze(-1)

    def _layer(self, name: str, hidden: Tensor, seen: Tensor) -> Tensor:
        pairs, tokens, _ = hidden.shape
        parts = [
            self._linear(hidden, f"{name}.attention.self.{part}").view(pairs, tokens, HEADS, -1).transpose(1, 2)
            for part in ("query", "key", "value")
        ]
        query, key, value = parts
        # Written out: on processors with AMX these products take a fifth of the fused operator's time backwards.
        scores = torch.matmul(query * (HIDDEN // HEADS) ** -0.5, key.transpose(2, 3)) + seen
        attended = torch.matmul(torch.softmax(scores, -1, dtype=scores.dtype), value)
        attended = attended.transpose(1, 2).reshape(pairs, tokens, HIDDEN)
        attended = self._linear(attended, f"{name}.attention.output.dense")
        middle = self._normal(attended + hidden, f"{name}.attention.output.LayerNorm")
        active = functional.gelu(self._linear(middle, f"{name}.intermediate.dense"))
        result = self._linear(active, f"{name}.output.dense")
        return self._normal(result + middle, f"{name}.output.LayerNorm")


def _flat(name: str) -> str:
    # Parameter names may hold no dots.
    return name.replace(".", "|")
