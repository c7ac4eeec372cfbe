"""Jobs that are alike and run with the first of them, whose place in the queue is held for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from psycopg.types.json import Jsonb

from recollect.model.job import JobRun, JobStage, RunEnd
from recollect.store.database import Database, rows
from recollect.store.sql import queries

if TYPE_CHECKING:
    from recollect.model import Scope

_SQL = queries("jobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Whose turn it is where jobs that are alike could go on and on.

    Attributes:
        of_any_source: Whether others wait for the place that these have, so that their turn comes too.
        queues: The queues whose jobs could have it; None: all.
    """

    of_any_source: bool = False
    queues: Sequence[str] | None = None


class AlikeJobs:
    """Begins and ends them.

    Args:
        database: The store's connections.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(
        self,
        scope: Scope,
        first: JobRun,
        *,
        queue_id: int,
        differs: str,
        together: int,
        most: int,
        begun: Sequence[JobRun] = (),
        turn: Turn | None = None,
    ) -> list[JobRun]:
        """Begin jobs that wait and ask for the same as one that was begun, but for one argument.

        They have its lock, so nobody else takes them while its place in the queue is held; `settle` comes when they
        have ended. Where a worker died with the first, those that it had begun like this are begun before others.

        Args:
            scope: The tenant.
            first: The run that they are to share.
            queue_id: The queue's number for its job.
            differs: The argument that each has its own of.
            together: How many are under way at most besides one; of those that lost workers fewer.
            most: How many to begin at most.
            begun: Those that are under way.
            turn: Only while none of others comes before them; None: whoever else waits.
        """
        params = {
            **_of(scope),
            "job_id": first.job_id,
            "run": first.run,
            "queue_id": queue_id,
            "differs": differs,
            "together": together,
            "most": most,
            "begun": [run.job_id for run in begun],
            "yields": turn is not None,
            "others": turn is not None and turn.of_any_source,
            "queues": None if turn is None or turn.queues is None else list(turn.queues),
        }
        with self._database.transaction(scope) as connection:
            found = rows(connection, _SQL["begin_alike"], params)
        return [
            replace(
                first,
                job_id=job_id,
                run=number,
                arguments=arguments,
                attempts=attempts,
                max_attempts=attempts_at_most,
                deaths=deaths,
            )
            for job_id, number, arguments, attempts, attempts_at_most, deaths in found
        ]

    def report(
        self, scope: Scope, runs: Sequence[JobRun], changed: Mapping[int, Sequence[JobStage]]
    ) -> dict[int, bool]:
        """Write down how far runs have come.

        Args:
            scope: The tenant.
            runs: Those that are asked after.
            changed: How far some of them have come, by the numbers of their jobs.

        Returns:
            By the numbers of the jobs whose run still counts, whether it is to stop.
        """
        told = [run for run in runs if run.job_id in changed]
        params = {
            **_of(scope),
            **_runs(runs),
            "changed": [run.job_id for run in told],
            "changed_runs": [run.run for run in told],
            "stages": [stored_stages(changed[run.job_id]) for run in told],
        }
        with self._database.transaction(scope) as connection:
            return dict(rows(connection, _SQL["report_several"], params))

    def settle(self, scope: Scope, ends: Sequence[RunEnd]) -> None:
        """End runs that share a place in the queue, and their own places there; what no longer counts is left."""
        params = {
            **_of(scope),
            **_runs([end.run for end in ends]),
            "statuses": [end.status for end in ends],
            "stages": [stored_stages(end.stages) for end in ends],
            "errors": [end.error for end in ends],
            "results": [None if end.result is None else Jsonb(dict(end.result)) for end in ends],
            "due": [end.due_at for end in ends],
            "counts": [end.counts for end in ends],
        }
        with self._database.transaction(scope) as connection:
            settled = rows(connection, _SQL["settle"], params)
            params["job_ids"] = [job_id for job_id, status, _ in settled if status == "succeeded"]
            connection.execute(_SQL["drop_uploads"], params)
            params["queue_ids"] = [queue_id for _, _, queue_id in settled]
            connection.execute(_SQL["settle_alike"], params)


def stored_stages(stages: Sequence[JobStage]) -> Jsonb:
    """Stages as they are stored."""
    return Jsonb([asdict(stage) for stage in stages])


def _of(scope: Scope) -> dict[str, Any]:
    return {"tenant_id": scope.tenant_id}


def _runs(runs: Sequence[JobRun]) -> dict[str, Any]:
    return {"job_ids": [run.job_id for run in runs], "runs": [run.run for run in runs]}
