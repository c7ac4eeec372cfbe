from __future__ import annotations

import threading
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from recollect.errors import StoreError, UsageError
from recollect.interruption import Interrupted, Interruption, current
from recollect.model import CompleteOptions, RetrievedContext, Scope, SearchReply
from recollect.retrieval.cache import ResultCache, cache_key


def passage(rank=1, **changes):
    given = {
        "rank": rank,
        "score": 0.5,
        "content": "Thirty days.",
        "chunk_id": rank,
        "document_id": 1,
        "title": "Leave",
        "source": "leave.md",
        "section": None,
        "page": None,
        "start_offset": 0,
        "end_offset": 12,
        "metadata": {},
    }
    return RetrievedContext(**{**given, **changes})


def reply(query="q", *, passages=1, **metadata):
    results = tuple(passage(rank, metadata=dict(metadata)) for rank in range(1, passages + 1))
    return SearchReply(
        query=query, collection="c", mode="hybrid", results=results, timings_ms={"total": 3.0}, paths={"dense": "exact"}
    )


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def unexpected():
    pytest.fail("computed, although it is kept")


def get_or_compute(cache, key, compute, *, keep_seconds=None):
    with cache.claim(key) as claim:
        if claim.reply is None:
            claim.reply = compute()
            claim.keep_seconds = keep_seconds(claim.reply) if keep_seconds else None
    return claim.reply, claim.hit


def test_nobody_can_change_what_is_kept():
    cache = ResultCache()
    made = reply(people=["Kim"])
    first, _ = get_or_compute(cache, b"k", lambda: made)
    for _ in range(2):
        first.timings_ms["total"] = -1
        first.paths["dense"] = "none"
        first.results[0].metadata["people"].append("Mallory")
        first.results[0].metadata["more"] = True
        first, hit = get_or_compute(cache, b"k", unexpected)
        assert hit
        assert first == reply(people=["Kim"])


def test_passages_are_bounded_as_well_as_entries():
    cache = ResultCache(max_entries=10, max_passages=5)
    for key, size in ((b"a", 2), (b"b", 2), (b"c", 3), (b"huge", 6)):
        get_or_compute(cache, key, lambda size=size: reply(passages=size))
    assert cache.counts.evictions == 1
    assert cache.counts.entries == 2
    assert get_or_compute(cache, b"b", unexpected)[1]
    assert not get_or_compute(cache, b"huge", lambda: reply(passages=6))[1]


def test_nothing_is_kept_where_there_is_no_room():
    cache = ResultCache(max_entries=0)
    assert not get_or_compute(cache, b"k", reply)[1]
    assert not get_or_compute(cache, b"k", reply)[1]


class AgainstAModel(RuleBasedStateMachine):
    """An ordered dictionary of deadlines behaves the same."""

    size, ttl = 3, 10.0

    def __init__(self):
        super().__init__()
        self.clock = Clock()
        self.cache = ResultCache(max_entries=self.size, ttl_seconds=self.ttl, clock=self.clock)
        self.model: OrderedDict[bytes, tuple[str, float]] = OrderedDict()
        self.serial = self.hits = self.misses = self.evictions = self.expirations = 0

    @rule(
        key=st.sampled_from([b"a", b"b", b"c", b"d", b"e"]),
        fails=st.booleans(),
        kept=st.sampled_from([None, -5.0, 0.0, 4.0, 1e9]),
    )
    def ask(self, key, fails, kept):
        known = self.model.get(key)
        if known and self.clock.now >= known[1]:
            del self.model[key]
            known = None
            self.expirations += 1
        self.serial += 1
        fresh = f"reply {self.serial}"

        def compute():
            if fails:
                raise StoreError(fresh)
            return reply(fresh)

        if known:
            self.model.move_to_end(key)
            self.hits += 1
            assert get_or_compute(self.cache, key, compute) == (reply(known[0]), True)
            return
        self.misses += 1
        if fails:
            with pytest.raises(StoreError, match=fresh):
                get_or_compute(self.cache, key, compute)
            return
        assert get_or_compute(self.cache, key, compute, keep_seconds=lambda _: kept) == (reply(fresh), False)
        if kept is None or kept > 0:
            self.model[key] = (fresh, self.clock.now + min(self.ttl, kept or self.ttl))
            if len(self.model) > self.size:
                self.model.popitem(last=False)
                self.evictions += 1

    @rule(seconds=st.sampled_from([0.5, 1.0, 5.0, 20.0]))
    def wait(self, seconds):
        self.clock.now += seconds

    @rule()
    def clear(self):
        self.cache.clear()
        self.model.clear()

    @invariant()
    def counts_agree(self):
        counts = self.cache.counts
        found = (counts.hits, counts.misses, counts.evictions, counts.expirations, counts.entries)
        assert found == (self.hits, self.misses, self.evictions, self.expirations, len(self.model))
        asked = self.hits + self.misses
        assert counts.hit_rate == (self.hits / asked if asked else 0.0)


