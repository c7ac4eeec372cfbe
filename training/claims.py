"""Statements that a passage supports, and statements like them that it does not.

A statement is made of a question and its answer ("When did X open?", "in 1931" → "X opened in 1931."), so that its
words are those of the person who asked, not the passage's. Others are sentences of the passage itself, without one of
their clauses. The reader is trained on them as on questions: its span is the evidence, and "answerable" means
"supported".
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import edits
from edits import Example, Substitutes, Token
from lemminflect import getInflection
from spacy.tokens import Doc
from spacy.tokens import Token as Word
from triples import Triple, sentences

_BE = {"is", "are", "was", "were", "'s", "’s"}
_DO = {"do": "VBP", "does": "VBZ", "did": "VBD"}
_LEADS = re.compile(
    r"(?:in|on|at|by|from|for|since|until|with|of|to|about|during|around|over|under|near|after|before) "
    r"(?:the |a |an |about |around )?\Z",
    re.IGNORECASE,
)
_LED = re.compile(r"(?:in|on|at|by|from|since|until|near|after|before)\b", re.IGNORECASE)
_VERBS = {"MD", "VBD", "VBZ", "VBP", "VB", "VBN"}
_SUBJECTS = {"nsubj", "nsubjpass", "expl"}
_MODALS = {
    "must": ("may", "need not", "should not"),
    "may": ("must", "may not", "always"),
    "can": ("cannot", "must"),
    "cannot": ("can",),
    "should": ("should not", "need not", "may"),
    "always": ("sometimes", "never", "rarely"),
    "never": ("always", "sometimes"),
    "usually": ("never", "always"),
    "sometimes": ("always", "never"),
    "often": ("rarely", "never"),
    "all": ("some", "none of", "few"),
    "every": ("no", "almost no"),
    "only": ("not only", "mostly"),
    "some": ("all", "no"),
    "most": ("few", "all"),
    "required": ("recommended", "optional"),
    "recommended": ("required", "forbidden"),
    "will": ("will not", "might"),
}
_UNITS = (
    "seconds minutes hours days weeks months years decades",
    "meters kilometers miles feet inches metres kilometres yards",
    "grams kilograms pounds tons tonnes",
    "thousand million billion trillion",
    "KB MB GB TB",
    "second minute hour day week month year",
    "daily weekly monthly quarterly yearly annually",
    "dollars euros pounds cents",
    "percent times",
)
_UNIT_OF = {unit: [other for other in row.split() if other != unit] for row in _UNITS for unit in row.split()}
_NUMBER = re.compile(r"(?<![\w.,-])\d[\d,]*(?:\.\d+)?(?:st|nd|rd|th)?(?![\w-]|\.\d)")
_NAME = re.compile(r"(?<=[a-z,;] )(?:[A-Z][\w'-]+(?: (?:of|the|de|van|von))?(?: [A-Z][\w'-]+)*)")
_CLAUSE = re.compile(
    r" \([^()]*\)|, (?:which|who|including|such as|as well as|along with|although|while|because)\b[^,.;]*(?=[,.;])"
)
_CONDITION = re.compile(
    r",? (?:if|unless|except|provided|only when|only if|as long as)\b[^,.;]*(?=[.;,]|\Z)|\A(?:If|Unless) [^,.;]*, "
)


def statement_of(asked: Doc, triple: Triple) -> str | None:
    """The question and its answer as a statement; None where the question's form is not known."""
    answer = " ".join(triple.passage[triple.start : triple.end].split()).strip(" .,;:*`")
    words = [word for word in asked if not word.is_space]
    while words and words[-1].text in "?.":
        words.pop()
    lower = [word.text.lower() for word in words]
    at = next((n for n, word in enumerate(lower[:4]) if word in edits.QUESTION_WORDS), None)
    if at is None or not 3 <= len(words) <= 22 or not 1 <= len(answer) <= 90 or lower[0] in _BE | set(_DO):
        return None
    if at and words[at - 1].tag_ != "IN":
        return None
    verb = next((n for n in range(at + 1, len(words)) if words[n].tag_ in _VERBS), None)
    if verb is None:
        return None
    wanted, rest = words[at + 1 : verb], words[verb:]
    number = lower[at] == "how" and bool(wanted) and wanted[0].text.lower() in {"many", "much"}
    filled = _filled(answer, lower[at], words[:at], wanted if number else (), triple)
    return _said(lower[at], filled, rest, named=bool(wanted), led=at > 0, number=number)


