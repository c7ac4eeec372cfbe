"""How much may be asked for: counted for all processes, told in headers, and forgotten."""

from __future__ import annotations

import threading

import psycopg
import pytest

from recollect import RAGConfig
from recollect.config.server import LimitsConfig
from recollect.errors import RateLimitedError
from recollect.model import Scope
from recollect.server.caller import Caller, Credential
from recollect.server.limits import Limits
from recollect.store.admission import Bucket


@pytest.fixture(autouse=True)
def window(monkeypatch: pytest.MonkeyPatch) -> None:
    """So long that nothing is refilled while a test runs."""
    monkeypatch.setattr("recollect.server.limits.WINDOW_SECONDS", 60_000)


def caller(name: str = "one", tenant: int = 1) -> Caller:
    return Caller(tenant=tenant, principal=None, scopes=frozenset({"read"}), credential=Credential(kind="key", id=name))


def limits(rag, clock=lambda: 0.0, **settings) -> Limits:
    """With a clock that stands still, nothing that was leased ends."""
    return Limits(rag, LimitsConfig(**{"search": None, "answer": None, "ingest": None, **settings}), clock=clock)


def taken(rag, *buckets: Bucket, wanted: int = 1):
    return rag.standpoint.store.limits.take(Scope(), buckets, wanted=wanted)


def pass_seconds(dsn: str, seconds: float) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE recollect.rate_limits SET due = due - %s", [seconds])


SLOW = Bucket(name="slow", size=3, seconds=1000.0)


def test_a_bucket_gives_what_it_has_and_says_when_there_is_more(pipeline, dsn):
    assert [taken(pipeline, SLOW).remaining for _ in range(3)] == [(2,), (1,), (0,)]
    empty = taken(pipeline, SLOW)
    assert (empty.granted, empty.remaining) == (0, (0,))
    assert 990 < empty.waits[0] <= 1000
    pass_seconds(dsn, 1000)
    assert taken(pipeline, SLOW).granted == 1
    assert taken(pipeline, SLOW).granted == 0
    pass_seconds(dsn, 100_000)
    assert taken(pipeline, SLOW, wanted=9).granted == 3


def test_all_of_several_buckets_give_or_none(pipeline):
    wide, narrow = Bucket(name="wide", size=9, seconds=1000.0), Bucket(name="narrow", size=2, seconds=1000.0)
    assert taken(pipeline, wide, narrow, wanted=5).granted == 2
    for _ in range(3):
        assert taken(pipeline, wide, narrow).granted == 0
    # Whoever is refused has taken nothing from what others have too.
    assert taken(pipeline, wide, wanted=9).granted == 7


