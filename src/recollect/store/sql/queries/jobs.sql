-- ensure_sources: of documents that jobs are about
INSERT INTO sources (tenant_id, collection_id, name, type)
SELECT DISTINCT ON (n.source) %(tenant_id)s, %(collection_id)s, n.source, n.source_type
FROM unnest(%(sources)s::text[], %(source_types)s::text[]) AS n (source, source_type) WHERE n.source IS NOT NULL
ORDER BY n.source
ON CONFLICT (tenant_id, collection_id, name) DO NOTHING

-- ensure_documents: the identities of documents that jobs are about, in the order of every writer
INSERT INTO documents (tenant_id, collection_id, source_id, uri, owner)
SELECT DISTINCT %(tenant_id)s, %(collection_id)s, s.source_id, n.document, coalesce(%(asked_by)s, '')
FROM unnest(%(sources)s::text[], %(documents)s::text[]) AS n (source, document)
JOIN sources s ON s.tenant_id = %(tenant_id)s AND s.collection_id = %(collection_id)s AND s.name = n.source
WHERE n.document IS NOT NULL ORDER BY s.source_id, n.document
ON CONFLICT DO NOTHING

-- add: jobs, in the order that they are given in
INSERT INTO jobs (tenant_id, kind, collection, session, source, document, document_id, principal, asked_by, arguments,
                  withheld, stages, queue, lock, priority, max_attempts)
SELECT %(tenant_id)s, n.kind, %(collection)s, %(session)s, n.source, n.document,
       (SELECT max(d.document_id) FROM sources s
        JOIN documents d ON d.tenant_id = s.tenant_id AND d.source_id = s.source_id AND d.uri = n.document
         AND d.given_id IS NULL AND d.owner = coalesce(%(asked_by)s, '')
        WHERE s.tenant_id = %(tenant_id)s AND s.collection_id = %(collection_id)s AND s.name = n.source),
       %(principal)s, %(asked_by)s, n.arguments, n.withheld, n.stages, n.queue, n.lock, n.priority, n.max_attempts
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

-- unstored_documents: documents whose latest job has not stored them, and that have no current version; few, whatever was stored
SELECT d.document_id, d.uri, d.uri, c.name, 0, NULL, '', NULL,
       CASE WHEN j.arguments ?| '{chunk_tokens,overlap_tokens}' THEN jsonb_build_object('chunking', jsonb_strip_nulls(
           jsonb_build_object('chunk_tokens', j.arguments -> 'chunk_tokens', 'overlap_tokens', j.arguments -> 'overlap_tokens')))
       ELSE '{}' END, '{}'::text[], 0, '', j.created_at, NULL, s.name,
       NULL, CASE WHEN j.status IN ('pending', 'running') THEN 'pending' ELSE 'error' END, j.error, s.type, d.given_id
FROM jobs j
JOIN documents d ON d.tenant_id = j.tenant_id AND d.document_id = j.document_id
JOIN collections c ON c.tenant_id = d.tenant_id AND c.collection_id = d.collection_id
JOIN sources s ON s.tenant_id = d.tenant_id AND s.source_id = d.source_id
WHERE j.tenant_id = %(tenant_id)s AND j.status = ANY (%(statuses)s::text[])
  AND j.document_id > %(after)s AND j.document_id < %(before)s
  AND (%(document_id)s::bigint IS NULL OR j.document_id = %(document_id)s)
  AND (NOT %(own)s OR j.asked_by = %(user)s::text OR %(user)s::text IS NULL AND j.principal = %(principal)s::jsonb)
  AND NOT EXISTS (
      SELECT FROM jobs l WHERE l.tenant_id = j.tenant_id AND l.document_id = j.document_id AND l.job_id > j.job_id
        AND (NOT %(own)s OR l.asked_by = %(user)s::text OR %(user)s::text IS NULL AND l.principal = %(principal)s::jsonb))
  AND (%(collection_id)s::int IS NULL OR d.collection_id = %(collection_id)s)
  AND NOT EXISTS (SELECT FROM document_versions v
                  WHERE v.tenant_id = d.tenant_id AND v.document_id = d.document_id AND v.known_to = 'infinity')
  AND (%(uri_or_origin)s::text IS NULL OR d.uri = %(uri_or_origin)s OR s.name = %(uri_or_origin)s)
