"""How much of a source may go at once before somebody has to look."""

from __future__ import annotations

from recollect.errors import SourceError

#: Where a larger share of a source has gone, none of it is closed, unless the source has another share.
MAX_REMOVED_SHARE = 0.5

# So few may always go at once: a small source changes by large shares.
_FEW = 20


def require_few_gone(source: str, gone: int, total: int, *, most: float | None) -> None:
    """Refuse to close what has gone of a source where that is much of it: another address, a server that is ill.

    Args:
        source: Its name.
        gone: How many of its documents are not there any more.
        total: How many there were.
        most: The share that may go at once; None: any.

    Raises:
        SourceError: More has gone.
    """
    if most is not None and gone > _FEW and gone > most * total:
        raise SourceError(
            source,
            f"{gone:,} of its {total:,} documents are not there any more, more than a share of {most:g}, and none "
            "was closed. If they are to be closed, refresh it with --confirm-removals",
            retryable=False,
        )
