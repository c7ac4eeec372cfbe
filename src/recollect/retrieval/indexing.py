"""What the lexical retriever stores of a chunk: its terms, counted and weighed, many chunks at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, pairwise

import numpy as np
import numpy.typing as npt

from recollect.errors import UsageError
from recollect.languages import AUTO, language_of_part, language_of_text
from recollect.model.terms import TermCounts
from recollect.retrieval import lexical
from recollect.retrieval.analysis import Analyzer, language_code, lexeme, term_frequencies
from recollect.retrieval.enhance.synonyms import definitions
from recollect.store.search import LexicalRow

# Texts counted in one go: their tokens are in memory as numbers.
_SLICE = 256


_MAX_KNOWN_TOKENS = 200_000


# Longer ones are seldom words: a sentence in a script without spaces is one token.
_MAX_KNOWN_CHARACTERS = 40


# Above every lexeme, so that a text's number and a lexeme make one number.
_TEXT_STEP = 1 << 32


class _Numbers(dict[str, tuple[int, ...]]):
    """The lexemes of each token, looked up without a step of Python for those that were met before."""

    def __init__(self, analyzer: Analyzer, salt: int) -> None:
        super().__init__()
        self.analyzer = analyzer
        self._salt = salt

    def __missing__(self, token: str) -> tuple[int, ...]:
        numbers = self.numbers_of(token)
        if len(token) <= _MAX_KNOWN_CHARACTERS:
            if len(self) >= _MAX_KNOWN_TOKENS:
                self.clear()
            self[token] = numbers
        return numbers

    def numbers_of(self, token: str) -> tuple[int, ...]:
        return tuple(lexeme(term, self._salt) for term in self.analyzer.token_terms(token))


class _PieceNumbers(_Numbers):
    """The same of what stands between blanks in a text of ASCII: "servers." is found as often as "servers"."""

    def numbers_of(self, token: str) -> tuple[int, ...]:
        return tuple(chain.from_iterable(map(super().numbers_of, self.analyzer.tokens(token))))


def _numbers(text: str, tokens: _Numbers, pieces: _PieceNumbers) -> Iterator[tuple[int, ...]]:
    """The lexemes of a text, piece by piece in their order."""
    if text.isascii() and not tokens.analyzer.reads_across_blanks:
        return map(pieces.__getitem__, text.split())
    return map(tokens.__getitem__, tokens.analyzer.tokens(text))


class TermIndexer:
    """Counts and weighs the terms of one collection's chunks. Safe to share between threads.

    Args:
        language: The collection's, ISO 639-1; ``auto``: each text is analysed in a language of its own.
        salt: The collection's id, which its lexemes are salted with.
    """

    def __init__(self, language: str, *, salt: int) -> None:
        self._language = language_code(language)
        self._salt = salt
        self._numbers: dict[str, tuple[_Numbers, _PieceNumbers]] = {}

    def language_of(self, content: str, stated: str | None = None) -> str | None:
        """The language that a document is analysed in; None: the collection's, whatever the document's is.

        Args:
            content: What the document says.
            stated: What is said of its language; None: it is found out.
        """
        if self._language != AUTO:
            return None
        return _code_or_none(stated) or language_of_text(content)

    def languages(self, texts: Sequence[str], whole: str | None) -> tuple[str, ...]:
        """The language that each text is analysed in: the collection's, or its document's, or clearly another one.

        Args:
            texts: Parts of one document.
            whole: The document's language (`language_of`); None: nothing is known of it.
        """
        if self._language != AUTO:
            return (self._language,) * len(texts)
        return tuple(language_of_text(text) if whole is None else language_of_part(text, whole) for text in texts)

    def count(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> list[TermCounts]:
        """The terms of each text, counted.

        Args:
            texts: Any number.
            languages: Of each; None: those of texts of which nothing else is known.
        """
        codes = self.languages(texts, None) if languages is None else languages
        counted: dict[int, TermCounts] = {}
        for code in dict.fromkeys(codes):
            own = [index for index, of in enumerate(codes) if of == code]
            for start in range(0, len(own), _SLICE):
                part = own[start : start + _SLICE]
                counted |= zip(part, self._count([texts[index] for index in part], self._of(code)), strict=True)
        return [counted[index] for index in range(len(texts))]

    def _of(self, language: str) -> tuple[_Numbers, _PieceNumbers]:
        found = self._numbers.get(language)
        if found is None:
            analyzer = Analyzer(language)
            found = _Numbers(analyzer, self._salt), _PieceNumbers(analyzer, self._salt)
            self._numbers[language] = found
        return found

    def weigh(self, terms: Sequence[TermCounts], *, reference_length: float) -> list[LexicalRow]:
        """The BM25 document weights of each chunk's terms under the collection's reference length."""
        if not terms:
            return []
        sizes = [len(one.lexemes) for one in terms]
        lengths = np.repeat(np.array([one.length for one in terms], dtype=np.float64), sizes)
        counts = np.concatenate([one.counts for one in terms])
        weights = lexical.weights(counts, lengths, average_length=reference_length)
        return [_row(one, own) for one, own in zip(terms, _split(weights, sizes), strict=True)]

    def acronyms(self, content: str) -> list[tuple[str, str, int]]:
        """The acronyms that a document explains: each with its long form, and how often."""
        return [(*found, occurrences) for found, occurrences in Counter(definitions(content)).items()]

    @staticmethod
    def _count(texts: Sequence[str], known: tuple[_Numbers, _PieceNumbers]) -> Iterator[TermCounts]:
        found = [list(chain.from_iterable(_numbers(text, *known))) for text in texts]
        lengths = [len(own) for own in found]
        flat = np.fromiter(chain.from_iterable(found), dtype=np.int64, count=sum(lengths))
        flat += np.repeat(np.arange(len(texts)), lengths) * _TEXT_STEP
        keys, counts = np.unique(flat, return_counts=True)
        borders = np.searchsorted(keys, np.arange(len(texts) + 1) * _TEXT_STEP).tolist()
        lexemes, occurrences = (keys % _TEXT_STEP).astype(np.int32), counts.astype(np.int32)
        for length, (start, end) in zip(lengths, pairwise(borders), strict=True):
            yield TermCounts(length, lexemes[start:end], occurrences[start:end])


def _row(terms: TermCounts, weights: npt.NDArray[np.float32]) -> LexicalRow:
    lexemes = terms.lexemes
    if len(lexemes) > lexical.MAX_ELEMENTS:
        kept = lexical.heaviest(lexemes, weights)
        lexemes, weights = lexemes[kept], weights[kept]
    return LexicalRow(terms.length, lexemes, weights)


def _code_or_none(stated: str | None) -> str | None:
    """The code of what is said of a document's language, if it is one: anything may have been written there."""
    try:
        code = None if stated is None else language_code(stated)
    except UsageError:
        return None
    return None if code == AUTO else code


