-- register: a worker
INSERT INTO recollect_jobs.procrastinate_workers DEFAULT VALUES RETURNING id

-- beat: a worker is alive, also where it was given up; with the session that it beats in, where it has one
WITH beat AS (INSERT INTO recollect_jobs.procrastinate_workers (id) OVERRIDING SYSTEM VALUE VALUES (%(worker_id)s)
              ON CONFLICT (id) DO UPDATE SET last_heartbeat = now() RETURNING id)
INSERT INTO recollect_jobs.workers AS w (worker_id, host, process, serves, pid, backend_start)
SELECT b.id, %(host)s, %(process)s, %(serves)s, a.pid, a.backend_start
FROM beat b LEFT JOIN pg_stat_activity a ON %(session)s AND a.pid = pg_backend_pid()
ON CONFLICT (worker_id) DO UPDATE SET pid = excluded.pid, backend_start = excluded.backend_start
    WHERE (w.pid, w.backend_start) IS DISTINCT FROM (excluded.pid, excluded.backend_start)

-- unregister: a worker that ends; what it still held is run by others
DELETE FROM recollect_jobs.procrastinate_workers WHERE id = %(worker_id)s

-- workers_here: the workers that run, or ran, on this machine, with their processes
SELECT worker_id, process FROM recollect_jobs.workers WHERE host = %(host)s

-- recover: jobs whose workers are gone: their process or session has ended, or their heartbeats have been missed for long;
-- whoever waits for jobs is told of them. Of what is done every so often one waits at a time: where the next one does already,
-- the lost one goes
WITH gone AS (
    SELECT w.id FROM recollect_jobs.procrastinate_workers w
    LEFT JOIN recollect_jobs.workers s ON s.worker_id = w.id
    WHERE w.id = ANY (%(ended)s::bigint[])
       OR w.last_heartbeat < now() - make_interval(secs => %(stalled)s)
       OR s.pid IS NOT NULL AND w.last_heartbeat < now() - make_interval(secs => %(missed)s)
          AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = s.pid
                          AND coalesce(a.backend_start = s.backend_start, true))
), lost AS (
    SELECT j.id FROM recollect_jobs.procrastinate_jobs j
    WHERE j.status = 'doing' AND (j.worker_id IS NULL OR j.worker_id IN (SELECT id FROM gone))
    FOR UPDATE SKIP LOCKED
), followed AS (
    DELETE FROM recollect_jobs.procrastinate_jobs j USING lost, recollect_jobs.procrastinate_jobs next
    WHERE lost.id = j.id AND next.queueing_lock = j.queueing_lock AND next.status = 'todo' RETURNING j.id
), recovered AS (
    UPDATE recollect_jobs.procrastinate_jobs j SET status = 'todo', abort_requested = false, worker_id = NULL,
           scheduled_at = NULL, attempts = j.attempts + 1
    FROM lost WHERE lost.id = j.id AND j.id NOT IN (SELECT id FROM followed) RETURNING j.id, j.queue_name
), forgotten AS (
    DELETE FROM recollect_jobs.procrastinate_workers w USING gone WHERE gone.id = w.id
      AND NOT EXISTS (SELECT FROM recollect_jobs.procrastinate_jobs j WHERE j.worker_id = w.id AND j.status = 'doing'
                      AND j.id NOT IN (SELECT id FROM lost)))
SELECT id, (SELECT count(pg_notify(channel, json_build_object('type', 'job_inserted', 'job_id', id)::text))
            FROM unnest(ARRAY['procrastinate_any_queue_v1', 'procrastinate_queue_v1#' || queue_name]) AS channel)
FROM recovered

