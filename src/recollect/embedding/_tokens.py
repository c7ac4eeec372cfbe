"""Text to the model's tokens, for texts of any length; and a unigram vocabulary of its own form."""

from __future__ import annotations

import hashlib
import json
import logging
import mmap
import os
import re
import struct
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from recollect.errors import ModelUnavailableError
from recollect.forking import computes_properties

if TYPE_CHECKING:
    from tokenizers import Tokenizer


# A unigram vocabulary as a file that is mapped into memory, and the likeliest pieces of a word by it.
#
# The library that reads ``tokenizer.json`` builds a tree of its 250,000 pieces at every start, which takes seconds.
# Here
# the tree is made once, as arrays; what the library does besides (special tokens, normalisation, splitting into words)
# is left to it, with a vocabulary of one piece.


logger = logging.getLogger(__name__)

#: Vocabularies of at least so many pieces are compiled; smaller ones load fast enough.
LARGE_VOCABULARY = 50_000

# What so many pieces take in JSON, at the least.
_LARGE_BYTES = 1_000_000
_UNIGRAM = re.compile(rb'"type"\s*:\s*"Unigram"')

_MAGIC = b"RCUNI001"
_HEADER = struct.Struct("<8s16s5Qdq")
# What the library's own search subtracts from the lowest score for a character that no piece has.
_UNKNOWN_PENALTY = 10.0
# In place of the vocabulary: characters that stand for nothing, so that no text has this piece.
_NOTHING = "\U0010fffe\U0010ffff\U0010fffe\U0010ffff"
_WIDTHS = bytes(1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4 for lead in range(256))
_MAX_KNOWN_WORDS = 50_000
_MAX_KNOWN_CHARACTERS = 40


class UncompilableError(Exception):
    """The tokenizer is none of the kind that can be compiled; the library reads it as it is."""


@dataclass(frozen=True, slots=True)
class _Tree:
    """The pieces as a tree of bytes, its nodes numbered level by level: the children of each lie side by side.

    Attributes:
        labels: The last byte of each node but the root, uint8 array of shape (nodes - 1,).
        children: Where in ``labels`` the children of each node begin, uint32 array of shape (nodes + 1,).
        pieces: The piece that ends at each node, -1 for none, int32 array of shape (nodes,).
    """

    labels: npt.NDArray[np.uint8]
    children: npt.NDArray[np.uint32]
    pieces: npt.NDArray[np.int32]

    @classmethod
    def of(cls, pieces: Sequence[bytes]) -> _Tree:
        order = sorted(range(len(pieces)), key=pieces.__getitem__)
        ranks = np.array(order, np.int64)
        lengths = np.array([len(pieces[index]) for index in order])
        text = np.frombuffer(b"".join(pieces[index] for index in order), np.uint8)
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        # The node that each piece has come to, level by level.
        at = np.zeros(len(pieces), np.int64)
        labels, counts, ends = [], [], [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
        nodes, first, level = 1, 0, 0
        while True:
            active = np.flatnonzero(lengths > level)
            if not active.size:
                counts.append(np.zeros(nodes - first, np.int64))
                break
            letters, parents = text[starts[active] + level], at[active]
            new = np.ones(active.size, bool)
            new[1:] = (letters[1:] != letters[:-1]) | (parents[1:] != parents[:-1])
            at[active] = nodes - 1 + np.cumsum(new)
            labels.append(letters[new])
            counts.append(np.bincount(parents[new] - first, minlength=nodes - first))
            ending = active[lengths[active] == level + 1]
            ends.append((at[ending], ranks[ending]))
            first, nodes, level = nodes, nodes + int(new.sum()), level + 1
        piece_of = np.full(nodes, -1, np.int32)
        for places, numbers in ends:
            piece_of[places] = numbers
        children = np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.uint32)
        return cls(np.concatenate(labels), children, piece_of)


