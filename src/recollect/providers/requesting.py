"""How requests are sent: in batches, with a deadline, repetitions, the circuit breaker, and a record of each."""

from __future__ import annotations

import contextvars
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from typing_extensions import TypeIs

from recollect.errors import ProviderError
from recollect.model.requests import RequestKind, RequestRecord
from recollect.providers.connection import Connection, Fault, fault_of, provider_error

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


# Texts in batches that a provider takes, several of them under way at once.


@dataclass(frozen=True, slots=True)
class _Outcome(Generic[T]):
    place: int
    result: T | None = None
    error: BaseException | None = None


# A token is rarely shorter than this many bytes; where it is, the provider says so.
_BYTES_A_TOKEN = 3

# Whoever waits looks up so often: a signal that comes just before a wait begins is noticed only after it.
LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """What a provider takes in one request.

    Attributes:
        texts: At most.
        tokens: Of all texts together; None: no limit is known.
        text_tokens: Of one text; what is longer is cut. None: the provider cuts it.
    """

    texts: int
    tokens: int | None = None
    text_tokens: int | None = None

    def within(self, connection: Connection) -> BatchLimits:
        """These, or lower ones where the configuration has such."""
        sizes = [self.texts, connection.batch_size]
        tokens = [self.tokens, connection.batch_tokens]
        return BatchLimits(
            texts=min(size for size in sizes if size is not None),
            tokens=min((count for count in tokens if count is not None), default=None),
            text_tokens=self.text_tokens,
        )


def batches(texts: Sequence[str], limits: BatchLimits) -> list[range]:
    """The texts' places in as few batches as the limits allow, in their order.

    A text that is too long for any batch has one of its own.

    Example:
        >>> batches(["a", "b", "c"], BatchLimits(texts=2))
        [range(0, 2), range(2, 3)]
    """
    found: list[range] = []
    start = tokens = 0
    for place, text in enumerate(texts):
        own = most_tokens(text)
        full = limits.tokens is not None and tokens + own > limits.tokens
        if place > start and (full or place - start == limits.texts):
            found.append(range(start, place))
            start, tokens = place, 0
        tokens += own
    if start < len(texts):
        found.append(range(start, len(texts)))
    return found


def most_tokens(text: str) -> int:
    """More tokens than a text is likely to take, for limits; `llm.base.estimate_tokens` is nearer the truth."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_A_TOKEN)


def cut(text: str, tokens: int | None) -> str:
    """The beginning of a text that surely has no more than so many tokens."""
    if tokens is None or most_tokens(text) <= tokens:
        return text
    return text.encode("utf-8", "surrogatepass")[: tokens * _BYTES_A_TOKEN].decode("utf-8", "ignore")


def in_parallel(calls: Sequence[Callable[[threading.Event], T]], *, at_once: int) -> list[T]:
    """The results of calls, in their order; the first failure is raised, and what has not begun is not begun.

    Whoever is interrupted while waiting does not wait for what is under way: neither here nor at the program's end.

    Args:
        calls: Each is given an event that is set when its result is not wanted any more.
        at_once: How many are under way together.
    """
    cancelled = threading.Event()
    if len(calls) <= 1 or at_once == 1:
        return [call(cancelled) for call in calls]
    waiting = iter(enumerate(calls))
    lock = threading.Lock()
    outcomes: queue.SimpleQueue[_Outcome[T]] = queue.SimpleQueue()

    def work() -> None:
        while not cancelled.is_set():
            with lock:
                place, call = next(waiting, (-1, None))
            if call is None:
                return
            try:
                outcomes.put(_Outcome(place, result=call(cancelled)))
            except BaseException as exc:  # noqa: BLE001 - raised in the thread that waits
                cancelled.set()
                outcomes.put(_Outcome(place, error=exc))

    for _ in range(min(at_once, len(calls))):
        run = contextvars.copy_context().run
        threading.Thread(target=run, args=(work,), name="recollect-batch", daemon=True).start()
    results: dict[int, T] = {}
    try:
        while len(results) < len(calls):
            try:
                outcome = outcomes.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                continue
            if outcome.error is not None:
                raise outcome.error
            results[outcome.place] = outcome.result  # type: ignore[assignment]
    finally:
        cancelled.set()
    return [results[place] for place in range(len(calls))]
