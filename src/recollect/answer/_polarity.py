"""Whether a sentence says the opposite of its evidence: negations, and words that exclude one another. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_NEGATORS = re.compile(
    r"\b(?:not|no|never|none|nobody|neither|nor|cannot|\w+n['’]t"
    r"|nicht|kein\w*|nie|niemals|weder"
    r"|ne|n['’](?=\w)|pas|jamais|aucune?"
    r"|nunca|jamás|ningun\w*|ningún|tampoco"
    r"|non|mai|nessun\w*"
    r"|não|nem|nenhum\w*"
    r"|niet|geen|nooit"
    r"|не|нет|никогда|nie\b|nigdy|değil|yok|inte|ej|ikke|aldrig"
    r")\b|不|没|沒|無|ない|ません|\bلا\b|\bليس\b|\bلم\b|\bلن\b|نہیں|नहीं",
    re.IGNORECASE,
)
# What holds a negator and negates nothing, or is one negation in two words.
_SET_PHRASES = [
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        (r"\bno (?:later|earlier) than\b", "by"),
        (r"\b(?:no|not) (?:more|longer|greater|higher) than\b|\bnicht mehr als\b|\bno más de\b", "at most"),
        (r"\bno longer\b", "not"),
        (r"\b(?:permitted|permissible|authori[sz]ed)\b", "allowed"),
        (r"\b(?:prohibited|banned|disallowed)\b", "forbidden"),
        (r"\b(?:mandatory|compulsory|obligatory)\b", "required"),
        (r"\b(?:no|not) (?:less|fewer) than\b|\bnicht weniger als\b|\bno menos de\b", "at least"),
        (r"\bnot only\b|\bnicht nur\b|\bno sólo\b|\bno solo\b|\bnon solo\b|\bnon seulement\b", ""),
        (r"\bno\.\s?(?=\d)|\bwhether or not\b|\bno matter\b", ""),
        (r"\bmay not\b|\bcan ?not\b|\bmust not\b|\bcan['’]t\b|\bmustn['’]t\b|\bis not allowed\b", "forbidden"),
        (r"\b(?:not|n['’]t)(?: be)? (?:allowed|permitted)\b|\bnot (?:allowed|permitted)\b", "forbidden"),
        (r"\bnicht (?:erlaubt|gestattet|zulässig)\b|\bd(?:arf|ürfen)\b(?=.*\bnicht\b)", "forbidden"),
        (
            r"\bn['’]est pas autorisée?s?\b|\bne peu(?:t|vent) pas\b|\bno (?:está permitid[oa]|se permite|puede[n]?)\b",
            "forbidden",
        ),
        (r"\bnot (?:required|mandatory|necessary|obligatory)\b|\bneed not\b|\bneedn['’]t\b", "optional"),
        (r"\bnicht (?:erforderlich|nötig|verpflichtend)\b", "optional"),
        (r"\bne\s+(\w+)\s+(?:pas|plus|jamais)\b|\bn['’](\w+)\s+(?:pas|plus|jamais)\b", r"not \1"),
    )
]

#: Each pair of a line excludes one another; the words are stems, matched at the beginning of a word.
_OPPOSITES = [
    tuple(re.compile(rf"\b(?:{side})", re.IGNORECASE) for side in line.split(" / "))
    for line in (
        r"allowed|permitted|permissible|authori[sz]ed|erlaubt|gestattet|zulässig|autorisé|permis\b|permitid|consentit / "
        r"forbidden|prohibit|banned|disallow|not allowed|verboten|untersagt|interdit|prohibid|vietat|proibid",
        r"mandatory|compulsory|obligatory|required\b|must\b|verpflichtend|pflicht\b|obligatoire|obligatori / "
        r"optional|voluntar|freiwillig|facultati|opcional|facoltativ",
        r"must\b|shall\b|required\b|verpflichtend|doi(?:t|vent)\b / forbidden|prohibit|verboten|untersagt|interdit",
        r"at least|minimum|mindestens|au moins|al menos|como mínimo|almeno|pelo menos|ten minste / "
        r"at most|maximum|up to|höchstens|maximal|bis zu|au plus|au maximum|jusqu|como máximo|al massimo|no máximo",
        r"more than|over\b|above|exceed|mehr als|über\b|plus de|más de|più di|mais de / "
        r"less than|fewer|under\b|below|weniger|unter\b|moins de|menos de|meno di",
        r"before\b|prior to|in advance|ahead|vor\b|vorher|avant|antes|prima d / after\b|following\b|afterwards|nach\b|après|después|dopo|depois",
        r"increas|up\b(?! to)|rose\b|rise|grew|grow|raised|higher|steigt|stieg|gestiegen|erhöh|augment|aument / "
        r"decreas|down\b|fell\b|fall\b|fallen|drop|declin|reduc|lower|sinkt|sank|gesunken|gesenkt|diminu|disminu|baiss",
        r"includ|inclus|einschließ|inbegriffen|incluy / exclud|exclus|ausgeschlossen|excluy",
        r"paid\b|bezahlt / unpaid|unbezahlt",
        r"approv|accept|granted|genehmig|angenommen / reject|refus|denied|abgelehnt",
        r"support|in favour|for the proposal / oppos|against the",
        r"full-time|full time|vollzeit / part-time|part time|teilzeit",
        r"first\b / last\b",
        r"earliest|frühesten / latest|spätesten",
        r"opens?\b|opened|öffnet / closes?\b|closed|schließt",
        r"start|begin|commenc / end(?:s|ed|ing)?\b|finish",
        r"always|immer / never|nie\b|niemals",
        r"internal / external", r"working days|workdays|arbeitstag / calendar days|kalendertag",
        r"weekdays|werktags / weekends?\b|wochenende", r"monthly|each month|every month|per month / yearly|annually|per year|each year|every year / weekly|per week|every week|each week / daily|per day|every day|each day",
        r"profit|gain / loss", r"enabl|switched on|activat / disabl|switched off|deactivat",
        r"with\b / without\b", r"oldest / newest", r"free of charge|free\b|kostenlos / charged\b|kostenpflichtig",
        r"inbound|incoming / outbound|outgoing", r"gross / net\b", r"upper / lower", r"left\b / right\b",
        r"north / south", r"morning / evening|afternoon", r"everybody|everyone|all employees / nobody|no one",
    )
]  # fmt: skip
# Words that deny without a negation.
_REFUSING = re.compile(
    r"\bun(?!der|til|it|iv|ion|less|i)\w{4,}|\b(?:forbidden|optional|impossible|invalid|ineligible|only|nur|seulement|sólo|solo|except|lack\w*|fail\w*|"
    r"refus\w*|exclud\w*|lost|instead|without|ohne|sans|sin|senza|sem)\b",
    re.IGNORECASE,
)
_DUTY = re.compile(r"\b(?:must|shall|ha(?:s|ve) to|obliged to|muss|müssen)\b", re.IGNORECASE)
_LEAVE = re.compile(r"\b(?:may|can|might|kann|können|darf|dürfen)\b", re.IGNORECASE)
# Within a clause of the evidence that is not compared: what a condition says of another case.
_CLAUSE = re.compile(
    r"[,;:()–—]|\.\s|\s-\s|\b(?:but|while|whereas|although|however|unless|except|aber|sondern|außer|mais|sauf|pero|salvo|sino)\b"
)


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a sentence that says one thing."""

    start: int
    end: int
    text: str


