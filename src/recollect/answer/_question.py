"""What a question asks for, read once: terms and other words for them, kind, names, amounts, whether of the past."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from recollect.answer._kinds import READ_CHARACTERS, Kind, attribute, expected_kind, is_english
from recollect.languages.detection import plain_digits

if TYPE_CHECKING:
    from recollect.model.passage import Wording
    from recollect.retrieval.analysis import Analyzer


# What a question is about by name: companies, places, products, codes. And whether a text is about it too.


_TOKEN = re.compile(r"[^\W_](?:[\w&+#]|[-./'’](?=\w))*")
_WHOLE = re.compile(r"\w+(?:[-./&'+#]\w+)*")
_HYPHENED = re.compile(r"[^\W_]+(?:-[^\W_]+)+")
_PLAIN = re.compile(r"[^\W_]+")
_SENTENCE_START = re.compile(r"(?:\A|[.!?:]\s|[\"“”«»(]\s*)\W*\Z")
_CODE = re.compile(r"(?=.*[A-Za-z])(?=.*\d)(?!\d+[a-z]+\Z)[\w./&+#-]{2,}|[^\W\d]+_\w+", re.ASCII)
_VERSION = re.compile(
    r"(?i:v?\d+(?:[.,]\d+)*|[qh][1-4]|fy ?'?\d{2,4}|covid-19)|\d+(?:[.,]\d+)*(?:st|nd|rd|th|s|k|m|bn)"
)
# Capitalised in English without being anybody's name.
_COMMON_WORDS = """
    i i'm i've i'll i'd monday tuesday wednesday thursday friday saturday sunday january february march april may june
    july august september october november december english french german portuguese spanish british european american
"""
_TITLE_WORDS = """
    mr mrs ms dr president senator congressman professor king queen emperor pope prince princess sir lord lady minister
    chancellor secretary governor general captain judge justice bishop saint
