"""What is asked for again and again becomes semantic memory: facts with the words that they rest on."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from recollect.errors import UsageError
from recollect.memory.indexing import SessionEmbedders, dated, named
from recollect.memory.statements import DEFINITE, Draft, placed, statements_of
from recollect.memory.validation import checked_name
from recollect.model.facts import EXTRACTIVE, ConsolidationReport, Fact
from recollect.model.memory import Episode, Turn
from recollect.store.facts import FactRepository, FactSource, Owner, PreparedFact, Span, Stored

if TYPE_CHECKING:
    from recollect.embedding.base import Vectors
    from recollect.memory.patterns import QueryPatternTracker
    from recollect.memory.writing import FactWriter
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

    def __init__(
        self,
        tracker: QueryPatternTracker,
        facts: FactRepository,
        recalls: RecallRepository,
        *,
        embedders: SessionEmbedders,
        lexicon: TurnTerms,
        language: str = "en",
        writer: FactWriter | None = None,
    ) -> None:
        self._tracker = tracker
        self._facts = facts
        self._recalls = recalls
        self._embedders = embedders
        self._lexicon = lexicon
        self._language = language
        self._writer = writer

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
        self._tracker.flush()
        found = self._facts.candidates(scope, min_retrievals=min_retrievals, user=whose, limit=limit)
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
        made_by = EXTRACTIVE if self._writer is None or failure is not None else self._writer.name
        related = {number for draft in drafts for number in draft.supersedes}
        related.update(draft.continues for draft, _ in prepared if draft.continues is not None)
        facts = [fact for _, fact in prepared]
        stored = self._facts.store(
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
        if self._writer is not None:
            try:
                return self._written(scope, owner, sources, self._writer), None
            except Exception as exc:  # noqa: BLE001 - whatever a provider raises, the turns can be read without it
                failure = str(exc) or type(exc).__name__
                _LOG.warning("Facts are extracted, because the language model failed: %s", failure)
        return [
            draft
            for episode in episodes
            for draft in statements_of(episode, lexicon=self._lexicon, language=self._language, made_by=EXTRACTIVE)
        ], failure

    def _written(self, scope: Scope, owner: Owner, sources: Sequence[FactSource], writer: FactWriter) -> list[Draft]:
        episodes = [one.episode for one in sources]
        around = self._recalls.surroundings(scope, [episode.episode_id for episode in episodes], before=1, after=0)
        before = {number: one.before[-1] for number, one in around.items() if one.before}
        return writer.write(episodes, before, self._known(scope, owner, sources))

    def _known(self, scope: Scope, owner: Owner, sources: Sequence[FactSource]) -> list[Fact]:
        """The owner's latest facts."""
        if owner.user is not None:
            return self._facts.page(scope, user=owner.user, limit=SHOWN_FACTS)
        return self._facts.page(scope, session=sources[0].episode.session, limit=SHOWN_FACTS)

    def _likened(self, scope: Scope, owner: Owner, drafts: Sequence[Draft]) -> list[Draft]:
        """Drafts that know which stored facts speak of the same attribute in other words."""
        open_ones = [draft for draft in drafts if draft.parsed is not None and draft.parsed.subject != DEFINITE]
        subjects = sorted({draft.parsed.subject for draft in open_ones if draft.parsed is not None})
        known = self._facts.attributes(scope, owner, subjects)
        if not known:
            return list(drafts)
        phrases = sorted(
            {attribute for _, _, attribute in known} | {draft.parsed.attribute for draft in open_ones if draft.parsed}
        )
        vectors = dict(
            zip(phrases, np.asarray(self._embedders.configured.embed_documents(phrases), np.float32), strict=True)
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
        counts = self._lexicon.count([dated(turn) for turn in turns])
        prepared = []
        for draft, vector, counted in zip(drafts, vectors, counts, strict=True):
            length = float(counted.length)
            lexemes, weights = self._lexicon.turn_weights(
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
            made = self._embedders.of_session(model).embed_documents(own)
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
