from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from recollect.model import DEFAULT_TENANT_ID, Scope
from recollect.model.requests import LoggedRequest
from recollect.model.tenant import TenantQuota
from recollect.providers import RequestRecord

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)


def logged(at: datetime = NOW, **fields) -> LoggedRequest:
    values = {
        "at": at,
        "kind": "embed",
        "provider": "openai",
        "model": "m",
        "inputs": 3,
        "input_tokens": 30,
        "output_tokens": 0,
        "tokens_estimated": False,
        "attempts": 1,
        "milliseconds": 12.5,
        "success": True,
        "error": None,
        "status": None,
        "cost": None,
    }
    return LoggedRequest(**values | fields)


@pytest.fixture
def other(store):
    return Scope(tenant_id=store.tenants.create("other", quota=TenantQuota()).tenant_id)


def test_what_is_stored_is_listed_page_by_page_and_summed_up(store):
    failed = logged(NOW + timedelta(hours=1), error="rate_limit", success=False, status=429, attempts=4)
    answer = logged(NOW + timedelta(hours=2), kind="answer", output_tokens=7, cost=0.25)
    store.requests.append(Scope(), [logged(), failed, answer])
    first, second, third = store.requests.page(Scope())
    assert (first.kind, first.output_tokens, first.cost, first.success) == ("answer", 7, 0.25, True)
    assert (second.error, second.status, second.attempts, second.success) == ("rate_limit", 429, 4, False)
    assert store.requests.page(Scope(), limit=1) == [first]
    assert store.requests.page(Scope(), before=first.request_id) == [second, third]
    assert store.requests.page(Scope(), failed=True) == [second]
    assert store.requests.page(Scope(), kind="answer") == [first]
    assert store.requests.page(Scope(), since=second.at, until=first.at) == [second]
    answers, embeds = store.requests.totals(Scope())
    assert (answers.requests, answers.failures, answers.cost) == (1, 0, 0.25)
    assert (embeds.requests, embeds.failures, embeds.attempts, embeds.input_tokens) == (2, 1, 5, 60)
    assert (embeds.mean_milliseconds, embeds.cost) == (12.5, None)


def test_a_tenant_sees_its_own_and_takes_them_with_it(store, other):
    store.requests.append(other, [logged()])
    assert store.requests.page(Scope()) == []
    assert len(store.requests.page(other)) == 1
    erased = store.tenants.erase(other.tenant_id, actor="ann")
    assert erased.rows["request_log"] == 1


def test_partitions_past_their_retention_are_dropped_whole(store):
    recent = datetime.now(UTC)
    store.requests.append(Scope(), [logged(), logged(recent)])
    store.requests.maintain(Scope(), partitions="monthly", retention_days=None)
    assert len(store.requests.page(Scope())) == 2
    dropped = store.requests.maintain(Scope(), partitions="monthly", retention_days=30)
    assert dropped == ("request_log_2026030100_2026040100",)
    assert [one.at for one in store.requests.page(Scope())] == [recent]


def test_requests_are_recorded_for_whoever_asked(pipeline):
    other = pipeline.tenants.create("other").tenant_id
    assembly = pipeline.standpoint.assembly

    def ask(tenant: int) -> None:
        pipeline.view(tenant=tenant).collections.list()
        for _ in range(5):
            assembly.record_request(RequestRecord(kind="embed", provider="p", model="m", inputs=1, input_tokens=2))

    threads = [threading.Thread(target=ask, args=(tenant,)) for tenant in (DEFAULT_TENANT_ID, other) * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(pipeline.view(tenant=tenant).audit.requests()) for tenant in (DEFAULT_TENANT_ID, other)] == [10, 10]
