"""Facts drawn from conversations: written by a model or by rules, compared and stored."""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from recollect.errors import ProviderError, UsageError
from recollect.llm.base import ChatMessage, ChatModel, complete
from recollect.memory.indexing import SessionEmbedders, dated, named
from recollect.memory.statements import DEFINITE, Draft, ParsedStatement, Quote, placed, statements_of
from recollect.memory.validation import checked_name
from recollect.model.facts import EXTRACTIVE, ConsolidationReport, Fact
from recollect.model.memory import Episode, Turn
from recollect.store.facts import FactRepository, FactSource, Owner, PreparedFact, Span, Stored

if TYPE_CHECKING:
    from recollect.embedding.base import Vectors
    from recollect.memory.patterns import QueryPatternTracker
    from recollect.model import Scope
    from recollect.retrieval.indexing import TurnTerms
    from recollect.store.recall import RecallRepository


#: How often a turn is found before it is looked at.
MIN_RETRIEVALS = 3

#: Turns that are read, and whose facts are stored, together.
BATCH_TURNS = 10

#: Facts that a language model is shown beside the turns, so that it can say what they supersede.
SHOWN_FACTS = 30

#: From this similarity on two attributes of one subject are taken for the same ("phone number", "telephone number").
#: Above it MiniLM has no two different ones of thirty pairs tried, "sister" and "younger sister" (0.76) among them.
SAME_ATTRIBUTE = 0.9

_LOG = logging.getLogger(__name__)


@dataclass(eq=False)
class Consolidator:
    """Draws facts from the turns that searches find often. Safe to share between threads, and between processes.

    Args:
        tracker: Knows how often turns were found.
        facts: Stores facts.
        recalls: Reads the turn before another.
        embedders: Embed facts, each by the model of its session.
        lexicon: Counts and weighs words.
        language: ISO 639-1, of the conversations.
        writer: A language model that writes facts; None, or where it fails: sentences are taken as they are.
    """

    tracker: QueryPatternTracker
    facts: FactRepository
    recalls: RecallRepository
    _: KW_ONLY
    embedders: SessionEmbedders
    lexicon: TurnTerms
    language: str = "en"
    writer: FactWriter | None = None

    def consolidate(
        self, scope: Scope, *, min_retrievals: int = MIN_RETRIEVALS, user: str | None = None, limit: int = 100
    ) -> ConsolidationReport:
        """Look at the turns that were found often and not looked at yet; each is looked at once.

        Turns are stored in batches, each whole or not at all: an interrupted run is completed by the next one.

        Args:
            scope: Whose.
            min_retrievals: How often a turn was found, at least.
            user: Only of this user's conversations; None: of all.
            limit: How many turns at most, the most often found first.

        Raises:
            UsageError: A number is less than 1, or a name is not valid.
            ProviderError: The embedding model failed.
        """
        if min_retrievals < 1 or limit < 1:
            raise UsageError(f"min_retrievals ({min_retrievals!r}) and limit ({limit!r}) must be at least 1.")
        whose = None if user is None else checked_name("The user id", user)
        self.tracker.flush()
        found = self.facts.candidates(scope, min_retrievals=min_retrievals, user=whose, limit=limit)
        by_owner: dict[Owner, list[FactSource]] = {}
        for one in found:
            by_owner.setdefault(one.owner, []).append(one)
        report = ConsolidationReport()
        for owner, sources in by_owner.items():
            # In the order in which things were said, so that facts of one batch follow one another as they did.
            ordered = sorted(sources, key=lambda one: _said(one.episode))
            for start in range(0, len(ordered), BATCH_TURNS):
                report = _added(report, *self._batch(scope, owner, ordered[start : start + BATCH_TURNS]))
        return report

    def _batch(
        self, scope: Scope, owner: Owner, sources: Sequence[FactSource]
    ) -> tuple[Stored, Sequence[PreparedFact], str | None]:
        episodes = [one.episode for one in sources]
        drafts, failure = self._drafts(scope, owner, sources)
        prepared = self._prepared(self._likened(scope, owner, drafts), {one.episode.episode_id: one for one in sources})
        made_by = EXTRACTIVE if self.writer is None or failure is not None else self.writer.name
        related = {number for draft in drafts for number in draft.supersedes}
        related.update(draft.continues for draft, _ in prepared if draft.continues is not None)
        facts = [fact for _, fact in prepared]
        stored = self.facts.store(
            scope,
            owner,
            episodes,
            facts,
            related=sorted(related),
            made_by=made_by,
            plan=partial(placed, {id(fact): draft for draft, fact in prepared}),
        )
        return stored, facts, failure

    def _drafts(self, scope: Scope, owner: Owner, sources: Sequence[FactSource]) -> tuple[list[Draft], str | None]:
        """Facts of some turns, and why the language model has written none of them, where that is so."""
        episodes = [one.episode for one in sources]
        failure = None
        if self.writer is not None:
            try:
                return self._written(scope, owner, sources, self.writer), None
            except Exception as exc:  # noqa: BLE001 - whatever a provider raises, the turns can be read without it
                failure = str(exc) or type(exc).__name__
                _LOG.warning("Facts are extracted, because the language model failed: %s", failure)
        return [
            draft
            for episode in episodes
            for draft in statements_of(episode, lexicon=self.lexicon, language=self.language, made_by=EXTRACTIVE)
        ], failure

    def _written(self, scope: Scope, owner: Owner, sources: Sequence[FactSource], writer: FactWriter) -> list[Draft]:
        episodes = [one.episode for one in sources]
        around = self.recalls.surroundings(scope, [episode.episode_id for episode in episodes], before=1, after=0)
        before = {number: one.before[-1] for number, one in around.items() if one.before}
        return writer.write(episodes, before, self._known(scope, owner, sources))

    def _known(self, scope: Scope, owner: Owner, sources: Sequence[FactSource]) -> list[Fact]:
        """The owner's latest facts."""
        if owner.user is not None:
            return self.facts.page(scope, user=owner.user, limit=SHOWN_FACTS)
        return self.facts.page(scope, session=sources[0].episode.session, limit=SHOWN_FACTS)

    def _likened(self, scope: Scope, owner: Owner, drafts: Sequence[Draft]) -> list[Draft]:
        """Drafts that know which stored facts speak of the same attribute in other words."""
        open_ones = [draft for draft in drafts if draft.parsed is not None and draft.parsed.subject != DEFINITE]
        subjects = sorted({draft.parsed.subject for draft in open_ones if draft.parsed is not None})
        known = self.facts.attributes(scope, owner, subjects)
        if not known:
            return list(drafts)
        phrases = sorted(
            {attribute for _, _, attribute in known} | {draft.parsed.attribute for draft in open_ones if draft.parsed}
        )
        vectors = dict(
            zip(phrases, np.asarray(self.embedders.configured.embed_documents(phrases), np.float32), strict=True)
        )
        likened = []
        for draft in drafts:
            parsed = draft.parsed
            near = [
                (float(vectors[attribute] @ vectors[parsed.attribute]), fact_id)
                for fact_id, subject, attribute in known
                if parsed is not None and subject == parsed.subject and draft in open_ones
            ]
            best = max(near, default=(0.0, 0))
            likened.append(replace(draft, continues=best[1]) if best[0] >= SAME_ATTRIBUTE else draft)
        return likened

    def _prepared(self, drafts: Sequence[Draft], sources: Mapping[int, FactSource]) -> list[tuple[Draft, PreparedFact]]:
        if not drafts:
            return []
        turns = [Turn(content=draft.statement, role=draft.episode.role, at=draft.episode.at) for draft in drafts]
        models = [sources[draft.episode.episode_id].model for draft in drafts]
        vectors = self._vectors([named(turn) for turn in turns], models)
        counts = self.lexicon.count([dated(turn) for turn in turns])
        prepared = []
        for draft, vector, counted in zip(drafts, vectors, counts, strict=True):
            length = float(counted.length)
            lexemes, weights = self.lexicon.turn_weights(
                counted.lexemes, counted.counts.astype(np.float64), length=length
            )
            parsed = draft.parsed
            prepared.append(
                (
                    draft,
                    PreparedFact(
                        statement=draft.statement,
                        same_as=draft.key or draft.statement,
                        subject=None if parsed is None else parsed.subject,
                        attribute=None if parsed is None else parsed.attribute,
                        value=None if parsed is None or parsed.ends else parsed.value or None,
                        source=sources[draft.episode.episode_id],
                        spans=tuple(
                            Span(quote.episode.episode_id, quote.start_offset, quote.end_offset)
                            for quote in draft.quotes
                        ),
                        made_by=draft.made_by,
                        embedding=np.asarray(vector, np.float32),
                        length=length,
                        lexemes=lexemes,
                        weights=weights,
                    ),
                )
            )
        return prepared

    def _vectors(self, texts: Sequence[str], models: Sequence[str]) -> list[Vectors]:
        """A vector for each text, of the model that stands at its place."""
        vectors: dict[tuple[str, str], Vectors] = {}
        for model in dict.fromkeys(models):
            own = [text for text, its in zip(texts, models, strict=True) if its == model]
            made = self.embedders.of_session(model).embed_documents(own)
            vectors |= {(model, text): vector for text, vector in zip(own, made, strict=True)}
        return [vectors[model, text] for text, model in zip(texts, models, strict=True)]


