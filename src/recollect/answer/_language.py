"""The language that a question and its passages are read in. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.languages import AUTO, language_of_text
from recollect.model import RetrievedContext

# So much is read to know the language of passages.
_READ_PASSAGES = 6
_READ_OF_PASSAGE = 800


def language_of_passages(language: str, passages: Sequence[RetrievedContext], question: str = "") -> str:
    """The language that a question and passages are read in: a collection's.

    Args:
        language: ISO 639-1 code. ``auto``: the question's, where a passage is in it, or else the one that most are in.
        passages: Best first.
        question: That they were found by; empty: that says nothing.
    """
    if language != AUTO:
        return language
    if question.strip():
        asked = language_of_text(question)
        read = (one.content[:_READ_OF_PASSAGE] for one in passages[:_READ_PASSAGES])
        if any(language_of_text(text, expected=asked) == asked for text in read):
            return asked
    return language_of_text("\n\n".join(passage.content[:_READ_OF_PASSAGE] for passage in passages[:_READ_PASSAGES]))
