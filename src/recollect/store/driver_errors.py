"""The driver's errors as the store's: the one place where they are translated."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg

from recollect.errors import (
    IsolationError,
    ModelChangedError,
    QuotaExceededError,
    RecollectError,
    SchemaVersionError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
    TenantSuspendedError,
)

_REFUSED = (
    psycopg.errors.DeadlockDetected,
    psycopg.errors.LockNotAvailable,
    psycopg.errors.ProgramLimitExceeded,
    psycopg.errors.QueryCanceled,
    psycopg.errors.SerializationFailure,
)


@contextmanager
def translated_errors() -> Iterator[None]:
    """Turn the driver's errors into the store's."""
    try:
        yield
    except psycopg.Error as exc:
        raise _translated(exc) from exc


def _translated(exc: psycopg.Error) -> RecollectError:
    match exc:
        case psycopg.errors.DiskFull():
            return StoreFullError(
                "The database's disk is full. What was acknowledged is safe; free some space and run the command again."
            )
        # PostgreSQL files the operating system's refusal under the same code as its own.
        case psycopg.errors.InsufficientPrivilege() if "Permission denied" in _message(exc):
            return StoreUnavailableError(
                f"The database server may not open a file of its own ({_message(exc)}). Give all of its data directory "
                "to the user that it runs as: chown -R."
            )
        case psycopg.errors.InsufficientPrivilege() | psycopg.errors.ReadOnlySqlTransaction():
            return StoreError(f"The database refused the operation: {_message(exc)}. Grant it, or use another role.")
        case psycopg.Error(sqlstate=str(state)) if state in _RAISED:
            return _RAISED[state](exc)
        case psycopg.errors.DataCorrupted() | psycopg.errors.IndexCorrupted():
            return StoreCorruptError(
                f"A file of the database is damaged ({_message(exc)}). recollect db verify names the table or index, "
                "and says what to do."
            )
        case psycopg.errors.UndefinedTable() | psycopg.errors.UndefinedColumn() | psycopg.errors.UndefinedFunction():
            return SchemaVersionError(
                f"The store's schema is not the one that this process opened ({_message(exc)}): another version of "
                "recollect may have brought it up to date meanwhile. End this process, and start that version."
            )
    # The driver files these under operational errors, yet the database is well: this statement failed.
    if isinstance(exc, _REFUSED):
        return StoreError(f"The database refused the operation: {_message(exc)}.")
    if isinstance(exc, psycopg.OperationalError):
        return StoreUnavailableError(f"The database cannot be reached or went away: {_message(exc)}")
    return StoreError(f"The database failed: {_message(exc)}")


def _message(exc: psycopg.Error) -> str:
    return (exc.diag.message_primary or str(exc).strip() or type(exc).__name__).rstrip(".")


# What the routines raise.
_RAISED: dict[str, Callable[[psycopg.Error], RecollectError]] = {
    "RT001": lambda exc: TenantSuspendedError(
        f"{_message(exc)}. It can neither be searched nor written to until it is resumed."
    ),
    "RT002": lambda exc: QuotaExceededError(**json.loads(exc.diag.message_detail or "{}")),
    "RT003": lambda exc: IsolationError(
        f"The store has several tenants, and {_message(exc)}: nothing is read or written over this connection. "
        "recollect db check says what an administrator has to do."
    ),
    "RT004": lambda _: StoreError(
        "The connection has lost its settings: no tenant is set. Nothing was read or written. Try again; a "
        "connection pooler must not reset sessions between two statements."
    ),
    "RT005": lambda _: ModelChangedError(
        "The collection was deleted, or its embedding model changed, while it was searched: try again."
    ),
}
