"""Facts that a language model writes: every one is held against the words that it claims to rest on."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from recollect.errors import ProviderError
from recollect.llm.base import ChatMessage, ChatModel, complete
from recollect.memory.statements import Draft, ParsedStatement, Quote

if TYPE_CHECKING:
    from recollect.model.facts import Fact
    from recollect.model.memory import Episode
    from recollect.retrieval.indexing import TurnTerms

MAX_STATEMENT_CHARACTERS = 500
MAX_REPLY_CHARACTERS = 30_000

#: Of a statement's words, the share that stands in its turns (or is a name of who said them), at least.
MIN_GROUNDED = 0.5

_FENCE = re.compile(r"^\s*```(?:json)?\s*|\s*```\s*$", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")


class _Evidence(BaseModel):
    model_config = ConfigDict(extra="ignore")
    turn: int
    quote: str = Field(min_length=1)


class _Fact(BaseModel):
    model_config = ConfigDict(extra="ignore")
    statement: str = Field(min_length=1, max_length=MAX_STATEMENT_CHARACTERS)
    subject: str | None = Field(None, max_length=100)
    attribute: str | None = Field(None, max_length=100)
    value: str | None = Field(None, max_length=200)
    evidence: list[_Evidence] = Field(min_length=1, max_length=10)
    supersedes: list[int] = Field(default_factory=list, max_length=20)


class FactWriter:
    """Has a language model draw facts from turns.

    What it replies is checked: each quote must stand in its turn, each number in the turns or their dates, half of the
    words in the turns, and only facts that it was shown can be superseded. What does not stand the check is left out.

    Args:
        model: Writes the facts.
        lexicon: Counts words.
        timeout_seconds: For one reply.
    """

    def __init__(self, model: ChatModel, lexicon: TurnTerms, *, timeout_seconds: float) -> None:
        self._model = model
        self._lexicon = lexicon
        self._timeout_seconds = timeout_seconds

    @property
    def name(self) -> str:
        """The model's."""
        return self._model.model_name

    def write(self, turns: Sequence[Episode], before: Mapping[int, Episode], known: Sequence[Fact]) -> list[Draft]:
        """The facts that turns hold.

        Args:
            turns: Of one owner, in the order in which they were said.
            before: The turn before each, by episode id, where there is one.
            known: Facts that the new ones may supersede.

        Raises:
            ProviderError: The model failed, was too slow, or replied with nothing that can be used.
        """
        asked = json.dumps(_question(turns, before, known), ensure_ascii=False, indent=1)
        messages = (ChatMessage("system", _rules()), ChatMessage("user", asked))
        reply = complete(
            self._model, messages, timeout_seconds=self._timeout_seconds, max_characters=MAX_REPLY_CHARACTERS
        )
        items = self._items(reply)
        drafts = [draft for item in items if (draft := self._draft(item, turns, before, known)) is not None]
        if items and not drafts:
            raise self._unusable("none of its facts rests on words of the turns")
        return sorted(drafts, key=lambda draft: _said(draft.episode))

    def _items(self, reply: str) -> list[object]:
        try:
            parsed = json.loads(_FENCE.sub("", reply))
        except (ValueError, RecursionError) as exc:
            raise self._unusable("its reply is no JSON") from exc
        items = parsed.get("facts") if isinstance(parsed, dict) else None
        if not isinstance(items, list):
            raise self._unusable('its reply has no list of "facts"')
        return items

    def _draft(
        self, item: object, turns: Sequence[Episode], before: Mapping[int, Episode], known: Sequence[Fact]
    ) -> Draft | None:
        try:
            fact = _Fact.model_validate(item)
        except ValidationError:
            return None
        statement = _plain(fact.statement)
        quotes: dict[tuple[int, int], Quote] = {}
        for one in fact.evidence:
            quote = _quote(one, turns)
            if quote is None:
                return None
            quotes[quote.episode.episode_id, quote.start_offset] = quote
        found = sorted(quotes.values(), key=lambda quote: (_said(quote.episode), quote.start_offset))
        if not statement or not self._grounded(statement, found, before):
            return None
        offered = {one.fact_id for one in known}
        return Draft(
            statement=statement,
            quotes=tuple(found),
            parsed=_parsed(fact),
            made_by=self.name,
            supersedes=tuple(dict.fromkeys(number for number in fact.supersedes if number in offered)),
        )

    def _grounded(self, statement: str, quotes: Sequence[Quote], before: Mapping[int, Episode]) -> bool:
        """Whether a statement's numbers and words are those of its turns, as far as that can be told."""
        texts = []
        for episode in {quote.episode.episode_id: quote.episode for quote in quotes}.values():
            earlier = before.get(episode.episode_id)
            texts += [episode.role, episode.content]
            texts += [] if episode.at is None else [f"{episode.at:%Y %m %d} {episode.at.day} {episode.at.month}"]
            texts += [] if earlier is None else [earlier.role, earlier.content]
        together = " ".join(texts)
        dated = any(quote.episode.at is not None for quote in quotes)
        # Where the day is known, "yesterday" becomes a date that no turn names.
        if not dated and not set(_NUMBER.findall(statement)) <= set(_NUMBER.findall(together)):
            return False
        said, shown = self._lexicon.count([statement, together])
        if not len(said.lexemes):
            return False
        return len(set(said.lexemes.tolist()) & set(shown.lexemes.tolist())) >= MIN_GROUNDED * len(said.lexemes)

    def _unusable(self, why: str) -> ProviderError:
        return ProviderError(
            f"The language model {self.name!r} drew no facts: {why}.", provider="chat", model=self.name
        )


def _question(
    turns: Sequence[Episode], before: Mapping[int, Episode], known: Sequence[Fact]
) -> dict[str, list[dict[str, object]]]:
    asked: list[dict[str, object]] = []
    for number, turn in enumerate(turns, start=1):
        one: dict[str, object] = {"turn": number, "speaker": turn.role, "text": turn.content}
        if turn.at is not None:
            one["said"] = turn.at.isoformat(timespec="minutes")
        if (earlier := before.get(turn.episode_id)) is not None:
            one["before"] = f"{earlier.role}: {earlier.content}"
        asked.append(one)
    facts: list[dict[str, object]] = [{"fact": fact.fact_id, "statement": fact.statement} for fact in known]
    return {"turns": asked, "known": facts}


def _quote(evidence: _Evidence, turns: Sequence[Episode]) -> Quote | None:
    """Where the words stand; only their spacing may differ."""
    if not 1 <= evidence.turn <= len(turns):
        return None
    episode = turns[evidence.turn - 1]
    words = evidence.quote.split()
    if not words:
        return None
    found = re.search(r"\s+".join(re.escape(word) for word in words), episode.content)
    if found is None:
        return None
    return Quote(episode=episode, start_offset=found.start(), end_offset=found.end())


def _parsed(fact: _Fact) -> ParsedStatement | None:
    subject, attribute = _plain(fact.subject).casefold(), _plain(fact.attribute).casefold()
    if not subject or not attribute:
        return None
    return ParsedStatement(subject, attribute, _plain(fact.value))


def _plain(text: str | None) -> str:
    return " ".join((text or "").replace("\0", "").split())


def _said(episode: Episode) -> tuple[float, int]:
    return (episode.at or episode.known_from).timestamp(), episode.episode_id


@cache
def _rules() -> str:
    return files("recollect.memory").joinpath("prompts", "facts.md").read_text(encoding="utf-8").strip()
