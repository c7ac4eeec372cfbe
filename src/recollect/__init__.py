"""Retrieval-augmented generation that cites exact characters."""
