"""Text to vectors: a small protocol, the local model behind it, and wrappers around any provider."""