def _filled(answer: str, kind: str, before: Sequence[Word], counted: Sequence[Word], triple: Triple) -> str:
    """The answer with what stands around it in a sentence: a preposition, and what a number counts."""
    noun = _text(counted[1:])
    if noun and noun.split()[-1].lower()[:4] not in answer.lower():
        answer = f"{answer} {noun}"
    if before:
        return f"{_text(before).lower()} {answer}"
    if kind in {"when", "where"} and not _LED.match(answer):
        lead = _LEADS.search(triple.passage[max(0, triple.start - 30) : triple.start])
        return f"{lead[0].lower() if lead else 'in ' if kind == 'when' else 'at '}{answer}"
    return answer


def _said(kind: str, filled: str, rest: Sequence[Word], *, named: bool, led: bool, number: bool) -> str | None:
    """The statement: the subject before its verb, and the answer where the question's word was taken from."""
    first = rest[0]
    verb = first.text.lower()
    if verb in _BE and kind in {"what", "who", "which"} and not named and not led and first.dep_ == "ROOT":
        return _sentence(f"{_text(rest[1:])} {_full(first)} {filled}") if len(rest) > 1 else None
    subject = next((word for word in rest if word.dep_ in _SUBJECTS and word.i > first.i), None)
    helps = first.tag_ == "MD" or verb in {*_BE, *_DO, "has", "have", "had"}
    if helps and subject is not None and subject.right_edge.i < rest[-1].i:
        if kind in {"how", "why"} and not number:
            return None
        own = [word for word in rest if first.i < word.i <= subject.right_edge.i]
        behind = [word for word in rest if word.i > subject.right_edge.i]
        said = f"{_full(first)} {_text(behind)}" if verb not in _DO else _inflected(behind, _DO[verb])
        return _sentence(f"{_text(own)} {said} {filled}") if said else None
    if subject is None and not led and kind in {"who", "what", "which", "how"}:
        return _sentence(f"{filled} {_text(rest)}")
    return None


def _inflected(words: Sequence[Word], tag: str) -> str | None:
    """Of words behind "did": "begin in May" becomes "began in May"."""
    made = getInflection(words[0].text.lower(), tag=tag) if words[0].tag_ == "VB" else ()
    return f"{made[0]} {_text(words[1:])}".strip() if made else None


def _text(words: Sequence[Word]) -> str:
    return "".join(word.text_with_ws for word in words).strip()


def _full(word: Word) -> str:
    return "is" if word.text in {"'s", "’s"} else word.text.lower()


def _sentence(text: str) -> str | None:
    text = re.sub(r"\s+([.,;:])", r"\1", " ".join(text.split())).strip(" .?")
    return f"{text[0].upper()}{text[1:]}." if 12 < len(text) < 240 else None


def statements(
    triple: Triple, said: str, tokens: Sequence[Token], table: Substitutes, others: Sequence[str], dice: random.Random
) -> Iterator[Example]:
    """A statement that is supported, and some of its changes that are not.

    Args:
        triple: What the statement was made of.
        said: The statement.
        tokens: Its words.
        table: What words and names are exchanged for.
        others: Passages of the same document without the fact.
        dice: Chooses.
    """
    asked = replace(triple, question=said)
    yield _of(asked, "s-answer")
    wrong = [*_wrong_fact(asked, dice)]
    changed = edits.edits_of(asked, tokens, table, dice)
    wrong += [("s-" + edit.kind, edit.apply(said)) for edit in changed]
    wrong += [*_small_words(said, dice), *_negated(said, dice)]
    dice.shuffle(wrong)
    # One statement has no more than two wrong ones, of different kinds.
    for kind, text in wrong[: dice.choice((1, 1, 2))]:
        yield _of(asked, kind, text, supported=False)
    both = [edit for edit in changed if edit.kind != "exchange"]
    if both and dice.random() < 0.5:
        pair = edits.contrast(asked, dice.choice(both))
        if len(pair) == 3:
            yield replace(pair[1], kind="sp-changed")
            yield replace(pair[2], kind="s-both-changed")
    if dice.random() < 0.25:
        missing = edits.without_fact(asked) or edits.without_detail(asked)
        if missing is not None:
            yield replace(missing, kind="sp-deleted")
    elif others and dice.random() < 0.15:
        yield Example(triple.family, "sp-same", triple.heading, dice.choice(others), said)