def _added(
    report: ConsolidationReport, stored: Stored, facts: Sequence[PreparedFact], failure: str | None
) -> ConsolidationReport:
    new = [one for one in stored.placements if one.repeats is None]
    turns = {fact.source.episode.episode_id for fact in facts}
    made_by = Counter(report.made_by)
    made_by.update(facts[0].made_by for _ in new)
    return ConsolidationReport(
        examined=report.examined + stored.examined,
        added=report.added + len(new),
        repeated=report.repeated + len(stored.placements) - len(new),
        superseded=report.superseded + sum(one.supersedes for one in stored.placements),
        without_facts=report.without_facts + max(0, stored.examined - len(turns)),
        made_by=dict(made_by),
        failures=report.failures if failure is None else tuple(dict.fromkeys([*report.failures, failure])),
    )


def _said(episode: Episode) -> tuple[float, int]:
    return (episode.at or episode.known_from).timestamp(), episode.episode_id


# Facts that a language model writes: every one is held against the words that it claims to rest on.


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


@dataclass(eq=False)
class FactWriter:
    """Has a language model draw facts from turns.

    What it replies is checked: each quote must stand in its turn, each number in the turns or their dates, half of the
    words in the turns, and only facts that it was shown can be superseded. What does not stand the check is left out.

    Args:
        model: Writes the facts.
        lexicon: Counts words.
        timeout_seconds: For one reply.
    """

    model: ChatModel
    lexicon: TurnTerms
    _: KW_ONLY
    timeout_seconds: float

    @property
    def name(self) -> str:
        """The model's."""
        return self.model.model_name

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
            self.model, messages, timeout_seconds=self.timeout_seconds, max_characters=MAX_REPLY_CHARACTERS
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
        said, shown = self.lexicon.count([statement, together])
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


@cache
def _rules() -> str:
    return files("recollect.memory").joinpath("prompts", "facts.md").read_text(encoding="utf-8").strip()
