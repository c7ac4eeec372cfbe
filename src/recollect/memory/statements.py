"""What statements say: of whom, which of them are worth keeping as facts, and which facts say the same of the same."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from recollect.chunking.sentences import sentence_spans
from recollect.store.facts import KnownFact, Placement, PreparedFact

if TYPE_CHECKING:
    from recollect.model.memory import Episode
    from recollect.retrieval.indexing import TurnTerms


# What a plain English statement says of whom: just enough to know a contradiction. Pure: no I/O, no clock, no chance.
#
# Only what can have one value at a time is read: where somebody lives, what a number is, when something is. Whoever
# likes
# apples may like pears as well, so liking is not read at all; what is not understood contradicts nothing.


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


#: Of one turn, so many statements are kept at most.
MAX_STATEMENTS = 3

_MIN_WORDS = 3
_MIN_TERMS = 2
_MAX_CHARACTERS = 300

_QUESTION_END = re.compile(r"[?？؟⁇]['\"”’)\]]*$")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """Words of a turn, by their place in it."""

    episode: Episode
    start_offset: int
    end_offset: int

    @property
    def text(self) -> str:
        """The words."""
        return self.episode.content[self.start_offset : self.end_offset]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A fact that is not stored yet.

    Attributes:
        statement: What is so, in words.
        quotes: What it is drawn from, at least one; of several turns the latest comes last.
        parsed: What it says, and of what; None: that was not made out.
        supersedes: Stored facts that it takes the place of.
        continues: Facts of the same chain, by their likeness; None: none is that like it.
        made_by: ``extractive``, or a language model's name.
    """

    statement: str
    quotes: tuple[Quote, ...]
    parsed: ParsedStatement | None
    made_by: str
    supersedes: tuple[int, ...] = ()
    continues: int | None = None

    @property
    def episode(self) -> Episode:
        """The latest turn that it is drawn from."""
        return self.quotes[-1].episode

    @property
    def key(self) -> str:
        """The statement as it is compared: said twice, it is the same fact."""
        return normal(self.statement)


def normal(statement: str) -> str:
    """A statement's words, without case, punctuation and spacing."""
    return " ".join(_WORD.findall(statement.casefold()))


def statements_of(episode: Episode, *, lexicon: TurnTerms, language: str, made_by: str) -> list[Draft]:
    """The sentences of a turn that state something, in their order, each once.

    Questions, fragments, greetings and very long sentences state nothing. Where there are more than `MAX_STATEMENTS`,
    those come first that say what can be superseded, then those that say most.

    Args:
        episode: The turn.
        lexicon: Counts words; stop words are none.
        language: ISO 639-1, of the sentences.
        made_by: What the drafts say that made them.
    """
    spans = [span for span in sentence_spans(episode.content, language) if _states(episode.content[slice(*span)])]
    counts = lexicon.count([episode.content[slice(*span)] for span in spans])
    ranked: list[tuple[tuple[bool, int], Draft]] = []
    seen: set[str] = set()
    for (start, end), counted in zip(spans, counts, strict=True):
        sentence = episode.content[start:end]
        if len(counted.lexemes) < _MIN_TERMS or normal(sentence) in seen:
            continue
        seen.add(normal(sentence))
        parsed = parse_statement(sentence, speaker=episode.role) if language == "en" else None
        quote = Quote(episode=episode, start_offset=start, end_offset=end)
        ranked.append(
            (
                (parsed is None, -len(counted.lexemes)),
                Draft(statement=" ".join(sentence.split()), quotes=(quote,), parsed=parsed, made_by=made_by),
            )
        )
    return _in_order([draft for _, draft in sorted(ranked, key=lambda item: item[0])[:MAX_STATEMENTS]])


def _in_order(drafts: Sequence[Draft]) -> list[Draft]:
    return sorted(drafts, key=lambda draft: draft.quotes[0].start_offset)


def _states(sentence: str) -> bool:
    words = _WORD.findall(sentence)
    # A sentence of a script without spaces is one word.
    enough = len(words) >= _MIN_WORDS or (not sentence.isascii() and len(sentence) >= 2 * _MIN_WORDS)
    return enough and len(sentence) <= _MAX_CHARACTERS and not _QUESTION_END.search(sentence)


# Which facts say the same of the same, so that the later takes the earlier one's place. Pure: no I/O, no clock.


