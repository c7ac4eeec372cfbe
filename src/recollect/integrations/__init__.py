"""Retrievers for other frameworks, each in the file of its name, and imported by no other part."""