def test_of_many_at_once_as_many_as_there_are_get_one(pipeline):
    found, begin = [], threading.Barrier(6)
    bucket, shared = Bucket(name="own", size=10, seconds=1000.0), Bucket(name="shared", size=7, seconds=1000.0)

    def ask(number: int) -> None:
        begin.wait()
        own = Bucket(name=f"own {number}", size=10, seconds=1000.0)
        found.extend(taken(pipeline, own, shared).granted for _ in range(3))

    threads = [threading.Thread(target=ask, args=[number]) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(found) == shared.size < len(found)
    assert taken(pipeline, bucket).granted == 1


def test_a_clock_that_was_ahead_shuts_nobody_out_for_long(pipeline, dsn):
    taken(pipeline, SLOW)
    pass_seconds(dsn, -1_000_000)
    assert taken(pipeline, SLOW).waits[0] <= 1000


def test_a_limit_is_for_all_processes(pipeline):
    first, second = limits(pipeline, answer=3), limits(pipeline, answer=3)
    for one in (first, second, first):
        one.check(caller(), "answer")
    for one in (first, second, first):
        with pytest.raises(RateLimitedError, match="'answer'") as caught:
            one.check(caller(), "answer")
        assert 0 < caught.value.retry_after_seconds <= 20_000


def test_credentials_kinds_and_tenants_are_counted_apart_and_a_tenants_together(pipeline):
    pipeline.tenants.create("acme")
    counted = limits(pipeline, answer=1, search=1, tenant_answer=3)
    for who in (caller("one"), caller("two"), caller("one", tenant=2)):
        counted.check(who, "answer")
    counted.check(caller("one"), "search")
    with pytest.raises(RateLimitedError):
        counted.check(caller("one"), "answer")
    counted.check(caller("three"), "answer")
    refused = counted.count(caller("four"), "answer")
    assert refused.retry_after_seconds > 0
    assert {one.name: one.remaining for one in refused.policies} == {"answer": 1, "answer-tenant": 0}


def test_whoever_is_refused_does_not_use_up_what_others_have(pipeline):
    counted = limits(pipeline, answer=1, tenant_answer=4)
    counted.check(caller("greedy"), "answer")
    fresh = limits(pipeline, answer=1, tenant_answer=4)
    for limit in (counted, fresh, counted, fresh):
        assert limit.count(caller("greedy"), "answer").retry_after_seconds
    assert counted.count(caller("modest"), "answer").policies[1].remaining == 2


def test_most_requests_ask_nobody(pipeline, monkeypatch):
    counted = limits(pipeline, search=6_000_000)
    calls = []
    repository = pipeline.standpoint.store.limits
    take = repository.take
    monkeypatch.setattr(repository, "take", lambda *args, **more: calls.append(1) or take(*args, **more))
    states = [counted.check(caller(), "search") for _ in range(100)]
    assert len(calls) == 4
    left = [state.policies[0].remaining for state in states]
    assert left[0] == 5_999_999 and max(left[1:]) < 6_000_000


def test_what_is_leased_and_not_used_ends(pipeline):
    now = [0.0]
    counted = limits(pipeline, clock=lambda: now[0], search=6_000_000)
    counted.check(caller(), "search")
    assert counted.look(caller(), "search") is not None
    now[0] = 10.0
    assert counted.look(caller(), "search") is None


def test_a_refusal_asks_nobody_until_there_is_one_more(pipeline, monkeypatch):
    now = [0.0]
    counted = limits(pipeline, clock=lambda: now[0], answer=1)
    counted.check(caller(), "answer")
    assert counted.count(caller(), "answer").retry_after_seconds
    assert counted.look(caller(), "answer").retry_after_seconds
    now[0] = 60_001.0
    assert counted.look(caller(), "answer") is None


def test_what_is_not_limited_is_not_counted(pipeline, dsn):
    counted = limits(pipeline, answer=1)
    for _ in range(5):
        assert counted.check(caller(), "search").headers() == {}
        counted.check(Caller.local(), "answer")
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT count(*) FROM recollect.rate_limits").fetchone() == (0,)


def test_headers_are_those_of_the_draft(pipeline):
    counted = limits(pipeline, answer=2, tenant_answer=10)
    counted.check(caller(), "answer")
    told = counted.check(caller(), "answer").headers()
    assert told["RateLimit-Policy"] == '"answer";q=2;w=60000, "answer-tenant";q=10;w=60000'
    assert told["RateLimit"] == '"answer";r=0;t=60000, "answer-tenant";r=8;t=12000'
    refused = counted.count(caller(), "answer").headers()
    assert 1 <= int(refused["Retry-After"]) <= 30_000


# Answers at once, and uploads


def test_so_many_answers_are_written_at_once(pipeline):
    counted = limits(pipeline, concurrent_answers=3, concurrent_answers_per_credential=2)
    ended = [counted.begin_answer(caller("one")) for _ in range(2)]
    with pytest.raises(RateLimitedError, match="your credential"):
        counted.begin_answer(caller("one"))
    counted.begin_answer(caller("two"))
    with pytest.raises(RateLimitedError, match="This server"):
        counted.begin_answer(caller("three"))
    ended[0](200)
    counted.begin_answer(caller("one"))


def test_a_tenant_uploads_so_much_a_day(pipeline, dsn):
    pipeline.tenants.create("acme")
    counted = limits(pipeline, upload_bytes_per_day=100)
    counted.upload(caller("one"), 60)
    with pytest.raises(RateLimitedError, match="has uploaded 60") as caught:
        counted.upload(caller("two"), 41)
    assert 0 < caught.value.retry_after_seconds <= 86_400
    counted.upload(caller("two"), 40)
    counted.upload(caller("one", tenant=2), 100)
    counted.give_back_upload(caller("one"), 60)
    counted.upload(Caller.local(), 60)
    with pytest.raises(RateLimitedError):
        counted.upload(caller("one"), 1)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE recollect.uploads SET day = day - 1")
    counted.upload(caller("one"), 100)
    with pytest.raises(RateLimitedError):
        counted.upload(caller("three", tenant=2), 101)


def test_uploads_that_come_at_once_do_not_pass_together(pipeline):
    counted, passed, begin = limits(pipeline, upload_bytes_per_day=100), [], threading.Barrier(6)

    def upload() -> None:
        begin.wait()
        try:
            counted.upload(caller(), 30)
        except RateLimitedError:
            return
        passed.append(30)

    threads = [threading.Thread(target=upload) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(passed) == 90


def test_a_clean_up_forgets_what_says_nothing_any_more(pipeline, dsn):
    counted = limits(pipeline, answer=2, upload_bytes_per_day=100)
    counted.check(caller("gone"), "answer")
    counted.upload(caller(), 1)
    pass_seconds(dsn, 100_000)
    counted.check(caller("here"), "answer")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE recollect.uploads SET day = day - 2")
        pipeline.maintenance.cleanup()
        assert connection.execute("SELECT bucket FROM recollect.rate_limits").fetchall() == [("answer key:here",)]
        assert connection.execute("SELECT count(*) FROM recollect.uploads").fetchone() == (0,)


def test_limits_are_off_where_they_are_configured_so():
    assert RAGConfig.load(server={"limits": {"upload_bytes_per_day": 5}}).server.limits.answer == 120
