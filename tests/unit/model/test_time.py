"""Times as people write them."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import UsageError
from recollect.model import RetrievalOptions
from recollect.model.search_options import at_moment, time_limits
from recollect.model.time import DatedRange, read_duration, read_range, read_time

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)
EAST = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
        (" 2026-01-31T12:30 ", datetime(2026, 1, 31, 12, 30, tzinfo=UTC)),
        ("2026-01-31T12:30:00Z", datetime(2026, 1, 31, 12, 30, tzinfo=UTC)),
        ("2026-01-31T12:30+02:00", datetime(2026, 1, 31, 10, 30, tzinfo=UTC)),
        ("2026-01", datetime(2026, 1, 1, tzinfo=UTC)),
        ("2026", datetime(2026, 1, 1, tzinfo=UTC)),
        ("now", NOW),
        ("7d", datetime(2026, 6, 8, 12, tzinfo=UTC)),
        ("1d12h", datetime(2026, 6, 14, tzinfo=UTC)),
        ("3mo", NOW - timedelta(days=90)),
        (date(2026, 1, 31), datetime(2026, 1, 31, tzinfo=UTC)),
        (datetime(2026, 1, 31, 9), datetime(2026, 1, 31, 9, tzinfo=UTC)),
        (datetime(2026, 1, 31, 9, tzinfo=EAST), datetime(2026, 1, 31, 7, tzinfo=UTC)),
    ],
)
def test_every_way_of_writing_a_time_means_one_instant(written, meant):
    read = read_time(written, now=NOW)
    assert read == meant
    assert read.utcoffset() is not None


@pytest.mark.parametrize(
    "written",
    [
        *("", "yesterdayish", "2026-13", "2026-02-30", "31.01.2026", "7", "-7d", "7d 3", "0d", "9999999999y", "1e9d"),
        *(None, 7, True, timedelta(days=1), "\0", "٧d", datetime.max.replace(tzinfo=timezone(-timedelta(hours=5)))),
    ],
)
def test_what_is_no_time_is_refused_with_an_example(written):
    with pytest.raises(UsageError, match="as_of must be a time such as 2026-01-31"):
        read_time(written, name="as_of")


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("90s", 90), ("15m", 900), ("15min", 900), ("1.5h", 5400), ("2w", 1_209_600), ("1Y", 31_536_000), (60, 60)],
)
def test_durations(written, seconds):
    assert read_duration(written) == timedelta(seconds=seconds)


@pytest.mark.parametrize("written", ["", "7", "d", "7 parsecs", 0, -1, math.nan, math.inf, True, None, "0s", "2000y"])
def test_what_is_no_length_of_time_is_refused(written):
    with pytest.raises(UsageError, match="ttl must be a length of time such as"):
        read_duration(written, name="ttl")


@given(st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC) | st.none()))
def test_what_is_written_in_iso_is_read_back(moment: datetime):
    assert read_time(moment.isoformat()) == moment.replace(tzinfo=UTC)


@pytest.mark.parametrize("pair", ["2026", ("2026",), ("2026", "2025"), ("2026", "2026"), (1, None), 3, ("x", None)])
def test_a_range_is_a_pair_that_goes_forward(pair):
    with pytest.raises(UsageError, match="event_time_range must"):
        read_range(pair, name="event_time_range")


def test_a_window_and_a_range_hold_together():
    options = RetrievalOptions(event_window="7d", event_time_range=(None, "2026-06-10"))
    assert time_limits(options, NOW).event == DatedRange(NOW - timedelta(days=7), datetime(2026, 6, 10, tzinfo=UTC))
    with pytest.raises(UsageError, match="no time in common"):
        time_limits(RetrievalOptions(event_window="7d", event_time_range=(None, "2026-06-01")), NOW)
    with pytest.raises(UsageError, match="before any calendar"):
        time_limits(RetrievalOptions(event_window="900y"), datetime(500, 1, 1, tzinfo=UTC))


def test_relative_times_are_fixed_at_the_moment_of_the_search_and_answered_anew():
    relative = RetrievalOptions(event_window="7d", ingestion_time_range=("2d", None))
    fixed = at_moment(relative, NOW)
    assert fixed.event_window is None
    assert fixed.event_time_range == (NOW - timedelta(days=7), NOW + timedelta(microseconds=1))
    assert fixed.ingestion_time_range == (NOW - timedelta(days=2), None)
    assert fixed.use_cache and at_moment(fixed, NOW) == fixed
    assert not at_moment(relative).use_cache
    assert not at_moment(RetrievalOptions(ingestion_time_range=("2d", None))).use_cache
    assert at_moment(RetrievalOptions(event_time_range=("2025", date(2026, 1, 1)))).use_cache
    assert at_moment(RetrievalOptions()) == RetrievalOptions()
