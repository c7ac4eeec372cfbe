"""Since when something is being done that may be begun again: what it has done already is not done twice.

A job whose worker dies is run anew from its beginning. Where it finds what it wrote before, it leaves that as it is.
"""

from __future__ import annotations

from contextvars import ContextVar
from datetime import datetime

#: When the job that runs here was begun for the first time; None: none runs here.
job_begun: ContextVar[datetime | None] = ContextVar("recollect_job_begun", default=None)


def is_own_work(written_at: datetime) -> bool:
    """Whether something that was written then can only be an earlier run's of the job that runs here, or a later one's.

    Args:
        written_at: By the database's clock, as the job's begin.
    """
    begun = job_begun.get()
    return begun is not None and written_at >= begun
