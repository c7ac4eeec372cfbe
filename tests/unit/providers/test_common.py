"""What all hosted models have in common, piece by piece; the contracts have the pieces together."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import ProviderError, UsageError
from recollect.providers import Connection, RequestRecord
from recollect.providers.connection import Fault, Secret, fault_of, provider_error, retry_after
from recollect.providers.embedder import EmbeddingReply, HostedEmbedder, unit_vectors
from recollect.providers.requesting import (
    BatchLimits,
    CircuitBreaker,
    Measured,
    Requester,
    batches,
    cut,
    in_parallel,
    most_tokens,
)

KEY = "sk-very-secret-key"


class Backend:
    """Embeds each text as its length, one dimension; fails as often as it is told to."""

    limits = BatchLimits(texts=2)
    space = "test/model"

    def __init__(self, *faults: Exception):
        self.faults = list(faults)
        self.calls: list[list[str]] = []
        self.most_at_once = self._now = 0
        self._lock = threading.Lock()

    def embed(self, texts, purpose):
        with self._lock:
            self.calls.append(list(texts))
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            if self.faults:
                raise self.faults.pop(0)
            return EmbeddingReply(vectors=[[float(len(text)), 1.0] for text in texts], tokens=len(texts))
        finally:
            with self._lock:
                self._now -= 1


def embedder(backend, records=None, **connection):
    settings = {"backoff_seconds": 0.0001, "max_backoff_seconds": 0.01}
    requester = Requester(
        provider="p",
        model="m",
        kind="embed",
        connection=Connection(**settings | connection),
        recorder=None if records is None else records.append,
    )
    return HostedEmbedder(backend, requester, dimension=2)


# Keys


def test_a_secret_is_shown_and_written_out_nowhere():
    connection = Connection(api_key=Secret(KEY), base_url=f"https://me:{KEY}@host:8000/v1?key={KEY}#x")
    assert KEY not in repr(connection) + str(connection) + repr(connection.api_key) + str(connection.shown_url)
    assert connection.shown_url == "https://host:8000/v1"
    assert KEY not in connection.cleaned(f"Bearer {KEY} and {connection.base_url}")
    for value in (connection.api_key, connection):
        with pytest.raises(UsageError, match="not written out"):
            pickle.dumps(value)
    assert copy.deepcopy(connection) == connection


def test_a_short_secret_does_not_mask_words():
    assert Connection(api_key=Secret("a")).cleaned("an apple") == "an apple"


# Limits


@given(
    texts=st.lists(st.text(max_size=40), max_size=40),
    limits=st.builds(BatchLimits, texts=st.integers(1, 7), tokens=st.none() | st.integers(1, 30)),
)
def test_batches_hold_every_text_once_in_order_within_the_limits(texts, limits):
    found = batches(texts, limits)
    assert [place for batch in found for place in batch] == list(range(len(texts)))
    for batch in found:
        assert 1 <= len(batch) <= limits.texts
        tokens = sum(most_tokens(texts[place]) for place in batch)
        assert limits.tokens is None or tokens <= limits.tokens or len(batch) == 1


@given(st.text(), st.integers(1, 20))
def test_a_text_that_is_too_long_is_cut_to_its_beginning(text, tokens):
    shorter = cut(text, tokens)
    assert text.startswith(shorter)
    assert most_tokens(shorter) <= tokens or shorter == text
    assert cut(text, None) == text


def test_requests_run_in_parallel_up_to_the_bound_and_come_back_in_order():
    backend = Backend()
    texts = [str(number) * number for number in range(1, 30)]
    vectors = embedder(backend, parallel=3).embed_documents(texts)
    assert [round(float(one[0] / one[1])) for one in vectors] == [len(text) for text in texts]
    assert 1 <= backend.most_at_once <= 3
    assert len(backend.calls) == 15


def test_after_a_failure_what_has_not_begun_is_not_begun():
    started = []

    def fail(cancelled):
        raise ProviderError("broken", provider="p")

    def run(cancelled):
        started.append(cancelled)
        cancelled.wait(60)

    with pytest.raises(ProviderError, match="broken"):
        in_parallel([fail, *[run] * 500], at_once=2)
    assert len(started) <= 1
    assert all(cancelled.is_set() for cancelled in started)


def test_an_interrupted_program_ends_while_a_server_is_silent():
    code = """
