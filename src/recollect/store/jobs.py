"""Jobs as users see them: asked for, looked at, stopped and tried again; and how a run writes down what it does.

What is run next is the queue's (`recollect.store.job_queue`). A job and its place in the queue are written by one
transaction, the caller's where there is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from psycopg.types.json import Jsonb

from recollect.errors import ConflictError, NotFoundError
from recollect.model.job import ENDED, Asker, Job, JobRun, JobStage, JobStatus, NewJob, RunEnd
from recollect.store.admission import note_effect
from recollect.store.database import Repository, records, rows
from recollect.store.documents import record_of
from recollect.store.rights import asker_params
from recollect.store.sql import queries

if TYPE_CHECKING:
    from recollect.model import Scope
    from recollect.model.collection import Collection
    from recollect.model.document_record import DocumentRecord, DocumentStatus
    from recollect.store.database import Connection

_SQL = queries("jobs")

#: What a document is that no job has stored, and the statuses of jobs that say so.
UNSTORED_STATUSES = {"pending": ["pending", "running"], "error": ["failed", "cancelled"]}

# No id is as large.
_BEHIND_ALL = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Whose turn it is where jobs that are alike could go on and on.

    Attributes:
        of_any_source: Whether others wait for the place that these have, so that their turn comes too.
        queues: The queues whose jobs could have it; None: all.
    """

    of_any_source: bool = False
    queues: Sequence[str] | None = None


