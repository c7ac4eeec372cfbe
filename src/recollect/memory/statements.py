"""Which sentences of a turn are worth keeping as facts: whole ones, in the turn's own words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.memory.statement_parser import ParsedStatement, parse_statement

if TYPE_CHECKING:
    from recollect.model.memory import Episode
    from recollect.retrieval.turns import TurnTerms

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
    from recollect.chunking.sentences import sentence_spans

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
