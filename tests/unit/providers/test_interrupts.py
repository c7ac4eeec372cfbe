"""An interrupt ends a wait for a provider, also one that comes just before the wait begins."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from recollect.providers.connection import Connection
from recollect.providers.requesting import Measured, Requester, in_parallel


@pytest.fixture
def unnoticed_interrupt():
    """Interrupts this process once a call says so, without waking what the main thread waits in."""

    def interrupt() -> None:
        asked.wait()
        # Another thread takes the signal, so that the main thread's wait is not ended by it: as where it comes between
        # the interpreter's look at signals and the wait.
        os.kill(os.getpid(), signal.SIGINT)

    asked = threading.Event()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=interrupt)
    thread.start()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    yield asked
    asked.set()
    thread.join()
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("several", [False, True])
def test_an_interrupt_that_does_not_wake_the_wait_ends_it(unnoticed_interrupt, several):
    released = threading.Event()
    requester = Requester(
        provider="p", model="m", kind="embed", connection=Connection(timeout_seconds=3_600, max_retries=0)
    )

    def request() -> None:
        unnoticed_interrupt.set()
        released.wait()

    try:
        with pytest.raises(KeyboardInterrupt):
            if several:
                in_parallel([lambda _: request(), lambda _: None], at_once=2)
            else:
                requester.send(request, Measured(1, 1))
    finally:
        released.set()
