"""Lexical analysis: text to the terms that BM25 counts, and terms to the numbers that the index stores.

A text becomes words by these steps: compatibility folding (NFKC), splitting at what is neither letter, digit nor
mark, case folding, removal of function words, a Snowball stemmer (Porter 2001), and folding of diacritics that are not
letters of the language's own alphabet. Identifiers (``ERR-4012``, ``v0.8.0``, ``foo_bar``, ``jane@example.com``,
``C++``) become a term of their own beside the words that they are made of, so that both ``ERR-4012`` and ``4012`` find
them. Scripts written without spaces (and Hangul) become overlapping pairs of characters, Chinese ones simplified.
"""

from __future__ import annotations

import hashlib
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise

import Stemmer

from recollect.errors import UsageError
from recollect.forking import renew_in_children
from recollect.languages import AUTO, language_of_text
from recollect.languages.detection import plain_digits, simplified
from recollect.languages.stopwords import stopwords

#: Lexemes lie in 1..LEXEME_SPACE: they fit an ``int4``, and pgvector allows a sparsevec this many dimensions.
LEXEME_SPACE = 1_000_000_000


_MAX_TERM_CHARACTERS = 64


_MAX_CACHED_TOKENS = 200_000


# Scripts without spaces between words, and Hangul, whose particles are written onto the word.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)


_UNSPACED_RUN = re.compile(f"([{_UNSPACED}]+)")


