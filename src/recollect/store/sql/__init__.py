"""Every statement of the store, read from its ``.sql`` file and named there.

A query file holds statements under headers ``-- name: what it does``; Python says ``QUERIES["name"]``.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import LiteralString

from recollect.errors import StoreError

_HEADER = re.compile(r"^-- ([a-z_]+): .*$", re.MULTILINE)
# A file of another package, and the SHA-256 of what it must hold.
_INCLUDE = re.compile(r"^-- include (?P<package>\w+) (?P<file>\S+) (?P<digest>[0-9a-f]{64})$", re.MULTILINE)


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


@cache
def newest_migration() -> int:
    """The version that a schema has which this recollect knows all of."""
    return migrations()[-1][0]


def with_includes(migration: LiteralString) -> LiteralString:
    """A migration as it is executed: with the files of other packages that it includes.

    Raises:
        StoreError: The package that is installed has another file than the one that the migration was written for.
    """
    # Each file is of a package that the program trusts with its data anyway, and its content is known.
    return _INCLUDE.sub(_included, migration)


def _included(named: re.Match[str]) -> str:
    text = (files(named["package"]) / named["file"]).read_text(encoding="utf-8")
    if hashlib.sha256(text.encode()).hexdigest() != named["digest"]:
        raise StoreError(
            f"The installed {named['package']} {version(named['package'])} has another {named['file']} than this "
            f"recollect knows, so that its tables cannot be made. Upgrade recollect, or install an older "
            f"{named['package']} beside it."
        )
    return text


def routines() -> list[LiteralString]:
    """The functions, replaced whenever their text has changed."""
    entries = sorted((files(__name__) / "routines").iterdir(), key=lambda entry: entry.name)
    return [entry.read_text(encoding="utf-8") for entry in entries if entry.name.endswith(".sql")]


@cache
def catalogue() -> list[str]:
    """What the migrations and routines make, as `queries/catalogue.sql` tells it; a test writes it anew."""
    return (files(__name__) / "catalogue.txt").read_text(encoding="utf-8").splitlines()
