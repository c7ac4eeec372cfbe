"""Near misses: changes of a question, or of its passage, after which the passage no longer answers.

A change of the question is made in the passage too, where it can be: the changed pair has an answer again, and the two
mixed pairs have none. So neither a question alone nor a passage alone tells whether there is an answer.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from triples import Triple, sentences


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a question: where it is, its tag (Penn) and the entity's label it belongs to."""

    start: int
    end: int
    text: str
    tag: str
    entity: str


@dataclass(frozen=True, slots=True)
class Example:
    """What is trained on. Without an answer, start and end are -1."""

    family: str
    kind: str
    heading: str
    passage: str
    question: str
    start: int = -1
    end: int = -1


@dataclass(frozen=True, slots=True)
class Edit:
    """Replaces ``old`` by ``new`` at a place of the question."""

    kind: str
    start: int
    old: str
    new: str

    def apply(self, question: str) -> str:
        """The changed question."""
        return question[: self.start] + self.new + question[self.start + len(self.old) :]


_ANTONYMS = """
    first last|before after|early late|earliest latest|largest smallest|biggest smallest|large small|big small|high low
    highest lowest|higher lower|more less|most least|many few|increase decrease|increased decreased|increases decreases
    rise fall|rose fell|best worst|better worse|good bad|positive negative|north south|east west|northern southern
    eastern western|male female|men women|man woman|boy girl|boys girls|husband wife|mother father|brother sister|son daughter
    king queen|old new|older newer|oldest newest|young old|youngest oldest|start end|started ended|begin finish|began ended|starts ends|open close
    opened closed|opens closes|enable disable|enabled disabled|enables disables|add remove|added removed|adds removes|create delete|created deleted
    install uninstall|allow deny|allowed forbidden|allows prevents|allow prevent|allowed prohibited|accept reject|accepted rejected|import export|input output
    push pull|upload download|encrypt decrypt|lock unlock|show hide|include exclude|included excluded|includes excludes|internal external|public private
    minimum maximum|min max|full partial|upper lower|left right|top bottom|inside outside|above below|buy sell|bought sold|win lose|won lost
    winner loser|teacher student|parent child|cause prevent|causes prevents|love hate|loves hates|loved hated|like dislike|likes dislikes|easy hard|fast slow|faster slower
    strong weak|stronger weaker|hot cold|hotter colder|light dark|heavy light|long short|longer shorter|longest shortest|wide narrow|deep shallow|rich poor|safe dangerous
    advantage disadvantage|advantages disadvantages|pros cons|benefit drawback|benefits drawbacks|success failure|succeed fail|succeeded failed|true false|agree disagree
    agreed disagreed|ancient modern|previous next|former current|past future|local remote|primary secondary|major minor|majority minority|only also|required optional
    mandatory optional|always never|support oppose|supported opposed|join leave|joined left|arrive leave|arrived left|enter exit|connect disconnect|send receive
    sent received|ask answer|day night|summer winter|morning evening|recommended discouraged|recommend discourage|gain lose|gained lost|save spend|find lose|found lost
    friend enemy|attack defend|attacked defended|live die|lived died|born died|birth death|legal illegal|common rare|similar different|same different|employee employer|employees employers
    seller buyer|lender borrower|source target|client server|verbose quiet|ascending descending|forward backward|encode decode|compress decompress|mount unmount|grant revoke|granted revoked|subscribe unsubscribe
"""
ANTONYMS: dict[str, list[str]] = defaultdict(list)
for _pair in re.split(r"[|\n]", _ANTONYMS):
    if _pair.strip():
        _one, _two = _pair.split()
        ANTONYMS[_one].append(_two)
        ANTONYMS[_two].append(_one)

_RELATIONS = {
    "before",
    "after",
    "inside",
    "outside",
    "above",
    "below",
    "always",
    "never",
    "north",
    "south",
    "east",
    "west",
}
_MODIFIERS = {"first", "last", "like", "long", "light", "right", "left", "fast", "mean", "only", "also", "same"}
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_COUNTS = [
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "twelve",
    "twenty",
    "thirty",
    "fifty",
    "hundred",
]
_ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "last"]
_SERIES = [_MONTHS, _DAYS, _COUNTS, _ORDINALS]
_NAMES = {"PERSON", "ORG", "GPE", "LOC", "NORP", "FAC", "PRODUCT", "EVENT", "WORK_OF_ART", "LANGUAGE", "LAW"}
AUXILIARY = re.compile(
    r"\b(is|are|was|were|can|could|will|would|should|must|do|does|did|has|have|had|may)\b(?!n't| not\b| never\b)",
    re.IGNORECASE,
)
_KINDS = {"N": "noun", "V": "verb", "J": "adjective"}
QUESTION_WORDS = {"who", "what", "which", "when", "where", "why", "how", "whom", "whose"}
_COMMON = {"thing", "things", "name", "kind", "type", "many", "much", "other", "such", "own", "do", "did", "does", "is", "are", "was", "were", "be", "been", "being", "have", "has", "had", "get", "poster", "author", "writer", "reviewer", "user", "users", "person", "people", "way"}  # fmt: skip