class JobRepository(Repository):
    """Reads and writes the jobs of tenants. A principal's jobs are those that the principal asked for."""

    def add(
        self,
        scope: Scope,
        jobs: Sequence[NewJob],
        asker: Asker,
        *,
        stages: Sequence[Sequence[JobStage]] = (),
        max_attempts: int = 3,
        collection: Collection | None = None,
        connection: Connection | None = None,
    ) -> list[int]:
        """Ask for jobs; returns their numbers, in order.

        Args:
            scope: Whose.
            jobs: What is to be done.
            asker: For whom and where.
            stages: What each will come through, as far as that is known before.
            max_attempts: How often a job that does not say so itself is begun at most.
            collection: The asker's, where documents that jobs are about are to be seen before they are stored.
            connection: Of a transaction of the scope's: what it writes is committed together with them. None: one of
                their own.
        """
        stages = stages or [()] * len(jobs)
        params = {
            **_of(scope),
            "collection_id": None if collection is None else collection.collection_id,
            "source_types": [job.source_type for job in jobs],
            **_asking(asker),
            "kinds": [job.kind for job in jobs],
            "sources": [job.source for job in jobs],
            "documents": [job.document for job in jobs],
            "arguments": [Jsonb(dict(job.arguments)) for job in jobs],
            "withheld": [Jsonb(dict(job.withheld)) for job in jobs],
            "stages": [_stored(one) for one in stages],
            "queues": [job.queue for job in jobs],
            "locks": [_lock(asker, job) for job in jobs],
            "priorities": [job.priority for job in jobs],
            "max_attempts": [job.max_attempts or max_attempts for job in jobs],
        }
        with nullcontext(connection) if connection else self._database.transaction(scope) as within:
            if collection is not None:
                within.execute(_SQL["ensure_sources"], params)
                within.execute(_SQL["ensure_documents"], params)
            numbers = [row[0] for row in rows(within, _SQL["add"], params)]
            within.execute(_SQL["enqueue"], {**_of(scope), "job_ids": numbers})
            note_effect(within, scope)
        return numbers

    def get(self, scope: Scope, job_id: int) -> Job:
        """A job of the scope's tenant.

        Raises:
            NotFoundError: There is none of that number, or not for the scope's principal.
        """
        found = self.several(scope, [job_id])
        if not found:
            raise _missing(job_id)
        return found[0]

    def several(self, scope: Scope, job_ids: Sequence[int], *, connection: Connection | None = None) -> list[Job]:
        """Those of these jobs that there are, by number; within a transaction of the scope's, where one is given."""
        with nullcontext(connection) if connection else self._database.transaction(scope) as within:
            params = {**_of(scope), **asker_params(scope), "job_ids": list(job_ids)}
            return records(within, _SQL["get"], params, _job)

    def page(
        self,
        scope: Scope,
        *,
        statuses: Sequence[JobStatus] | None = None,
        kind: str | None = None,
        collection: str | None = None,
        source: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[Job]:
        """Jobs of the scope's tenant, newest first.

        Args:
            scope: Whose.
            statuses: Only in one of these; None: any.
            kind: Only of this kind.
            collection: Only those that write there.
            source: Only those that change documents of this source.
            before: Only jobs older than the one of this number: the next page.
            limit: Jobs at most.
        """
        params = {**_of(scope), **asker_params(scope), "statuses": None if statuses is None else list(statuses)}
        more = {"kind": kind, "collection": collection, "source": source, "before": before, "limit": limit}
        with self._database.transaction(scope) as connection:
            return records(connection, _SQL["page"], {**params, **more}, _job)

    def unstored_documents(
        self,
        scope: Scope,
        collection: Collection | None = None,
        *,
        document_id: int | None = None,
        source: str | None = None,
        status: DocumentStatus | None = None,
        newest_first: bool = False,
        after: int = 0,
        limit: int = 100,
    ) -> list[DocumentRecord]:
        """Documents that a job is to store, or was to store and could not, by id; a principal's own jobs.

        Args:
            scope: Whose.
            collection: Where; None: anywhere.
            document_id: Only this one.
            source: Only those whose URI, or whose source's name, is this.
            status: Only ``pending``, or ``error``.
            newest_first: By id from the largest on.
            after: The last id of the page before; 0: the first page.
            limit: How many at most.
        """
        params = {
            **asker_params(scope),
            **_of(scope),
            "document_id": document_id,
            "statuses": [one for name, of in UNSTORED_STATUSES.items() if status in {None, name} for one in of],
            "uri_or_origin": source,
            "newest_first": newest_first,
            "after": 0 if newest_first else after,
            "before": after if newest_first and after else _BEHIND_ALL,
            "limit": limit,
        }
        params["collection_id"] = None if collection is None else collection.collection_id
        return [record_of(row) for row in self._database.run(scope, _SQL["unstored_documents"], params)]

    def cancel(self, scope: Scope, job_id: int, *, reason: str) -> None:
        """Take a job out of the queue, or ask whoever runs it to stop; one that has ended is left as it is.

        Raises:
            NotFoundError: There is none of that number, or not for the scope's principal.
        """
        params = {**_of(scope), "job_id": job_id}
        with self._database.transaction(scope) as connection:
            status = self._hold(connection, scope, job_id)
            if status in ENDED:
                return
            connection.execute(_SQL["request_cancel"], params)
            if rows(connection, _SQL["withdraw"], params)[0][0]:
                connection.execute(_SQL["cancelled"], {**params, "error": reason})

    def retry(self, scope: Scope, job_id: int) -> None:
        """Try a job again that has failed or was cancelled, from its beginning.

        Raises:
            NotFoundError: There is none of that number, or not for the scope's principal.
            ConflictError: It has succeeded, or has not ended.
        """
        params = {**_of(scope), "job_id": job_id}
        with self._database.transaction(scope) as connection:
            status = self._hold(connection, scope, job_id)
            if status not in {"failed", "cancelled"}:
                raise ConflictError(f"Job {job_id} is {status}: only what has failed or was cancelled is tried again.")
            connection.execute(_SQL["again"], params)
            connection.execute(_SQL["enqueue"], {**_of(scope), "job_ids": [job_id]})

    def forget(self, scope: Scope, *, days: float) -> int:
        """Remove the jobs of the scope's tenant that ended so many days ago or earlier; returns how many."""
        with self._database.transaction(scope) as connection:
            found = [row[0] for row in rows(connection, _SQL["forget"], {**_of(scope), "days": days})]
            connection.execute(_SQL["forget_documents"], {**_of(scope), "document_ids": found})
        return len(found)

    def _hold(self, connection: Connection, scope: Scope, job_id: int) -> str:
        found = rows(connection, _SQL["hold"], {**_of(scope), **asker_params(scope), "job_id": job_id})
        if not found:
            raise _missing(job_id)
        return str(found[0][0])

    def queue_number(self, scope: Scope, job_id: int) -> int | None:
        """The number of a job in the queue; None: it has ended, or there is no such job."""
        found = self._database.run(scope, _SQL["queue_number"], {**_of(scope), "job_id": job_id})
        return found[0][0] if found else None

    # What a run writes

    def begin(self, scope: Scope, job_id: int, *, queue_id: int) -> JobRun | None:
        """Begin a run of a job that the queue handed out.

        Returns:
            The run; None: the job has ended meanwhile, or is gone, or the queue holds another entry for it.
        """
        params = {**_of(scope), "job_id": job_id, "queue_id": queue_id}
        with self._database.transaction(scope) as connection:
            found: list[dict[str, Any]] = records(connection, _SQL["begin"], params, dict)
        for columns in found:
            asker = Asker(**{name: columns.pop(name) for name in ("collection", "session", "principal")})
            return JobRun(tenant_id=scope.tenant_id, job_id=job_id, asker=asker, **columns)
        return None

    def begin_alike(
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
            return records(connection, _SQL["begin_alike"], params, partial(replace, first))

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
            "stages": [_stored(changed[run.job_id]) for run in told],
        }
        return dict(self._database.run(scope, _SQL["report"], params))

    def settle(self, scope: Scope, ends: Sequence[RunEnd]) -> Sequence[int]:
        """End runs unless others have begun since, with those places in the queue that no worker holds.

        Returns:
            The numbers of the jobs whose run still counted.
        """
        params = {
            **_of(scope),
            **_runs([end.run for end in ends]),
            "statuses": [end.status for end in ends],
            "stages": [_stored(end.stages) for end in ends],
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
        return [job_id for job_id, _, _ in settled]


def _of(scope: Scope) -> dict[str, Any]:
    return {"tenant_id": scope.tenant_id}


def _runs(runs: Sequence[JobRun]) -> dict[str, Any]:
    return {"job_ids": [run.job_id for run in runs], "runs": [run.run for run in runs]}


def _stored(stages: Sequence[JobStage]) -> Jsonb:
    return Jsonb([asdict(stage) for stage in stages])


def _asking(asker: Asker) -> dict[str, Any]:
    who = asker.principal
    return {
        "collection": asker.collection,
        "session": asker.session,
        "principal": None if who is None else Jsonb(dict(who)),
        "asked_by": None if who is None else who.get("user_id"),
    }


def _lock(asker: Asker, job: NewJob) -> str | None:
    """What jobs of one source have in common, or say that they have; a source's name is its collection's."""
    name = job.lock or job.source
    return None if name is None else f"{asker.session or ''}/{asker.collection or ''}/{name}"


def _job(stages: Sequence[Mapping[str, Any]], **columns: Any) -> Job:  # noqa: ANN401 - named as the fields are
    return Job(stages=tuple(JobStage(**stage) for stage in stages), **columns)


def _missing(job_id: int) -> NotFoundError:
    return NotFoundError(f"There is no job {job_id}. `recollect jobs list` shows those that there are.")
