"""Every provider's wire formats."""

from . import ollama, openai

WIRES = [*openai.WIRES, *ollama.WIRES]
