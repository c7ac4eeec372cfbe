"""Passages cut from real text, and an embedder that is good enough to rank sentences by their words."""

from __future__ import annotations

import zlib

import numpy as np

from recollect.answer.statements import StatementStream
from recollect.answer.verification import Verifier
from recollect.answer.writing import WrittenAnswer
from recollect.model import RetrievedContext
from recollect.retrieval.analysis import Analyzer

LEAVE = """# Leave policy

POL-017, version 3.2, in force since 1 March 2025.

## Annual leave

Full-time employees receive 28 days of paid annual leave per calendar year. It must be requested in Harbor
two weeks ahead. Up to 5 unused days may be carried over until 31 March.

## Sick leave

A doctor's certificate is needed from the third day of sickness. Call your manager before 9 a.m.

Special leave is granted for:

- Own wedding: 2 days
- Moving house: 1 day

| Occasion | Days |
|----------|------|
| Birth of a child | 3 |
| Death of a parent | 4 |
"""


class WordEmbedder:
    """Hashes terms into a vector of unit length: texts that share words are similar. Deterministic."""

    dimension = 512
    model_name = "words"

    def __init__(self):
        self._analyzer = Analyzer("en")

    def embed_documents(self, texts):
        return np.array([self.embed_query(text) for text in texts], np.float32).reshape(len(texts), self.dimension)

    def embed_query(self, text):
        vector = np.zeros(self.dimension, np.float32)
        for term in self._analyzer.terms(text):
            vector[zlib.crc32(term.encode()) % self.dimension] += 1
        length = float(np.linalg.norm(vector))
        return vector / length if length else vector


def passage(content, *, start=0, end=None, rank=1, document_id=1, score=1.0, source="hr/leave_policy.pdf", **more):
    """The passage ``content[start:end]`` of a document."""
    end = len(content) if end is None else end
    fields = {"section": None, "page": None, "title": source, "metadata": {}, "chunk_id": start} | more
    return RetrievedContext(
        rank=rank,
        score=score,
        content=content[start:end],
        document_id=document_id,
        source=source,
        start_offset=start,
        end_offset=end,
        **fields,
    )


def written(text, passages, *, verifier=None, language="en", question="", **options):
    """The answer made of what a language model writes of passages."""
    verifier = verifier or Verifier(passages, language=language, question=question)
    result, stream = WrittenAnswer(verifier, **options), StatementStream(language)
    for statement in [*stream.feed(text), *stream.flush()]:
        result.add(statement)
    result.finish()
    return result.answer(question)