def _split(values: npt.NDArray[np.float32], sizes: Sequence[int]) -> list[npt.NDArray[np.float32]]:
    return [values[start:end] for start, end in pairwise(accumulate(sizes, initial=0))]


# Words of conversations: counted, weighed and scored where a turn's terms count in part for the turns behind it.


#: Stored weights are computed under this average length, in terms: that of short turns with those before them. Scores
#: are computed again under the true one, so it only decides which turns are candidates.
REFERENCE_LENGTH = 32.0


Floats = npt.NDArray[np.float64]


Ints = npt.NDArray[np.int32]


class TurnTerms:
    """Counts, weighs and scores the terms of turns. Safe to share between threads.

    Args:
        language: Of the conversations, ISO 639-1.
        salt: The tenant's id, which the lexemes are salted with.
    """

    def __init__(self, language: str, *, salt: int) -> None:
        self._indexer = TermIndexer(language, salt=salt)
        self._analyzer = Analyzer(language)
        self._salt = salt

    def count(self, texts: Sequence[str]) -> list[TermCounts]:
        """The terms of each text, counted."""
        return self._indexer.count(texts)

    def question(self, text: str) -> dict[int, int]:
        """How often each lexeme occurs in a question."""
        return term_frequencies(self._analyzer.query_terms(text), salt=self._salt)

    def turn_weights(self, lexemes: Ints, counts: Floats, *, length: float) -> tuple[Ints, npt.NDArray[np.float32]]:
        """The lexemes that are stored of a turn (all but of an extremely long one), and their weights.

        Args:
            lexemes: Ascending.
            counts: Parallel to ``lexemes``: how often each occurs, more than 0, fractions allowed.
            length: The turn's number of terms, counted the same way.
        """
        weights = lexical.weights(counts, np.array([length]), average_length=REFERENCE_LENGTH)
        if len(lexemes) > lexical.MAX_ELEMENTS:
            kept = lexical.heaviest(lexemes, weights)
            return lexemes[kept], weights[kept]
        return lexemes, weights
