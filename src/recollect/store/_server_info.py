"""What a PostgreSQL server says about itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from recollect.store.database import connect
from recollect.store.driver_errors import translated_errors


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """A server and the database on it.

    Attributes:
        version: For instance ``"18.4"``.
        major_version: For instance 18.
        vector_version: pgvector's version, or None where it is not enabled in this database.
        data_directory: Where the server keeps its files, or None where this role may not know.
        database: The database's name.
        database_bytes: Its size.
        checksums: Whether the server checks every page that it reads.
        durable: Whether what was committed survives a crash: ``fsync``, ``full_page_writes``, ``synchronous_commit``.
    """

    version: str
    major_version: int
    vector_version: str | None
    data_directory: Path | None
    database: str
    database_bytes: int
    checksums: bool
    durable: bool


_QUERY = """
    SELECT current_setting('server_version'),
           current_setting('server_version_num')::int / 10000,
           (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
           (SELECT setting FROM pg_settings WHERE name = 'data_directory'),
           current_database(),
           pg_database_size(current_database()),
           current_setting('data_checksums')::bool,
           current_setting('fsync')::bool
               AND current_setting('full_page_writes')::bool
               AND current_setting('synchronous_commit') <> 'off'
"""


def server_info(dsn: str) -> ServerInfo:
    """Ask a server about itself.

    Args:
        dsn: A libpq connection string.

    Raises:
        StoreUnavailableError: It cannot be reached.
    """
    with connect(dsn) as connection, translated_errors():
        row = connection.execute(_QUERY).fetchone()
    assert row is not None
    version, major, vector, folder, database, size, checksums, durable = row
    return ServerInfo(
        version=version,
        major_version=major,
        vector_version=vector,
        data_directory=Path(folder) if folder else None,
        database=database,
        database_bytes=size,
        checksums=checksums,
        durable=durable,
    )