@dataclass(slots=True)
class Substitutes:
    """Words that stand where another one does, by their vectors; and names of the same kind."""

    neighbours: Mapping[tuple[str, str], Sequence[str]]
    names: Mapping[str, Sequence[str]]
    by_document: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)

    @classmethod
    def learn(
        cls, words: Counter[tuple[str, str]], vectors: Mapping[str, np.ndarray], names: Iterable[tuple[str, str, str]]
    ) -> Substitutes:
        """From the words of a corpus with their tags, the vectors of words, and names with their kinds and documents."""
        neighbours: dict[tuple[str, str], list[str]] = {}
        for tag in sorted({tag for _, tag in words}):
            known = [
                w
                for (w, t), count in sorted(words.items())
                if t == tag and count >= 4 and w in vectors and w not in _COMMON
            ]
            if len(known) < 30:
                continue
            table = np.stack([vectors[word] for word in known])
            table /= np.linalg.norm(table, axis=1, keepdims=True)
            for at, word in enumerate(known):
                near = np.argsort(-(table @ table[at]))[1:45]
                neighbours[word, tag] = [known[n] for n in near if known[n][:4] != word[:4]][2:]
        kinds: dict[str, set[str]] = defaultdict(set)
        documents: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for name, kind, document in names:
            if kind in _NAMES and 2 < len(name) < 40:
                kinds[kind].add(name)
                documents[document][kind].add(name)
        return cls(
            neighbours,
            {kind: sorted(found) for kind, found in kinds.items()},
            {document: {kind: sorted(found) for kind, found in one.items()} for document, one in documents.items()},
        )


def edits_of(triple: Triple, tokens: Sequence[Token], table: Substitutes, dice: random.Random) -> list[Edit]:
    """Every kind of change of the question that makes sense, one of each."""
    found: dict[str, list[Edit]] = defaultdict(list)
    changed = (_word_changed(triple, token, table, dice) for token in tokens)
    for edit in (*_names_changed(triple, tokens, table, dice), *changed):
        if edit is not None:
            found[edit.kind].append(edit)
    return [dice.choice(choices) for choices in found.values()]


def _names_changed(
    triple: Triple, tokens: Sequence[Token], table: Substitutes, dice: random.Random
) -> Iterator[Edit | None]:
    asked, lower = triple.question, f"{triple.heading}\n{triple.passage}".lower()
    names = [(start, end, label) for start, end, label in _entities(tokens) if label in _NAMES]
    for start, end, label in names:
        old = asked[start:end]
        new = _other_name(old, label, triple, table, dice) if old.split()[-1].lower() in lower else None
        yield Edit("entity", start, old, new) if new else None
    if len(names) >= 2:
        (start, middle, _), (behind, end, _) = names[0], names[-1]
        swapped = asked[behind:end] + asked[middle:behind] + asked[start:middle]
        yield Edit("exchange", start, asked[start:end], swapped) if swapped != asked[start:end] else None


def _word_changed(triple: Triple, token: Token, table: Substitutes, dice: random.Random) -> Edit | None:
    old, word = token.text, token.text.lower()
    lower = f"{triple.heading}\n{triple.passage}".lower()
    number = _other_number(old, dice)
    if word in QUESTION_WORDS:
        return None
    if number:
        known = word in _ORDINALS or re.search(rf"\b{re.escape(word)}\b", lower)
        return Edit("number", token.start, old, number) if known else None
    if word in ANTONYMS and (token.tag[0] in ("JR" if word in _MODIFIERS else "NVJR") or word in _RELATIONS):
        if triple.question[: token.start].rstrip().lower().endswith("how"):
            return None
        return Edit("antonym", token.start, old, as_written(old, dice.choice(ANTONYMS[word])))
    near = () if token.entity or word in _COMMON else table.neighbours.get((word, token.tag), ())
    # What the passage says in other words, a wrong word would say as well.
    if not near or not (re.search(rf"\b{re.escape(word[:5])}", lower) or dice.random() < 0.35):
        return None
    new, kind = dice.choice(near), _KINDS.get(token.tag[0])
    if kind is None or f" {new[:5]}" in _near(triple).lower():
        return None
    return Edit(kind, token.start, old, as_written(old, new))


