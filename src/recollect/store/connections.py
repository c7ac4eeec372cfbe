"""What is done to a connection from outside its statements: ended, asked whether it lives, left to a parent process."""

from __future__ import annotations

import os
import select
from contextlib import suppress
from typing import TYPE_CHECKING

import psycopg

if TYPE_CHECKING:
    from recollect.store.session_state import Connection

_CANCEL_TIMEOUT_SECONDS = 10


def cancel(connection: Connection) -> None:
    """End the statement that a connection runs; where its server cannot be reached it has ended."""
    with suppress(psycopg.Error):
        connection.cancel_safe(timeout=_CANCEL_TIMEOUT_SECONDS)


def hung_up(connection: Connection) -> bool:
    """Whether the server has ended an idle connection: known without asking it, which would cost a round trip."""
    poll = select.poll()
    try:
        poll.register(connection.pgconn.socket, select.POLLIN)
    except psycopg.OperationalError:
        return True
    # To an idle client a server says nothing but its last words.
    return bool(poll.poll(0))


def cut_off(connection: Connection) -> None:
    """Part this process's copy of a parent's connection from the server, without a word to it."""
    with suppress(psycopg.Error, OSError):
        nowhere = os.open(os.devnull, os.O_RDWR)
        try:
            # Not closed: its number would be another file's, and what still writes to it would write there.
            os.dup2(nowhere, connection.pgconn.socket, inheritable=False)
        finally:
            os.close(nowhere)
