"""How a request is sent: a deadline, repetitions, the circuit breaker, and a record of it."""

from __future__ import annotations

import contextvars
import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from typing_extensions import TypeIs

from recollect.errors import ProviderError
from recollect.model.requests import RequestKind, RequestRecord
from recollect.providers.batches import LOOK_SECONDS
from recollect.providers.connection import Connection
from recollect.providers.faults import Fault, fault_of, provider_error

if TYPE_CHECKING:
    from tenacity import RetryCallState
    from tenacity.wait import wait_base

_log = logging.getLogger(__name__)

#: Told of each request, in the thread that waits for it. What it raises is logged, and changes nothing.
Recorder: TypeAlias = Callable[[RequestRecord], None]


def report(record: RequestRecord, recorder: Recorder | None) -> None:
    """Hand a record over; a recorder that fails does not fail the request."""
    if recorder is None:
        return
    try:
        recorder(record)
    except Exception:  # noqa: BLE001 - a log is no reason to lose an answer
        _log.exception("A request to %s was not recorded", record.provider)


T = TypeVar("T")


# More than any request takes, and what the log of requests can store.
_MOST_TOKENS = 2**31 - 1


@dataclass(slots=True)
class Measured:
    """What is measured of one request while it runs.

    Attributes:
        inputs: Texts, passages or messages.
        input_tokens: Estimated, until the provider tells.
    """

    inputs: int
    input_tokens: int
    output_tokens: int = 0
    estimated: bool = True
    attempts: int = 0
    searches: float | None = None
    started: float = field(default_factory=time.perf_counter)

    def told(self, input_tokens: object, output_tokens: object = 0) -> bool:
        """Take the provider's own counts, if they are counts; returns whether they are."""
        if not (_is_count(input_tokens) and _is_count(output_tokens)):
            return False
        self.input_tokens, self.output_tokens, self.estimated = input_tokens, output_tokens, False
        return True


def _is_count(value: object) -> TypeIs[int]:
    # SDKs hand over whatever stands in a reply.
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS


class Requester:
    """Sends the requests of one model, each under the same rules. Safe to share between threads.

    Args:
        provider: The name that errors and records carry.
        model: As the provider names it.
        kind: Of its records.
        connection: Time-outs, repetitions, keys to mask.
        recorder: Told of each request.
        modules: Of the SDK: they are imported before the time of the first request begins.
    """

    def __init__(
        self,
        *,
        provider: str,
        model: str,
        kind: RequestKind,
        connection: Connection,
        recorder: Recorder | None = None,
        modules: Sequence[str] = (),
    ) -> None:
        self.provider = provider
        self.model = model
        self.connection = connection
        self._kind: RequestKind = kind
        self._recorder = recorder
        self._modules = modules
        self._last_failure = ""
        self._breaker = CircuitBreaker(connection.breaker_failures, connection.breaker_seconds)

    def send(self, request: Callable[[], T], measured: Measured, *, cancelled: threading.Event | None = None) -> T:
        """The request's reply; repeated while that may help.

        Args:
            request: Sends it once and reads the reply, in another thread; raises whatever its SDK raises.
            measured: Filled in for the record.
            cancelled: Set by a caller who does not want the reply any more: there is no further attempt.

        Raises:
            ProviderError: It failed for good.
        """
        from tenacity import Retrying, retry_if_exception, stop_after_attempt, stop_any, stop_when_event_set
        from tenacity.nap import sleep_using_event

        event = cancelled or threading.Event()
        retrying = Retrying(
            stop=stop_any(stop_after_attempt(self.connection.max_retries + 1), stop_when_event_set(event)),
            wait=self.pause,
            retry=retry_if_exception(self.may_be_repeated),
            sleep=sleep_using_event(event),
            reraise=True,
        )
        try:
            reply: T = retrying(self._attempt, request, measured)
        except ProviderError as exc:
            self.record(measured, exc)
            raise
        self.record(measured)
        return reply

    def load(self) -> None:
        """Import the SDK, which takes seconds on a busy machine."""
        for name in self._modules:
            with suppress(ImportError):  # of a version that has it elsewhere, the request imports it
                import_module(name)

    def _attempt(self, request: Callable[[], T], measured: Measured) -> T:
        self.admit(measured)
        try:
            self.load()
            reply = _within(self.connection.timeout_seconds, request)
        except Exception as exc:  # noqa: BLE001 - whatever an SDK raises
            error = self.error(exc)
        else:
            self.answered()
            return reply
        # Raised here, the SDK's exception is neither its cause nor its context.
        raise error

    def admit(self, measured: Measured) -> None:
        """Count an attempt.

        Raises:
            ProviderError: The circuit breaker allows none for now.
        """
        seconds = self._breaker.refused_for()
        if seconds:
            fault = Fault("refused", self._last_failure, retryable=True, retry_after_seconds=seconds)
            raise provider_error(fault, provider=self.provider, model=self.model, connection=self.connection)
        measured.attempts += 1

    def answered(self) -> None:
        """Note that the provider works."""
        self._breaker.succeeded()

    def error(self, exc: BaseException) -> ProviderError:
        """What an attempt raised, translated and noted."""
        fault = fault_of(exc)
        if fault.of_the_server:
            self._breaker.failed()
        else:
            self._breaker.succeeded()
        said = self.connection.cleaned(f"{type(exc).__name__}: {exc}")
        _log.debug("%s (%s): %s, raised as %s", self.provider, self.model, fault.kind, said)
        error = provider_error(fault, provider=self.provider, model=self.model, connection=self.connection)
        if fault.of_the_server:
            self._last_failure = f"At last: {error}"
        return error

    def may_be_repeated(self, exc: BaseException) -> bool:
        """Whether another attempt may help, within the time that one waits for it."""
        return (
            isinstance(exc, ProviderError)
            and exc.retryable
            and exc.kind != "refused"
            and (exc.retry_after_seconds or 0.0) <= self.connection.max_backoff_seconds
        )

    def pause(self, state: RetryCallState) -> float:
        """Seconds until the next attempt: what the provider asks for, and exponential backoff with jitter on top."""
        error = state.outcome.exception() if state.outcome is not None else None
        asked = error.retry_after_seconds if isinstance(error, ProviderError) else None
        # Jitter on top of what is asked for: or all callers who were sent away together come back together.
        return (asked or 0.0) + self._backoff(state)

    @property
    def _backoff(self) -> wait_base:
        from tenacity import wait_random_exponential

        return wait_random_exponential(
            multiplier=self.connection.backoff_seconds, max=self.connection.max_backoff_seconds
        )

    def record(self, measured: Measured, error: ProviderError | None = None) -> None:
        """Report the request, now that its outcome is known."""
        report(
            RequestRecord(
                kind=self._kind,
                provider=self.provider,
                model=self.model,
                inputs=measured.inputs,
                input_tokens=measured.input_tokens,
                output_tokens=measured.output_tokens,
                tokens_estimated=measured.estimated,
                attempts=measured.attempts,
                milliseconds=(time.perf_counter() - measured.started) * 1000,
                success=error is None,
                error=None if error is None else error.kind or "unknown",
                status=None if error is None else error.status,
                cost=None if error is not None else self._cost(measured),
            ),
            self._recorder,
        )

    def _cost(self, measured: Measured) -> float | None:
        if measured.searches is not None:  # what it takes in tokens is not what is paid for
            price = self.connection.search_price
            return None if price is None else measured.searches * price / 1_000
        prices = self.connection.input_price, self.connection.output_price
        if prices == (None, None):
            return None
        return (measured.input_tokens * (prices[0] or 0.0) + measured.output_tokens * (prices[1] or 0.0)) / 1_000_000