"""
_TITLES = frozenset(_TITLE_WORDS.split())
_TITLED = re.compile(rf"\b(?i:{'|'.join(_TITLE_WORDS.split())})\.? [A-Z]\w+(?:['’]s)?")
_INITIALS = re.compile(r"([a-z])n([a-z])")
# "General Mills" is not known by its amounts in millions.
_AMOUNTS = frozenset({"million", "millions"})
_COMMON = frozenset(_COMMON_WORDS.split()) | _TITLES


def names_in(question: str) -> tuple[frozenset[str], ...]:
    """The names in a question, each as its words, casefolded; codes (``RW-400``) are names of one word.

    Names in words are recognised in English questions alone: where every noun has a capital, or no word, capitals
    tell nothing. Abbreviations (``SMS``) are none: texts spell them out.
    """
    english = is_english(question)
    names: list[frozenset[str]] = []
    words: list[str] = []
    last_end = 0
    for match in _TOKEN.finditer(question):
        token = re.sub(r"['’]s?\Z", "", match.group())
        is_name = english and _is_name(token, question[max(0, match.start() - 8) : match.start()])
        joins = is_name and not is_code(token) and question[last_end : match.start()] in {" ", " & "}
        if words and not joins:
            names.append(frozenset(words))
            words = []
        if is_code(token):
            names.append(frozenset([token.casefold()]))
        elif is_name:
            words.append(token.casefold())
        last_end = match.end()
    names.extend([frozenset(words)] if words else [])
    return tuple(dict.fromkeys(names))


def titled_words(question: str) -> frozenset[str]:
    """The words that stand behind a title ("President Biden"): people whom a text of their own may not name."""
    tokens = [token.casefold() for token in re.findall(r"\w+", question)]
    return frozenset(name for title, name in pairwise(tokens) if title in _TITLES)


def without_titled(question: str) -> str:
    """A question without its people by their title."""
    return _TITLED.sub(" ", question)


def is_code(token: str) -> bool:
    """Whether a token is an identifier (``ERR-4012``, ``max_sessions``, ``3M``), not a number, a version or a year."""
    return bool(_CODE.fullmatch(token)) and not _VERSION.fullmatch(token)


def _is_name(token: str, before: str) -> bool:
    if not token[:1].isupper() or len(token) < 2 or token.isupper() or token.casefold() in _COMMON:
        return False
    return not _SENTENCE_START.search(before)


def missing_names(names: Iterable[frozenset[str]], text: str, *, source: str = "") -> list[frozenset[str]]:
    """The names that a text does not hold: less than half of a name's words.

    Args:
        names: From `names_in`.
        text: The quote with its section and title.
        source: Of its document; names stand in it run together ("acmegroup_2022_report.pdf").
    """
    known, joined = words_of(text), words_of(source)

    def holds(word: str) -> bool:
        return _is_known(word, known) or _is_part(word, joined) or _has_initials(word, text, source)

    return [name for name in names if 2 * sum(map(holds, name)) < len(name)]


@lru_cache(maxsize=512)
def words_of(text: str) -> frozenset[str]:
    """The casefolded words of a text, whole and by their parts: ``hr/rw-400_guide.pdf`` holds both of the last."""
    words = set(_WHOLE.findall(text.casefold().replace("’", "'")))
    joined = [word for word in words if not word.isalnum()]
    return frozenset(words.union(*(_HYPHENED.findall(word) + _PLAIN.findall(word) for word in joined)))


def _has_initials(word: str, text: str, source: str) -> bool:
    """Whether a name such as "JnJ" stands in a text as "Johnson & Johnson", or in a source as "JOHNSON_JOHNSON"."""
    match = _INITIALS.fullmatch(word)
    if match is None:
        return False
    first, last = match.groups()
    in_text = rf"\b{first.upper()}\w+ (?:&|and) {last.upper()}\w+"
    in_source = rf"(?<![^\W_]){first}[^\W\d_]+[-_ ]{last}[^\W\d_]+"
    return bool(re.search(in_text, text) or re.search(in_source, source.casefold()))


def _is_part(word: str, joined: frozenset[str]) -> bool:
    return len(word) >= 3 and any(one.startswith(word) or one.endswith(word) for one in joined)


def _is_known(word: str, known: frozenset[str]) -> bool:
    if word in known or f"{word}s" in known or f"{word}'s" in known or word.removesuffix("s") in known:
        return True
    return len(word) >= 5 and word.isalpha() and any(one.startswith(word[:-1]) for one in known - _AMOUNTS)


# Words of a question that texts may put otherwise: whether a piece holds them, and the question in its words.


Terms = frozenset[str]
#: Terms in their order.
Words = Sequence[str]

# A part of a row's label, above the row's own name, says what the row is of where so much of it is the name.
_NAMES_IT = 0.66
# Words that may stand between those of a name.
_BETWEEN = 2
# How well a sentence names a measure; a row that has nothing but its name does by 1.
_IN_A_SENTENCE = 0.25
_A_YEAR = re.compile(r"(?:19|20)\d\d")
# A sentence, or a row's label, with such a word tells what became of a measure and not how large it is.
_CHANGE = re.compile(
    r"\b(?:increas|decreas|declin|chang|grew|grow|impact|percent|compar|rose|fell|lower|higher)\w*|%", re.IGNORECASE
)
# What is asked with such a word is computed of several figures.
_COMPUTED = re.compile(r"\b(?:average|mean|median|ratio|margin|share of|percent)|%", re.IGNORECASE)
# Words that alone name no row.
_SUMMING = "total net other"


@dataclass(frozen=True, slots=True)
class _Known:
    """A wording and the terms of its names, the original's first."""

    wording: Wording
    names: tuple[tuple[str, ...], ...]

    @property
    def original(self) -> Terms:
        return frozenset(self.names[0])

    @property
    def is_year(self) -> bool:
        others = self.wording.others
        return self.wording.needed and len(others) == 1 and _A_YEAR.fullmatch(others[0]) is not None


