"""Tokenizers of providers' models, where one is at hand: on this machine, without a request."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import cache
from hashlib import sha1, sha256
from importlib.util import find_spec
from pathlib import Path

# The encodings of OpenAI's present models, with the SHA-256 that tiktoken takes of each; and where they come from.
_FILES = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
_ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"


@cache
def openai_counter(model: str) -> Callable[[str], int] | None:
    """Counts tokens as a model of OpenAI does; None: tiktoken is not installed, or the encoding's file is not here.

    tiktoken would fetch a file that it lacks, and wait without an end for a network that does not answer: so it is
    asked for encodings only whose files lie in its cache already.

    Args:
        model: As OpenAI names it.
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
    encoding = tiktoken.get_encoding(name)
    return lambda text: len(encoding.encode_ordinary(text))


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