def _entities(tokens: Sequence[Token]) -> list[tuple[int, int, str]]:
    found: list[tuple[int, int, str]] = []
    for token in tokens:
        if token.entity and found and found[-1][2] == token.entity and token.start - found[-1][1] <= 1:
            found[-1] = (found[-1][0], token.end, token.entity)
        elif token.entity:
            found.append((token.start, token.end, token.entity))
    return found


def _near(triple: Triple) -> str:
    return triple.passage[max(0, triple.cut[0] - 1) : triple.cut[1]]


def _other_name(old: str, label: str, triple: Triple, table: Substitutes, dice: random.Random) -> str | None:
    near, answer = _near(triple).lower(), triple.passage[triple.start : triple.end].lower()
    own = table.by_document.get(triple.document, {}).get(label, ())
    here = [name for name in own if name.lower() in triple.passage.lower()]
    pools = [here, own, table.names.get(label, ())]
    for pool in pools if dice.random() < 0.7 else pools[1:]:
        fit = [n for n in (dice.sample(list(pool), min(30, len(pool)))) if n.lower() not in near and n.lower() not in answer
               and not set(n.lower().split()) & set(old.lower().split())]  # fmt: skip
        if fit:
            return dice.choice(fit)
    return None


def _other_number(old: str, dice: random.Random) -> str | None:
    for series in _SERIES:
        known = {word.lower(): word for word in series}
        if old.lower() in known:
            new = dice.choice([word for word in series if word.lower() != old.lower()])
            return as_written(old, new) if series not in (_MONTHS, _DAYS) else new
    if old.lower() == "may" or not re.fullmatch(r"\d[\d.,]*\w{0,2}", old):
        return None
    digits = re.match(r"\d+", old)
    value = int(digits[0])  # type: ignore[index]
    span = 12 if 1000 <= value <= 2100 else max(3, value)
    new = value
    while new == value or new < 0:
        new = value + dice.randint(-span, span)
    return str(new) + old[len(digits[0]) :]  # type: ignore[index]


def as_written(old: str, new: str) -> str:
    """The new word in the capitals of the old one."""
    return new.upper() if old.isupper() and len(old) > 1 else new.capitalize() if old[:1].isupper() else new


def contrast(triple: Triple, edit: Edit) -> list[Example]:
    """The changed question with the passage (no answer); where the passage can be changed alike, the other two pairs."""
    asked = edit.apply(triple.question)
    found = [_example(triple, f"q-{edit.kind}", question=asked)]
    if edit.kind == "exchange":
        return found
    word = re.compile(rf"(?<!\w){re.escape(edit.old)}(?!\w)", re.IGNORECASE)
    text = f"{triple.heading}\n{triple.passage}"
    taken = re.compile(rf"(?<!\w){re.escape(edit.new)}(?!\w)", re.IGNORECASE)
    if not word.search(text) or taken.search(text) or word.search(triple.passage, triple.start, triple.end):
        return found
    # A part of the old name that stays would leave the question half answered.
    parts = [part for part in edit.old.split() if len(part) > 3]
    passage, moved = _replaced(word, triple.passage, edit.new, triple.start)
    heading = word.sub(lambda match: as_written(match[0], edit.new), triple.heading)
    if edit.kind == "entity" and any(
        re.search(rf"\b{re.escape(part)}", f"{heading}\n{passage}", re.IGNORECASE) for part in parts
    ):
        return found
    start, end = triple.start + moved, triple.end + moved
    found.append(_example(triple, "p-changed", heading=heading, passage=passage))
    found.append(
        replace(
            _example(triple, "both-changed", heading=heading, passage=passage, question=asked), start=start, end=end
        )
    )
    return found


def _replaced(word: re.Pattern[str], text: str, new: str, before: int) -> tuple[str, int]:
    """The text with each occurrence replaced, and how far what stands at ``before`` has moved."""
    moved = sum(len(new) - len(match[0]) for match in word.finditer(text, 0, before))
    return word.sub(lambda match: as_written(match[0], new), text), moved


def negated(triple: Triple, dice: random.Random) -> list[Example]:
    """Question negated, passage negated, both: only the last has an answer."""
    asked = AUXILIARY.search(triple.question)
    said = next(AUXILIARY.finditer(triple.passage, triple.cut[0], triple.start), None)
    if asked is None or said is None or asked[0].lower() in {"do", "have", "has", "had"}:
        return []
    rest = triple.question[asked.end() :]
    subject = re.match(r"\s+(?:the |a |an |this |that |you |I |it |he |she |they |we )?\w*", rest)
    at = asked.end() + (subject.end() if subject and asked.start() < 12 else 0)
    word = dice.choice((" not", " never", " not"))
    question = triple.question[:at] + word + triple.question[at:]
    passage = triple.passage[: said.end()] + word + triple.passage[said.end() :]
    move = len(word)
    return [
        _example(triple, "q-negated", question=question),
        _example(triple, "p-negated", passage=passage),
        replace(_example(triple, "both-negated", question=question, passage=passage), start=triple.start + move, end=triple.end + move),
    ]  # fmt: skip