import signal, threading, time
from recollect.providers.requesting import in_parallel

signal.signal(signal.SIGINT, signal.default_int_handler)
never = threading.Event()
begun = threading.Semaphore(0)

def call(cancelled):
    begun.release()
    never.wait()

def interrupt():
    for _ in range(2):
        begun.acquire()
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
try:
    in_parallel([call] * 5, at_once=2)
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "interrupted\n"


# Repetitions


def test_what_cannot_succeed_is_not_repeated():
    backend = Backend(Fault("authentication", status=401))
    with pytest.raises(ProviderError):
        embedder(backend, max_retries=5).embed_query("a")
    assert len(backend.calls) == 1


def test_a_provider_that_asks_for_a_long_pause_is_not_asked_again():
    backend = Backend(Fault("rate_limit", retryable=True, status=429, retry_after_seconds=60))
    with pytest.raises(ProviderError) as caught:
        embedder(backend, max_retries=5, max_backoff_seconds=30).embed_query("a")
    assert (len(backend.calls), caught.value.retry_after_seconds) == (1, 60)


def test_a_pause_is_never_shorter_than_asked_for():
    requester = Requester(provider="p", model="m", kind="embed", connection=Connection(backoff_seconds=0.5))
    pauses = []
    for attempt in (1, 2, 3) * 30:
        state = _failed(attempt, ProviderError("", provider="p", retryable=True, retry_after_seconds=2.0))
        pauses.append(requester.pause(state))
    assert min(pauses) >= 2.0
    assert len(set(pauses)) > 10, "without jitter all who were sent away come back together"


def _failed(attempt, error):
    import tenacity

    state = tenacity.RetryCallState(tenacity.Retrying(), None, (), {})
    state.attempt_number = attempt
    state.set_exception((type(error), error, None))
    return state


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
        ({"retry-after": format_datetime(datetime(2020, 1, 1, tzinfo=UTC), usegmt=True)}, 0.0),
    ],
)
def test_how_long_a_provider_asks_to_wait(headers, seconds):
    assert retry_after(headers) == seconds


def test_a_date_to_wait_for():
    later = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    assert 3500 < retry_after({"retry-after": later}) <= 3600


# The circuit breaker


def test_a_breaker_opens_tries_again_and_closes():
    now = [0.0]
    breaker = CircuitBreaker(2, 10.0, clock=lambda: now[0])
    breaker.failed()
    assert breaker.refused_for() == 0
    breaker.succeeded()
    breaker.failed()
    assert breaker.refused_for() == 0
    breaker.failed()
    assert breaker.refused_for() == 10
    now[0] = 10.0
    assert [breaker.refused_for() for _ in range(3)] == [0, 10, 10], "one may try, the others wait for its outcome"
    breaker.failed()
    now[0] = 15.0
    assert breaker.refused_for() == 5
    now[0] = 20.0
    assert breaker.refused_for() == 0
    breaker.succeeded()
    assert [breaker.refused_for() for _ in range(3)] == [0, 0, 0]


