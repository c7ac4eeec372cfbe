"""Feedback moves weights within bounds, in no order, and back again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.context import RetrievalWeights
from recollect.context.hybrid import LEAST, adapted
from recollect.model.feedback import FeedbackCounts

NONE = FeedbackCounts()
counts = st.builds(
    FeedbackCounts,
    documents_helpful=st.integers(0, 10**6),
    documents_not=st.integers(0, 10**6),
    memory_helpful=st.integers(0, 10**6),
    memory_not=st.integers(0, 10**6),
)


@given(counts, counts, st.floats(0, 1), st.floats(0.01, 0.5))
def test_weights_stay_within_their_bounds(tenant: FeedbackCounts, session: FeedbackCounts, memory: float, most: float):
    base = RetrievalWeights(1 - memory, memory)
    found = adapted(base, tenant=tenant, session=session, max_shift=most)
    assert abs(found.weights.memory - base.memory) <= most + 1e-9
    assert found.weights.rag + found.weights.memory == pytest.approx(1, abs=0.01)
    for before, after in ((base.memory, found.weights.memory), (base.rag, found.weights.rag)):
        assert after >= min(before, LEAST) - 1e-9


@given(counts, st.sampled_from(["documents_not", "memory_helpful"]), st.integers(1, 50))
def test_what_helps_gains_and_its_opposite_undoes_it(start: FeedbackCounts, name: str, times: int):
    base = RetrievalWeights.balanced()
    before = adapted(base, tenant=NONE, session=start, max_shift=0.2)
    more = replace(start, **{name: getattr(start, name) + times})
    after = adapted(base, tenant=NONE, session=more, max_shift=0.2)
    assert after.weights.memory > before.weights.memory or after.weights.memory == pytest.approx(0.7)
    opposite = {"documents_not": "documents_helpful", "memory_helpful": "memory_not"}[name]
    undone = replace(more, **{opposite: getattr(more, opposite) + times})
    assert adapted(base, tenant=NONE, session=undone, max_shift=0.2).weights == before.weights


def test_without_feedback_nothing_moves():
    for base in (RetrievalWeights.memory_focused(), RetrievalWeights(0, 1), RetrievalWeights(1, 0)):
        found = adapted(base, tenant=NONE, session=NONE, max_shift=0.2)
        assert (found.weights, found.shift) == (base, 0)
        assert "no feedback yet" in found.explanation


def test_a_side_that_is_not_searched_gains_nothing():
    helped = FeedbackCounts(memory_helpful=100)
    assert adapted(RetrievalWeights(1, 0), tenant=helped, session=helped, max_shift=0.5).weights.memory == 0


def test_the_explanation_says_what_was_counted():
    found = adapted(
        RetrievalWeights.memory_focused(),
        tenant=FeedbackCounts(documents_helpful=10),
        session=NONE,
        max_shift=0.2,
    )
    assert found.shift == pytest.approx(-0.1)
    assert found.explanation == (
        "memory 0.60 - 0.10; in general: documents 10 helpful, 0 not, memory 0 helpful, 0 not; in this session: none"
    )
