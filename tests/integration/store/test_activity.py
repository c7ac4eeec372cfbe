"""What is counted of searches is added up over processes, folded into hours and forgotten."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import psycopg
import pytest

from recollect.model import Scope
from recollect.model.activity import Tally, percentile, step_of
from recollect.pipeline.assembly import ActivityLog
from recollect.ui.routes.dashboard import safe_cell


def _minute(ago: timedelta) -> datetime:
    return (datetime.now(UTC) - ago).replace(second=0, microsecond=0)


def _tally(*milliseconds: float) -> Tally:
    tally = Tally()
    for one in milliseconds:
        tally.add(one)
    return tally


def test_counts_of_processes_add_up_and_whiles_join_them(store):
    first, at = ("search", "total"), _minute(timedelta(minutes=3))
    for milliseconds in ([1.0, 900.0], [2.0], [30_000.0]):
        store.activity.add(Scope(), {(at, *first): _tally(*milliseconds), (at, "cache", "hit"): Tally(2)})
    since = _minute(timedelta(minutes=30))
    found = store.activity.series(Scope(), since=since, until=since + timedelta(hours=1), seconds=3_600)
    told = {(one.name, one.label): one.tally for one in found}
    assert told["search", "total"] == _tally(1.0, 900.0, 2.0, 30_000.0)
    assert told["cache", "hit"] == Tally(6)


def test_minutes_become_hours_and_what_is_too_long_ago_goes(store, dsn):
    old = _minute(timedelta(days=2)).replace(minute=7)
    for at in (old, old + timedelta(minutes=20), _minute(timedelta(days=40)), _minute(timedelta(minutes=1))):
        store.activity.add(Scope(), {(at, "search", "total"): _tally(5.0, 50.0)})
    store.activity.maintain(Scope())
    store.activity.maintain(Scope())
    with psycopg.connect(dsn) as connection:
        kept = connection.execute("SELECT at, count FROM recollect.activity ORDER BY at").fetchall()
    assert (kept[0][0].minute, kept[0][1]) == (0, 4) and len(kept) == 2
    since = old.replace(minute=0)
    found = store.activity.series(Scope(), since=since, until=since + timedelta(hours=1), seconds=3_600)
    assert found[0].tally == _tally(5.0, 50.0, 5.0, 50.0)


def test_a_percentile_is_off_by_a_tenth_at_most():
    drawn = Random(7)
    times = sorted(drawn.lognormvariate(3, 1.5) for _ in range(5_000))
    histogram: dict[int, int] = {}
    for one in times:
        histogram[step_of(one)] = histogram.get(step_of(one), 0) + 1
    for share in (0.5, 0.95, 0.99):
        exact = times[int(share * len(times))]
        assert percentile(histogram, share) == pytest.approx(exact, rel=0.11)
    assert percentile({}, 0.5) is None and percentile({step_of(0): 1}, 0.5) < 0.1 < 1e6 < percentile(
        {step_of(1e99): 1}, 1
    )


def test_what_cannot_be_counted_stops_nobody(store, caplog):
    log = ActivityLog(lambda: store, flush_seconds=1_000)
    log.count(987_654, "search", "total", 3.0)  # a tenant that was erased meanwhile
    log.count(1, "limit", "search")
    log.close()
    since = _minute(timedelta(minutes=5))
    found = store.activity.series(Scope(), since=since, until=since + timedelta(hours=1), seconds=60)
    assert [(one.name, one.label, one.tally.count) for one in found if one.name != "size"] == [("limit", "search", 1)]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1"])
def test_a_cell_is_no_formula(text):
    assert safe_cell(text) == "'" + text and safe_cell("p50 (ms)") == "p50 (ms)"
