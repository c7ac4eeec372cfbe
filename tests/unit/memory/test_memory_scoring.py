"""What a turn owes to its neighbours, and how the retrievers are joined."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.memory.indexing import FADING, FOLLOWING, faded, followed, mixed
from recollect.model.terms import TermCounts
from recollect.retrieval import lexical
from recollect.retrieval.indexing import REFERENCE_LENGTH, TurnTerms
from recollect.retrieval.lexical import Counted, LexicalQuery
from recollect.store.search import LexicalRows


def counts(**occurrences: int) -> TermCounts:
    items = sorted((ord(letter), count) for letter, count in occurrences.items())
    return TermCounts(
        sum(count for _, count in items),
        np.array([letter for letter, _ in items], np.int32),
        np.array([count for _, count in items], np.int32),
    )


terms = st.dictionaries(st.integers(1, 30), st.integers(1, 5), max_size=8).map(
    lambda found: TermCounts(
        sum(found.values()),
        np.array(sorted(found), np.int32),
        np.array([found[lexeme] for lexeme in sorted(found)], np.int32),
    )
)


def test_terms_of_earlier_turns_count_the_less_the_earlier_they_are():
    lexemes, occurrences, length = faded([counts(a=1, b=2), counts(b=1), counts(c=3)])
    assert lexemes.tolist() == [ord("a"), ord("b"), ord("c")]
    assert occurrences == pytest.approx([FADING**2, 2 * FADING**2 + FADING, 3])
    assert length == pytest.approx(3 * FADING**2 + FADING + 3)


@given(st.lists(terms, min_size=1, max_size=4))
def test_the_length_is_what_the_occurrences_add_up_to(turns: list[TermCounts]):
    lexemes, occurrences, length = faded(turns)
    assert occurrences.sum() == pytest.approx(length)
    assert (np.diff(lexemes) > 0).all()
    assert (occurrences > 0).all()
    assert set(turns[-1].lexemes.tolist()) <= set(lexemes.tolist())


def test_a_mixed_vector_lies_between_and_has_unit_length():
    own, window = np.eye(4, dtype=np.float32)[:2]
    between = mixed(own, window)
    assert float(np.linalg.norm(between)) == pytest.approx(1)
    assert between @ own == pytest.approx(between @ window)
    assert mixed(own, -own).tolist() == own.tolist()
    assert mixed(own, own) == pytest.approx(own)


scores = st.dictionaries(st.integers(1, 40), st.floats(-5, 5), max_size=20)


@given(scores)
def test_no_turn_loses_by_what_follows_it(found: dict[int, float]):
    places = {episode_id: (episode_id % 3, episode_id // 3) for episode_id in found}
    after = followed(found, places)
    assert after.keys() == found.keys()
    assert all(after[episode_id] >= found[episode_id] for episode_id in found)


def test_a_turn_gains_from_the_next_two_of_its_own_session():
    places = {1: (1, 1), 2: (1, 2), 3: (1, 3), 4: (2, 4), 5: (1, 9)}
    after = followed({1: 0.0, 2: 1.0, 3: 2.0, 4: 3.0, 5: 0.0}, places)
    assert after[1] == pytest.approx(FOLLOWING[0] * 1 + FOLLOWING[1] * 2)
    assert after[2] == pytest.approx(1 + FOLLOWING[0] * 2)
    assert after[3] == 2.0  # the turn of position 4 is another session's
    assert after[5] == 0.0


def scored(question, *, lengths, counts, lexemes, stored, average) -> list[float]:
    rows = LexicalRows(list(range(len(counts))), np.array(lengths), np.array(counts, np.int32), lexemes, stored)
    query = LexicalQuery(question, reference_length=REFERENCE_LENGTH, average_length=average, fractional=True)
    return Counted.of(query, rows).scores(query).tolist()


@given(terms, st.floats(5, 60))
def test_scores_are_those_of_bm25_under_todays_average(turn: TermCounts, average: float):
    words = TurnTerms("en", salt=1)
    lexemes, occurrences, length = faded([turn, turn])
    lexemes, stored = words.turn_weights(lexemes, occurrences, length=length)
    question = dict.fromkeys((*lexemes.tolist()[::2], 99), 1.5)
    score = scored(question, lengths=[length], counts=[len(lexemes)], lexemes=lexemes, stored=stored, average=average)
    saturation = lexical.K1 * (1 - lexical.B + lexical.B * length / average)
    expected = sum(
        1.5 * count * lexical.MAX_WEIGHT / (count + saturation)
        for lexeme, count in zip(lexemes.tolist(), occurrences.tolist(), strict=True)
        if lexeme in question
    )
    assert score == pytest.approx([expected], rel=1e-4)


def test_a_question_without_known_words_scores_nothing():
    words = TurnTerms("en", salt=1)
    assert words.question("the of and") == {}
    nothing = np.zeros(0, np.int32)
    none = np.zeros(0, np.float32)
    assert scored({}, lengths=[1.0, 1.0], counts=[0, 0], lexemes=nothing, stored=none, average=1.0) == [0, 0]