TestAgainstAModel = AgainstAModel.TestCase


def waiting(cache, key, computing, *, callers):
    """Start callers while a search is under way; returns their futures once all of them have begun."""
    pool = ThreadPoolExecutor(callers + 1)
    started, release = threading.Event(), threading.Event()

    def compute():
        started.set()
        release.wait(10)
        return computing()

    begun = threading.Barrier(callers + 1)

    def follow():
        begun.wait(10)
        return get_or_compute(cache, key, unexpected_in_thread)

    leader = pool.submit(get_or_compute, cache, key, compute)
    started.wait(10)
    followers = [pool.submit(follow) for _ in range(callers)]
    begun.wait(10)
    pool.shutdown(wait=False)
    return leader, followers, release


def unexpected_in_thread():
    raise AssertionError("computed twice")


def test_equal_searches_at_the_same_time_are_computed_once():
    cache = ResultCache()
    leader, followers, release = waiting(cache, b"k", lambda: reply(people=["Kim"]), callers=8)
    release.set()
    assert leader.result(10) == (reply(people=["Kim"]), False)
    found = [follower.result(10) for follower in followers]
    assert found == [(reply(people=["Kim"]), True)] * 8
    assert len({id(one.results[0].metadata) for one, _ in found}) == 8
    assert (cache.counts.misses, cache.counts.hits) == (1, 8)


def test_a_different_search_does_not_wait():
    cache = ResultCache()
    leader, _, release = waiting(cache, b"k", reply, callers=0)
    assert get_or_compute(cache, b"other", lambda: reply("other"))[0].query == "other"
    release.set()
    leader.result(10)


def test_an_interrupted_search_is_computed_by_one_of_those_who_wait():
    cache = ResultCache()
    inside, go_on = threading.Event(), threading.Event()

    def interrupted():
        inside.set()
        go_on.wait(10)
        raise KeyboardInterrupt

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(get_or_compute, cache, b"k", interrupted)
        inside.wait(10)
        second = pool.submit(get_or_compute, cache, b"k", lambda: reply("second"))
        go_on.set()
        with pytest.raises(KeyboardInterrupt):
            first.result(10)
        assert second.result(10)[0].query == "second"


def test_what_was_under_way_when_all_was_forgotten_is_not_kept():
    cache = ResultCache()
    leader, _, release = waiting(cache, b"k", lambda: reply("before"), callers=0)
    cache.clear()
    assert get_or_compute(cache, b"k", lambda: reply("after"))[0].query == "after"
    release.set()
    assert leader.result(10)[0].query == "before"
    assert get_or_compute(cache, b"k", unexpected)[0].query == "after"


def test_many_threads_leave_consistent_counts():
    cache = ResultCache(max_entries=5)

    def ask(number):
        key = number % 9
        found, _ = get_or_compute(cache, b"%d" % key, lambda: reply(str(key)))
        return found.query == str(key)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(2000)))
    counts = cache.counts
    assert counts.hits + counts.misses == 2000
    assert counts.entries == 5 == counts.misses - counts.evictions


# Keys


def key(scope=None, query="leave", options=None, **changes):
    given = {"collections": [(1, 1)], **changes}
    return cache_key(scope or Scope(), query, options or CompleteOptions(), **given)


OTHER_VALUES = {
    "top_k": 11,
    "mode": "dense",
    "fusion": "rrf",
    "dense_weight": 0.1,
    "rrf_k": 9,
    "candidates": 9,
    "similarity_threshold": 0.1,
    "department": ("hr",),
    "source": ("a",),
    "tags": ("a",),
    "metadata_filters": {"a": 1},
    "explain": True,
}


