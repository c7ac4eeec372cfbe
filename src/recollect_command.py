"""The command ``recollect`` from its first moment: its imports take a while, and Ctrl-C ends them quietly too.

It stands beside the package, so that it is there where another project's package of that name has taken its place.
"""

from __future__ import annotations

import sys
from pathlib import Path

_STATUS_FAILED = 1
_STATUS_INTERRUPTED = 130


def main() -> int:
    """Run the command that ``sys.argv`` names; see `recollect.cli.main`.

    Returns:
        Its exit status.
    """
    try:
        import importlib.util

        spec = importlib.util.find_spec("recollect")
        if spec is not None and spec.origin is not None:
            refuse_another_project(spec.origin)
        from recollect.cli.main import main as run
    except AnotherProjectError as exc:
        sys.stderr.write(f"error: {exc}\n")
        return _STATUS_FAILED
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return _STATUS_INTERRUPTED
    return run()


class AnotherProjectError(ImportError):
    """Another project's package ``recollect`` is installed in the same folder."""


def refuse_another_project(origin: str) -> None:
    """Refuse a package ``recollect`` in whose folder the project of that name is installed too.

    Args:
        origin: The file of the package's ``__init__``.

    Raises:
        AnotherProjectError: One has overwritten files of the other.
    """
    folder = Path(origin).absolute().parents[1]
    for info in folder.glob("recollect-*.dist-info"):
        if not _is_ours(info):
            raise AnotherProjectError(
                f"Another project, {info.stem.replace('-', ' ')}, is installed in {str(folder)!r}. Its package is "
                "called recollect too, and each of the two overwrites files of the other. Remove both (pip uninstall "
                "recollect recollect-rag), then install recollect-rag in an environment of its own (python3 -m venv)."
            )


def _is_ours(info: Path) -> bool:
    """Whether it is what this project installed before it was called recollect-rag."""
    record = info / "RECORD"
    return record.is_file() and "recollect_command.py" in record.read_text(encoding="utf-8", errors="replace")
