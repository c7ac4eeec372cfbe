"""The command ``recollect`` from its first moment: its imports take a while, and Ctrl-C ends them quietly too."""

from __future__ import annotations

import sys

_STATUS_INTERRUPTED = 130


def main() -> int:
    """Run the command that ``sys.argv`` names; see `recollect.cli.main`.

    Returns:
        Its exit status.
    """
    try:
        from recollect.cli.main import main as run
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return _STATUS_INTERRUPTED
    return run()