@dataclass(frozen=True, slots=True)
class Held:
    """What a piece holds of a question's wordings.

    Attributes:
        replaced: Words of the question, and what stands for them in the piece.
        terms: Of the question's words that it holds by another name.
        named: How much of what it calls the measures asked for is their name, 0 to 1.
        missing: How many measures and fiscal years it does not tell of.
    """

    replaced: tuple[tuple[str, str], ...]
    terms: Terms
    named: float
    missing: int

    def reworded(self, question: str) -> str:
        """The question in the piece's words."""
        for original, other in self.replaced:
            at = re.search(rf"(?<!\w){re.escape(original)}(?!\w)", question, re.IGNORECASE)
            question = question if at is None else question[: at.start()] + other + question[at.end() :]
        return question


class Wordings:
    """What a question's words may be called.

    Args:
        question: As asked.
        wordings: From the search that found the texts.
        analyzer: Splits texts into terms.
    """

    def __init__(self, question: str, wordings: Sequence[Wording], analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        found = [
            _Known(one, tuple(tuple(analyzer.query_terms(text)) for text in (one.original, *one.others)))
            for one in wordings
        ]
        found = [one for one in found if one.original]
        self._years = [one for one in found if one.is_year]
        self._measures = [one for one in found if one.wording.needed and not one.is_year]
        self._others = [one for one in found if not one.wording.needed]
        self._computes = _computing(question)
        self._of_change = bool(_CHANGE.search(question))
        # Of a year without a measure that is known, what is asked for is what a row is called.
        self._asked = frozenset(analyzer.query_terms(question))
        self._summing = frozenset(analyzer.query_terms(_SUMMING))

    @property
    def years(self) -> Terms:
        """The fiscal years that the question names, as years."""
        return frozenset(one.wording.others[0] for one in self._years)

    @property
    def needed(self) -> bool:
        """Whether nothing answers without some of them."""
        return bool(self._years or self._measures)

    def held(self, text: str, terms: Terms, path: Sequence[Words], years: Terms) -> Held:
        """What a piece holds.

        Args:
            text: Of the piece.
            terms: Its terms.
            path: Those of each part of a row's label, its own name last; empty for what is no row.
            years: That the piece tells of.
        """
        others = [(one, _first(one.names[1:], terms)) for one in self._others]
        measures = [(one, *self._named(one.names, text, path)) for one in self._measures]
        told = [one for one in self._years if one.wording.others[0] in years]
        met = [(one, at + 1) for one, at in others if at is not None]
        met += [(one, at) for one, at, _ in measures if at is not None]
        met += [(one, 1) for one in told]
        named = sum(share for *_, share in measures) / max(1, len(measures))
        missing = sum(at is None for _, at, _ in measures) + len(self._years) - len(told)
        if self.needed:
            missing += not self._computes <= _computing(text)
        if self._years and not measures:
            named = float(self._is_asked_for(path))
            missing += not named
        return Held(
            replaced=tuple((one.wording.original, (one.wording.original, *one.wording.others)[at]) for one, at in met),
            terms=frozenset[str]().union(*(one.original for one, _ in met)),
            named=named,
            missing=missing,
        )

    def _is_asked_for(self, path: Sequence[Words]) -> bool:
        """Whether all that a row is called stands in the question."""
        own = frozenset(path[-1]) - self._summing if path else frozenset()
        return bool(own) and own <= self._asked

    def _named(self, names: Sequence[Words], text: str, path: Sequence[Words]) -> tuple[int | None, float]:
        """Which name of a measure a piece has, and how much of what it is called there that is."""
        told = " ".join(word for part in path for word in part) if path else text
        if _CHANGE.search(told) and not self._of_change:
            return None, 0.0
        if not path:
            words = self._analyzer.terms(text)
            return next(((at, _IN_A_SENTENCE) for at, name in enumerate(names) if _stands_in(name, words)), (None, 0.0))
        best: tuple[int | None, float] = (None, 0.0)
        for at, name in enumerate(names):
            for level, part in enumerate(path, start=1):
                share = len(name) / len(part) if _stands_in(name, part) else 0.0
                if share > best[1] and (level == len(path) or (at and share >= _NAMES_IT)):
                    best = (at, min(1.0, share))
        return best


def _computing(text: str) -> frozenset[str]:
    """The words of a text that say how a figure is computed."""
    return frozenset("%" if word == "percent" else word for word in map(str.lower, _COMPUTED.findall(text)))


def _first(names: Iterable[Words], terms: Terms) -> int | None:
    return next((at for at, name in enumerate(names) if name and terms.issuperset(name)), None)


def _stands_in(name: Words, words: Words) -> bool:
    """Whether the words of a name stand in their order and close to one another."""
    for start in (at for at, word in enumerate(words) if name and word == name[0]):
        stretch = iter(words[start : start + len(name) + _BETWEEN])
        if all(word in stretch for word in name):
            return True
    return False


_CURRENCY = r"(?:EUR|USD|GBP|CHF|JPY|[$€£¥])"
_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_YEAR = re.compile(r"(?<![\d.,])(?:19|20)\d\d(?![\d%]|[.,]\d)")
_AMOUNT = re.compile(
    rf"{_CURRENCY} ?(?P<before>{_NUMBER})|(?P<behind>{_NUMBER}) ?(?:euros?|dollars?|pounds?|{_CURRENCY})"
)
_MORE_THAN = re.compile(r"\b(?:more than|above|over|exceed(?:s|ing)?|higher than) ?\Z", re.IGNORECASE)
_RANGE = re.compile(
    rf"{_CURRENCY} ?(?P<low>{_NUMBER}) ?(?:to|and|-|–) ?{_CURRENCY}? ?(?P<high>{_NUMBER})", re.IGNORECASE
)
_UP_TO = re.compile(rf"\b(?:up to|at most|below|under|less than) {_CURRENCY} ?(?P<high>{_NUMBER})", re.IGNORECASE)
_FROM = re.compile(rf"\b(?:above|over|more than|from|at least) {_CURRENCY} ?(?P<low>{_NUMBER})", re.IGNORECASE)
_ASKS_FOR_PAST = re.compile(
    r"\b(?:old|older|former(?:ly)?|previous(?:ly)?|before|earlier|used to|changed?|history|superseded|replaced?|"
    r"originally|at that time|back then|under (?:the )?version|version \d|(?:was|were|did|had)\b.*\b(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_SAYING = re.compile(
    r"\b(?:mention\w*|discuss\w*|describ\w*|sa(?:y|ys|id)|claim(?:s|ed)?|promis\w*|urg(?:es?|ed)|emphasi[sz]\w*|"
    r"propos(?:es?|ed)|announc\w*|address(?:ed|es)?|argu(?:es?|ed)|believ\w*|explain\w*|suggest\w*|request\w*|"
    r"views?|thinks?|opinion|reasons? did|stated?)\b",
    re.IGNORECASE,
)
# Where something was said, or by whom, which the texts that hold it do not repeat.
_FRAME = re.compile(
    r",?\s+as (?:mentioned|described|stated|outlined|discussed|announced|explained|reported|given)\b[^,?.;]*|"
    r"(?:,?\s+|\A)(?:according to|in the (?:words|opinion|view) of) [^,?.;]*|"
    r"\s+(?:in|during|from) (?:his|her|their|its|the|this) (?:[\w'’]+ ){0,5}?"
    r"(?:address|speech|statement|talk|remarks|interview|presentation|lecture|letter)\b",
    re.IGNORECASE,
)
_SENTENCES = re.compile(r"(?<=[.?!:])\s+")
# "Answer in USD millions." "Assume that you are an analyst." "Use the balance sheet."
_HOW = re.compile(
    r"(?:please )?(?:answer|respond|reply|give|assume|use|utili[sz]e|round|calculate|compute|base|rely|express|state)\b"
    r"(?=[^?]*\Z)",
    re.IGNORECASE,
)
_FEWEST_WORDS = 4
_FRAME_WORDS = re.compile(r"\b(?:specific|significant|key|examples?|mentioned|discussed|described)\b", re.IGNORECASE)
_TELLS_PAST = re.compile(
    r"\b(?:replaces|replacing|former(?:ly)?|previous(?:ly)?|superseded|used to be|no longer in force|"
    r"in which .{0,80}\b(?:was|were|had)\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, understood as far as its words tell.

    Attributes:
        text: As asked.
        core: Without what tells only by whom or where something was said ("according to the minutes").
        terms: To be searched for.
        kind: Of the expected answer.
        attribute: The terms for what it wants to know of something, the noun last: "annual premium"; none where that is
            not plain.
        names: Each as its words (`recollect.answer._question`).
        unnamed: Words of names that the texts need not hold: those of people by their title.
        years: Those that it names.
        amount: The sum of money that it names, where it names one.
        past: Whether it asks for what held before.
        said: Whether it asks what somebody said.
        wordings: What texts may say in place of its words.
    """

    text: str
    core: str
    terms: frozenset[str]
    kind: Kind
    attribute: tuple[str, ...]
    names: tuple[frozenset[str], ...]
    unnamed: frozenset[str]
    years: frozenset[str]
    amount: float | None
    past: bool
    said: bool
    wordings: Wordings


def understand(
    question: str, analyzer: Analyzer, language: str | None = None, wordings: Sequence[Wording] = ()
) -> Asked:
    """Read a question that is asked of texts in a language; None: nothing is known of it."""
    known = Wordings(question, wordings, analyzer)
    english = is_english(question)
    plain = _without_instructions(question) if english else question
    core = _core(plain) if english else question
    titled = titled_words(question)
    said = english and (core != plain or bool(titled and _SAYING.search(question)))
    amounts = [_asked_amount(match) for match in _AMOUNT.finditer(question)]
    return Asked(
        text=question,
        core=core,
        terms=_terms(core, analyzer, said=said),
        kind=expected_kind(question, language),
        attribute=tuple(analyzer.query_terms(attribute(question) or "")),
        names=names_in(core),
        unnamed=titled,
        years=years_in(question) | known.years,
        amount=amounts[0] if len(amounts) == 1 else None,
        past=english and bool(_ASKS_FOR_PAST.search(question[:READ_CHARACTERS])),
        said=said,
        wordings=known,
    )


def _asked_amount(match: re.Match[str]) -> float:
    """A sum that a question names; "more than EUR 500" is not in the range that ends with it."""
    above = _MORE_THAN.search(match.string, max(0, match.start() - 30), match.start())
    return _value(match["before"] or match["behind"]) * (1.000001 if above else 1)


def _without_instructions(question: str) -> str:
    """A question without its sentences on how it is to be answered; as it is, where none of the others asks."""
    kept = " ".join(sentence for sentence in _SENTENCES.split(question) if not _HOW.match(sentence))
    return kept if "?" in kept and len(kept.split()) >= _FEWEST_WORDS else question


def _core(question: str) -> str:
    """A question for what was said, without where or by whom; the question itself, where hardly anything is left."""
    if not _FRAME.search(question):
        return question
    core = _FRAME.sub("", question).strip(" ,")
    return core if len(core.split()) >= _FEWEST_WORDS else question


def _terms(core: str, analyzer: Analyzer, *, said: bool) -> frozenset[str]:
    terms = frozenset(analyzer.query_terms(core))
    if not said:
        return terms
    return frozenset(analyzer.query_terms(without_titled(_FRAME_WORDS.sub(" ", core)))) or terms


def tells_of_another_year(asked: Asked, text: str, around: str) -> bool:
    """Whether a text names years, and neither it nor what stands around it names one that is asked for."""
    if not asked.years:
        return False
    told = years_in(text)
    return bool(told) and not asked.years & (told | years_in(around))


def years_in(text: str) -> frozenset[str]:
    """The years that a text names."""
    return frozenset(_YEAR.findall(plain_digits(text)))


def in_range(amount: float | None, row: str) -> int:
    """1 where a row's range of money holds an amount, -1 where it does not, 0 where there is no range."""
    if amount is None:
        return 0
    if match := _RANGE.search(row):
        return 1 if _value(match["low"]) <= amount <= _value(match["high"]) else -1
    if match := _UP_TO.search(row):
        return 1 if amount <= _value(match["high"]) else -1
    if match := _FROM.search(row):
        return 1 if amount > _value(match["low"]) else -1
    return 0


def tells_of_past(text: str) -> bool:
    """Whether a text says what held before: what a new version replaces."""
    return bool(_TELLS_PAST.search(text))


def _value(number: str) -> float:
    return float(number.replace(",", ""))
