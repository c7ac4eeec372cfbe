"""Passages that hold the words of a query which others lack come first."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from recollect.model import CompleteOptions, RetrievalOptions
from recollect.retrieval.candidates import Candidates
from recollect.retrieval.ranking import (
    FAR_BETTER,
    FEW_EXACT,
    MORE_OF_THE_WORDS,
    Ranker,
    Ranking,
    RankingSettings,
    exact_first,
)
from recollect.retrieval.relevance import MeaningShare

SHARES = st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0])
KNOWN = st.lists(st.tuples(SHARES, st.floats(0, 1)), max_size=2 * FEW_EXACT + 5)


def ranked(count: int) -> Ranking:
    return Ranking([(chunk_id, 1 - chunk_id / 100) for chunk_id in range(count)], {})


@given(KNOWN)
def test_exact_matches_come_first_unless_something_far_better_is_known(known: list[tuple[float, float]]):
    before = ranked(len(known))
    coverage, relevance = dict(enumerate(share for share, _ in known)), dict(enumerate(near for _, near in known))
    after = exact_first(before, coverage, relevance)
    order = [chunk_id for chunk_id, _ in after.ranked]
    # Nothing is lost, scores fall as they did, and all that was not moved up keeps its order.
    assert sorted(order) == list(range(len(known)))
    assert [score for _, score in after.ranked] == [score for _, score in before.ranked]
    front = order[: max(1, len(after.exact))]
    assert order[len(front) :] == sorted(set(order) - set(front))
    assert after.moved_from == {
        chunk_id: chunk_id + 1 for rank, chunk_id in enumerate(front) if chunk_id > rank and order != sorted(order)
    }
    if not known:
        return
    every = [chunk_id for chunk_id, share in coverage.items() if share == 1]
    more = [chunk_id for chunk_id, share in coverage.items() if share >= coverage[0] + MORE_OF_THE_WORDS]
    ahead = every if 0 < len(every) <= FEW_EXACT else more[:1]
    if not ahead or relevance[0] > max(relevance[chunk_id] for chunk_id in ahead) + FAR_BETTER:
        assert after == before
    else:
        assert order[: len(ahead)] == ahead
        assert after.exact == (set(every) if 0 < len(every) <= FEW_EXACT else set())


def test_a_search_by_meaning_knows_no_words():
    assert exact_first(ranked(3), {}, {}) == ranked(3)


def test_what_an_order_of_its_own_asks_for_is_left():
    """Meaning alone by its weight, and questions in a language that no text is in, whose words mean something else."""
    ranker = Ranker(settings=RankingSettings(), rerankers=NotImplemented)
    options = CompleteOptions.of(RetrievalOptions(), top_k=10, mode="hybrid")
    found, crossing = Candidates(coverage={2: 0.45}, lexical=[(2, 1.0)]), MeaningShare(0.85, crossing=True)
    unknown = MeaningShare(0.15, crossing=False)

    def first(asked: CompleteOptions, share: MeaningShare | None = None) -> int:
        return ranker.exact_first(ranked(3), asked, found, {}, share).ranked[0][0]

    assert first(options) == first(options, unknown) == 2
    assert first(options, crossing) == 0
    assert first(replace(options, dense_weight=1.0)) == 0
