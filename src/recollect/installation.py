"""How this program was installed: its version, and what installs the packages that it lacks."""

from __future__ import annotations

import json
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import Distribution

#: The project's name where packages are installed from; `recollect` is another project there.
DISTRIBUTION = "recollect-rag"


def version() -> str:
    """The version that is installed; ``unknown`` where the program runs out of a folder that was never installed."""
    found = _installed()
    return "unknown" if found is None else found.version


def install_command(extra: str | None) -> str:
    """The command that installs an extra, for the way in which this program was installed.

    Args:
        extra: Its name, as ``server``; None: the project alone.

    Returns:
        With a checkout, a command to be run in it; else one that names the project, and where it came from.
    """
    found = _installed()
    wanted = f"[{extra}]" if extra else ""
    origin = {} if found is None else json.loads(found.read_text("direct_url.json") or "{}")
    if found is None or "dir_info" in origin:
        return f"pip install '.{wanted}'"
    url = origin.get("url", "")
    if "vcs_info" in origin:
        url = f"{origin['vcs_info']['vcs']}+{url}@{origin['vcs_info']['commit_id']}"
    return f"pip install '{DISTRIBUTION}{wanted}{url and ' @ '}{url}'"


@cache
def _installed() -> Distribution | None:
    try:
        return distribution(DISTRIBUTION)
    except PackageNotFoundError:
        return None
