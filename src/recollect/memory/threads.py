"""Which facts say the same of the same, so that the later takes the earlier one's place. Pure: no I/O, no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from recollect.memory.slots import comparable
from recollect.store.facts import KnownFact, Placement, PreparedFact

if TYPE_CHECKING:
    from recollect.memory.statements import Draft

#: The subject of what a conversation speaks of as though there were one of it: "the meeting" of another is another's.
DEFINITE = "the"


@dataclass(slots=True)
class _Threads:
    """Facts by thread, as they stand while new ones are placed one after the other."""

    members: dict[int, list[KnownFact]] = field(default_factory=dict)

    def add(self, fact: KnownFact) -> None:
        self.members.setdefault(fact.thread_id, []).append(fact)
        self.members[fact.thread_id].sort(key=_said)

    def latest(self, thread_id: int) -> KnownFact:
        return self.members[thread_id][-1]

    def thread_of(self, fact_id: int) -> int | None:
        return next((one.thread_id for one in self._all() if one.fact_id == fact_id), None)

    def repeated(self, same_as: str, session_id: int, *, local: bool) -> KnownFact | None:
        """The current fact that says this in these words."""
        return next(
            (
                self.latest(thread)
                for thread in sorted(self.members)
                if self.latest(thread).same_as == same_as
                and (not local or self.latest(thread).session_id == session_id)
            ),
            None,
        )

    def about(self, fact: PreparedFact) -> int | None:
        """The thread of what a fact is about; the least number, should there be several."""
        if fact.subject is None or fact.attribute is None:
            return None
        wanted = (fact.subject, fact.attribute)
        return min(
            (
                one.thread_id
                for one in self._all()
                if (one.subject, one.attribute) == wanted
                and (fact.subject != DEFINITE or one.session_id == fact.source.session_id)
            ),
            default=None,
        )

    def _all(self) -> list[KnownFact]:
        return [fact for thread in self.members.values() for fact in thread]


def placed(
    drafts: Mapping[int, Draft],
    facts: Sequence[PreparedFact],
    fact_ids: Sequence[int],
    known: Sequence[KnownFact],
) -> list[Placement]:
    """What becomes of new facts.

    One that says what the current fact of a thread says, in the same words, is evidence for that. One that names the
    facts it supersedes, or says something of what a thread is about, joins that thread; where it stands there is
    decided by when it was said, not by when it was drawn. Any other begins a thread.

    Args:
        drafts: What the facts were made from, by the object's ``id``.
        facts: In the order in which they were said.
        fact_ids: Their numbers.
        known: The stored facts of the same owner that they may have to do with.
    """
    threads = _Threads()
    for one in known:
        threads.add(one)
    placements = []
    for fact, fact_id in zip(facts, fact_ids, strict=True):
        placement = _placement(threads, drafts[id(fact)], fact, fact_id)
        if placement.repeats is None:
            threads.add(_as_known(fact, fact_id, placement.thread_id))
        placements.append(placement)
    return placements


def _placement(threads: _Threads, draft: Draft, fact: PreparedFact, fact_id: int) -> Placement:
    same = threads.repeated(fact.same_as, fact.source.session_id, local=fact.subject == DEFINITE)
    if same is not None:
        return Placement(thread_id=same.thread_id, repeats=same.fact_id)
    named = [thread for old in draft.supersedes if (thread := threads.thread_of(old)) is not None]
    if named:
        return Placement(thread_id=named[0], supersedes=True)
    thread = threads.about(fact)
    if thread is None and draft.continues is not None:
        thread = threads.thread_of(draft.continues)
    if thread is None:
        return Placement(thread_id=fact_id)
    current = threads.latest(thread)
    slot = draft.slot
    if slot is not None and slot.ends:
        # "No longer in Lisbon" says nothing against Porto.
        ended = current.value is not None and comparable(current.value) == slot.key
        return Placement(thread_id=thread if ended else fact_id, supersedes=ended)
    value, other = fact.value or "", current.value or ""
    return Placement(thread_id=thread, supersedes=comparable(value) != comparable(other))


def _as_known(fact: PreparedFact, fact_id: int, thread_id: int) -> KnownFact:
    episode = fact.source.episode
    return KnownFact(
        fact_id=fact_id,
        thread_id=thread_id,
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
