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

-- Begins jobs that ask for the same as one that was begun, but for one argument, and returns them. They share its lock, so that
-- nobody else can take them while it holds its place in the queue, also once it has ended itself; their own places are left as
-- they are until each has ended too (`settle_alike`). The lock puts names together, and different ones may come to the same, so
-- each is compared. Taken are:
--   - jobs that run and have such a place: a worker that has died since had begun them like this. The first of them must have lost
--     its own too, and those that have lost most come first;
--   - then those that wait, in their order. One whose own attempt failed has a time; one that failed with others at once, as has
--     none, is run alone. With p_yields they are begun only while the queue would hand out one of them next: of its own source, or
--     with p_others, where all places of the worker are taken, of any, and only while no other tenant waits for its turn.
-- As many are begun as p_most, and with those that are under way (p_begun) p_together besides the first at most; a quarter of that
-- for every worker that one of them has lost, so that which of them it was is soon found.
CREATE OR REPLACE FUNCTION begin_alike(
    p_tenant int, p_job bigint, p_run int, p_queue bigint, p_differs text, p_together int, p_most int, p_begun bigint[],
    p_yields boolean, p_others boolean, p_queues text[])
RETURNS TABLE (job_id bigint, run int, arguments jsonb, attempts int, max_attempts int, deaths int)
LANGUAGE plpgsql AS $$
DECLARE
    m record;
    own text;
    doubt int;
    room int;
    next_one bigint;
    lost bigint[] := '{}';
    waiting bigint[] := '{}';