def _within(seconds: float, request: Callable[[], T]) -> T:
    """The request's reply, if it comes in time: an SDK's own limits end where a server sends a byte now and then.

    A request whose time is up keeps its thread until its SDK gives up too.
    """
    replies: list[T] = []
    errors: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            replies.append(request())
        except BaseException as exc:  # noqa: BLE001 - raised in the thread that waits
            errors.append(exc)
        finally:
            done.set()

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(run,), name="recollect-request", daemon=True).start()
    until = time.monotonic() + seconds
    # In pieces: an interrupt that comes as a wait begins is noticed by the next one.
    while not done.wait(min(LOOK_SECONDS, max(0.0, until - time.monotonic()))):
        if time.monotonic() >= until:
            raise TimeoutError
    if errors:
        raise errors.pop()
    return replies.pop()


# A circuit breaker: a provider that keeps failing is left alone for a while.


class CircuitBreaker:
    """Counts failures in a row; after too many, calls are refused until a pause is over, then one may try.

    Safe to share between threads. Written here, because the libraries that offer one keep their state per process, or
    wrap functions, and a stream of pieces is neither.

    Args:
        failures: In a row, after which calls are refused.
        seconds: How long they are.
        clock: Monotonic seconds.
    """

    def __init__(self, failures: int, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = failures
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._next_trial = 0.0

    def refused_for(self) -> float:
        """Seconds for which calls are refused; 0 where the caller may try.

        After the pause only one caller may, until its outcome is known or another pause has passed.
        """
        with self._lock:
            if self._failures < self._limit:
                return 0.0
            now = self._clock()
            if now < self._next_trial:
                return self._next_trial - now
            self._next_trial = now + self._seconds
            return 0.0

    def succeeded(self) -> None:
        """The provider answered: it works."""
        with self._lock:
            self._failures = 0

    def failed(self) -> None:
        """The provider did not answer, or only that it is broken."""
        with self._lock:
            self._failures += 1
            if self._failures >= self._limit:
                self._next_trial = self._clock() + self._seconds
