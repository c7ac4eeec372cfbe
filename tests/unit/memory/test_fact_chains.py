"""In whatever order facts are drawn, the one said last is current."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.memory.statements import Draft, Quote, normal, parse_statement, placed
from recollect.model.memory import Episode
from recollect.store.facts import FactSource, KnownFact, Placement, PreparedFact, Span

START = datetime(2023, 1, 1, tzinfo=UTC)
NOTHING = np.zeros(0, np.int32)


def made(statement: str, *, day: int, session: int = 1, supersedes: tuple[int, ...] = ()) -> tuple[Draft, PreparedFact]:
    episode = Episode(
        episode_id=day,
        session=f"s{session}",
        position=day,
        role="Ada",
        content=statement,
        at=START + timedelta(days=day),
        turn_id=None,
        known_from=START + timedelta(days=1_000),
    )
    parsed = parse_statement(statement, speaker="Ada")
    quote = Quote(episode=episode, start_offset=0, end_offset=len(statement))
    draft = Draft(statement=statement, quotes=(quote,), parsed=parsed, made_by="extractive", supersedes=supersedes)
    return draft, PreparedFact(
        statement=statement,
        same_as=normal(statement),
        subject=parsed.subject if parsed else None,
        attribute=parsed.attribute if parsed else None,
        value=parsed.value if parsed and not parsed.ends else None,
        source=FactSource(episode, session, "ada"),
        spans=(Span(day, 0, len(statement)),),
        made_by="extractive",
        embedding=np.ones(2, np.float32),
        length=1.0,
        lexemes=NOTHING,
        weights=NOTHING.astype(np.float32),
    )


class Shelf:
    """The facts of one owner, as a store would hold them."""

    def __init__(self) -> None:
        self.known: list[KnownFact] = []
        self.statements: dict[int, str] = {}
        self._numbers = itertools.count(1)

    def add(self, *pairs: tuple[Draft, PreparedFact]) -> list[Placement]:
        facts = [fact for _, fact in pairs]
        ids = [next(self._numbers) for _ in facts]
        placements = placed({id(fact): draft for draft, fact in pairs}, facts, ids, self.known)
        for fact, fact_id, placement in zip(facts, ids, placements, strict=True):
            if placement.repeats is None:
                self.statements[fact_id] = fact.statement
                self.known.append(
                    KnownFact(
                        fact_id=fact_id,
                        chain_id=placement.chain_id,
                        session_id=fact.source.session_id,
                        episode_id=fact.source.episode.episode_id,
                        subject=fact.subject,
                        attribute=fact.attribute,
                        value=fact.value,
                        same_as=fact.same_as,
                        said_at=fact.source.episode.at,
                    )
                )
        return placements

    @property
    def current(self) -> set[str]:
        chains: dict[int, KnownFact] = {}
        for fact in sorted(self.known, key=lambda one: (one.said_at, one.episode_id, one.fact_id)):
            chains[fact.chain_id] = fact
        return {self.statements[fact.fact_id] for fact in chains.values()}


@given(st.permutations(list(enumerate(["Lisbon", "Porto", "Oslo", "Porto", "Rome"], start=1))), st.integers(1, 5))
def test_what_was_said_last_is_current_whatever_was_drawn_first(order: list[tuple[int, str]], together: int):
    shelf = Shelf()
    for start in range(0, len(order), together):
        batch = sorted(order[start : start + together])
        shelf.add(*(made(f"I live in {city}.", day=day) for day, city in batch))
    assert shelf.current == {"I live in Rome."}
    assert len({fact.chain_id for fact in shelf.known}) == 1


def test_things_that_can_be_so_together_stay_together():
    shelf = Shelf()
    shelf.add(made("I like apples.", day=1), made("I like pears.", day=2), made("My sister lives in Oslo.", day=3))
    shelf.add(made("I live in Rome.", day=4))
    assert len(shelf.current) == 4


def test_the_same_words_are_evidence_and_no_fact():
    shelf = Shelf()
    shelf.add(made("I live in Rome.", day=1))
    (again,) = shelf.add(made("I live in Rome!", day=5))
    assert again.repeats == 1
    # Said again after something else was so, it is a fact again.
    shelf.add(made("I live in Oslo.", day=6))
    (back,) = shelf.add(made("I live in Rome.", day=7))
    assert back.repeats is None and back.supersedes
    assert shelf.current == {"I live in Rome."}


def test_an_end_concerns_what_it_names():
    shelf = Shelf()
    shelf.add(made("I live in Porto.", day=1))
    (other,) = shelf.add(made("I no longer live in Lisbon.", day=2))
    assert not other.supersedes
    assert "I live in Porto." in shelf.current
    (ended,) = shelf.add(made("I no longer live in Porto.", day=3))
    assert ended.supersedes
    assert "I live in Porto." not in shelf.current


def test_the_meeting_of_another_conversation_is_another():
    shelf = Shelf()
    shelf.add(made("The meeting is on Friday.", day=1, session=1))
    shelf.add(made("The meeting is on Monday.", day=2, session=2))
    assert len(shelf.current) == 2
    shelf.add(made("The meeting is on Tuesday.", day=3, session=2))
    assert shelf.current == {"The meeting is on Friday.", "The meeting is on Tuesday."}


def test_a_named_fact_is_superseded_and_an_unknown_number_is_not():
    shelf = Shelf()
    shelf.add(made("I like apples.", day=1))
    (unknown,) = shelf.add(made("I eat pears.", day=2, supersedes=(99,)))
    assert unknown.chain_id == 2
    (named,) = shelf.add(made("I cannot stand apples.", day=3, supersedes=(1,)))
    assert (named.chain_id, named.supersedes) == (1, True)
    assert shelf.current == {"I eat pears.", "I cannot stand apples."}


@pytest.mark.parametrize("value", ["Rome", "rome"])
def test_saying_it_in_other_words_supersedes_nothing(value: str):
    shelf = Shelf()
    shelf.add(made("I live in Rome.", day=1))
    (other,) = shelf.add(made(f"Actually, I live in {value.title()} now.", day=2))
    assert (other.chain_id, other.supersedes, other.repeats) == (1, False, None)
