"""How work in the background is run."""

from __future__ import annotations

from pydantic import Field

from recollect.config.sections import Section


class JobsConfig(Section):
    """``[rag.jobs]``: what is done in the background, and tried again where it fails."""

    max_attempts: int = Field(3, ge=1, le=100, description="How often a job is tried that may succeed later.")
    backoff_seconds: float = Field(
        10.0, ge=0, le=3600, description="The wait before a second attempt; before each further one four times as long."
    )
    heartbeat_seconds: float = Field(2.0, gt=0, le=60, description="From one sign of life of a worker to the next.")
    stalled_seconds: float = Field(
        30.0, gt=0, le=3600, description="Without one for so long, a worker's jobs are given to others."
    )
    poll_seconds: float = Field(
        2.0, gt=0, le=60, description="How often a worker looks for jobs where the database does not tell it of them."
    )
    stop_seconds: float = Field(
        20.0, ge=0, le=3600, description="How long a worker that is asked to end waits for the jobs that it runs."
    )
    keep_days: float | None = Field(30.0, gt=0, description="Days after which a job that has ended is forgotten.")
