"""Every statement of the store, read from its ``.sql`` file and named there.

A query file holds statements under headers ``-- name: what it does``; Python says ``QUERIES["name"]``.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import LiteralString

_HEADER = re.compile(r"^-- ([a-z_]+): .*$", re.MULTILINE)


@cache
def queries(group: str) -> dict[str, LiteralString]:
    """The named statements of ``queries/<group>.sql``."""
    text = (files(__name__) / "queries" / f"{group}.sql").read_text(encoding="utf-8")
    parts = _HEADER.split(text)
    return {name: body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def migrations() -> list[tuple[int, str, LiteralString]]:
    """All migrations as (version, name, SQL), in order."""
    entries = (entry for entry in (files(__name__) / "migrations").iterdir() if entry.name.endswith(".sql"))
    return sorted((int(entry.name[:4]), entry.name[:-4], entry.read_text(encoding="utf-8")) for entry in entries)


def routines() -> list[LiteralString]:
    """The functions, replaced whenever their text has changed."""
    entries = sorted((files(__name__) / "routines").iterdir(), key=lambda entry: entry.name)
    return [entry.read_text(encoding="utf-8") for entry in entries if entry.name.endswith(".sql")]


@cache
def catalogue() -> list[str]:
    """What the migrations and routines make, as `queries/catalogue.sql` tells it; a test writes it anew."""
    return (files(__name__) / "catalogue.txt").read_text(encoding="utf-8").splitlines()
