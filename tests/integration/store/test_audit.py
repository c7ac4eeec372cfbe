"""The audit's partitions: made ahead, dropped whole, and rows that came before them moved in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostile import EFFORT
from recollect.model import Scope
from recollect.store.logs import PARTITIONS_AHEAD, record
from recollect.store.store import Store

UNITS = ["hourly", "daily", "weekly", "monthly"]


def run(store: Store, query: str, *params) -> list[tuple]:
    with store.database.autocommit() as connection:
        return connection.execute(query, params).fetchall()


def partitions(store: Store) -> list[tuple[datetime, datetime]]:
    return run(store, "SELECT first, past FROM time_partitions('audit') ORDER BY first")


def insert(store: Store, *moments: datetime) -> None:
    """Rows as the owner could write them, at any time and outside the chain."""
    for at in moments:
        run_blind(
            store, "INSERT INTO audit (tenant_id, at, action, actor, number, hash) VALUES (1, %s, 'x', 'y', 0, '')", at
        )


def run_blind(store: Store, statement: str, *params) -> None:
    with store.database.autocommit() as connection:
        connection.execute(statement, params)


@pytest.mark.parametrize("unit", UNITS)
def test_partitions_are_made_ahead_once_without_gaps(store: Store, unit):
    for _ in range(2):
        assert store.audit.maintain(Scope(), partitions=unit, retention_days=None) == ()
        found = partitions(store)
        assert len(found) == PARTITIONS_AHEAD + 1
    now = datetime.now(UTC)
    assert found[0][0] <= now < found[0][1]
    assert all(older[1] == newer[0] for older, newer in pairwise(found))
    insert(store, now)
    assert run(store, "SELECT count(*) FROM audit_default") == [(0,)]


def test_what_was_written_before_moves_into_its_partition_and_none_is_made_for_nothing(store: Store):
    now = datetime.now(UTC)
    insert(store, now - timedelta(days=3), now - timedelta(days=3, minutes=1), now - timedelta(days=10), now)
    store.audit.maintain(Scope(), partitions="daily", retention_days=None)
    assert run(store, "SELECT count(*) FROM audit_default") == [(0,)]
    assert run(store, "SELECT count(*) FROM audit") == [(4,)]
    past = [first for first, last in partitions(store) if last <= now]
    assert len(past) in {2, 3}


def test_the_length_can_be_changed(store: Store):
    store.audit.maintain(Scope(), partitions="monthly", retention_days=None)
    store.audit.maintain(Scope(), partitions="hourly", retention_days=None)
    store.audit.maintain(Scope(), partitions="weekly", retention_days=None)
    found = partitions(store)
    assert all(older[1] == newer[0] for older, newer in pairwise(found))


def test_partitions_past_their_retention_are_dropped_whole(store: Store):
    now = datetime.now(UTC)
    insert(store, *(now - timedelta(days=days) for days in (0, 5, 40, 50)))
    store.audit.maintain(Scope(), partitions="daily", retention_days=None)
    dropped = store.audit.maintain(Scope(), partitions="daily", retention_days=30)
    assert len(dropped) == 2 and all(name.startswith("audit_") for name in dropped)
    assert run(store, "SELECT count(*) FROM audit") == [(2,)]
    # What never had a partition goes too.
    insert(store, now - timedelta(days=60))
    assert store.audit.maintain(Scope(), partitions="daily", retention_days=30) == ()
    assert run(store, "SELECT count(*) FROM audit") == [(2,)]


@settings(max_examples=7 * EFFORT, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.sampled_from(UNITS), st.lists(st.integers(-200, 60), max_size=3)),
        min_size=1, max_size=4,
    )
)  # fmt: skip
def test_no_row_is_ever_lost_and_none_is_in_the_wrong_place(store: Store, steps):
    now = datetime.now(UTC)
    before = run(store, "SELECT count(*) FROM audit")[0][0]
    for unit, days in steps:
        insert(store, *(now + timedelta(days=day) for day in days))
        store.audit.maintain(Scope(), partitions=unit, retention_days=None)
    assert run(store, "SELECT count(*) FROM audit")[0][0] == before + sum(len(days) for _, days in steps)
    found = partitions(store)
    assert all(older[1] <= newer[0] for older, newer in pairwise(found))
    assert run(store, "SELECT count(*) FROM audit_default WHERE at <= now()") == [(0,)]


def test_records_are_the_tenants_own_and_newest_first(store: Store):
    with store.database.transaction(Scope()) as connection:
        for number in range(3):
            record(connection, Scope(), action="erase", actor="a", details={"n": number})
        record(connection, Scope(), action="restore", actor="a", details={})
    assert [one.details["n"] for one in store.audit.page(Scope(), action="erase")] == [2, 1, 0]
    newest = store.audit.page(Scope(), limit=1)
    assert newest[0].action == "restore"
    assert len(store.audit.page(Scope(), before=newest[0].audit_id)) == 3
    assert store.audit.page(Scope(tenant_id=2)) == []