_IDEOGRAPH = re.compile("[\u3005-\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


# Blocks that hold combining marks: only texts that touch them pay for the larger pattern.
_MARKED_BLOCKS = re.compile("[\u0300-\u036f\u0483-\u0489\u0590-\u10ff\u1700-\u1cff\ua800-\uabff\U00010000-\U0001ffff]")


# Invisible characters that may stand inside a word: soft hyphen, joiners, direction marks, byte order mark.
_IGNORABLE = re.compile("[\u00ad\u061c\u0640\u200c-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")


_THAI_OR_LAO = re.compile("[\u0e40\u0e4d\u0ecd]")


_APOSTROPHES = re.compile("[\u2018\u2019\u02bc\uff07]")


_HYPHENS = re.compile("[\u2010\u2011]")


_GROUPED_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")


_DECIMAL = re.compile(r"\d+\.\d+")


_DOTTED_LETTERS = re.compile(r"[^\W\d_](?:\.[^\W\d_])+")


_VERSION = re.compile(r"v\d+(?:\.\d+)+.*")


_SEPARATORS = re.compile(r"[._@'\-,]+")


_IDENTIFIER_SIGN = re.compile(r"[\d_@.]")


_SHORT_SPANISH_PLURAL = re.compile("[aeiouáéíóúh].{1,4}[aeo]s")


_ELIDING = frozenset({"ca", "fr", "it"})


# Written in capitals, these are a department, a country, an organisation and the like, not function words.
_ACRONYMS = {
    "en": frozenset({"IT", "US", "WHO"}),
    "ro": frozenset({"AI", "CE"}),
    "vi": frozenset({"AI"}),
}


_ALL = "*"


# Letters of an alphabet, not letters with an accent: "år" is not "ar", "año" not "ano". All of them: each mark counts.
_OWN_LETTERS = {
    "da": "åæø",
    "es": "ñ",
    "et": "äõöü",
    "fi": "åäö",
    "no": "åæø",
    "sv": "åäö",
    "tr": "çğıöşü",
    "vi": _ALL,
}


# Where marks are often left out in typing, both forms of a word are terms: the one with its marks finds the word, the
# one without finds it whoever typed it. A stem that is taken off the bare word may be another one.
_OFTEN_BARE = frozenset({"ro", "tr", "vi"})


# Written in syllables, of which most words have two: each two that follow one another are a term beside them, without
# marks, so that whoever leaves them out means as few words.
_IN_SYLLABLES = frozenset({"vi"})


# Words of their own that a function word has the spelling of, once both are spelt alike: the name Ali.
_NO_FUNCTION_WORDS = {"ar": frozenset({"\u0639\u0644\u064a"})}


_PLAIN_LETTERS = {"ø": "o", "đ": "d", "ł": "l", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d", "ё": "е"}


# Latin and Greek accents, Hebrew points, Arabic vowel signs; Cyrillic й and Indic vowel signs are letters and stay.
_ACCENTS = re.compile("(?<![\u0400-\u052f])[\u0300-\u036f]|[\u0591-\u05bd\u05bf\u05c1\u05c2\u064b-\u0652\u0670]")


_LANGUAGE_ALIASES = {"nb": "no", "nn": "no", "iw": "he", "in": "id"}


class Analyzer:
    """Turns texts and queries of one language into terms. Safe to share between threads.

    Example:
        >>> Analyzer("en").terms("Restarting the servers after ERR-4012")
        ['restart', 'server', 'after', 'err-4012', 'err', '4012']
    """

    def __init__(self, language: str = "en", *, languages: Sequence[str] = ()) -> None:
        """Prepare the analysis of a language.

        Args:
            language: ISO 639 code, a region allowed (``en``, ``pt-BR``). A language without a Snowball stemmer
                (``zh``, ``th``, ``ja``) is analysed without one, a language without a list of function words keeps
                them all. ``auto``: each text in its own language.
            languages: With ``auto``: those of the texts that questions are asked of. A question is analysed as each of
                them is. None: a question is asked of texts in its own language.

        Raises:
            UsageError: ``language`` has not the form of a language code.
        """
        self.language = language_code(language)
        self.languages = tuple(dict.fromkeys(map(language_code, languages)))
        self._stopwords = _function_words(self.language)
        self._acronyms = _ACRONYMS.get(self.language, frozenset[str]())
        self._own_letters = frozenset(_OWN_LETTERS.get(self.language, ""))
        self._all_letters = _OWN_LETTERS.get(self.language) == _ALL
        #: Whether what stands on both sides of a blank may be one token.
        self.reads_across_blanks = self.language in _IN_SYLLABLES
        self._known: dict[str, tuple[str, ...]] = {}
        self._lock = threading.Lock()  # a Snowball stemmer has internal state
        try:
            # Its cache is switched off: the analyzer remembers whole tokens.
            self._stemmer: Stemmer.Stemmer | None = Stemmer.Stemmer(self.language, 0)
        except KeyError:
            self._stemmer = None
        renew_in_children(self)

    def renew_in_child(self) -> None:
        """In the child of a fork: nobody releases the lock that another thread held."""
        self._lock = threading.Lock()

    def terms(self, text: str) -> list[str]:
        """The terms of a text to be found, in order, with repetitions.

        Function words are left out. The number of terms is the text's length for BM25.

        Args:
            text: Any text, the empty string included.
        """
        if self.language == AUTO:
            return analyzer_of(language_of_text(text)).terms(text)
        return self._analyse(text, for_query=False)

    def query_terms(self, text: str) -> list[str]:
        """The terms of a question, in order, with repetitions.

        They differ from :meth:`terms` only for ideographs, of which a text is indexed by pairs and one by one, while a
        query asks for pairs, and for single characters only where they stand alone. With several languages they are
        the terms of each analysis: every one as often as the analysis has it that has it most often.

        Args:
            text: A question of any length. One of function words alone has no terms: nothing can be found by them.
        """
        if self.language != AUTO:
            return self._analyse(text, for_query=True)
        terms, *others = self.query_analyses(text)
        for analysis in others:
            missing = Counter(analysis) - Counter(terms)
            for term in analysis:
                if missing[term] > 0:
                    missing[term] -= 1
                    terms.append(term)
        return terms

    def query_analyses(self, text: str) -> list[list[str]]:
        """The terms of a question in each language that it is asked in, that of the question first.

        The function words of the question's own language are left out of every analysis: "the" is a rare word in
        German texts, and would find those that have an English title.

        Args:
            text: See :meth:`query_terms`.
        """
        if self.language != AUTO:
            return [self._analyse(text, for_query=True)]
        asked = language_of_text(text)
        languages = sorted(self.languages or (asked,), key=lambda code: code != asked)
        if len(languages) == 1:
            return [analyzer_of(languages[0]).query_terms(text)]
        without = stopwords(asked)
        return [
            analyzer_of(code)._analyse(text, for_query=True, without=without, own=code == asked) for code in languages
        ]

    def tokens(self, text: str) -> list[str]:
        """The stretches of a text that terms are made from, each by itself: see :meth:`token_terms`."""
        found = _tokens(text)
        if self.reads_across_blanks:
            found += [f"{one} {other}" for one, other in pairwise(found)]
        return found

    def token_terms(self, token: str) -> tuple[str, ...]:
        """The terms of one of a text's tokens; those of all tokens in their order are :meth:`terms`."""
        if " " in token:
            return self._two_syllables(token)
        if _UNSPACED_RUN.search(token):
            return tuple(self._unspaced(token, for_query=False))
        return self._token(token)

    def _analyse(
        self, text: str, *, for_query: bool, without: frozenset[str] = frozenset(), own: bool = True
    ) -> list[str]:
        known = self._known
        evenly = for_query and self.language in _OFTEN_BARE
        terms: list[str] = []
        # Two words of another language that follow one another are no word of this one.
        for token in self.tokens(text) if own else _tokens(text):
            if without and token.casefold() in without and token not in self._acronyms:
                continue
            found = known.get(token)
            if found is None:
                if _UNSPACED_RUN.search(token):
                    terms.extend(self._unspaced(token, for_query=for_query))
                    continue
                found = self._two_syllables(token) if " " in token else self._token(token)
                if len(known) >= _MAX_CACHED_TOKENS:
                    known.clear()
                known[token] = found
            # A word of which there is one form counts as much as one of which there are two.
            terms.extend(found * 2 if evenly and (len(found) == 1 or token.isascii()) and " " not in token else found)
        return terms

    def _unspaced(self, token: str, *, for_query: bool) -> Iterable[str]:
        if self.language == "zh":
            token = simplified(token)
        for index, piece in enumerate(_UNSPACED_RUN.split(token)):
            if index % 2:
                yield from _pairs(piece, singles=not for_query)
            else:
                yield from (term for word in _tokens(piece) for term in self._token(word))

    def _two_syllables(self, pair: str) -> tuple[str, ...]:
        """The term of two syllables that follow one another; none of two function words, or with a number or sign."""
        if not pair.replace(" ", "").isalpha():
            return ()
        syllables = pair.casefold().split(" ")
        if self._stopwords.issuperset(syllables):
            return ()
        alike = (spelt_alike(one, self.language) for one in syllables)
        return (" ".join("".join(map(_plain, one)) for one in alike)[:_MAX_TERM_CHARACTERS],)

    def _token(self, token: str) -> tuple[str, ...]:
        """The terms of one token: a word, or words joined by signs."""
        if token in self._acronyms:
            return (token.lower(),)
        if self.language == "tr":
            token = token.replace("I", "ı").replace("İ", "i")
        token = token.casefold().strip("_")
        if token in self._stopwords:
            return ()
        token = spelt_alike(token, self.language)
        if token in self._stopwords:
            return ()
        if not _SEPARATORS.search(token) and token[-1:] not in {"+", "#"}:
            return self._words([token])
        return self._compound(token)

    def _compound(self, token: str) -> tuple[str, ...]:
        if _GROUPED_NUMBER.fullmatch(token):
            return (token.replace(",", ""),)
        if _DECIMAL.fullmatch(token):
            return (token[:_MAX_TERM_CHARACTERS],)
        if _DOTTED_LETTERS.fullmatch(token):
            return self._words([token.replace(".", "")])
        if "'" in token and not _IDENTIFIER_SIGN.search(token) and "-" not in token:
            return self._words(token.split("'") if self.language in _ELIDING else [token])
        token = token.removesuffix("'s")
        parts = [part for part in _SEPARATORS.split(token.rstrip("+#")) if part]
        wholes: list[str] = []
        if token[-1] in "+#" or (len(parts) > 1 and _IDENTIFIER_SIGN.search(token)):
            wholes.append(self._fold(token)[:_MAX_TERM_CHARACTERS])
            if _VERSION.fullmatch(token):
                wholes.append(wholes[0][1:])
        elif len(parts) == 2 and len(parts[0]) == 1:  # "e-mail" is "email"
            parts.append("".join(parts))
        return (*wholes, *self._words(parts))

    def _words(self, words: Iterable[str]) -> tuple[str, ...]:
        kept = [word[:_MAX_TERM_CHARACTERS] for word in words if word and word not in self._stopwords]
        if self.language in _OFTEN_BARE:
            return tuple(form for word in kept for form in self._both_forms(word))
        return tuple(term for word in self._stems(kept) if (term := self._fold(word)))

    def _stems(self, words: list[str]) -> list[str]:
        if self._stemmer is None:
            return words
        with self._lock:
            stems: list[str] = self._stemmer.stemWords(words)
            if self.language == "es":
                # The stemmer leaves short plurals with a vowel in front: "años", "islas".
                bare = [
                    stem[:-1] if stem == word and _SHORT_SPANISH_PLURAL.fullmatch(word) else stem
                    for stem, word in zip(stems, words, strict=True)
                ]
                stems = self._stemmer.stemWords(bare) if bare != stems else stems
        return stems

    def _both_forms(self, word: str) -> tuple[str, ...]:
        """The term of a word as it is written and, where it differs, that of the word typed without its marks."""
        if word.isascii():
            return tuple(term for term in self._stems([word]) if term)
        bare = "".join(map(_plain, word))
        stem, bare_stem = self._stems([word, bare])
        return tuple(dict.fromkeys(term for term in (self._fold(stem), bare_stem) if term))

    def _fold(self, word: str) -> str:
        """The word without the diacritics that people leave out when they type."""
        if word.isascii():
            return word
        if self._all_letters:
            return unicodedata.normalize("NFC", word)
        letters = (letter if letter in self._own_letters else _plain(letter) for letter in word)
        return unicodedata.normalize("NFC", "".join(letters))


def language_code(language: str) -> str:
    """The code that a language is known by: its ISO 639 code without the region, or ``auto``.

    Raises:
        UsageError: ``language`` has not the form of a language code.
    """
    code = re.split("[-_]", language.strip().lower())[0]
    if code != AUTO and not re.fullmatch("[a-z]{2,3}", code):
        message = f"language {language!r} is neither 'auto' nor an ISO 639 code such as 'en', 'de' or 'pt-BR'"
        raise UsageError(message)
    return _LANGUAGE_ALIASES.get(code, code)


@lru_cache(maxsize=256)
def analyzer_of(language: str, languages: tuple[str, ...] = ()) -> Analyzer:
    """The analyzer of a language, or of ``auto`` and the languages of a collection, made once in a process."""
    return Analyzer(language, languages=languages)


@lru_cache(maxsize=65_536)
def lexeme(term: str, salt: int) -> int:
    """The number that stands for a term in the index.

    The same on every machine and in every process. Two of a million terms collide about five hundred times, which
    only means that a few rare words are counted together.

    The number is an element of ``lexemes int4[]`` and an index of the ``sparsevec``. The text form of a sparsevec
    (``{index:value}/dimension``) counts from 1, as lexemes do; the Python class ``pgvector.SparseVector`` counts from
    0, so there it is ``lexeme - 1``.

    Args:
        term: From an :class:`Analyzer`.
        salt: The collection's id, so that no two collections share a posting list.

    Returns:
        A number in 1..``LEXEME_SPACE``.
    """
    key = (salt % 2**64).to_bytes(8, "little")
    digest = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8, key=key).digest()
    return int.from_bytes(digest, "little") % LEXEME_SPACE + 1


def term_frequencies(terms: Iterable[str], *, salt: int) -> dict[int, int]:
    """How often each lexeme occurs.

    Args:
        terms: From an :class:`Analyzer`, with repetitions.
        salt: The collection's id, see :func:`lexeme`.

    Returns:
        Occurrences by lexeme, in order of first occurrence. Their sum is the number of terms.
    """
    frequencies: dict[int, int] = {}
    for term in terms:
        number = lexeme(term, salt)
        frequencies[number] = frequencies.get(number, 0) + 1
    return frequencies


def _tokens(text: str) -> list[str]:
    if not text.isascii():
        text = _HYPHENS.sub("-", _APOSTROPHES.sub("'", _IGNORABLE.sub("", text)))
        if not unicodedata.is_normalized("NFKC", text):
            text = unicodedata.normalize("NFKC", text)
        text = in_one_script(plain_digits(text))
        if _THAI_OR_LAO.search(text):
            text = typed_alike(text)
        if _MARKED_BLOCKS.search(text):
            return _token_pattern(_marks()).findall(text)
    return _token_pattern("").findall(text)


def _pairs(run: str, *, singles: bool) -> Iterable[str]:
    """Overlapping pairs of characters, each with its marks; ideographs also one by one where ``singles``."""
    clusters = _cluster_pattern().findall(run)
    if len(clusters) == 1:
        yield clusters[0]
        return
    for first, second in pairwise(clusters):
        yield first + second
    if singles:
        yield from (cluster for cluster in clusters if _IDEOGRAPH.match(cluster))


@cache
def _function_words(language: str) -> frozenset[str]:
    """A language's function words as they are written, and in one spelling."""
    words = stopwords(language)
    return words | {spelt_alike(word, language) for word in words} - _NO_FUNCTION_WORDS.get(language, frozenset())


@lru_cache(maxsize=4096)
def _plain(letter: str) -> str:
    bare = _ACCENTS.sub("", unicodedata.normalize("NFD", _PLAIN_LETTERS.get(letter, letter)))
    return _PLAIN_LETTERS.get(bare, bare)


@cache
def _token_pattern(marks: str) -> re.Pattern[str]:
    word = rf"\w[\w{marks}]*" if marks else r"\w+"
    return re.compile(rf"{word}(?:(?:[.@'\-]|(?<=\d),(?=\d{{3}}(?!\d))){word})*(?:\+\+|#(?!\w))?")


@cache
def _cluster_pattern() -> re.Pattern[str]:
    marks = _marks()
    return re.compile(f"[^{marks}][{marks}]*|[{marks}]+")


@cache
def _marks() -> str:
    r"""Every combining mark as ranges of a character class (``\w`` leaves marks out, and with them Hindi's vowels)."""
    codes = [code for code in range(0x300, 0x20000) if unicodedata.category(chr(code)) in {"Mn", "Mc"}]
    ranges: list[list[int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


# One spelling for what people write in several ways, before words are stemmed. Pure.
#
# Arabic after the normalisation of Apache Lucene's analysers (`ArabicNormalizer` and the prefixes of its light
# stemmer; Larkey, Ballesteros and Connell 2007, "Light Stemming for Arabic Information Retrieval"), Hindi after its
# `HindiNormalizer`. Words are handed over in lower case and in compatibility form (NFKC).


# Thai and Lao vowels typed as two signs, or in another order: the tone belongs before the ring of "am".
_TWO_E = re.compile("\u0e40\u0e40")


_RING_AND_TONE = re.compile("([\u0e4d\u0ecd])([\u0e48-\u0e4b\u0ec8-\u0ecb])")


# Letters of one word in two scripts: those that look alike, Latin and Cyrillic, Latin and Greek.
_MIXED = re.compile("[A-Za-z][\u0370-\u03ff\u0400-\u052f]|[\u0370-\u03ff\u0400-\u052f][A-Za-z]")


_LETTERS = re.compile("[A-Za-z\u0370-\u03ff\u0400-\u052f]+")


_LATIN = re.compile("[A-Za-z]")


_GREEK = re.compile("[\u0370-\u03ff]")


def _both_ways(latin: str, other: str) -> tuple[dict[int, int], dict[int, int]]:
    return str.maketrans(latin, other), str.maketrans(other, latin)


_CYRILLIC_TWINS = _both_ways("ABCEHIJKMOPSTXYaceijopsxy", "АВСЕНІЈКМОРЅТХУасеіјорѕху")


_GREEK_TWINS = _both_ways("ABEHIKMNOPTXYZov", "ΑΒΕΗΙΚΜΝΟΡΤΧΥΖον")


_ARABIC_LETTERS = str.maketrans({
    "\u0622": "\u0627", "\u0623": "\u0627", "\u0625": "\u0627", "\u0671": "\u0627",
    "\u06a9": "\u0643", "\u06cc": "\u064a", "\u0649": "\u064a",
})  # fmt: skip


_VOWEL_SIGNS = re.compile("[\u064b-\u0652\u0670]")


# With an article in front, a last "h" is no pronoun but the feminine ending without its dots.
_FEMININE = re.compile("(?<=^\u0627\u0644)(\\w\\w+)\u0647$")


# "And", "with", "like", "so" before an article, which the stemmer takes off only where nothing stands before it.
_BEFORE_ARTICLE = re.compile("^(?:[\u0648\u0641][\u0628\u0643]?|[\u0628\u0643])(?=\u0627\u0644\\w\\w)")


_FOR_THE = re.compile("^[\u0648\u0641]?\u0644\u0644(?=\\w\\w)")


_NASAL = re.compile("[\u0919\u091e\u0923\u0928\u092e]\u094d(?=[\u0915-\u0939])")


_NUKTA = str.maketrans({"\u0901": "\u0902", "\u093c": None})


_LAST_VIRAMA = re.compile("\u094d$")


_LAST_TONE = re.compile("((?<!q)u(?=y)|o(?=[ae]))([aey])([\u0300\u0301\u0303\u0309\u0323])$")


_ONLY_Y = re.compile("^([hklmst])y([\u0300\u0301\u0303\u0309\u0323]?)$")


_MARKS = re.compile("[\u0300-\u036f]")


def typed_alike(text: str) -> str:
    """A text with vowels of Thai and Lao in one form, however they were typed.

    Args:
        text: In compatibility form, which takes the vowel "am" apart.
    """
    return _TWO_E.sub("\u0e41", _RING_AND_TONE.sub(r"\2\1", text))


def in_one_script(text: str) -> str:
    """A text whose words are each in one script, where letters of another one only look like its own; as long.

    Somebody typed "с" for "c", or wants a word not to be found. What holds letters of its own in both scripts ("μm")
    stays.

    Args:
        text: In compatibility form.

    Example:
        >>> in_one_script("\u0410m\u0430zon")
        'Amazon'
    """
    return _LETTERS.sub(_one_script, text) if _MIXED.search(text) else text


def _one_script(match: re.Match[str]) -> str:
    word = match.group()
    latin, greek = len(_LATIN.findall(word)), len(_GREEK.findall(word))
    other = len(word) - latin
    if not latin or not other or 0 < greek < other:
        return word
    to_other, to_latin = _GREEK_TWINS if greek else _CYRILLIC_TWINS
    as_latin, as_other = word.translate(to_latin), word.translate(to_other)
    if as_latin.isascii() and (latin >= other or _LATIN.search(as_other)):
        return as_latin
    return word if _LATIN.search(as_other) else as_other


def spelt_alike(word: str, language: str) -> str:
    """A word in the spelling that its language's stemmer is given.

    Args:
        word: Lower case, in compatibility form.
        language: ISO 639-1 code.
    """
    rule = _RULES.get(language)
    return word if rule is None or (word.isascii() and language != "vi") else rule(word)


def _arabic(word: str) -> str:
    word = _VOWEL_SIGNS.sub("", word).translate(_ARABIC_LETTERS)
    word = _FOR_THE.sub("\u0627\u0644", _BEFORE_ARTICLE.sub("", word))
    return _FEMININE.sub("\\1\u0629", word)


def _hindi(word: str) -> str:
    return _LAST_VIRAMA.sub("", _NASAL.sub("\u0902", word.translate(_NUKTA)))


def _greek(word: str) -> str:
    return unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", word)))


def _vietnamese(word: str) -> str:
    """The tone over the first of two vowels at the end ("hòa" for "hoà"), and "i" for a "y" that is the only vowel."""
    apart = _LAST_TONE.sub(r"\1\3\2", unicodedata.normalize("NFD", word))
    return unicodedata.normalize("NFC", _ONLY_Y.sub(r"\1i\2", apart))


_RULES: Mapping[str, Callable[[str], str]] = {
    "ar": _arabic, "el": _greek, "hi": _hindi, "mr": _hindi, "ne": _hindi, "vi": _vietnamese,
}  # fmt: skip