-- fetch: the next job that is due, of no lock that a running job has. Tenants take turns by their numbers: the first one after
-- `after_tenant` that has such a job, otherwise the first one of all. A job that waits for its next attempt blocks no other
UPDATE recollect_jobs.procrastinate_jobs j SET status = 'doing', worker_id = %(worker_id)s
WHERE j.id = (
    SELECT n.id FROM (VALUES (%(after_tenant)s::bigint + 1, 2147483647), (0, %(after_tenant)s)) AS t (first, last)
    CROSS JOIN LATERAL (
        SELECT c.id FROM recollect_jobs.procrastinate_jobs c
        WHERE c.status = 'todo' AND coalesce((c.args ->> 'tenant_id')::int, 0) BETWEEN t.first AND t.last
          AND (%(queues)s::text[] IS NULL OR c.queue_name = ANY (%(queues)s))
          AND c.queue_name <> ALL (%(without)s::text[])
          AND (c.scheduled_at IS NULL OR c.scheduled_at <= now())
          AND (c.lock IS NULL OR c.lock <> ALL (ARRAY(
              SELECT d.lock FROM recollect_jobs.procrastinate_jobs d WHERE d.status = 'doing' AND d.lock IS NOT NULL)))
        ORDER BY coalesce((c.args ->> 'tenant_id')::int, 0), c.priority DESC, c.id LIMIT 1
        FOR UPDATE SKIP LOCKED) n
    LIMIT 1)
RETURNING j.id, j.task_name, j.args, j.queue_name

-- add_periodic: what is done every so often, once for each time that it is due
SELECT recollect_jobs.procrastinate_defer_periodic_job_v2(%(queue)s, %(task)s, %(task)s, %(task)s, 1, %(name)s, %(at)s, %(args)s)

-- to_stop: jobs that a worker runs and that somebody has cancelled
SELECT id FROM recollect_jobs.procrastinate_jobs WHERE worker_id = %(worker_id)s AND status = 'doing' AND abort_requested

-- claim: one job for a worker, unless another one with the same lock runs
UPDATE recollect_jobs.procrastinate_jobs j SET status = 'doing', worker_id = %(worker_id)s
WHERE j.id = (
    SELECT c.id FROM recollect_jobs.procrastinate_jobs c
    WHERE c.id = %(queue_id)s AND c.status = 'todo' AND (c.scheduled_at IS NULL OR c.scheduled_at <= now())
      AND NOT EXISTS (SELECT FROM recollect_jobs.procrastinate_jobs o WHERE o.lock = c.lock AND o.status = 'doing')
    FOR UPDATE SKIP LOCKED)
RETURNING 1

-- finish: a job has ended, so it leaves the queue
DELETE FROM recollect_jobs.procrastinate_jobs WHERE id = %(queue_id)s AND worker_id = %(worker_id)s

-- put_off: a job goes on later
UPDATE recollect_jobs.procrastinate_jobs SET status = 'todo', abort_requested = false, worker_id = NULL,
       scheduled_at = %(due_at)s, attempts = attempts + 1
WHERE id = %(queue_id)s AND worker_id = %(worker_id)s AND status = 'doing'

-- serving: whether a worker is alive that takes jobs as they come
SELECT EXISTS (SELECT FROM recollect_jobs.procrastinate_workers w JOIN recollect_jobs.workers s ON s.worker_id = w.id
               WHERE s.serves AND w.last_heartbeat >= now() - make_interval(secs => %(stalled)s))

-- read_only: whether nothing can be written here
SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean

-- left: whether there is something to do in these queues, or something that is due
SELECT EXISTS (SELECT FROM recollect_jobs.procrastinate_jobs j
               WHERE (%(queues)s::text[] IS NULL OR j.queue_name = ANY (%(queues)s))
                 AND j.queue_name <> ALL (%(without)s::text[])
                 AND CASE WHEN %(due)s THEN j.status = 'todo' AND coalesce(j.scheduled_at <= now(), true)
                          ELSE j.status IN ('todo', 'doing') END)

-- workload: the jobs of all tenants by kind and status, and how long the first of those that are due has waited
SELECT kind, status, count(*),
       coalesce(extract(epoch FROM now() - min(coalesce(due_at, created_at))
                        FILTER (WHERE status = 'pending' AND coalesce(due_at <= now(), true))), 0)::float8
FROM recollect.jobs GROUP BY kind, status