def own_sentence(triple: Triple, dice: random.Random) -> tuple[int, int, str] | None:
    """A sentence of the passage, without one of its clauses: where it is, and its text."""
    spans = [(s, e) for s, e in sentences(triple.passage) if 40 < e - s < 260]
    spans = [(s, e) for s, e in spans if re.match(r"[A-Z][^|#>`\n]*[.]\s*\Z", triple.passage[s:e])]
    if not spans:
        return None
    start, end = dice.choice(spans)
    text = " ".join(triple.passage[start:end].split())
    text = _CLAUSE.sub("", text, count=1)
    return start, end, text


def _of(triple: Triple, kind: str, text: str = "", *, supported: bool = True) -> Example:
    start, end = (triple.start, triple.end) if supported else (-1, -1)
    return Example(triple.family, kind, triple.heading, triple.passage, text or triple.question, start, end)


def _wrong_fact(triple: Triple, dice: random.Random) -> Iterator[tuple[str, str]]:
    """The statement with another number or name of its passage in place of its own."""
    for kind, form in (("s-other-number", _NUMBER), ("s-other-name", _NAME)):
        own = list(form.finditer(triple.question))
        here = {match.group() for match in form.finditer(triple.passage)}
        if own:
            match = dice.choice(own)
            fit = sorted(one for one in here if one not in triple.question and match.group() not in one)
            if fit:
                yield kind, triple.question[: match.start()] + dice.choice(fit) + triple.question[match.end() :]
            elif kind == "s-other-number":
                changed = _digits(match.group(), dice)
                if changed not in triple.passage:
                    yield "s-number", triple.question[: match.start()] + changed + triple.question[match.end() :]


def _digits(written: str, dice: random.Random) -> str:
    places = [at for at, letter in enumerate(written) if letter.isdigit()]
    at = dice.choice(places)
    digit = dice.choice([one for one in "123456789" if one != written[at]])
    return written[:at] + digit + written[at + 1 :]


def _small_words(said: str, dice: random.Random) -> Iterator[tuple[str, str]]:
    found = [
        (match, dice.choice(_MODALS[match.group().lower()]))
        for match in re.finditer(r"\b\w+\b", said)
        if match.group().lower() in _MODALS
    ]
    if found:
        match, other = dice.choice(found)
        yield "s-modal", said[: match.start()] + edits.as_written(match.group(), other) + said[match.end() :]
    units = [match for match in re.finditer(r"\b\w+\b", said) if match.group() in _UNIT_OF]
    if units:
        match = dice.choice(units)
        yield "s-unit", said[: match.start()] + dice.choice(_UNIT_OF[match.group()]) + said[match.end() :]
    condition = _CONDITION.search(said)
    if condition and len(said) - len(condition.group()) > 30:
        rest = (said[: condition.start()] + said[condition.end() :]).strip(" ,.")
        subject = re.match(r"(.{3,80}?\b(?:is|are|can|may|must|will|should))\b(?! not)", rest)
        if subject:
            rest = f"{subject[1]} {dice.choice(('always', 'in any case', 'always'))}{rest[subject.end() :]}"
            yield "s-condition", f"{rest[0].upper()}{rest[1:]}."


def _negated(said: str, dice: random.Random) -> Iterator[tuple[str, str]]:
    verb = edits.AUXILIARY.search(said)
    if verb and verb.group().lower() not in {"do", "does", "did"}:
        word = dice.choice(("not", "not", "never", "no longer"))
        if re.match(r"\s+(?:not|never|no)\b", said[verb.end() :]):
            yield "s-negated", said[: verb.end()] + re.sub(r"\A\s+(?:not|never|no)\b", "", said[verb.end() :])
        else:
            yield "s-negated", f"{said[: verb.end()]} {word}{said[verb.end() :]}"
