"""When a job is tried again, and what no attempt could do better."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import (
    ConflictError,
    NotFoundError,
    ParseError,
    PermissionDeniedError,
    ProviderError,
    RecollectError,
    StoreUnavailableError,
    UsageError,
)
from recollect.jobs.running import RetryPolicy, may_succeed, reason_of


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (UsageError("no"), False),
        (NotFoundError("no"), False),
        (ConflictError("no"), False),
        (PermissionDeniedError("no"), False),
        (ParseError("a.pdf", "broken"), False),
        (ProviderError("no", provider="x"), False),
        (ProviderError("busy", provider="x", retryable=True), True),
        (StoreUnavailableError("away"), True),
        (TimeoutError(), True),
        (RuntimeError("a defect"), True),
    ],
)
def test_what_may_succeed_later_is_tried_again(error, again):
    assert may_succeed(error) is again


def test_an_error_says_itself_whether_it_is_worth_another_attempt():
    class RefusedError(RecollectError):
        retryable = False

    class BusyError(UsageError):
        retryable = True

    assert not may_succeed(RefusedError())
    assert may_succeed(BusyError())


def test_each_wait_is_four_times_as_long_as_the_one_before():
    policy = RetryPolicy(backoff_seconds=10)
    waits = [policy.delay_seconds(attempt, RuntimeError(), draw=lambda: 0.5) for attempt in (1, 2, 3)]
    assert waits == [10, 40, 160]
    assert policy.delay_seconds(50, RuntimeError(), draw=lambda: 0.5) == 3600
    busy = ProviderError("busy", provider="x", retryable=True, retry_after_seconds=25)
    assert policy.delay_seconds(1, busy, draw=lambda: 0.5) == 25
    assert RetryPolicy(backoff_seconds=0).delay_seconds(1, RuntimeError()) == 0


@given(attempt=st.integers(1, 100), draw=st.floats(0, 1), base=st.floats(0, 3600))
def test_jitter_moves_a_wait_by_a_quarter_at_most(attempt, draw, base):
    policy = RetryPolicy(backoff_seconds=base)
    middle = policy.delay_seconds(attempt, RuntimeError(), draw=lambda: 0.5)
    assert middle * 0.74 <= policy.delay_seconds(attempt, RuntimeError(), draw=lambda: draw) <= middle * 1.26


def test_a_reason_is_in_words():
    assert reason_of(UsageError("No such address.")) == "No such address."
    assert reason_of(KeyError("name")) == "KeyError: 'name'"
    assert reason_of(TimeoutError()) == "TimeoutError"
    assert reason_of(UsageError("Refused: sk-proj-4f0aQx81Zt6bLm92Wc7R.")) == "Refused: …."