BEGIN
    PERFORM require_tenant(p_tenant);
    PERFORM set_config('search_path', 'recollect_jobs, pg_temp', true);
    SELECT j.lock, j.queue, j.deaths, j.tenant_id,
           ROW (j.collection, j.session, j.source, j.kind, j.queue, j.principal, j.withheld, false, j.arguments - p_differs) AS asked
        INTO m FROM recollect.jobs j
        WHERE j.tenant_id = p_tenant AND j.job_id = p_job AND j.run = p_run
          AND EXISTS (SELECT FROM procrastinate_jobs q WHERE q.id = p_queue AND q.status = 'doing');
    own := m.tenant_id || ':' || m.lock;
    IF own IS NULL THEN
        RETURN;
    END IF;
    doubt := (SELECT coalesce(max(c.deaths), 0) FROM recollect.jobs c
              WHERE c.tenant_id = p_tenant AND c.job_id = ANY (p_begun) AND c.status = 'running');
    IF m.deaths > 0 THEN
        lost := ARRAY(
            SELECT c.job_id FROM recollect.jobs c JOIN procrastinate_jobs q ON q.id = c.queue_id
            WHERE c.tenant_id = p_tenant AND c.status = 'running' AND c.deaths < m.deaths AND c.job_id <> ALL (p_begun)
              AND c.lock = m.lock AND c.withheld = '{}'
              AND ROW (c.collection, c.session, c.source, c.kind, c.queue, c.principal, c.withheld, c.cancel_requested,
                   c.arguments - p_differs) IS NOT DISTINCT FROM m.asked
              AND q.status = 'todo' AND coalesce(q.scheduled_at <= now(), true)
            ORDER BY c.deaths DESC, c.priority DESC, c.job_id LIMIT p_together
            FOR UPDATE OF c SKIP LOCKED);
        doubt := greatest(doubt, (SELECT c.deaths + 1 FROM recollect.jobs c WHERE c.tenant_id = p_tenant AND c.job_id = lost[1]));
    END IF;
    room := least(p_most, (p_together >> least(2 * doubt, 31)) + 1 - cardinality(p_begun));
    lost := lost[:greatest(room, 0)];
    room := room - cardinality(lost);
    IF room > 0 THEN
        -- The queue is read in its order, as far as it takes: nothing is known of how long it is.
        PERFORM set_config('enable_sort', 'off', true);
        waiting := ARRAY(
            SELECT a.job_id FROM (
                SELECT (q.args ->> 'job_id')::bigint AS job_id, q.id FROM procrastinate_jobs q
                WHERE q.lock = own AND q.status = 'todo' AND coalesce(q.scheduled_at <= now(), true)
                ORDER BY q.priority DESC, q.id) w
            CROSS JOIN LATERAL (
                SELECT c.job_id FROM recollect.jobs c
                WHERE c.tenant_id = p_tenant AND c.job_id = w.job_id AND c.queue_id = w.id AND c.status = 'pending'
                  AND (c.attempts = 0 OR c.due_at IS NOT NULL) AND c.withheld = '{}'
                  AND ROW (c.collection, c.session, c.source, c.kind, c.queue, c.principal, c.withheld, c.cancel_requested,
                           c.arguments - p_differs) IS NOT DISTINCT FROM m.asked
                OFFSET 0 FOR UPDATE SKIP LOCKED) a
            LIMIT room);
    END IF;
    IF p_yields AND p_others AND cardinality(waiting) > 0 AND EXISTS (
        SELECT FROM (VALUES (0, p_tenant - 1), (p_tenant::bigint + 1, 2147483647)) AS t (first, last)
        JOIN procrastinate_jobs q ON coalesce((q.args ->> 'tenant_id')::int, 0) BETWEEN t.first AND t.last
        WHERE q.status = 'todo' AND coalesce(q.scheduled_at <= now(), true)
          AND (p_queues IS NULL OR q.queue_name = ANY (p_queues)) AND q.queue_name <> 'watch'
          AND coalesce(q.lock <> ALL (ARRAY(
              SELECT d.lock FROM procrastinate_jobs d WHERE d.status = 'doing' AND d.lock IS NOT NULL)), true)) THEN
        waiting := '{}';
    END IF;
    IF p_yields AND cardinality(waiting) > 0 THEN
        SELECT q.id INTO next_one FROM procrastinate_jobs q
            WHERE q.status = 'todo' AND coalesce(q.scheduled_at <= now(), true)
              AND coalesce((q.args ->> 'tenant_id')::int, 0) = p_tenant
              AND (p_queues IS NULL OR q.queue_name = ANY (p_queues)) AND q.queue_name <> 'watch'
              AND CASE WHEN q.lock = own THEN (q.args ->> 'job_id')::bigint <> ALL (p_begun || lost)
                       ELSE p_others AND coalesce(q.lock <> ALL (ARRAY(
                           SELECT d.lock FROM procrastinate_jobs d WHERE d.status = 'doing' AND d.lock IS NOT NULL)), true) END
            ORDER BY q.priority DESC, q.id LIMIT 1;
        IF next_one IS DISTINCT FROM (SELECT c.queue_id FROM recollect.jobs c WHERE c.tenant_id = p_tenant AND c.job_id = waiting[1]) THEN
            waiting := '{}';
        END IF;
    END IF;
    RETURN QUERY
    UPDATE recollect.jobs j SET status = 'running', run = j.run + 1, due_at = NULL, started_at = coalesce(j.started_at, now()),
        attempts = j.attempts + CASE j.status WHEN 'pending' THEN 1 ELSE 0 END,
        deaths = j.deaths + CASE j.status WHEN 'running' THEN 1 ELSE 0 END
    WHERE j.tenant_id = p_tenant AND j.job_id = ANY (lost || waiting)
    RETURNING j.job_id, j.run, j.arguments, j.attempts, j.max_attempts, j.deaths;
END
$$;

-- After `begin_alike`, of places in the queue: of jobs that have ended they are given up, and of those that are to be tried again
-- they wait until that is due.
CREATE OR REPLACE FUNCTION settle_alike(p_tenant int, p_places bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM require_tenant(p_tenant);
    PERFORM set_config('search_path', 'recollect_jobs, pg_temp', true);
    UPDATE procrastinate_jobs q SET scheduled_at = w.due_at
    FROM unnest(p_places) AS p (id)
    CROSS JOIN LATERAL (
        SELECT o.id, j.due_at FROM procrastinate_jobs o
        JOIN recollect.jobs j ON j.tenant_id = p_tenant AND j.job_id = (o.args ->> 'job_id')::bigint AND j.queue_id = o.id
        WHERE o.id = p.id AND o.status = 'todo' AND o.task_name = 'recollect' AND (o.args ->> 'tenant_id')::int = p_tenant
          AND j.due_at IS NOT NULL OFFSET 0) w
    WHERE q.id = w.id;
    DELETE FROM procrastinate_jobs q
    WHERE q.id = ANY (p_places) AND q.status = 'todo' AND q.task_name = 'recollect' AND (q.args ->> 'tenant_id')::int = p_tenant
      AND NOT EXISTS (SELECT FROM recollect.jobs j
                      WHERE j.tenant_id = p_tenant AND j.job_id = (q.args ->> 'job_id')::bigint AND j.queue_id = q.id);
END
$$;
