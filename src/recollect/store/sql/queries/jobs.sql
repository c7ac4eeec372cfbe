-- add: jobs, in the order that they are given in
INSERT INTO jobs (tenant_id, kind, collection, session, source, document, principal, asked_by, arguments, withheld, stages,
                  queue, lock, priority, max_attempts)
SELECT %(tenant_id)s, n.kind, %(collection)s, %(session)s, n.source, n.document, %(principal)s, %(asked_by)s,
       n.arguments, n.withheld, n.stages, n.queue, n.lock, n.priority, n.max_attempts
FROM unnest(%(kinds)s::text[], %(sources)s::text[], %(documents)s::text[], %(arguments)s::jsonb[], %(withheld)s::jsonb[],
            %(stages)s::jsonb[], %(queues)s::text[], %(locks)s::text[], %(priorities)s::int[], %(max_attempts)s::int[])
     WITH ORDINALITY AS n (kind, source, document, arguments, withheld, stages, queue, lock, priority, max_attempts, number)
ORDER BY n.number
RETURNING job_id

-- enqueue: into the queue that workers take jobs from
SELECT enqueue_jobs(%(tenant_id)s, %(job_ids)s::bigint[])

-- get: by their numbers
SELECT job_id, kind, status, stages, arguments, attempts, max_attempts, priority, collection, source, document, asked_by, error,
       result, cancel_requested, created_at, due_at, started_at, finished_at FROM jobs WHERE tenant_id = %(tenant_id)s AND job_id = ANY (%(job_ids)s::bigint[])
  AND (NOT %(own)s OR asked_by = %(user)s::text OR %(user)s::text IS NULL AND principal = %(principal)s::jsonb)
ORDER BY job_id

-- page: newest first
SELECT job_id, kind, status, stages, arguments, attempts, max_attempts, priority, collection, source, document, asked_by, error,
       result, cancel_requested, created_at, due_at, started_at, finished_at FROM jobs
WHERE tenant_id = %(tenant_id)s
  AND (NOT %(own)s OR asked_by = %(user)s::text OR %(user)s::text IS NULL AND principal = %(principal)s::jsonb)
  AND (%(statuses)s::text[] IS NULL OR status = ANY (%(statuses)s))
  AND (%(kind)s::text IS NULL OR kind = %(kind)s)
  AND (%(collection)s::text IS NULL OR collection = %(collection)s)
  AND (%(source)s::text IS NULL OR source = %(source)s)
  AND (%(before)s::bigint IS NULL OR job_id < %(before)s)
ORDER BY job_id DESC LIMIT %(limit)s

-- hold: a job's row, until the end of the transaction
SELECT status, queue_id FROM jobs
WHERE tenant_id = %(tenant_id)s AND job_id = %(job_id)s AND (NOT %(own)s OR asked_by = %(user)s::text OR %(user)s::text IS NULL AND principal = %(principal)s::jsonb)
FOR UPDATE

-- request_cancel: of one that has not ended
UPDATE jobs SET cancel_requested = true WHERE tenant_id = %(tenant_id)s AND job_id = %(job_id)s

-- withdraw: out of the queue
SELECT withdraw_job(%(tenant_id)s, %(job_id)s)

-- cancelled: it will not run
UPDATE jobs SET status = 'cancelled', error = %(error)s, finished_at = now(), due_at = NULL, queue_id = NULL
WHERE tenant_id = %(tenant_id)s AND job_id = %(job_id)s

-- again: one that has failed or was cancelled, from its beginning
UPDATE jobs SET status = 'pending', attempts = 0, deaths = 0, cancel_requested = false, queue_id = NULL, due_at = NULL,
       finished_at = NULL, started_at = NULL, stages = '[]', result = NULL
WHERE tenant_id = %(tenant_id)s AND job_id = %(job_id)s

-- begin: a run of a job that the queue handed out; a job that runs already lost its worker
UPDATE jobs SET status = 'running', run = run + 1, due_at = NULL, started_at = coalesce(started_at, now()),
       attempts = attempts + CASE status WHEN 'pending' THEN 1 ELSE 0 END,
       deaths = deaths + CASE status WHEN 'running' THEN 1 ELSE 0 END
WHERE tenant_id = %(tenant_id)s AND job_id = %(job_id)s AND queue_id = %(queue_id)s AND status IN ('pending', 'running')
RETURNING run, kind, arguments || withheld, collection, session, principal, attempts, max_attempts, deaths, cancel_requested

-- report: how far a run has come, unless another one has begun since
UPDATE jobs SET stages = %(stages)s
WHERE tenant_id = %(tenant_id)s AND job_id = %(job_id)s AND run = %(run)s AND status = 'running'
RETURNING cancel_requested

-- end: of a run, unless another one has begun since
UPDATE jobs SET status = %(status)s, stages = %(stages)s, result = %(result)s, error = %(error)s, finished_at = now(),
       queue_id = NULL, withheld = CASE %(status)s WHEN 'succeeded' THEN '{}' ELSE withheld END
WHERE tenant_id = %(tenant_id)s AND job_id = %(job_id)s AND run = %(run)s AND status = 'running'
RETURNING 1

-- put_off: a run that ended before its job had, to another time
UPDATE jobs SET status = 'pending', stages = %(stages)s, error = coalesce(%(error)s, error), due_at = %(due_at)s,
       attempts = attempts - CASE WHEN %(counts)s THEN 0 ELSE 1 END
WHERE tenant_id = %(tenant_id)s AND job_id = %(job_id)s AND run = %(run)s AND status = 'running'
RETURNING 1

-- queue_number: of a job that waits or runs
SELECT queue_id FROM jobs WHERE tenant_id = %(tenant_id)s AND job_id = %(job_id)s

-- forget: jobs that ended long ago
DELETE FROM jobs WHERE tenant_id = %(tenant_id)s AND finished_at < now() - make_interval(secs => %(days)s * 86400)
RETURNING 1
