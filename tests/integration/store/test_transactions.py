"""What ends a transaction is what the caller sees, and the next one has a connection that works."""

from __future__ import annotations

import pytest

from recollect.model import Scope
from recollect.store.store import Store


def test_an_interrupt_between_a_statement_and_its_result_stays_an_interrupt(store: Store):
    with pytest.raises(KeyboardInterrupt), store.database.transaction(Scope()) as connection:
        connection.pgconn.send_query(b"SELECT pg_sleep(60)")
        raise KeyboardInterrupt
    with store.database.transaction(Scope()) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