def clauses(text: str) -> Iterator[Clause]:
    """The clauses of a sentence, cut at commas and conjunctions of contrast."""
    start = 0
    for match in _CLAUSE.finditer(text):
        # A comma within a number is no end.
        if (
            match.group() == ","
            and text[match.end() : match.end() + 1].isdigit()
            and text[match.start() - 1 : match.start()].isdigit()
        ):
            continue
        if text[start : match.start()].strip():
            yield Clause(start, match.start(), text[start : match.start()])
        start = match.start() if match.group()[0].isalpha() else match.end()
    if text[start:].strip():
        yield Clause(start, len(text), text[start:])


def normalised(text: str) -> str:
    """The text with its set phrases ("no later than", "must not") replaced by what they mean."""
    for pattern, replacement in _SET_PHRASES:
        text = pattern.sub(replacement, text)
    return text


def contradiction(sentence: str, evidence: str) -> str | None:
    """What a sentence says the other way round than its evidence; None where nothing does.

    Args:
        sentence: One clause, already `normalised`.
        evidence: The clause of the evidence that corresponds to it, already `normalised`.
    """
    for sides in _OPPOSITES:
        said = {place for place, side in enumerate(sides) if side.search(sentence)}
        held = {place for place, side in enumerate(sides) if side.search(evidence)}
        if said and held and not said & held:
            place, other = min(said), min(held)
            mine, theirs = sides[place].search(sentence), sides[other].search(evidence)
            if mine and theirs and _negations(sentence) % 2 == _negations(evidence) % 2:
                return f"{mine.group()!r} against {theirs.group()!r}"
            return None
    if _negations(sentence) % 2 != _negations(evidence) % 2 and not _excuses(sentence, evidence):
        return "a negation"
    return _other_strength(sentence, evidence)


def _other_strength(sentence: str, evidence: str) -> str | None:
    """What must be against what may be."""
    for one, other in ((_DUTY, _LEAVE), (_LEAVE, _DUTY)):
        said, held = one.search(sentence), other.search(evidence)
        if said and held and not other.search(sentence) and not one.search(evidence):
            return f"{said.group()!r} against {held.group()!r}"
    return None


def turned_around(sentence: str, evidence: Sequence[str]) -> str | None:
    """A word of direction ("before", "at most") whose opposite the evidence has beside the same words.

    Args:
        sentence: One clause, already `normalised`.
        evidence: The clauses of its evidence, already `normalised`.
    """
    for sides in _OPPOSITES:
        for place, side in enumerate(sides):
            said = side.search(sentence)
            if said is None or any(other.search(sentence) for at, other in enumerate(sides) if at != place):
                continue
            beside = _beside(sentence, said)
            if any(beside & _beside(text, same) for text in evidence if (same := side.search(text))):
                continue
            for at, other in enumerate(sides):
                for text in evidence if at != place else ():
                    held = other.search(text)
                    if held and beside & _beside(text, held) and _negations(sentence) % 2 == _negations(text) % 2:
                        return f"{said.group()!r} against {held.group()!r}"
    return None


def _beside(text: str, match: re.Match[str]) -> frozenset[str]:
    """The words that a word of direction is about: the next ones that carry meaning."""
    words = [word.casefold() for word in re.findall(r"\w+", text[match.end() :])]
    return frozenset([word for word in words if len(word) > 3 or word.isdigit()][:2])


def _negations(text: str) -> int:
    return len(_NEGATORS.findall(text))


def _excuses(sentence: str, evidence: str) -> bool:
    """Whether one side says by a word of refusal what the other says by a negation ("forbidden", "not possible")."""
    negative = [line[1] for line in _OPPOSITES[:2]]
    if {word.casefold() for word in _REFUSING.findall(sentence)} == {
        word.casefold() for word in _REFUSING.findall(evidence)
    }:
        return False
    return any(side.search(sentence) or side.search(evidence) for side in negative) or bool(
        _REFUSING.search(f"{sentence} {evidence}")
    )
