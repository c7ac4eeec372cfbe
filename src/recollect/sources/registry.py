"""Which connectors there are, by name; each is imported when it is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic import ValidationError

from recollect.errors import UsageError
from recollect.plugins import Plugins
from recollect.sources.base import ConnectorClass, ConnectorSettings

#: Packages of others add connectors by entry points of its group: a name, and a class like those here.
CONNECTORS = Plugins(
    kind="connector",
    group="recollect.connectors",
    own={
        "git": "recollect.sources.git:GitConnector",
        "imap": "recollect.sources.imap:ImapConnector",
        "s3": "recollect.sources.s3:S3Connector",
    },
    methods=("Settings", "changes", "fetch", "grants", "close"),
)


def connector_names() -> list[str]:
    """The names of all connectors, those of other packages included."""
    return CONNECTORS.names()


def connector_class(name: str) -> ConnectorClass:
    """The connector of a name.

    Raises:
        UsageError: There is none.
    """
    return cast("ConnectorClass", CONNECTORS.find(name))


def connector_of(location: str) -> str | None:
    """The connector that a location asks for by its form; None: no connector's."""
    lowered = location.lower()
    if lowered.startswith("s3://"):
        return "s3"
    if lowered.startswith(("imaps://", "imap://")):
        return "imap"
    if lowered.startswith(("git://", "ssh://", "git+https://", "git+http://", "git@")) or lowered.endswith(".git"):
        return "git"
    return None


def read_settings(name: str, location: str, given: Mapping[str, Any]) -> ConnectorSettings:
    """The settings of a connector, checked.

    Raises:
        UsageError: One of them is unknown or not valid. The message does not repeat its value.
    """
    kind = connector_class(name).Settings
    try:
        return kind(location=location, **given)
    except ValidationError as exc:
        problems = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or 'settings'}: {one['msg'].removeprefix('Value error, ')}"
            for one in exc.errors(include_input=False, include_url=False)
        )
        known = ", ".join(field for field in kind.model_fields if field != "location")
        raise UsageError(f"The source's settings are not valid: {problems}. Known are {known}.") from exc
