"""Which facts say the same of the same, so that the later takes the earlier one's place. Pure: no I/O, no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from recollect.memory.statement_parser import comparable
from recollect.store.facts import KnownFact, Placement, PreparedFact

if TYPE_CHECKING:
    from recollect.memory.statements import Draft

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
