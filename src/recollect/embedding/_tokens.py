"""Text to the model's tokens, for texts of any length."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.embedding._unigram import UnigramVocabulary, open_compiled
from recollect.errors import ModelUnavailableError
from recollect.forking import computes_properties

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Span = tuple[int, int]

#: The name of a compiled vocabulary; its number changes with its form.
COMPILED = "tokenizer.v1.pieces"

# A tokenised text takes over a hundred bytes a token, so long texts are tokenised piece by piece.
_PIECE_CHARACTERS = 50_000
_BATCH_CHARACTERS = 1_000_000
_SPACE = re.compile(r"\s")
_SURROGATES = re.compile("[\ud800-\udfff]")


@computes_properties
class TextTokenizer:
    """A fast tokenizer read from ``tokenizer.json``, without its padding and truncation.

    Args:
        path: The file.
        compiled: A directory where a large vocabulary is kept in a form that is mapped into memory: then what texts
            and questions are embedded by is there at once, and only `spans` and `pair_template` wait for the library
            to read its file, which takes seconds. None: it reads it now.

    Raises:
        ModelUnavailableError: It cannot be read.
    """

    def __init__(self, path: Path, *, compiled: Path | None = None) -> None:
        self._path = path
        vocabulary = None if compiled is None else open_compiled(path, compiled / COMPILED)
        self._light = None if vocabulary is None else _LightTokenizer(vocabulary)
        self._specials = self._find_specials() if self._light is None else self._light.specials

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_file(str(self._path))
        except Exception as exc:  # the library raises nothing more specific
            raise ModelUnavailableError(
                f"The tokenizer {self._path} cannot be read ({exc}).", provider="local", model=self._path.parent.name
            ) from exc
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return tokenizer

    @property
    def specials(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The ids of the special tokens that the model wants before and after a text."""
        return self._specials

    def pair_template(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int]:
        """How the model wants two texts in one sequence.

        Returns:
            The ids of the special tokens before the first text, between the texts, and after the second; and the
            token type of the second text (1 for BERT, 0 for models that do not tell the texts apart).
        """
        first, second = (self._tokenizer.encode(text, add_special_tokens=False).ids for text in ("a", "b"))
        pair = self._tokenizer.encode("a", "b", add_special_tokens=True)
        ids = pair.ids
        start = _position(ids, first, 0)
        middle = start + len(first)
        end = _position(ids, second, middle)
        behind = end + len(second)
        return tuple(ids[:start]), tuple(ids[middle:end]), tuple(ids[behind:]), pair.type_ids[end]

    @staticmethod
    def pieces(text: str) -> Iterator[Span]:
        """The text in consecutive pieces of bounded length, cut at white space where there is any.

        The empty text has one piece.
        """
        start = 0
        while len(text) - start > _PIECE_CHARACTERS:
            end = start + _PIECE_CHARACTERS
            # White space within the last part of the piece; a word longer than that is cut.
            cut = next((at for at in range(end, end - 1000, -1) if _SPACE.match(text, at)), end)
            yield start, cut
            start = cut
        yield start, len(text)

    def ids_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of each text, without special tokens; texts must be pieces, see `pieces`."""
        valid = [_valid(text) for text in texts]
        if self._light is not None:
            return self._light.ids_batch(valid)
        encodings = self._tokenizer.encode_batch_fast(valid, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def spans(self, text: str) -> list[Span]:
        """The character offsets of the text's tokens, in order, without special tokens."""
        return self.spans_batch([text])[0]

    def spans_batch(self, texts: Sequence[str]) -> list[list[Span]]:
        """`spans` of many texts."""
        spans: list[list[Span]] = [[] for _ in texts]
        for group in self._groups(texts):
            pieces = [_valid(texts[index][start:end]) for index, start, end in group]
            encodings = self._tokenizer.encode_batch(pieces, add_special_tokens=False)
            for (index, offset, _), encoding in zip(group, encodings, strict=True):
                found = encoding.offsets
                spans[index].extend(found if offset == 0 else [(start + offset, end + offset) for start, end in found])
        return spans

    @classmethod
    def _groups(cls, texts: Sequence[str]) -> Iterator[list[tuple[int, int, int]]]:
        group: list[tuple[int, int, int]] = []
        characters = 0
        for index, text in enumerate(texts):
            for start, end in cls.pieces(text):
                group.append((index, start, end))
                characters += end - start
                if characters >= _BATCH_CHARACTERS:
                    yield group
                    group, characters = [], 0
        if group:
            yield group

    def _find_specials(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        bare = self._tokenizer.encode("a", add_special_tokens=False).ids
        full = self._tokenizer.encode("a", add_special_tokens=True).ids
        for start in range(len(full) - len(bare) + 1):
            if full[start : start + len(bare)] == bare:
                return tuple(full[:start]), tuple(full[start + len(bare) :])
        return (), ()


class _LightTokenizer:
    """The ids that the library gives, by a compiled vocabulary; the library splits texts into words."""

    def __init__(self, vocabulary: UnigramVocabulary) -> None:
        from tokenizers import Tokenizer

        self._vocabulary = vocabulary
        self._shell = Tokenizer.from_str(vocabulary.shell)
        self._shell.no_padding()
        self._shell.no_truncation()
        one = self._shell.encode("a", add_special_tokens=True)
        own = [place for place, special in enumerate(one.special_tokens_mask) if not special]
        self.specials = tuple(one.ids[: own[0]]), tuple(one.ids[own[-1] + 1 :])

    def ids_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of each text, without special tokens before and after it."""
        vocabulary = self._vocabulary
        found = []
        for encoding in self._shell.encode_batch(texts, add_special_tokens=False):
            ids: list[int] = []
            # The shell knows no words: 0 stands for each, other numbers for the special tokens that a text names.
            for number, word in zip(encoding.ids, encoding.tokens, strict=True):
                if number:
                    ids.append(vocabulary.specials[number - 1])
                else:
                    ids.extend(vocabulary.ids(word))
            found.append(ids)
        return found


def _position(ids: list[int], part: list[int], start: int) -> int:
    """Where ``part`` begins in ``ids``; the start where it does not stand there."""
    places = range(start, len(ids) - len(part) + 1)
    return next((place for place in places if ids[place : place + len(part)] == part), start)


def _valid(text: str) -> str:
    """The text with each lone surrogate, which UTF-8 cannot hold, as a replacement character."""
    return _SURROGATES.sub("\ufffd", text)
