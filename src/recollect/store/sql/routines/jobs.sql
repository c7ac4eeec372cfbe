-- How a tenant's connection reaches the queue, whose tables it may not name (tenant_isolation.sql makes both SECURITY
-- DEFINER). Procrastinate's functions expect their schema in the search path; what is set within a function ends with it.

-- Puts a tenant's pending jobs into the queue, with what their rows say, in the order of their numbers.
CREATE OR REPLACE FUNCTION enqueue_jobs(p_tenant int, p_jobs bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    wanted recollect_jobs.procrastinate_job_to_defer_v1[];
    numbers bigint[];
BEGIN
    PERFORM require_tenant(p_tenant);
    PERFORM set_config('search_path', 'recollect_jobs, pg_temp', true);
    SELECT array_agg(ROW(
            j.queue, 'recollect', j.priority, j.tenant_id || ':' || j.lock, NULL,
            jsonb_build_object('tenant_id', j.tenant_id, 'job_id', j.job_id), j.due_at
        )::recollect_jobs.procrastinate_job_to_defer_v1 ORDER BY j.job_id) INTO wanted
        FROM recollect.jobs j
        WHERE j.tenant_id = p_tenant AND j.job_id = ANY (p_jobs) AND j.status = 'pending' AND j.queue_id IS NULL;
    IF wanted IS NULL THEN
        RETURN;
    END IF;
    numbers := procrastinate_defer_jobs_v1(wanted);
    UPDATE recollect.jobs j SET queue_id = q.id FROM procrastinate_jobs q
        WHERE q.id = ANY (numbers) AND j.tenant_id = p_tenant AND j.job_id = (q.args ->> 'job_id')::bigint;
END
$$;

-- Takes a job out of the queue, or asks whoever runs it to stop; returns whether it was taken out.
CREATE OR REPLACE FUNCTION withdraw_job(p_tenant int, p_job bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    number bigint;
BEGIN
    PERFORM require_tenant(p_tenant);
    PERFORM set_config('search_path', 'recollect_jobs, pg_temp', true);
    SELECT j.queue_id INTO number FROM recollect.jobs j WHERE j.tenant_id = p_tenant AND j.job_id = p_job;
    IF number IS NULL THEN
        RETURN true;
    END IF;
    PERFORM procrastinate_cancel_job_v1(number, true, true);
    RETURN NOT EXISTS (SELECT FROM procrastinate_jobs q WHERE q.id = number);
END
$$;

-- Begins jobs that wait and ask for the same as one that runs, but for one argument. They share its lock, so that nobody else
-- can take them before it has ended: their places in the queue are left as they are until each has ended too. One that runs
-- and has such a place was begun like this by a worker that has died since; it is begun by one whose worker died too.
CREATE OR REPLACE FUNCTION begin_alike(p_tenant int, p_job bigint, p_differs text, p_limit int)
RETURNS TABLE (job_id bigint, run int, arguments jsonb, attempts int, max_attempts int, deaths int)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM require_tenant(p_tenant);
    PERFORM set_config('search_path', 'recollect_jobs, pg_temp', true);
    RETURN QUERY
    UPDATE recollect.jobs j SET status = 'running', run = j.run + 1, due_at = NULL, started_at = coalesce(j.started_at, now()),
        attempts = CASE j.status WHEN 'pending' THEN 1 ELSE j.attempts END,
        deaths = j.deaths + CASE j.status WHEN 'running' THEN 1 ELSE 0 END
    WHERE j.tenant_id = p_tenant AND j.job_id = ANY (ARRAY(
        SELECT c.job_id FROM recollect.jobs m JOIN recollect.jobs c ON c.tenant_id = m.tenant_id AND c.lock = m.lock
        JOIN procrastinate_jobs q ON q.id = c.queue_id
        WHERE m.tenant_id = p_tenant AND m.job_id = p_job AND m.status = 'running' AND m.withheld = '{}'
          AND (c.status = 'pending' AND c.attempts = 0 OR c.status = 'running' AND c.deaths < m.deaths)
          AND NOT c.cancel_requested AND c.withheld = '{}'
          -- The lock puts these names together, and different ones may come to the same.
          AND c.collection IS NOT DISTINCT FROM m.collection AND c.session IS NOT DISTINCT FROM m.session AND c.source = m.source
          AND c.kind = m.kind AND c.queue = m.queue AND c.principal IS NOT DISTINCT FROM m.principal
          AND c.arguments - p_differs = m.arguments - p_differs
          AND q.status = 'todo' AND coalesce(q.scheduled_at <= now(), true)
        ORDER BY c.priority DESC, c.job_id LIMIT p_limit
        FOR UPDATE OF c SKIP LOCKED))
    RETURNING j.job_id, j.run, j.arguments, j.attempts, j.max_attempts, j.deaths;
END
$$;

-- After `begin_alike`: those that have ended leave the queue, those that are to be tried again wait there until they are due.
CREATE OR REPLACE FUNCTION settle_alike(p_tenant int, p_jobs bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM require_tenant(p_tenant);
    PERFORM set_config('search_path', 'recollect_jobs, pg_temp', true);
    UPDATE procrastinate_jobs q SET scheduled_at = j.due_at FROM recollect.jobs j
    WHERE j.tenant_id = p_tenant AND j.job_id = ANY (p_jobs) AND j.status = 'pending' AND q.id = j.queue_id AND q.status = 'todo';
    DELETE FROM procrastinate_jobs q
    WHERE q.status = 'todo' AND q.task_name = 'recollect' AND (q.args ->> 'tenant_id')::int = p_tenant
      AND (q.args ->> 'job_id')::bigint = ANY (p_jobs)
      AND NOT EXISTS (SELECT FROM recollect.jobs j WHERE j.tenant_id = p_tenant AND j.queue_id = q.id);
END
$$;
