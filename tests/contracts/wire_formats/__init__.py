"""Every provider's wire formats."""

from . import anthropic, bedrock, cohere, google, huggingface, ollama, openai, voyage

WIRES = [
    *anthropic.WIRES,
    *bedrock.WIRES,
    *cohere.WIRES,
    *google.WIRES,
    *huggingface.WIRES,
    *ollama.WIRES,
    *openai.WIRES,
    *voyage.WIRES,
]