#: The subject of what a conversation speaks of as though there were one of it: "the meeting" of another is another's.
DEFINITE = "the"


@dataclass(slots=True)
class _Chains:
    """Facts by chain, as they stand while new ones are placed one after the other."""

    members: dict[int, list[KnownFact]] = field(default_factory=dict)

    def add(self, fact: KnownFact) -> None:
        self.members.setdefault(fact.chain_id, []).append(fact)
        self.members[fact.chain_id].sort(key=_said)

    def latest(self, chain_id: int) -> KnownFact:
        return self.members[chain_id][-1]

    def chain_of(self, fact_id: int) -> int | None:
        return next((one.chain_id for one in self._all() if one.fact_id == fact_id), None)

    def repeated(self, same_as: str, session_id: int, *, local: bool) -> KnownFact | None:
        """The current fact that says this in these words."""
        return next(
            (
                self.latest(chain)
                for chain in sorted(self.members)
                if self.latest(chain).same_as == same_as and (not local or self.latest(chain).session_id == session_id)
            ),
            None,
        )

    def about(self, fact: PreparedFact) -> int | None:
        """The chain of what a fact is about; the least number, should there be several."""
        if fact.subject is None or fact.attribute is None:
            return None
        wanted = (fact.subject, fact.attribute)
        return min(
            (
                one.chain_id
                for one in self._all()
                if (one.subject, one.attribute) == wanted
                and (fact.subject != DEFINITE or one.session_id == fact.source.session_id)
            ),
            default=None,
        )

    def _all(self) -> list[KnownFact]:
        return [fact for chain in self.members.values() for fact in chain]


def placed(
    drafts: Mapping[int, Draft],
    facts: Sequence[PreparedFact],
    fact_ids: Sequence[int],
    known: Sequence[KnownFact],
) -> list[Placement]:
    """What becomes of new facts.

    One that says what the current fact of a chain says, in the same words, is evidence for that. One that names the
    facts it supersedes, or says something of what a chain is about, joins that chain; where it stands there is
    decided by when it was said, not by when it was drawn. Any other begins a chain.

    Args:
        drafts: What the facts were made from, by the object's ``id``.
        facts: In the order in which they were said.
        fact_ids: Their numbers.
        known: The stored facts of the same owner that they may have to do with.
    """
    chains = _Chains()
    for one in known:
        chains.add(one)
    placements = []
    for fact, fact_id in zip(facts, fact_ids, strict=True):
        placement = _placement(chains, drafts[id(fact)], fact, fact_id)
        if placement.repeats is None:
            chains.add(_as_known(fact, fact_id, placement.chain_id))
        placements.append(placement)
    return placements


def _placement(chains: _Chains, draft: Draft, fact: PreparedFact, fact_id: int) -> Placement:
    same = chains.repeated(fact.same_as, fact.source.session_id, local=fact.subject == DEFINITE)
    if same is not None:
        return Placement(chain_id=same.chain_id, repeats=same.fact_id)
    named = [chain for old in draft.supersedes if (chain := chains.chain_of(old)) is not None]
    if named:
        return Placement(chain_id=named[0], supersedes=True)
    chain = chains.about(fact)
    if chain is None and draft.continues is not None:
        chain = chains.chain_of(draft.continues)
    if chain is None:
        return Placement(chain_id=fact_id)
    current = chains.latest(chain)
    parsed = draft.parsed
    if parsed is not None and parsed.ends:
        # "No longer in Lisbon" says nothing against Porto.
        ended = current.value is not None and comparable(current.value) == parsed.key
        return Placement(chain_id=chain if ended else fact_id, supersedes=ended)
    value, other = fact.value or "", current.value or ""
    return Placement(chain_id=chain, supersedes=comparable(value) != comparable(other))


def _as_known(fact: PreparedFact, fact_id: int, chain_id: int) -> KnownFact:
    episode = fact.source.episode
    return KnownFact(
        fact_id=fact_id,
        chain_id=chain_id,
        session_id=fact.source.session_id,
        episode_id=episode.episode_id,
        subject=fact.subject,
        attribute=fact.attribute,
        value=fact.value,
        same_as=fact.same_as,
        said_at=episode.at or episode.known_from,
    )


def _said(fact: KnownFact) -> tuple[datetime, int, int]:
    return fact.said_at, fact.episode_id, fact.fact_id
