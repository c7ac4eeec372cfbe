"""Jobs as users see them: asked for, looked at, stopped and tried again; and how a run writes down what it does.

What is run next is the queue's (`recollect.store.job_queue`). A job and its place in the queue are written by one
transaction, the caller's where there is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from psycopg.types.json import Jsonb

from recollect.errors import ConflictError, NotFoundError
from recollect.model.job import ENDED, Asker, Job, JobRun, JobStage, JobStatus, NewJob
from recollect.store.alike_jobs import AlikeJobs, stored_stages
from recollect.store.database import Database, rows
from recollect.store.documents import record_of
from recollect.store.idempotency import note_effect
from recollect.store.rights import asker_params
from recollect.store.sql import queries

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model import Scope
    from recollect.model.collection import Collection
    from recollect.model.document_record import DocumentRecord, DocumentStatus
    from recollect.store.database import Connection

_SQL = queries("jobs")

#: What a document is that no job has stored, and the statuses of jobs that say so.
UNSTORED_STATUSES = {"pending": ["pending", "running"], "error": ["failed", "cancelled"]}

# No id is as large.
_BEHIND_ALL = 2**63 - 1


class JobRepository:
    """Reads and writes the jobs of tenants. A principal's jobs are those that the principal asked for.

    Args:
        database: The store's connections.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        #: Those that are run with others that are alike.
        self.alike = AlikeJobs(database)

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
            "stages": [stored_stages(one) for one in stages],
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
        with self._database.transaction(scope) as connection:
            found = rows(connection, _SQL["get"], {**_of(scope), **asker_params(scope), "job_ids": [job_id]})
        if not found:
            raise _missing(job_id)
        return _job(found[0])

    def several(self, scope: Scope, job_ids: Sequence[int], *, connection: Connection | None = None) -> list[Job]:
        """Those of these jobs that there are, by number; within a transaction of the scope's, where one is given."""
        with nullcontext(connection) if connection else self._database.transaction(scope) as within:
            found = rows(within, _SQL["get"], {**_of(scope), **asker_params(scope), "job_ids": list(job_ids)})
        return [_job(row) for row in found]

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
            return [_job(row) for row in rows(connection, _SQL["page"], {**params, **more})]

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
        with self._database.transaction(scope) as connection:
            return [record_of(row) for row in rows(connection, _SQL["unstored_documents"], params)]

    def cancel(self, scope: Scope, job_id: int, *, reason: str) -> None:
        """Take a job out of the queue, or ask whoever runs it to stop; one that has ended is left as it is.

        Raises:
            NotFoundError: There is none of that number, or not for the scope's principal.
        """
        params = {**_of(scope), "job_id": job_id}
        with self._database.transaction(scope) as connection:
            status, _ = self._hold(connection, scope, job_id)
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
            status, _ = self._hold(connection, scope, job_id)
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

    def _hold(self, connection: Connection, scope: Scope, job_id: int) -> tuple[str, int | None]:
        found = rows(connection, _SQL["hold"], {**_of(scope), **asker_params(scope), "job_id": job_id})
        if not found:
            raise _missing(job_id)
        return found[0][0], found[0][1]

    def queue_number(self, scope: Scope, job_id: int) -> int | None:
        """The number of a job in the queue; None: it has ended, or there is no such job."""
        with self._database.transaction(scope) as connection:
            found = rows(connection, _SQL["queue_number"], {**_of(scope), "job_id": job_id})
        return found[0][0] if found else None

    # What a run writes

    def begin(self, scope: Scope, job_id: int, *, queue_id: int) -> JobRun | None:
        """Begin a run of a job that the queue handed out.

        Returns:
            The run; None: the job has ended meanwhile, or is gone, or the queue holds another entry for it.
        """
        params = {**_of(scope), "job_id": job_id, "queue_id": queue_id}
        with self._database.transaction(scope) as connection:
            found = rows(connection, _SQL["begin"], params)
        if not found:
            return None
        run, kind, arguments, collection, session, principal, attempts, max_attempts, deaths, cancel, *begun = found[0]
        started_at, since = begun
        return JobRun(
            tenant_id=scope.tenant_id,
            job_id=job_id,
            run=run,
            kind=kind,
            arguments=arguments,
            asker=Asker(collection=collection, session=session, principal=principal),
            attempts=attempts,
            max_attempts=max_attempts,
            deaths=deaths,
            cancel_requested=cancel,
            started_at=started_at,
            since_seconds=since,
        )

    def report(self, scope: Scope, run: JobRun, stages: Sequence[JobStage]) -> bool | None:
        """Write down how far a run has come.

        Returns:
            Whether it is to stop; None: it is no longer this run that counts.
        """
        with self._database.transaction(scope) as connection:
            found = rows(connection, _SQL["report"], {**_run(scope, run), "stages": stored_stages(stages)})
        return found[0][0] if found else None

    def end(
        self,
        scope: Scope,
        run: JobRun,
        *,
        status: JobStatus,
        stages: Sequence[JobStage],
        error: str | None = None,
        result: Mapping[str, Any] | None = None,
    ) -> bool:
        """End a job with a run; whether it was this run that counted."""
        outcome = {"status": status, "stages": stored_stages(stages), "error": error}
        params = {**_run(scope, run), **outcome, "result": None if result is None else Jsonb(dict(result))}
        with self._database.transaction(scope) as connection:
            counted = bool(rows(connection, _SQL["end"], params))
            if counted and status == "succeeded":
                connection.execute(_SQL["drop_upload"], params)
        return counted

    def put_off(
        self,
        scope: Scope,
        run: JobRun,
        *,
        stages: Sequence[JobStage],
        error: str | None,
        due_at: datetime | None,
        counts: bool,
    ) -> bool:
        """End a run whose job goes on later; whether it was this run that counted.

        Args:
            scope: Whose.
            run: The run.
            stages: How far it came.
            error: Why it ended; None: what was written before stays.
            due_at: When the next one begins at the earliest; None: at once.
            counts: Whether it was an attempt.
        """
        params = {
            **_run(scope, run),
            "stages": stored_stages(stages),
            "error": error,
            "due_at": due_at,
            "counts": counts,
        }
        with self._database.transaction(scope) as connection:
            return bool(rows(connection, _SQL["put_off"], params))


def _of(scope: Scope) -> dict[str, Any]:
    return {"tenant_id": scope.tenant_id}


def _run(scope: Scope, run: JobRun) -> dict[str, Any]:
    return {**_of(scope), "job_id": run.job_id, "run": run.run}


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


def _job(row: Sequence[Any]) -> Job:
    return Job(
        job_id=row[0],
        kind=row[1],
        status=row[2],
        stages=tuple(JobStage(**stage) for stage in row[3]),
        arguments=row[4],
        attempts=row[5],
        max_attempts=row[6],
        priority=row[7],
        collection=row[8],
        source=row[9],
        document=row[10],
        asked_by=row[11],
        error=row[12],
        result=row[13],
        cancel_requested=row[14],
        created_at=row[15],
        due_at=row[16],
        started_at=row[17],
        finished_at=row[18],
    )


def _missing(job_id: int) -> NotFoundError:
    return NotFoundError(f"There is no job {job_id}. recollect jobs list shows those that there are.")