def test_whatever_a_reply_depends_on_makes_another_key():
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    keys = [
        key(),
        key(query="Leave"),
        key(scope=Scope(tenant_id=2)),
        key(scope=Scope(as_of=moment)),
        key(scope=Scope(as_of=moment + timedelta(microseconds=1))),
        key(collections=[(2, 1)]),
        key(collections=[(1, 2)]),
        key(collections=[(1, 1), (2, 1)]),
        key(collections=[(2, 1), (1, 1)]),
        key(settings=("synonyms", "abc")),
        *(key(options=CompleteOptions(**{name: value})) for name, value in OTHER_VALUES.items()),
    ]
    assert len(set(keys)) == len(keys)
    assert key() == key(scope=Scope(tenant_id=1), options=CompleteOptions(top_k=10), settings=None)


def test_every_option_counts():
    for field in fields(CompleteOptions):
        default = getattr(CompleteOptions(), field.name)
        other = OTHER_VALUES.get(field.name, "something else" if default != "something else" else 1)
        assert key(options=replace(CompleteOptions(), **{field.name: other})) != key(), field.name


def test_a_scope_with_more_fields_counts_them_all():
    @dataclass(frozen=True)
    class Wider:
        tenant_id: int = 1
        permissions: frozenset = frozenset()

    scopes = [Wider(), Wider(permissions=frozenset({"hr"})), Wider(permissions=frozenset({"hr", "it"})), Scope()]
    assert len({key(scope=scope) for scope in scopes}) == 4
    assert key(scope=Wider(permissions=frozenset({"it", "hr"}))) == key(scope=scopes[2])


def test_one_instant_is_one_key_in_whatever_zone():
    utc = datetime(2026, 1, 1, 12, tzinfo=UTC)
    tokyo = utc.astimezone(timezone(timedelta(hours=9)))
    assert key(scope=Scope(as_of=utc)) == key(scope=Scope(as_of=tokyo))


def test_the_order_of_filters_does_not_matter_but_types_do():
    def filtered(**values):
        return key(options=CompleteOptions(metadata_filters=values))

    assert filtered(a=1, b=[1, 2]) == filtered(b=[1, 2], a=1)
    different = [1, 1.0, True, "1", b"1", None, [1], {"1": 1}, {1: 1}, "", [], {}, [[1]], [[], 1], {1}]
    assert len({filtered(a=value) for value in different}) == len(different)
    assert filtered(a="1", b="2") != filtered(a="1b", c="2")


class Colour(Enum):
    RED = "red"


def test_kinds_of_values():
    assert key(settings=Colour.RED) != key(settings="red")
    assert key(settings="\ud800") != key(settings="?")
    with pytest.raises(UsageError, match="object"):
        key(settings=object())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def typed(value):
    if isinstance(value, dict):
        return ("dict", frozenset((k, typed(v)) for k, v in value.items()))
    if isinstance(value, list):
        return ("list", tuple(map(typed, value)))
    return (type(value).__name__, repr(value))


@given(JSON, JSON)
def test_keys_are_equal_exactly_where_values_are(left, right):
    assert (key(settings=left) == key(settings=right)) == (typed(left) == typed(right))


@pytest.mark.parametrize("wrong", [{"max_entries": -1}, {"max_passages": -1}, {"ttl_seconds": 0}])
def test_numbers_out_of_range_are_refused(wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        ResultCache(**wrong)


def test_who_waits_for_another_and_gives_up_does_not_wait_for_its_end():
    cache, giving_up, told = ResultCache(), Interruption(), threading.Event()

    def second() -> None:
        current.set(giving_up)
        told.set()
        with cache.claim(b"key"):
            raise AssertionError("another one computes it")

    with ThreadPoolExecutor(1) as pool:
        with cache.claim(b"key") as first:
            waiting = pool.submit(second)
            told.wait()
            time.sleep(0.1)  # it waits by now, or would be told at once that it is to end
            giving_up.interrupt()
            with pytest.raises(Interrupted):
                waiting.result(20)
            first.reply = reply()
        with cache.claim(b"key") as later:
            assert later.hit
