"""The catalogue that stores are compared with is what migrations and routines make. As a program: writes it anew."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import psycopg

from recollect.store.catalogue import DIGEST, differences, sound_digests
from recollect.store.sql import queries

FILE = Path(__file__).resolve().parents[2] / "src/recollect/store/sql/catalogue.txt"


def made(connection: psycopg.Connection) -> list[str]:
    lines: list[str] = []
    with connection.transaction():
        connection.execute("SET LOCAL search_path = pg_catalog, public")
        for name in ("guards", "structure"):
            query = queries("catalogue")[name]
            lines += [row[0] for row in connection.execute(query.replace("%%", "%"))]
    return sorted(lines)


def test_the_catalogue_is_what_migrations_and_routines_make(dsn: str):
    with psycopg.connect(dsn) as connection:
        assert FILE.read_text(encoding="utf-8").splitlines() == made(connection), f"run: python {Path(__file__).name}"
        assert differences(connection) == []
        connection.execute("SET LOCAL search_path = pg_catalog, public")
        assert connection.execute(DIGEST.replace("%%", "%")).fetchone()[0] == sound_digests()[0]


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from recollect.store.embedded import EmbeddedServer
    from recollect.store.migrate import migrate
    from server import data_directory

    FILE.touch()
    # A store that differs from the old file is what this is for.
    logging.disable()
    with data_directory() as folder, EmbeddedServer(folder) as server:
        migrate(server)
        with psycopg.connect(server) as opened:
            FILE.write_text("\n".join(made(opened)) + "\n", encoding="utf-8")