def without_fact(triple: Triple) -> Example | None:
    """The passage without the stretch that answers."""
    start, end = triple.cut
    passage = _tidy(triple.passage[:start] + triple.passage[end:])
    return _checked(triple, "p-deleted", passage)


def without_detail(triple: Triple) -> Example | None:
    """The sentence that answers, without the phrase: "It opened (in 1987) in Lyon."."""
    before = re.search(
        r"(?:,? (?:in|on|at|by|from|for|since|until|after|before|with|of|to|about|during|around|over|under|near) (?:the |a |an |about |around )?)$",
        triple.passage[: triple.start],
    )
    answer = triple.passage[triple.start : triple.end]
    if before is None or len(answer) > 60:
        return None
    return _checked(triple, "p-detail", triple.passage[: before.start()] + triple.passage[triple.end :])


def replaced_fact(triple: Triple, others: Sequence[str], dice: random.Random) -> Example | None:
    """The passage with another sentence of its document, which shares words, in place of the one that answers."""
    start, end = triple.cut
    words = words_of(triple.question)
    best = sorted(others, key=lambda other: -len(words & words_of(other)) - dice.random())[:3]
    for other in best:
        passage = triple.passage[:start] + other.strip() + " " + triple.passage[end:]
        example = _checked(triple, "p-replaced", passage)
        if example is not None:
            return example
    return None


def elsewhere(triple: Triple, other: Triple, kind: str) -> Example | None:
    """The question with another passage."""
    answer = triple.passage[triple.start : triple.end].strip().lower()
    if (
        other.question.lower() == triple.question.lower()
        or answer in other.passage.lower()
        or triple.passage[:200] in other.passage
    ):
        return None
    return Example(triple.family, kind, other.heading, other.passage, triple.question)


def shortened(triple: Triple, dice: random.Random) -> Triple:
    """The triple without a sentence that does not answer: passages that miss something have answers too."""
    spans = [(s, e) for s, e in sentences(triple.passage) if e <= triple.cut[0] or s >= triple.cut[1]]
    if not spans:
        return triple
    start, end = dice.choice(spans)
    passage = triple.passage[:start] + triple.passage[end:]
    moved = 0 if start >= triple.end else end - start
    cut = (triple.cut[0] - moved, triple.cut[1] - moved)
    return replace(triple, passage=passage, start=triple.start - moved, end=triple.end - moved, cut=cut)


_FUNCTION = {"what", "which", "is", "are", "was", "were", "the", "a", "an", "do", "does", "did", "of", "to", "i", "it", "that", "there", "in", "for", "how", "can", "you", "s", "have", "has", "be", "this"}  # fmt: skip


def worded(question: str, dice: random.Random) -> str:
    """The question as people type: lower case, without a question mark, as keywords. The same for every label."""
    draw = dice.random()
    if draw < 0.08 and len(question.split()) > 5:
        kept = [word for word in re.split(r"\s+", question.rstrip("?. ")) if word.lower().strip("'") not in _FUNCTION]
        question = " ".join(kept) if len(kept) >= 2 else question
    elif draw < 0.12:
        match = re.match(
            r"^(what|who|when|where|which [a-z]+) ((?:is|are|was|were|did|does|do) .+?)\??$", question, re.IGNORECASE
        )
        if match:
            question = (
                f"{dice.choice(('Tell me', 'Do you know', 'I wonder', 'Please say'))} {match[1].lower()} {match[2]}"
            )
    if dice.random() < 0.15:
        question = question.rstrip("?. ")
    if dice.random() < 0.12:
        question = question.lower()
    return question


@cache
def words_of(text: str) -> frozenset[str]:
    """The words of a text that say what it is about, in lower case."""
    return frozenset(word for word in re.findall(r"\w{3,}", text.lower()) if word not in _FUNCTION)


def _tidy(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _checked(triple: Triple, kind: str, passage: str) -> Example | None:
    answer = triple.passage[triple.start : triple.end].strip().lower()
    passage = _tidy(passage)
    if len(passage) < 40 or answer in passage.lower():
        return None
    return _example(triple, kind, passage=passage)


def _example(triple: Triple, kind: str, **changed: str) -> Example:
    values = {"heading": triple.heading, "passage": triple.passage, "question": triple.question, **changed}
    return Example(triple.family, kind, **values)


def positive(triple: Triple) -> Example:
    """The triple as it is."""
    return Example(triple.family, "answer", triple.heading, triple.passage, triple.question, triple.start, triple.end)
