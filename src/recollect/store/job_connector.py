"""How procrastinate reaches its tables: over the store's own connections, whose errors are the store's.

Procrastinate is asynchronous, the store is not: a statement runs in one of a few threads. So a server that has to be
started first, a pooler in between, and a schema that is not in the search path are no concern of procrastinate's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, LiteralString, TypeVar

import psycopg
from procrastinate.connector import BaseAsyncConnector, BaseConnector, Notify
from procrastinate.exceptions import UniqueViolation
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from recollect.errors import StoreError
from recollect.store.database import Database
from recollect.store.job_queue import queue_transaction

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

_THREADS = 3

# A connection that waits for notifications is opened anew so long after it was lost; jobs are polled for meanwhile.
_RECONNECT_SECONDS = 2.0


class JobConnector(BaseAsyncConnector):
    """Runs procrastinate's statements.

    Args:
        database: Connections that nothing else uses: whoever runs jobs must not wait for those whom it runs.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="recollect-queue")

    async def run(self, call: Callable[[], _T]) -> _T:
        """Run a call that waits for the database in one of the connector's threads."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    def get_sync_connector(self) -> BaseConnector:
        """This one: its other methods wait for the asynchronous ones."""
        return self

    async def open_async(self, pool: object = None) -> None:
        """Nothing: connections are opened when they are needed."""

    async def close_async(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False)

    async def execute_query_async(self, query: LiteralString, **arguments: Any) -> None:  # noqa: ANN401 - a value each
        """Run a statement."""
        await self.run(lambda: self._execute(query, arguments, fetch=False))

    async def execute_query_one_async(self, query: LiteralString, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
        """Run a statement that gives one row."""
        return (await self.run(lambda: self._execute(query, arguments)))[0]

    async def execute_query_all_async(self, query: LiteralString, **arguments: Any) -> list[dict[str, Any]]:  # noqa: ANN401
        """Run a statement that gives rows."""
        return await self.run(lambda: self._execute(query, arguments))

    async def listen_notify(self, on_notification: Notify, channels: Iterable[str]) -> None:
        """Wait for what the database tells of jobs, for ever; where a connection is lost, over another one."""
        listen = [sql.SQL("LISTEN {}").format(sql.Identifier(channel)) for channel in channels]
        while True:
            try:
                async with self._listening() as connection:
                    for statement in listen:
                        await connection.execute(statement)
                    async for notification in connection.notifies():
                        await on_notification(channel=notification.channel, payload=notification.payload)
            except psycopg.Error as exc:
                logger.info("The connection that waits for jobs was lost and is opened again: %s", exc)
            await asyncio.sleep(_RECONNECT_SECONDS)

    @asynccontextmanager
    async def _listening(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        connection = await psycopg.AsyncConnection.connect(self._database.dsn, autocommit=True)
        async with connection:
            yield connection

    def _execute(self, query: LiteralString, arguments: dict[str, Any], *, fetch: bool = True) -> list[dict[str, Any]]:
        params = {name: Jsonb(value) if isinstance(value, dict) else value for name, value in arguments.items()}
        try:
            with queue_transaction(self._database) as connection:
                cursor = connection.cursor(row_factory=dict_row)
                cursor.execute(query, params)
                return cursor.fetchall() if fetch else []
        except StoreError as exc:
            # Procrastinate expects this one: the same periodic job still waits in the queue.
            if isinstance(cause := exc.__cause__, psycopg.errors.UniqueViolation):
                name = cause.diag.constraint_name
                raise UniqueViolation(constraint_name=name, queueing_lock=arguments.get("queueing_lock")) from exc
            raise
