-- How a tenant's connection reaches the queue, whose tables it may not name (tenant_isolation.sql makes both SECURITY
-- DEFINER). Procrastinate's functions expect their schema in the search path; what is set within a function ends with it.

-- Puts a tenant's pending jobs into the queue, with what their rows say, in the order of their numbers.
CREATE OR REPLACE FUNCTION enqueue_jobs(p_tenant int, p_jobs bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    wanted recollect_jobs.procrastinate_job_to_defer_v1[];
    numbers bigint[];
BEGIN
    PERFORM recollect.require_tenant(p_tenant);
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
    PERFORM recollect.require_tenant(p_tenant);
    PERFORM set_config('search_path', 'recollect_jobs, pg_temp', true);
    SELECT j.queue_id INTO number FROM recollect.jobs j WHERE j.tenant_id = p_tenant AND j.job_id = p_job;
    IF number IS NULL THEN
        RETURN true;
    END IF;
    PERFORM procrastinate_cancel_job_v1(number, true, true);
    RETURN NOT EXISTS (SELECT FROM procrastinate_jobs q WHERE q.id = number);
END
$$;
