"""Drafts test cases from documents without a language model: informative sentences, turned into lookups."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import PurePosixPath

from recollect.chunking.sentences import sentence_spans
from recollect.evaluation.case_files import plain
from recollect.retrieval.analysis import Analyzer

_SHORTEST, _LONGEST = 40, 280
_FEWEST_TERMS = 5
_KEYWORDS = 5
# So many of a document's best sentences are kept while the others are read.
_KEPT = 30
_ENDS_SENTENCE = re.compile(r"[.!。।؟۔…][\"'”’)\]*_]*\Z")
# What it points back to stands in another sentence: alone it asks nothing.
_LEANS_BACK = re.compile(
    r"[\W_]*(?:it|its|they|them|their|this|these|those|that|such|he|she|his|her|both|either|neither|there|here|however|"
    r"also|therefore|thus|otherwise|instead|if so|then|for example|er|sie|es|dies|diese|dieser|dieses|il|elle|ils|"
    r"elles|cela|ce|cette|ces)\b",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"^\s*(?:[#>|*+\-•]|\d+[.)]\s)|[|\t]|\*\*|\]\(")
_WORD = re.compile(r"\w+(?:[-.'/:,]\w+)*")
# What one would ask for: an amount with its unit, an identifier, a date.
_DETAIL = re.compile(
    r"(?:[A-Z]{2,4} |[€$£])?\b\d[\d.,:]*\b(?:\s?(?:%|percent|[a-zà-ÿ]{2,12}))?|\b[A-Z][\w]*-\d[\w-]*\b"
)


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    terms: tuple[str, ...]
    place: float


def draft_cases(
    sources: Iterable[tuple[str, str]], *, count: int = 50, language: str = "en"
) -> list[dict[str, object]]:
    """Draft test cases.

    A sentence is informative if its terms are rare among all sentences, if it holds a detail (a number, an identifier),
    if it stands early in its document, and if it can be understood alone. Every document gives one case before any
    gives a second. The same documents give the same drafts.

    Args:
        sources: The sources and contents of documents; read once, one at a time.
        count: So many at most.
        language: ISO 639-1 code.

    Returns:
        The drafts, by document, as they stand in a file of test cases. They ask with the documents' own words, so they
        find what an engine loses, not what it fails to understand.
    """
    analyzer = Analyzer(language)
    frequencies: Counter[str] = Counter()
    total = 0
    holders: dict[str, set[str]] = defaultdict(set)
    found: dict[str, list[_Sentence]] = {}
    for source, content in sources:
        sentences = _sentences(content, analyzer, language)
        for sentence in sentences:
            total += 1
            frequencies.update(set(sentence.terms))
        # Rarity among what was read so far is good enough to choose what to remember.
        kept = sorted(sentences, key=lambda one: -_worth(one, frequencies, total))[:_KEPT]
        found[source] = kept
        for sentence in kept:
            holders[plain(sentence.text)].add(source)
    ranked = {
        name: sorted(kept, key=lambda one: (-_worth(one, frequencies, total), one.text)) for name, kept in found.items()
    }
    return _named(_in_turns(ranked, count), holders, frequencies, total, analyzer)


def _sentences(content: str, analyzer: Analyzer, language: str) -> list[_Sentence]:
    sentences = []
    for start, end in sentence_spans(content, language):
        raw = content[start:end]
        text = " ".join(raw.split())
        if not _SHORTEST <= len(text) <= _LONGEST or not _ENDS_SENTENCE.search(text):
            continue
        if _LEANS_BACK.match(text) or _MARKUP.search(raw):
            continue
        terms = tuple(dict.fromkeys(analyzer.terms(text)))
        letters = sum(letter.isalpha() or letter.isspace() for letter in text)
        if len(terms) >= _FEWEST_TERMS and letters >= 0.75 * len(text):
            sentences.append(_Sentence(text, terms, start / max(1, len(content))))
    return sentences


def _worth(sentence: _Sentence, frequencies: Counter[str], total: int) -> float:
    rarities = sorted((_rarity(term, frequencies, total) for term in sentence.terms), reverse=True)[:_KEYWORDS]
    detail = 1.0 if _DETAIL.search(sentence.text) else 0.0
    return sum(rarities) / len(rarities) / math.log(total + 2) + 0.4 * detail - 0.2 * sentence.place


def _rarity(term: str, frequencies: Counter[str], total: int) -> float:
    return math.log((total + 1) / (frequencies[term] + 0.5))


def _in_turns(ranked: dict[str, list[_Sentence]], count: int) -> list[tuple[str, _Sentence]]:
    """One sentence of every document, then a second of every one; a sentence in several documents once."""
    chosen: dict[str, tuple[str, _Sentence]] = {}
    for turn in zip_longest(*ranked.values()):
        for name, sentence in zip(ranked, turn, strict=True):
            if sentence is not None:
                chosen.setdefault(plain(sentence.text), (name, sentence))
    return list(chosen.values())[:count]


def _named(
    chosen: Sequence[tuple[str, _Sentence]],
    holders: dict[str, set[str]],
    frequencies: Counter[str],
    total: int,
    analyzer: Analyzer,
) -> list[dict[str, object]]:
    drafts: list[dict[str, object]] = []
    numbers: Counter[str] = Counter()
    for index, (source, sentence) in enumerate(sorted(chosen, key=lambda pair: pair[0])):
        stem = PurePosixPath(source).stem[:60] or "case"
        numbers[stem] += 1
        gap = _with_gap(sentence.text) if index % 2 else None
        rarity = {term: _rarity(term, frequencies, total) for term in sentence.terms}
        within = sorted(holders[plain(sentence.text)])
        wanted = {"source": within[0] if len(within) == 1 else within, "text": sentence.text}
        query = gap or _keywords(sentence.text, rarity, analyzer)
        drafts.append({"name": f"{stem}-{numbers[stem]}", "query": query, "must_have": [wanted]})
    return drafts


def _keywords(text: str, rarity: dict[str, float], analyzer: Analyzer) -> str:
    """The sentence's most telling words in their order; details are left for the answer, where enough else is there."""
    words = [
        (word, max((rarity.get(term, 0.0) for term in analyzer.terms(word)), default=0.0)) for word in _words(text)
    ]
    telling = [(word, worth) for word, worth in words if worth > 0]
    plain_ones = [pair for pair in telling if not any(letter.isdigit() for letter in pair[0])]
    pool = plain_ones if len(plain_ones) >= _KEYWORDS - 1 else telling
    best = sorted(pool, key=lambda pair: -pair[1])[:_KEYWORDS]
    return " ".join(word for word in _words(text) if any(word == kept for kept, _ in best)) or text


def _words(text: str) -> list[str]:
    return list(dict.fromkeys(match.group() for match in _WORD.finditer(text)))


def _with_gap(text: str) -> str | None:
    """The sentence with its first detail left out; None where there is none, or little else."""
    match = _DETAIL.search(text)
    if match is None or len(text) - len(match.group()) < _SHORTEST - 10:
        return None
    return f"{text[: match.start()].rstrip()} … {text[match.end() :].lstrip()}".strip(" .") or None