def test_one_of_many_threads_tries_a_broken_provider():
    breaker = CircuitBreaker(1, 0.001, clock=iter([0.0] + [1.0] * 1000).__next__)
    breaker.failed()
    gate = threading.Barrier(8)
    allowed = []

    def attempt():
        gate.wait()
        allowed.append(breaker.refused_for() == 0)

    threads = [threading.Thread(target=attempt) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert allowed.count(True) == 1


def test_faults_of_a_request_do_not_open_the_breaker():
    backend = Backend(*[Fault("invalid_request", status=400) for _ in range(5)])
    model = embedder(backend, breaker_failures=2, breaker_seconds=600)
    for _ in range(5):
        with pytest.raises(ProviderError):
            model.embed_query("a")
    assert model.embed_query("a").shape == (2,)


# Replies


@given(st.integers(1, 5), st.data())
def test_vectors_are_put_in_order_and_brought_to_unit_length(count, data):
    order = data.draw(st.permutations(range(count)))
    given_vectors = np.arange(1, count + 1)[:, None] * np.array([[3.0, 4.0, 12.0]]) + np.eye(count, 3)
    reply = EmbeddingReply(vectors=given_vectors[list(order)].tolist(), indexes=list(order))
    vectors = unit_vectors(reply, count=count, dimension=3)
    expected = given_vectors / np.linalg.norm(given_vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors, expected, atol=1e-6)


def test_a_cut_vector_is_of_unit_length_again():
    reply = EmbeddingReply(vectors=[[3.0, 4.0, 12.0]])
    np.testing.assert_allclose(unit_vectors(reply, count=1, dimension=2, matryoshka=True), [[0.6, 0.8]], atol=1e-6)
    with pytest.raises(Fault, match="3 dimensions, not 2"):
        unit_vectors(reply, count=1, dimension=2)
    with pytest.raises(Fault, match="3 dimensions, not 4"):
        unit_vectors(reply, count=1, dimension=4, matryoshka=True)


def test_token_vectors_are_no_text_vectors():
    with pytest.raises(Fault, match="one a token"):
        unit_vectors(EmbeddingReply(vectors=[[[1.0, 2.0]], [[1.0, 2.0]]]), count=2, dimension=2)


# Errors and records


def test_whatever_an_sdk_raises_becomes_one_of_few_kinds():
    class ReadTimeoutError(Exception):
        pass

    class APIStatusError(Exception):
        status_code = 418

    outer = RuntimeError("wrapped")
    outer.__cause__ = ConnectionResetError("reset")
    looped = ValueError("odd")
    looped.__cause__ = looped
    assert fault_of(ReadTimeoutError()).kind == "timeout"
    assert (fault_of(APIStatusError()).kind, fault_of(APIStatusError()).status) == ("invalid_request", 418)
    assert fault_of(outer).kind == "unreachable"
    assert fault_of(looped).kind == "malformed"
    assert fault_of(RuntimeError("what?")).kind == "unknown"


def test_an_error_says_what_happened_and_what_to_do_without_the_key():
    connection = Connection(api_key=Secret(KEY), base_url="http://host/v1", timeout_seconds=2)
    error = provider_error(Fault("timeout", retryable=True), provider="p", model="m", connection=connection)
    assert str(error) == "p (m): no answer from http://host/v1 within 2 s; raise the timeout or try a smaller model"
    echoed = Fault("authentication", f"bad key {KEY}", status=401)
    said = str(provider_error(echoed, provider="p", model="m", connection=connection))
    assert said == "p (m): HTTP 401: check the API key and what it may use. bad key ***"


def test_a_long_message_is_cut_and_no_part_of_a_key_is_left():
    connection = Connection(api_key=Secret(KEY), base_url="http://host/v1")
    for before in range(480, 520):
        fault = Fault("server", "x" * before + KEY + "y" * 9999, status=500)
        said = str(provider_error(fault, provider="p", model="m", connection=connection))
        assert "sk-" not in said
        assert len(said) < 700


def test_a_refused_request_says_what_failed_before(monkeypatch):
    backend = Backend(Fault("server", "out of memory", status=500, retryable=True))
    model = embedder(backend, breaker_failures=1, breaker_seconds=600, max_retries=0)
    with pytest.raises(ProviderError, match="out of memory"):
        model.embed_query("a")
    with pytest.raises(ProviderError, match=r"left alone for 600 s.*out of memory") as caught:
        model.embed_query("a")
    assert caught.value.kind == "refused"


def test_a_recorder_that_fails_fails_nothing(caplog):
    requester = Requester(provider="p", model="m", kind="embed", connection=Connection(), recorder=lambda record: 1 / 0)
    assert requester.send(lambda: "reply", Measured(1, 1)) == "reply"
    assert "was not recorded" in caplog.text


def test_what_a_request_cost_is_known_where_prices_are():
    records: list[RequestRecord] = []
    embedder(Backend(), records, input_price=500_000.0).embed_query("abc")
    embedder(Backend(), records).embed_query("abc")
    embedder(Backend(Fault("authentication")), records, max_retries=0, input_price=1.0)
    assert [record.cost for record in records] == [0.5, None]