class UnigramVocabulary:
    """The pieces of a compiled vocabulary, mapped into memory; opening it takes no time. Safe to share between threads.

    Args:
        path: A file that `compile_vocabulary` wrote.
        identity: Of the ``tokenizer.json`` that it is to stand for, 16 bytes.

    Attributes:
        shell: The ``tokenizer.json`` without its pieces, which splits texts into the words that `ids` takes.
        specials: The ids that the special tokens have, in the order of the shell's.

    Raises:
        ValueError: The file is damaged, or made of another ``tokenizer.json``.
        OSError: It cannot be read.
    """

    def __init__(self, path: Path, identity: bytes) -> None:
        with path.open("rb") as handle:
            self._mapped = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
        size = len(self._mapped)
        if size < _HEADER.size:
            raise ValueError(f"{path.name} is cut off")
        magic, of, nodes, pieces, specials, shell, expected, lowest, unknown = _HEADER.unpack_from(self._mapped)
        if magic != _MAGIC or of != identity or expected != size:
            raise ValueError(f"{path.name} was made of another tokenizer.json, or is damaged")
        view: Any = memoryview(self._mapped)
        at = _HEADER.size

        def take(form: str, count: int) -> Any:  # noqa: ANN401 - memoryview's type depends on its format
            nonlocal at
            start, at = at, at + count * struct.calcsize(form)
            return view[start:at].cast(form)

        self._scores = take("d", pieces)
        self._children = take("I", nodes + 1)
        self._pieces = take("i", nodes)
        self.specials: tuple[int, ...] = tuple(take("i", specials))
        self._labels = bytes(take("B", nodes - 1))
        self.shell = bytes(take("B", shell)).decode("utf-8")
        self._unknown, self._unknown_score = unknown, lowest - _UNKNOWN_PENALTY
        self._known: dict[str, tuple[int, ...]] = {}

    def ids(self, word: str) -> tuple[int, ...]:
        """The ids of the pieces of a word whose scores add up to most; unknown characters side by side are one.

        Args:
            word: Normalised, and with the sign that words begin with.
        """
        found = self._known.get(word)
        if found is None:
            found = self._best(word.encode("utf-8"))
            if len(word) <= _MAX_KNOWN_CHARACTERS:
                if len(self._known) >= _MAX_KNOWN_WORDS:
                    self._known.clear()
                self._known[word] = found
        return found

    def _best(self, word: bytes) -> tuple[int, ...]:
        """Of equal ways, the one whose last piece begins first: the library's choice, and its order of additions."""
        size, unknown = len(word), self._unknown
        children, pieces, scores, find = self._children, self._pieces, self._scores, self._labels.find
        best: list[float | None] = [None] * (size + 1)
        came, piece = [0] * (size + 1), [0] * (size + 1)
        best[0] = 0.0
        start = 0
        while start < size:
            here = best[start] or 0.0
            node, alone, first_end = 0, False, start + _WIDTHS[word[start]]
            for end in range(start + 1, size + 1):
                node = find(word[end - 1], children[node], children[node + 1]) + 1
                if not node:
                    break
                number = pieces[node]
                if number < 0:
                    continue
                total, known = scores[number] + here, best[end]
                if known is None or total > known:
                    best[end], came[end], piece[end] = total, start, number
                if end == first_end:
                    alone = True
            if not alone:
                total, known = self._unknown_score + here, best[first_end]
                if known is None or total > known:
                    best[first_end], came[first_end], piece[first_end] = total, start, unknown
            start = first_end
        return _path(piece, came, unknown)


def _path(piece: Sequence[int], came: Sequence[int], unknown: int) -> tuple[int, ...]:
    """The pieces by which the end was reached: at each place the last piece, and where it begins."""
    backwards: list[int] = []
    end, behind_unknown = len(piece) - 1, False
    while end:
        number = piece[end]
        if number != unknown or not behind_unknown:
            backwards.append(number)
        behind_unknown, end = number == unknown, came[end]
    return tuple(reversed(backwards))


