"""What a connection string that is wrong tells: that it is wrong, and nothing of its password."""

from __future__ import annotations

import logging
import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import StoreUnavailableError
from recollect.store.connections import require_dsn
from recollect.store.database import Database, connect

SECRET = "hunter2secret"


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://me:{SECRET}%zz@127.0.0.1:1/db",
        f"postgresql://me:x@{SECRET}@127.0.0.1:1/db",
        f"postgresql://me:x/{SECRET}@127.0.0.1:1/db",
        f"postgresql://me:{SECRET}/x@127.0.0.1:1/db",
        f"postgresql://me:12/{SECRET}@127.0.0.1:1/db",
        f"postgresql://me:{SECRET}",
        f"host=127.0.0.1 port=1 password=a {SECRET}",
        f"host=127.0.0.1 port=1 password='a' {SECRET}=b",
        f"host=127.0.0.1 port=1{SECRET}",
        f"host=127.0.0.1 port=1 password='{SECRET}",
        f"password={SECRET}\ud800 host=127.0.0.1 port=1",
        f"password={SECRET}\0 host=127.0.0.1 port=1",
        SECRET,
        f"postgres:/me:{SECRET}@127.0.0.1/db",
    ],
)
def test_a_malformed_dsn_is_not_quoted(dsn: str, caplog: pytest.LogCaptureFixture):
    for attempt in (lambda: connect(dsn), lambda: Database("host=127.0.0.1", application_dsn=dsn)):
        with caplog.at_level(logging.DEBUG), pytest.raises(StoreUnavailableError) as caught:
            attempt()
        told = "".join(traceback.format_exception(caught.value)) + caplog.text + repr(caught.value)
        assert SECRET not in told
        assert "Not a PostgreSQL DSN" in str(caught.value)


def test_a_wellformed_dsn_of_a_server_that_is_not_there_tells_no_password():
    for dsn in (f"postgresql://me:{SECRET}@127.0.0.1:1/db", f"host=127.0.0.1 port=1 password={SECRET}"):
        with pytest.raises(StoreUnavailableError, match=r"127\.0\.0\.1") as caught:
            connect(dsn)
        assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "dsn",
    [
        "",
        "dbname=x",
        "postgresql:///x",
        "postgresql://me:p%40ss@host/db",
        "postgresql://me:pass@one:1,two:2/db?application_name=a@b",
        "postgresql://me@[::1]:5432/db",
        "postgresql:///db?user=me@company",
        "host=/run/x user='me@company' password='a b'",
    ],
)
def test_what_libpq_reads_as_it_was_meant_passes(dsn: str):
    assert require_dsn(dsn) == dsn


@given(st.text(max_size=20))
def test_any_password_in_a_url_is_read_or_kept_to_oneself(password: str):
    try:
        require_dsn(f"postgresql://me:{password}{SECRET}@127.0.0.1:1/db")
    except StoreUnavailableError as exc:
        assert SECRET not in "".join(traceback.format_exception(exc))