ORDER BY CASE WHEN %(newest_first)s THEN -d.document_id ELSE d.document_id END LIMIT %(limit)s

-- hold: a job's row, until the end of the transaction
SELECT status FROM jobs
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
RETURNING run, kind, arguments || withheld AS arguments, collection, session, principal, attempts, max_attempts, deaths, cancel_requested,
          started_at, extract(epoch FROM clock_timestamp() - started_at)::float8 AS since_seconds

-- queue_number: of a job that waits or runs
SELECT queue_id FROM jobs WHERE tenant_id = %(tenant_id)s AND job_id = %(job_id)s

-- forget: jobs that ended long ago
DELETE FROM jobs WHERE tenant_id = %(tenant_id)s AND finished_at < now() - make_interval(secs => %(days)s * 86400)
RETURNING document_id

-- forget_documents: of which nothing was ever stored, and that no job is about any more
DELETE FROM documents d WHERE d.tenant_id = %(tenant_id)s AND d.document_id = ANY (%(document_ids)s::bigint[])
  AND NOT EXISTS (SELECT FROM document_versions v WHERE v.tenant_id = d.tenant_id AND v.document_id = d.document_id)
  AND NOT EXISTS (SELECT FROM jobs j WHERE j.tenant_id = d.tenant_id AND j.document_id = d.document_id)

-- begin_alike: jobs that wait, or were lost, and ask for the same as one that was begun, but for one argument
SELECT job_id, run, arguments, attempts, max_attempts, deaths
FROM begin_alike(%(tenant_id)s, %(job_id)s, %(run)s, %(queue_id)s, %(differs)s, %(together)s, %(most)s, %(begun)s::bigint[],
                 %(yields)s, %(others)s, %(queues)s::text[]) ORDER BY job_id

-- report: how far runs have come that changed, and which of those asked after still count, with whether they are to stop
WITH told AS (
    UPDATE jobs j SET stages = n.stages
    FROM unnest(%(changed)s::bigint[], %(changed_runs)s::int[], %(stages)s::jsonb[]) AS n (job_id, run, stages)
    WHERE j.tenant_id = %(tenant_id)s AND j.job_id = n.job_id AND j.run = n.run AND j.status = 'running')
SELECT j.job_id, j.cancel_requested FROM jobs j
JOIN unnest(%(job_ids)s::bigint[], %(runs)s::int[]) AS n (job_id, run) ON n.job_id = j.job_id AND n.run = j.run
WHERE j.tenant_id = %(tenant_id)s AND j.status = 'running'

-- settle: what became of several runs, unless others have begun since; with their places in the queue
WITH was AS (SELECT job_id, queue_id FROM jobs WHERE tenant_id = %(tenant_id)s AND job_id = ANY (%(job_ids)s::bigint[])
             ORDER BY job_id FOR UPDATE)
UPDATE jobs j SET status = n.status, stages = n.stages, result = coalesce(n.result, j.result), due_at = n.due_at,
       error = CASE n.status WHEN 'pending' THEN coalesce(n.error, j.error) ELSE n.error END,
       attempts = j.attempts - CASE WHEN n.counts THEN 0 ELSE 1 END,
       finished_at = CASE n.status WHEN 'pending' THEN NULL ELSE now() END,
       queue_id = CASE n.status WHEN 'pending' THEN j.queue_id END,
       withheld = CASE n.status WHEN 'succeeded' THEN '{}' ELSE j.withheld END
FROM unnest(%(job_ids)s::bigint[], %(runs)s::int[], %(statuses)s::text[], %(stages)s::jsonb[], %(errors)s::text[],
            %(results)s::jsonb[], %(due)s::timestamptz[], %(counts)s::boolean[])
     AS n (job_id, run, status, stages, error, result, due_at, counts)
JOIN was USING (job_id)
WHERE j.tenant_id = %(tenant_id)s AND j.job_id = n.job_id AND j.run = n.run AND j.status = 'running'
RETURNING j.job_id, j.status, was.queue_id

-- drop_uploads: what jobs that have succeeded were to read
DELETE FROM job_uploads WHERE tenant_id = %(tenant_id)s AND job_id = ANY (%(job_ids)s::bigint[])

-- settle_alike: the places of such jobs in the queue, once what became of them is written down
SELECT settle_alike(%(tenant_id)s, %(queue_ids)s::bigint[])
