"""What is read with the server's own files and credentials is for whoever runs it to say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.errors import PermissionDeniedError, UsageError
from recollect.pipeline.refreshing import DIRECTORY, reader_of, uses_machine

if TYPE_CHECKING:
    from recollect.server.caller import Caller


def require_machine(caller: Caller, location: str, *, connector: str | None, settings: Mapping[str, Any]) -> None:
    """Refuse a source that a caller may not have the server read.

    Whoever administers a tenant names what everybody could read: sites, public repositories, buckets that are open.
    Folders of the server's machine and its credentials would show them what belongs to others.

    Raises:
        PermissionDeniedError: It takes the server's files or credentials, and the caller does not run the server.
        UsageError: A folder is not named by its whole path.
    """
    if not uses_machine(location, connector=connector, settings=settings):
        return
    if "operator" not in caller.scopes:
        raise PermissionDeniedError(
            "This source is read with files or credentials of the server's machine: that needs a key of whoever runs "
            "the server (scope 'operator'). Sites, public repositories and open buckets need none."
        )
    if reader_of(location, connector=connector) == DIRECTORY and not Path(location).is_absolute():
        raise UsageError(
            f"{location[:200]!r} is a folder of the server's machine, not of this one: name it by its whole path there."
        )
