"""Every provider's wire formats."""

from . import huggingface, ollama, openai, voyage

WIRES = [*openai.WIRES, *ollama.WIRES, *huggingface.WIRES, *voyage.WIRES]
