"""What a plain English statement says of whom: just enough to know a contradiction. Pure: no I/O, no clock, no chance.

Only what can have one value at a time is read: where somebody lives, what a number is, when something is. Whoever likes
apples may like pears as well, so liking is not read at all; what is not understood contradicts nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# Words that may stand before what is said, and between its subject and its verb.
_LEAD = (
    r"(?:(?:actually|well|oh|yes|yeah|so|and|but|now|btw|by the way|fyi|just so you know|update|correction|sorry|"
    r"good news|as of (?:now|today|this \w+)|since (?:then|\w+)|these days)[,:;!]?\s+){0,3}"
)
_ADVERB = r"(?:(?:now|currently|also|actually|still|just|recently|finally|already|officially)\s+)*"
_HAVE = r"(?:(?:have|has|'ve|'s|’ve|’s)\s+)?"

# (attribute, words between subject and value). All of the present: "lived" and "will live" say nothing of now.
_RELATIONS = (
    ("residence", rf"(?:live|lives|living|reside|resides)\s+{_ADVERB}(?:in|at|on|near)\s+"),
    ("residence", rf"{_HAVE}{_ADVERB}(?:moved|relocated)\s+(?:back\s+)?(?:to|into)\s+"),
    ("employer", rf"(?:work|works|working)\s+{_ADVERB}(?:at|for)\s+"),
    ("employer", rf"{_HAVE}{_ADVERB}(?:started|begun|began)\s+(?:working|a\s+(?:new\s+)?job)\s+(?:at|for)\s+"),
    ("occupation", r"(?:work|works|working)\s+as\s+(?:an?|the)\s+"),
    ("origin", r"(?:(?:am|is|'m|'s|’m|’s)|comes?)\s+(?:originally\s+)?from\s+"),
    ("name", r"(?:am|is|'m|'s|’m|’s)\s+(?:called|named)\s+"),
    ("age", rf"(?:am|is|'m|'s|’m|’s|{_HAVE}turned|turned)\s+{_ADVERB}(?=\d{{1,3}}(?:\s+years?\s+old)?\W*$)"),
    ("relationship", rf"(?:am|is|'m|'s|’m|’s|got)\s+{_ADVERB}(?=(?:single|married|engaged|divorced|widowed)\b)"),
    ("diet", rf"(?:am|is|'m|'s|’m|’s|became|{_HAVE}become)\s+{_ADVERB}(?:an?\s+)?(?=vegan|vegetarian|pescatarian)"),
)
_VERBS = tuple((name, re.compile(rf"^{_ADVERB}{pattern}(?P<value>.+)$", re.IGNORECASE)) for name, pattern in _RELATIONS)

_SUBJECT = re.compile(
    rf"^{_LEAD}(?:(?P<self>I(?=[\s'’]))|(?P<owned>(?:my|our)\s+(?P<thing>[\w-]+))|(?P<name>[A-Z][\w-]+))(?P<rest>.+)$",
    re.IGNORECASE,
)
_COPULA = re.compile(
    rf"^{_LEAD}(?P<whose>my|our|the|[A-Z][\w-]+['’]s)\s+(?P<what>[\w][\w' -]{{0,60}}?)\s+"
    rf"(?:is|are|(?:has|have)\s+(?:been\s+)?(?:changed|moved)\s+to|changed\s+to)\s+{_ADVERB}(?P<value>.+)$",
    re.IGNORECASE,
)

_NO_MORE = re.compile(
    r"\b(?:no longer|any ?more|any longer|(?:do|does|am|is|are)(?:n['’]t| not)|stopped|quit|has left|have left)\b",
    re.IGNORECASE,
)
_NOT_SO = re.compile(
    r"\b(?:not|never|n['’]t|hardly|if|would|could|might|(?-i:may)|used to|almost|nearly|maybe|perhaps)\b", re.IGNORECASE
)

_END = re.compile(
    r"[,.;:!?()\n]|\s(?:and|but|with|since|because|though|although|so|while|until|for|after|instead|now|"
    r"these days|at the moment|which|who|that|last|this|next|yesterday|today|recently|again|already|in (?=\d{4}))\b",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"^(?:the|an?|my|our|about|around|only|already)\s+", re.IGNORECASE)
_PLACING = re.compile(r"^(?P<word>in|at|on|from|until|near)\s+(?P<rest>.+)$", re.IGNORECASE)
_DAY = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|to(?:day|morrow)|noon|midnight|january|february|march|april|may|june|"
    r"july|august|september|october|november|december)\b",
    re.IGNORECASE,
)
# Whom they mean stands in another sentence.
_PRONOUN = re.compile(
    r"(?:he|she|it|they|we|you|this|that|these|those|there|who|every(?:one|body)|some(?:one|body)|nobody)$",
    re.IGNORECASE,
)
# Relations whose value is a name: "moved to marketing", "live in a small flat", "work for hours" are none.
_NAMED = frozenset({"residence", "employer", "origin", "name"})
# What has one value by its nature, whatever the value is.
_SINGLE = re.compile(
    r"\b(?:favou?rite|(?:nick)?name|birthday|pass(?:word|phrase)|e-?mail|address|number|phone|manager|boss|landlord|job|"
    r"role|title|deadline|budget|status|version|plan|colou?r|capital|headquarters)\b"
)
# "My new phone number" is the phone number.
_FILLERS = frozenset(["new", "current", "own", "main", "present", "latest", "actual", "updated", "old"])


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """What a statement says, and of what.

    Attributes:
        subject: Of whom or what, in lower case.
        attribute: What of it, in lower case.
        value: What it is, as it was written.
        ends: Whether the statement says that this is so no more.
    """

    subject: str
    attribute: str
    value: str
    ends: bool = False

    @property
    def key(self) -> str:
        """The value as it is compared."""
        return comparable(self.value)


def comparable(value: str) -> str:
    """A value without its article, case and spacing."""
    return " ".join(re.findall(r"[\w@.+-]*\w|[$€£%]", _ARTICLE.sub("", value.strip()).casefold()))


def parse_statement(statement: str, *, speaker: str) -> ParsedStatement | None:
    """What a statement says of whom, where it is of a kind that has one value at a time; else None.

    Args:
        statement: One sentence.
        speaker: Who says it: ``I`` and ``my`` are theirs.
    """
    text = " ".join(statement.replace("’", "'").split()).rstrip(".!")
    if not text or text.endswith("?"):
        return None
    ends = bool(_NO_MORE.search(text))
    if ends:
        text = _without_negation(text)
    if _NOT_SO.search(text):
        return None
    found = _by_verb(text, speaker.casefold()) or _by_copula(text, speaker.casefold())
    if found is None:
        return None
    subject, attribute, value = found
    return ParsedStatement(subject, attribute, value, ends)


def _without_negation(text: str) -> str:
    """What is said to be so no more, as though it were: "I no longer live in Rome" → "I live in Rome"."""
    plain = " ".join(_NO_MORE.sub(" ", text).split())
    # "I have left" names its place without a verb.
    return re.sub(r"^(I|\w+)\s+(?=(?:the\s+)?[A-Z])", r"\1 work at ", plain) if "left" in text else plain


def _by_verb(text: str, speaker: str) -> tuple[str, str, str] | None:
    found = _SUBJECT.match(text)
    if found is None:
        return None
    if found["self"]:
        subject = speaker
    elif found["owned"]:
        subject = f"{speaker}'s {found['thing'].casefold()}"
    elif found["name"][0].isupper() and not _PRONOUN.match(found["name"]):
        subject = found["name"].casefold()
    else:
        return None
    for attribute, pattern in _VERBS:
        said = pattern.match(found["rest"].strip())
        if said is not None and (value := _related(attribute, said["value"], lower=text == text.lower())):
            return subject, attribute, value
    return None


def _related(attribute: str, text: str, *, lower: bool) -> str | None:
    """The value of a relation; None where it is of another kind. ``lower``: of one who writes no capitals."""
    if attribute in {"age", "relationship"}:
        return text.split()[0].rstrip(",;:").casefold()
    value = _value(text)
    bare = _ARTICLE.sub("", value)
    if attribute not in _NAMED or not bare:
        return value or None
    if lower:
        return value if bare == value and len(value.split()) <= 2 else None
    return value if bare[0].isupper() else None


def _by_copula(text: str, speaker: str) -> tuple[str, str, str] | None:
    found = _COPULA.match(text)
    if found is None:
        return None
    whose = found["whose"].casefold()
    words = [word for word in found["what"].casefold().split() if word not in _FILLERS]
    value, kind = _kind(found["value"], single=bool(_SINGLE.search(" ".join(words))))
    if not words or not value or kind is None:
        return None
    subject = {"my": speaker, "our": f"{speaker} & co", "the": "the"}.get(whose, whose.removesuffix("'s"))
    return subject, " ".join([*words, kind]).strip(), value


def _kind(text: str, *, single: bool) -> tuple[str, str | None]:
    """The value, and the kind that tells "is in Rome" from "is on Friday"; None: of no kind that has one value."""
    placing = _PLACING.match(text)
    value = _value(placing["rest"] if placing else text)
    if single:
        return value, ""
    bare = _ARTICLE.sub("", value)
    definite = bool(bare) and (bare[0].isupper() or bool(re.search(r"\d", bare)) or bool(_DAY.search(bare)))
    if placing and definite:
        when = bool(_DAY.search(bare) or re.search(r"\d", bare))
        return value, f"({placing['word'].casefold()}{' when' if when else ''})"
    # Not "is Portuguese": a word with a capital alone may be a quality like any other.
    return value, "(number)" if re.match(r"^[$€£]?\d", bare) else None


def _value(text: str) -> str:
    end = _END.search(text)
    # A full stop or comma inside a number or an address ends nothing.
    while end is not None and end.group() in ",.:" and end.end() < len(text) and not text[end.end()].isspace():
        end = _END.search(text, end.end())
    return text[: end.start()].strip(" '\"") if end is not None else text.strip(" '\"")
