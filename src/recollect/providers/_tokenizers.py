"""Tokenizers of providers' models, where one is at hand: on this machine, without a request."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha1, sha256
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.chunking.tokens import tokenize

if TYPE_CHECKING:
    from tiktoken import Encoding

    from recollect.chunking.base import Span

# The encodings of OpenAI's present models, with the SHA-256 that tiktoken takes of each; and where they come from.
_FILES = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
_PIECE_CHARACTERS = 10_000
_ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"


def openai_counter(model: str) -> Callable[[str], int] | None:
    """Return what counts tokens as a model of OpenAI does; None if its tokenizer is not on this machine.

    Args:
        model: As OpenAI names it.
    """
    encoding = _openai_encoding(model)
    return None if encoding is None else lambda text: len(encoding.encode_ordinary(text))


def openai_spans(model: str) -> Callable[[str], Sequence[Span]] | None:
    """Return what finds the characters of each token as a model of OpenAI does; None as of `openai_counter`."""
    encoding = _openai_encoding(model)
    if encoding is None:
        return None

    def spans(text: str) -> list[Span]:
        starts: list[int] = []
        # In pieces: what a run of letters costs grows with the square of its length.
        for begin in range(0, len(text), _PIECE_CHARACTERS):
            piece = text[begin : begin + _PIECE_CHARACTERS]
            _, own = encoding.decode_with_offsets(encoding.encode_ordinary(piece))
            starts.extend(begin + start for start in own)
        return list(pairwise([*starts, len(text)]))

    return spans


def estimated_spans(text: str) -> list[Span]:
    """Estimate the tokens of a model whose tokenizer is unknown: words, in pieces of four ASCII letters or two others.

    Example:
        >>> estimated_spans("Annual leave")
        [(0, 4), (4, 6), (7, 11), (11, 12)]
    """
    found: list[Span] = []
    for start, end in tokenize(text):
        size = 4 if text[start:end].isascii() else 2
        found.extend((at, min(at + size, end)) for at in range(start, end, size))
    return found


@cache
def _openai_encoding(model: str) -> Encoding | None:
    """A model's encoding; None: tiktoken is not installed, or the encoding's file is not here.

    tiktoken would fetch a file that it lacks, and wait without an end for a network that does not answer: so it is
    asked for encodings only whose files lie in its cache already.
    """
    if find_spec("tiktoken") is None:
        return None
    import tiktoken

    try:
        name = tiktoken.encoding_name_for_model(model)
    except KeyError:
        return None
    if not _is_here(name):
        return None
    return tiktoken.get_encoding(name)


def _is_here(encoding: str) -> bool:
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder is None:
        folder = str(Path(tempfile.gettempdir()) / "data-gym-cache")
    if not folder or encoding not in _FILES:
        return False
    file = Path(folder) / sha1(_ADDRESS.format(encoding).encode(), usedforsecurity=False).hexdigest()
    try:
        return sha256(file.read_bytes()).hexdigest() == _FILES[encoding]
    except OSError:
        return False