def compile_vocabulary(source: Path, target: Path, identity: bytes) -> None:
    """Compile the vocabulary of a ``tokenizer.json``; the file appears whole.

    Args:
        source: The ``tokenizer.json``.
        target: Where the file is to be.
        identity: What tells later whether ``source`` is still the same, 16 bytes.

    Raises:
        UncompilableError: It has another kind of model, a small vocabulary, or a form that is not known.
        OSError: The file cannot be written.
    """
    try:
        content = json.loads(source.read_text(encoding="utf-8"))
        model = content["model"]
        if model["type"] != "Unigram" or model.get("byte_fallback") or len(model["vocab"]) < LARGE_VOCABULARY:
            raise UncompilableError("no large unigram vocabulary")
        pieces = [piece.encode("utf-8") for piece, _ in model["vocab"]]
        scores = np.array([score for _, score in model["vocab"]], np.float64)
        unknown = model["unk_id"]
        added = content["added_tokens"]
        specials = np.array([one["id"] for one in added], np.int32)
        plain = all(one["special"] and not one["normalized"] for one in added)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise UncompilableError(f"a form that is not known ({exc!r})") from exc
    if not plain or not isinstance(unknown, int) or b"" in pieces or len(set(pieces)) < len(pieces):
        raise UncompilableError("tokens or pieces of a kind that is not known")
    tree = _Tree.of(pieces)
    # The library numbers special tokens that its vocabulary lacks in their order, behind the vocabulary.
    numbered = [{**one, "id": place} for place, one in enumerate(added, start=1)]
    shell = {**content, "added_tokens": numbered, "model": {**model, "vocab": [[_NOTHING, 0.0]], "unk_id": 0}}
    text = json.dumps(shell, ensure_ascii=False).encode("utf-8")
    arrays = (scores, tree.children, tree.pieces, specials, tree.labels)
    size = _HEADER.size + sum(array.nbytes for array in arrays) + len(text)
    header = _HEADER.pack(
        _MAGIC, identity, len(tree.pieces), len(pieces), len(specials), len(text), size, float(scores.min()), unknown
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        with partial.open("wb") as handle:
            handle.writelines((header, *(array.tobytes() for array in arrays), text))
            handle.flush()
            os.fsync(handle.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def open_compiled(source: Path, target: Path) -> UnigramVocabulary | None:
    """The vocabulary of a ``tokenizer.json``, compiled where it has not been yet; None where that cannot be done.

    Args:
        source: The ``tokenizer.json``.
        target: The compiled file.
    """
    try:
        stat = source.stat()
        if stat.st_size < _LARGE_BYTES:
            return None
        identity = hashlib.blake2b(f"{stat.st_size} {stat.st_mtime_ns}".encode(), digest_size=16).digest()
        try:
            return UnigramVocabulary(target, identity)
        except (OSError, ValueError):
            if not _UNIGRAM.search(source.read_bytes()):
                return None
            compile_vocabulary(source, target, identity)
            return UnigramVocabulary(target, identity)
    except UncompilableError as exc:
        logger.info("%s is read as it is: %s", source, exc)
    except (OSError, ValueError) as exc:
        logger.warning("%s is read as it is, which takes seconds at every start: %s", source, exc)
    return None


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

    @cached_property
    def splits_at_blanks(self) -> bool:
        """Whether what stands between two blanks or line breaks has the same tokens alone; so far known of BERT's."""
        read = self._tokenizer
        kinds = type(read.normalizer).__name__, type(read.pre_tokenizer).__name__
        # Tokens that a text names may reach across blanks: "[MASK]" takes those before it where a file says so.
        return kinds == ("BertNormalizer", "BertPreTokenizer") and not any(
            token.lstrip or token.rstrip or _SPACE.search(token.content)
            for token in read.get_added_tokens_decoder().values()
        )

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
