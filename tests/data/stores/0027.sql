-- Whether grants include somebody who has these tokens. 'departments' is the token of those who read what any department may:
-- no grant is written that way.
CREATE OR REPLACE FUNCTION granted(p_grants text[], p_tokens text[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT p_grants && p_tokens OR ('departments' = ANY (p_tokens) AND EXISTS (
        SELECT FROM unnest(p_grants) AS g (token) WHERE starts_with(g.token, 'department:')))
$$;

-- The audit: entries are appended by these functions alone, which fill in number, time and hash. The application may
-- call them and read; it may neither change nor remove anything (tenant_isolation.sql).

-- What is hashed of an entry, as JSON with the keys in the database's order. It is part of the format: entries that are
-- there were hashed so.
CREATE OR REPLACE FUNCTION audit_content(
    p_tenant int, p_number bigint, p_id bigint, p_at timestamptz, p_action text, p_actor text, p_details jsonb)
RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'tenant_id', p_tenant, 'number', p_number, 'audit_id', p_id,
        'at', to_char(p_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        'action', p_action, 'actor', p_actor, 'details', p_details)::text
$$;

-- Appends entries to a tenant's chain. Whoever calls this is the only one to append for the tenant until the transaction
-- ends, so it comes last in a transaction, after every other lock. The table's lock comes before the chain's, as in
-- drop_audit. Times of a chain never run backwards, whatever the clock does: partitions drop beginnings of chains.
CREATE OR REPLACE FUNCTION append_audit(p_tenant int, p_actions text[], p_actors text[], p_details jsonb[])
RETURNS TABLE (audit_id bigint, at timestamptz)
LANGUAGE plpgsql AS $$
DECLARE
    head audit_heads;
    count CONSTANT int := cardinality(p_actions);
    ids bigint[] := '{}';
    hashes bytea[] := '{}';
BEGIN
    PERFORM require_tenant(p_tenant);
    IF cardinality(p_actors) IS DISTINCT FROM count OR cardinality(p_details) IS DISTINCT FROM count THEN
        RAISE EXCEPTION 'as many actions, actors and details' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    LOCK TABLE audit IN ROW EXCLUSIVE MODE;
    SELECT h.* INTO head FROM audit_heads h WHERE h.tenant_id = p_tenant FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO audit_heads (tenant_id) VALUES (p_tenant) ON CONFLICT DO NOTHING;
        SELECT h.* INTO head FROM audit_heads h WHERE h.tenant_id = p_tenant FOR UPDATE;
    END IF;
    head.at := greatest(clock_timestamp(), head.at);
    FOR i IN 1 .. count LOOP
        ids := ids || nextval('audit_numbers');
        head.hash := sha256(head.hash || convert_to(audit_content(
            p_tenant, head.number + i, ids[i], head.at, p_actions[i], p_actors[i], p_details[i]), 'UTF8'));
        hashes := hashes || head.hash;
    END LOOP;
    INSERT INTO audit (tenant_id, at, audit_id, action, actor, details, number, hash)
    SELECT p_tenant, head.at, u.id, u.action, u.actor, u.details, head.number + u.n, u.hash
    FROM unnest(ids, p_actions, p_actors, p_details, hashes) WITH ORDINALITY AS u (id, action, actor, details, hash, n);
    UPDATE audit_heads h SET number = head.number + count, hash = head.hash, at = head.at
        WHERE h.tenant_id = p_tenant;
    RETURN QUERY SELECT u.id, head.at FROM unnest(ids) AS u (id);
END
$$;

-- Drops the partitions that end before a moment, and what is older in the default one. What every chain then follows
-- from is kept. Each chain loses a beginning: its entries stand in the order of their times.
CREATE OR REPLACE FUNCTION drop_audit(p_before timestamptz) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
    part text;
BEGIN
    IF NOT EXISTS (SELECT FROM time_partitions('audit') t WHERE t.past <= p_before)
       AND NOT EXISTS (SELECT FROM audit_default d WHERE d.at < p_before) THEN
        RETURN;
    END IF;
    LOCK TABLE audit IN ACCESS EXCLUSIVE MODE;
    FOR part IN
        SELECT t.name FROM time_partitions('audit') t WHERE t.past <= p_before UNION ALL SELECT 'audit_default'
    LOOP
        EXECUTE format('UPDATE audit_heads h SET dropped = l.number, dropped_hash = l.hash FROM (
            SELECT DISTINCT ON (tenant_id) tenant_id, number, hash FROM %I WHERE at < $1 ORDER BY tenant_id, number DESC) l
            WHERE h.tenant_id = l.tenant_id AND h.dropped < l.number', part) USING p_before;
    END LOOP;
    RETURN QUERY SELECT drop_time_partitions('audit', p_before);
END
$$;

-- Which versions each revision of a collection changed (collection_changes), whatever statement changed them.

-- Notes the versions of a statement. Of a collection that is being deleted there is nothing to follow.
CREATE OR REPLACE FUNCTION note_changed_versions() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN -- a document may have moved to another collection
        INSERT INTO recollect.collection_changes (tenant_id, collection_id, version_ids)
        SELECT c.tenant_id, c.collection_id, array_agg(v.version_id)
        FROM (SELECT tenant_id, collection_id, version_id FROM former
              UNION SELECT tenant_id, collection_id, version_id FROM touched) v
        JOIN recollect.collections c USING (tenant_id, collection_id)
        GROUP BY c.tenant_id, c.collection_id ORDER BY c.tenant_id, c.collection_id;
    ELSE
        INSERT INTO recollect.collection_changes (tenant_id, collection_id, version_ids)
        SELECT c.tenant_id, c.collection_id, array_agg(v.version_id)
        FROM touched v JOIN recollect.collections c USING (tenant_id, collection_id)
        GROUP BY c.tenant_id, c.collection_id ORDER BY c.tenant_id, c.collection_id;
    END IF;
    RETURN NULL;
END
$$;

-- Gives what the transaction has noted the revision that begins. Its row is locked until the transaction ends, so revisions
-- follow one another as transactions do.
CREATE OR REPLACE FUNCTION begin_revision() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.revision_id := gen_random_uuid();
    UPDATE recollect.collection_changes SET revision = NEW.revision, follows = OLD.revision_id
        WHERE tenant_id = NEW.tenant_id AND collection_id = NEW.collection_id AND revision IS NULL;
    IF NOT FOUND THEN
        INSERT INTO recollect.collection_changes (tenant_id, collection_id, revision, follows, version_ids)
            VALUES (NEW.tenant_id, NEW.collection_id, NEW.revision, OLD.revision_id, '{}');
    END IF;
    -- Whoever is further behind reads the collection whole. Counted now and then, because it reads what is kept.
    IF NEW.revision % 256 = 0 THEN
        DELETE FROM recollect.collection_changes d
            WHERE d.tenant_id = NEW.tenant_id AND d.collection_id = NEW.collection_id AND d.revision <= (
                SELECT max(k.revision)
                FROM (SELECT c.revision, sum(1 + cardinality(c.version_ids)) OVER (ORDER BY c.revision DESC) AS later
                      FROM recollect.collection_changes c
                      WHERE c.tenant_id = NEW.tenant_id AND c.collection_id = NEW.collection_id) k
                WHERE k.later > 30000);
    END IF;
    RETURN NEW;
END
$$;

-- At the end of a transaction: a revision for what it has changed and given none.
CREATE OR REPLACE FUNCTION complete_revision() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM recollect.collection_changes c
               WHERE c.tenant_id = NEW.tenant_id AND c.collection_id = NEW.collection_id AND c.revision IS NULL) THEN
        UPDATE recollect.collection_state s SET revision = s.revision + 1
            WHERE s.tenant_id = NEW.tenant_id AND s.collection_id = NEW.collection_id;
    END IF;
    RETURN NULL;
END
$$;

DO $triggers$
BEGIN
    -- A store that is brought up to date step by step does not have the table before its migration.
    IF to_regclass('recollect.collection_changes') IS NOT NULL THEN
        CREATE OR REPLACE TRIGGER document_versions_inserted AFTER INSERT ON document_versions
            REFERENCING NEW TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION note_changed_versions();
        CREATE OR REPLACE TRIGGER document_versions_updated AFTER UPDATE ON document_versions
            REFERENCING OLD TABLE AS former NEW TABLE AS touched
            FOR EACH STATEMENT EXECUTE FUNCTION note_changed_versions();
        CREATE OR REPLACE TRIGGER document_versions_deleted AFTER DELETE ON document_versions
            REFERENCING OLD TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION note_changed_versions();
        CREATE OR REPLACE TRIGGER collection_state_revised BEFORE UPDATE OF revision ON collection_state
            FOR EACH ROW WHEN (NEW.revision <> OLD.revision) EXECUTE FUNCTION begin_revision();
        -- A constraint's trigger cannot be replaced.
        IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgname = 'collection_changes_completed' AND tgenabled = 'O') THEN
            DROP TRIGGER IF EXISTS collection_changes_completed ON collection_changes;
            CREATE CONSTRAINT TRIGGER collection_changes_completed AFTER INSERT ON collection_changes
                DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.revision IS NULL)
                EXECUTE FUNCTION complete_revision();
        END IF;
    END IF;
END
$triggers$;

-- Facts as they were known at a moment (null: now), each with the one that took its place by then, if one had: the next
-- of its chain, in the order in which they were said.
CREATE OR REPLACE FUNCTION facts_as_of(p_tenant int, p_as_of timestamptz)
RETURNS TABLE (
    fact_id bigint, chain_id bigint, statement text, subject text, attribute text, value text, session_id bigint,
    session text, user_id text, role text, event_time timestamptz, said_at timestamptz, known_from timestamptz,
    made_by text, superseded_by bigint, superseded_at timestamptz)
LANGUAGE sql STABLE AS $$
    SELECT f.fact_id, f.chain_id, f.statement, f.subject, f.attribute, f.value, f.session_id,
           s.name, s.user_id, f.role, f.event_time, f.said_at, f.known_from,
           f.made_by, n.fact_id, n.said_at
    FROM facts f
    JOIN sessions s ON s.tenant_id = f.tenant_id AND s.session_id = f.session_id
    LEFT JOIN LATERAL (
        SELECT o.fact_id, o.said_at FROM facts o
        WHERE o.tenant_id = p_tenant AND o.chain_id = f.chain_id
          AND (o.said_at, o.episode_id, o.fact_id) > (f.said_at, f.episode_id, f.fact_id)
          AND o.known_from <= coalesce(p_as_of, 'infinity')
        ORDER BY o.said_at, o.episode_id, o.fact_id LIMIT 1) AS n ON true
    WHERE f.tenant_id = p_tenant AND f.known_from <= coalesce(p_as_of, 'infinity')
$$;

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

-- Takes as many tokens as are wanted from each of several buckets, or as many as all of them have; none from any where one
-- is empty. Buckets are locked in the order given: a credential's before its tenant's, which many have in common.
CREATE OR REPLACE FUNCTION take_tokens(
    p_tenant int, p_buckets text[], p_seconds float8[], p_sizes int[], p_wanted int)
RETURNS TABLE (granted int, remaining int[], wait float8[])
LANGUAGE plpgsql AS $$
DECLARE
    dues float8[] := '{}';
    due float8;
    moment float8;
    had int[] := '{}';
BEGIN
    FOR i IN 1 .. cardinality(p_buckets) LOOP
        SELECT r.due INTO due FROM rate_limits r WHERE r.tenant_id = p_tenant AND r.bucket = p_buckets[i] FOR UPDATE;
        IF NOT FOUND THEN
            INSERT INTO rate_limits AS r (tenant_id, bucket, due) VALUES (p_tenant, p_buckets[i], 0)
                ON CONFLICT (tenant_id, bucket) DO UPDATE SET due = r.due RETURNING r.due INTO due;
        END IF;
        dues := dues || due;
    END LOOP;
    moment := extract(epoch FROM clock_timestamp());
    granted := p_wanted;
    FOR i IN 1 .. cardinality(p_buckets) LOOP
        -- A clock that was set back must not shut anybody out for as long as it was ahead.
        dues[i] := least(greatest(dues[i], moment), moment + p_seconds[i] * p_sizes[i]);
        had := had || floor((moment - dues[i]) / p_seconds[i] + p_sizes[i] + 1e-6)::int;
        granted := least(granted, had[i]);
    END LOOP;
    wait := '{}';
    remaining := '{}';
    FOR i IN 1 .. cardinality(p_buckets) LOOP
        IF granted > 0 THEN
            dues[i] := dues[i] + granted * p_seconds[i];
            UPDATE rate_limits r SET due = dues[i] WHERE r.tenant_id = p_tenant AND r.bucket = p_buckets[i];
        END IF;
        remaining := remaining || (had[i] - granted);
        -- Until the next token where there is none, and until the bucket is full otherwise.
        wait := wait || CASE WHEN had[i] < 1 THEN dues[i] - moment - (p_sizes[i] - 1) * p_seconds[i]
                             ELSE dues[i] - moment END;
    END LOOP;
    RETURN NEXT;
END
$$;

-- An original goes with the last version that has it, the last job that is to read it and the last file that was sent to be
-- kept: whatever removes versions (an erasure, a collection or a session that is deleted, a session that is full), jobs or
-- files removes what only they had.

CREATE OR REPLACE FUNCTION drop_lone_originals() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    -- The erasure of a tenant removes every table's rows itself, and counts them.
    IF NOT EXISTS (SELECT FROM recollect.tenants t JOIN gone g USING (tenant_id) WHERE t.status = 'active') THEN
        RETURN NULL;
    END IF;
    -- Whoever stores the same bytes holds the row until their version is there, which the statement behind the lock sees.
    PERFORM FROM recollect.originals o
        WHERE (o.tenant_id, o.file_hash) IN (SELECT g.tenant_id, g.file_hash FROM gone g)
        ORDER BY o.tenant_id, o.file_hash FOR UPDATE;
    DELETE FROM recollect.originals o
        WHERE (o.tenant_id, o.file_hash) IN (SELECT g.tenant_id, g.file_hash FROM gone g)
          AND NOT EXISTS (SELECT FROM recollect.version_originals v
                          WHERE v.tenant_id = o.tenant_id AND v.file_hash = o.file_hash)
          AND NOT EXISTS (SELECT FROM recollect.job_uploads u
                          WHERE u.tenant_id = o.tenant_id AND u.file_hash = o.file_hash)
          AND NOT EXISTS (SELECT FROM recollect.uploaded_files f
                          WHERE f.tenant_id = o.tenant_id AND f.file_hash = o.file_hash);
    RETURN NULL;
END
$$;

DO $triggers$
BEGIN
    -- A store that is brought up to date step by step does not have the table before its migration.
    IF to_regclass('recollect.version_originals') IS NOT NULL THEN
        CREATE OR REPLACE TRIGGER version_originals_deleted AFTER DELETE ON version_originals
            REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION drop_lone_originals();
        CREATE OR REPLACE TRIGGER version_originals_replaced AFTER UPDATE ON version_originals
            REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION drop_lone_originals();
    END IF;
    IF to_regclass('recollect.job_uploads') IS NOT NULL THEN
        CREATE OR REPLACE TRIGGER job_uploads_deleted AFTER DELETE ON job_uploads
            REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION drop_lone_originals();
    END IF;
    IF to_regclass('recollect.uploaded_files') IS NOT NULL THEN
        CREATE OR REPLACE TRIGGER uploaded_files_deleted AFTER DELETE ON uploaded_files
            REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION drop_lone_originals();
    END IF;
END
$triggers$;

-- Partitions by time of tables that only ever grow. Each partition's name says what it covers, in hours of UTC:
-- audit_2026110100_2026120100. A table has a default partition, so that writing never waits for one to be made.

CREATE OR REPLACE FUNCTION time_partitions(p_table text)
RETURNS TABLE (name text, first timestamptz, past timestamptz)
LANGUAGE sql STABLE AS $$
    SELECT c.relname::text,
           to_timestamp(split_part(right(c.relname, 21), '_', 1), 'YYYYMMDDHH24')::timestamp AT TIME ZONE 'UTC',
           to_timestamp(right(c.relname, 10), 'YYYYMMDDHH24')::timestamp AT TIME ZONE 'UTC'
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = to_regclass(p_table) AND c.relname ~ '_[0-9]{10}_[0-9]{10}$'
$$;

-- Makes the partitions from now on, so many beyond the present one, and those of the past that rows wait for in the
-- default partition; what is there already stays as it is, of whatever length. Returns how many were made.
-- p_unit: hour, day, week or month. p_column: the time that the table is partitioned by.
CREATE OR REPLACE FUNCTION make_time_partitions(p_table text, p_unit text, p_ahead int, p_column text DEFAULT 'at')
RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    step CONSTANT interval := ('1 ' || p_unit)::interval;
    present CONSTANT timestamp := date_trunc(p_unit, now() AT TIME ZONE 'UTC');
    start timestamp;
    finish timestamp;
    covered timestamptz;
    wanted boolean;
    part text;
    made int := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('recollect.partitions'), hashtext(p_table));
    EXECUTE format('SELECT date_trunc(%L, min(%I) AT TIME ZONE ''UTC'') FROM %I', p_unit, p_column, p_table || '_default')
        INTO start;
    start := least(start, present);
    WHILE start < present + (p_ahead + 1) * step LOOP
        SELECT t.past INTO covered FROM time_partitions(p_table) t
            WHERE t.first <= start AT TIME ZONE 'UTC' AND t.past > start AT TIME ZONE 'UTC';
        IF FOUND THEN
            start := covered AT TIME ZONE 'UTC';
            CONTINUE;
        END IF;
        SELECT least(date_trunc(p_unit, start) + step, min(t.first) AT TIME ZONE 'UTC') INTO finish
            FROM time_partitions(p_table) t WHERE t.first > start AT TIME ZONE 'UTC';
        EXECUTE format('SELECT EXISTS (SELECT FROM %I WHERE %I >= $1 AND %2$I < $2)', p_table || '_default', p_column)
            INTO wanted USING start AT TIME ZONE 'UTC', finish AT TIME ZONE 'UTC';
        IF wanted OR finish > present THEN
            -- What is written meanwhile would come to the default partition, after its rows were moved out of it.
            EXECUTE format('LOCK TABLE %I IN SHARE ROW EXCLUSIVE MODE', p_table);
            part := format('%s_%s_%s', p_table, to_char(start, 'YYYYMMDDHH24'), to_char(finish, 'YYYYMMDDHH24'));
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', part, p_table);
            EXECUTE format('WITH moved AS (DELETE FROM %I WHERE %I >= $1 AND %2$I < $2 RETURNING *)
                            INSERT INTO %3$I SELECT * FROM moved', p_table || '_default', p_column, part)
                USING start AT TIME ZONE 'UTC', finish AT TIME ZONE 'UTC';
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', p_table, part,
                           start AT TIME ZONE 'UTC', finish AT TIME ZONE 'UTC');
            made := made + 1;
        END IF;
        start := finish;
    END LOOP;
    IF made > 0 THEN
        PERFORM forget_content_statistics();
    END IF;
    RETURN made;
END
$$;

-- Drops the partitions that end before a moment, whole, and deletes what is older from the default one.
CREATE OR REPLACE FUNCTION drop_time_partitions(p_table text, p_before timestamptz, p_column text DEFAULT 'at')
RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
    part text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('recollect.partitions'), hashtext(p_table));
    FOR part IN SELECT t.name FROM time_partitions(p_table) t WHERE t.past <= p_before ORDER BY t.first LOOP
        EXECUTE format('DROP TABLE %I', part);
        RETURN NEXT part;
    END LOOP;
    EXECUTE format('DELETE FROM %I WHERE %I < $1', p_table || '_default', p_column) USING p_before;
END
$$;

-- The two search paths: the chunks that are nearest to a vector, and those that hold a query's words. They are functions
-- because row-level security would keep the planner from the GIN index (int[] && int[] is not leakproof): they run as the
-- schema's owner (tenant_isolation.sql) and apply the tenant themselves. EXECUTE with the collection and the bounds of
-- times as literals, because a partial index is used only when the planner can prove its condition, which it cannot for
-- a parameter.

-- The parts that a search looks through, as conditions; they have no row in common. The present is one: the current rows.
-- So is the past where everything is compared; where much was known then, it is the current rows that were known already,
-- the closed rows of each segment (store/history_index.py), and at last the rows of versions that no index is needed for.
-- What versions and access lists rows are confined to stands at $2 and $3 of what a path executes, versions besides at
-- $4; a caller who may read everything has no condition, and no cost. Expressions alone, which need no plan of their own:
-- a query here would be planned anew with every search.
CREATE OR REPLACE FUNCTION selected_parts(p_rows row_selection) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    confined text := CASE WHEN p_rows.versions IS NULL THEN '' ELSE ' AND version_id = ANY ($2)' END
                  || CASE WHEN p_rows.access_ids IS NULL THEN '' ELSE ' AND access_id = ANY ($3)' END;
    known text := CASE WHEN p_rows.as_of IS NULL THEN 'known_to = ''infinity'''
                       ELSE format('known_from <= %1$L::timestamptz AND known_to > %1$L::timestamptz', p_rows.as_of) END;
    parts text[] := '{}';
BEGIN
    IF p_rows.starts IS NULL THEN
        RETURN ARRAY[known || confined];
    END IF;
    FOR i IN 1 .. cardinality(p_rows.starts) LOOP
        parts := array_append(parts, CASE
            WHEN p_rows.starts[i] = 'infinity'
            THEN format('known_to = ''infinity'' AND known_from <= %L::timestamptz', p_rows.as_of)
            ELSE format('known_to >= %L::timestamptz AND known_to < %L::timestamptz AND %s',
                        p_rows.starts[i], p_rows.ends[i], known) END || confined);
    END LOOP;
    IF cardinality(p_rows.beside) > 0 THEN
        parts := array_append(parts, 'version_id = ANY ($4)' || confined);
    END IF;
    RETURN parts;
END
$$;

-- The best rows of the statements of all parts; of one, they are its own.
CREATE OR REPLACE FUNCTION best_of(p_parts text[], p_order text, p_limit int) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN cardinality(p_parts) = 1 THEN p_parts[1]
                ELSE format('SELECT * FROM (%s) AS parts ORDER BY %s LIMIT %s',
                            array_to_string(p_parts, ' UNION ALL '), p_order, p_limit) END
$$;

-- How vectors are compared: as the expression that the collection's HNSW index is on, or plainly.
CREATE OR REPLACE FUNCTION dense_distance(p_dimension int, p_indexed boolean) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p_indexed THEN format('embedding::halfvec(%1$s) <#> $1::halfvec(%1$s)', p_dimension)
                ELSE 'embedding <#> $1' END
$$;

-- Which chunks are scored by words: those that hold a lexeme of every set, or without sets all that score at all.
CREATE OR REPLACE FUNCTION lexical_condition(p_conditions text[], p_query text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce((SELECT string_agg(format('lexemes && %L::int[]', c), ' AND ') FROM unnest(p_conditions) AS c),
                    format('(weights <#> %s) < 0', p_query))
$$;

-- True, or an error where a space was dropped: a search that began with it must not take it for empty. Asked in the
-- statement that reads its vectors, so that both see the same moment.
CREATE OR REPLACE FUNCTION require_space(p_tenant int, p_space int) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    PERFORM FROM recollect.collections c WHERE c.tenant_id = p_tenant AND c.space_id = p_space;
    IF NOT FOUND THEN
        PERFORM FROM recollect.vector_spaces s WHERE s.tenant_id = p_tenant AND s.space_id = p_space AND s.status <> 'dropping';
        IF NOT FOUND THEN
            RAISE EXCEPTION 'the vector space % is gone', p_space USING ERRCODE = 'RT005';
        END IF;
    END IF;
    RETURN true;
END
$$;

-- Nearest chunks by inner product (of unit vectors: cosine similarity), best first, with their lexical rows, so that every
-- chunk has both scores. Those are looked up chunk by chunk, whatever the planner believes of the tables' sizes.
-- p_indexed: through HNSW indexes (approximate), otherwise every row is compared (exact).
-- p_ef_search: how many candidates an index keeps; NULL: the session's setting.
-- p_words, p_vectors: with the lexical rows; with the stored vectors.
CREATE OR REPLACE FUNCTION dense_candidates(
    p_tenant int, p_collection int, p_space int, p_rows row_selection, p_embedding halfvec, p_limit int,
    p_indexed boolean DEFAULT false, p_ef_search int DEFAULT NULL, p_words boolean DEFAULT true,
    p_vectors boolean DEFAULT false
) RETURNS TABLE (chunk_id bigint, length int, weights sparsevec, similarity real, embedding halfvec)
LANGUAGE plpgsql STABLE SET enable_seqscan = on SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    part text;
    indexed boolean;
    parts text[] := '{}';
BEGIN
    PERFORM require_tenant(p_tenant);
    PERFORM require_space(p_tenant, p_space);
    IF p_ef_search IS NOT NULL THEN
        PERFORM set_config('hnsw.ef_search', p_ef_search::text, true);
    END IF;
    FOREACH part IN ARRAY selected_parts(p_rows) LOOP
        indexed := p_indexed AND part NOT LIKE 'version_id = ANY ($4)%';
        parts := array_append(parts, format(
            '(SELECT chunk_id, (-(%1$s))::real AS similarity, %2$s AS embedding FROM chunk_vectors
              WHERE tenant_id = %3$s AND space_id = %4$s AND %5$s ORDER BY %1$s %6$s LIMIT %7$s)',
            dense_distance(vector_dims(p_embedding), indexed),
            CASE WHEN p_vectors THEN 'embedding' ELSE 'NULL::halfvec' END, p_tenant, p_space, part,
            CASE WHEN indexed THEN '' ELSE ', chunk_id' END, p_limit));
    END LOOP;
    IF parts = '{}' THEN
        RETURN;
    END IF;
    -- An iterative scan of an index gives out its rows in a relaxed order, so they are sorted again outside.
    RETURN QUERY EXECUTE format(
        'SELECT d.chunk_id, %1$s, d.similarity, d.embedding
         FROM (%2$s) d %3$s ORDER BY d.similarity DESC, d.chunk_id',
        CASE WHEN p_words THEN 'x.length, x.weights' ELSE 'NULL::int, NULL::sparsevec' END,
        best_of(parts, 'similarity DESC, chunk_id', p_limit),
        CASE WHEN p_words THEN format('LEFT JOIN chunk_lexical x ON x.tenant_id = %s AND x.chunk_id = d.chunk_id', p_tenant) END)
    USING p_embedding, p_rows.versions, p_rows.access_ids, p_rows.beside;
END
$$;

-- Chunks by the inner product of their BM25 weights with the query's IDFs, best first, with their similarities to
-- p_embedding where it is given; the columns are those of dense_candidates.
-- p_conditions: int[] literals; a chunk holds at least one lexeme of each. The GIN index answers them together, so that
-- only chunks that meet all of them are read. Without any, every chunk is scored: in a small collection that takes less
-- than looking the lexemes up.
CREATE OR REPLACE FUNCTION lexical_candidates(
    p_tenant int, p_collection int, p_space int, p_rows row_selection, p_conditions text[], p_query sparsevec, p_limit int,
    p_embedding halfvec DEFAULT NULL, p_vectors boolean DEFAULT false
) RETURNS TABLE (chunk_id bigint, length int, weights sparsevec, similarity real, embedding halfvec)
LANGUAGE plpgsql STABLE SET enable_seqscan = on SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    part text;
    scored text := lexical_condition(p_conditions, '$5');
    parts text[] := '{}';
BEGIN
    PERFORM require_tenant(p_tenant);
    IF p_embedding IS NOT NULL THEN
        PERFORM require_space(p_tenant, p_space);
    END IF;
    FOREACH part IN ARRAY selected_parts(p_rows) LOOP
        parts := array_append(parts, format(
            '(SELECT chunk_id, length, weights, weights <#> $5 AS distance FROM chunk_lexical
              WHERE tenant_id = %1$s AND collection_id = %2$s AND %3$s AND %4$s
              ORDER BY weights <#> $5, chunk_id LIMIT %5$s)', p_tenant, p_collection, part, scored, p_limit));
    END LOOP;
    IF parts = '{}' THEN
        RETURN;
    END IF;
    RETURN QUERY EXECUTE format(
        'SELECT l.chunk_id, l.length, l.weights, %1$s, %2$s
         FROM (%3$s) l %4$s',
        CASE WHEN p_embedding IS NULL THEN 'NULL::real' ELSE '(-(v.embedding <#> $1))::real' END,
        CASE WHEN p_vectors THEN 'v.embedding' ELSE 'NULL::halfvec' END, best_of(parts, 'distance, chunk_id', p_limit),
        CASE WHEN p_embedding IS NOT NULL THEN
            format('LEFT JOIN chunk_vectors v ON v.tenant_id = %s AND v.chunk_id = l.chunk_id AND v.space_id = %s',
                   p_tenant, p_space) END)
    USING p_embedding, p_rows.versions, p_rows.access_ids, p_rows.beside, p_query;
END
$$;

-- Recounts a collection's document frequencies and average length. Where they are others, that is a revision of its own.
-- Returns false where another session is at it.
CREATE OR REPLACE FUNCTION refresh_term_stats(p_tenant int, p_collection int) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    counted bigint;
    chunks bigint;
    terms bigint;
    differs boolean;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('recollect.term_stats'), p_collection) THEN
        RETURN false;
    END IF;
    -- Taken before anything else, as writers do: a deletion of the collection then waits, and nobody waits in a circle.
    PERFORM FROM collections c WHERE c.tenant_id = p_tenant AND c.collection_id = p_collection FOR KEY SHARE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    -- Read before counting: what is written meanwhile stays pending. The row is locked at the very end only, because
    -- every writer needs it.
    SELECT s.stats_pending INTO counted FROM collection_state s
        WHERE s.tenant_id = p_tenant AND s.collection_id = p_collection;
    CREATE TEMP TABLE IF NOT EXISTS fresh_term_stats (lexeme int PRIMARY KEY, document_frequency int) ON COMMIT DROP;
    INSERT INTO fresh_term_stats
        SELECT l.lexeme, count(*)
        FROM (SELECT unnest(c.lexemes) AS lexeme FROM chunk_lexical c
              WHERE c.tenant_id = p_tenant AND c.collection_id = p_collection AND c.known_to = 'infinity') l
        GROUP BY l.lexeme;
    DELETE FROM term_stats t WHERE t.tenant_id = p_tenant AND t.collection_id = p_collection
        AND NOT EXISTS (SELECT FROM fresh_term_stats f WHERE f.lexeme = t.lexeme);
    differs := FOUND;
    INSERT INTO term_stats AS t (tenant_id, collection_id, lexeme, document_frequency)
        SELECT p_tenant, p_collection, f.lexeme, f.document_frequency FROM fresh_term_stats f
        ON CONFLICT (tenant_id, collection_id, lexeme) DO UPDATE
            SET document_frequency = excluded.document_frequency
            WHERE t.document_frequency <> excluded.document_frequency;
    differs := differs OR FOUND;
    SELECT count(*), coalesce(sum(c.length), 0) INTO chunks, terms FROM chunk_lexical c
        WHERE c.tenant_id = p_tenant AND c.collection_id = p_collection AND c.known_to = 'infinity';
    SELECT differs OR s.stats_chunks <> chunks OR s.stats_terms <> terms INTO differs FROM collection_state s
        WHERE s.tenant_id = p_tenant AND s.collection_id = p_collection;
    IF differs THEN
        INSERT INTO collection_changes (tenant_id, collection_id, version_ids) VALUES (p_tenant, p_collection, '{0}');
    END IF;
    UPDATE collection_state s
        SET stats_pending = s.stats_pending - counted, stats_chunks = chunks, stats_terms = terms,
            revision = s.revision + differs::int
        WHERE s.tenant_id = p_tenant AND s.collection_id = p_collection;
    DROP TABLE fresh_term_stats;
    RETURN true;
END
$$;

-- The planner's statistics hold samples of columns: whole values, also of rows that are gone since, until a later ANALYZE
-- of a table that is not empty. So nothing is sampled of what documents and conversations say; sizes of tables,
-- and statistics of numbers and times, are what plans need. Lexemes, which are hashes, are the exception: how common a
-- word is decides how it is looked for. An erasure takes their sample anew.

-- Columns that may hold content, indexed expressions included, and whether something is sampled of them now.
CREATE OR REPLACE FUNCTION content_columns()
RETURNS TABLE (relation regclass, name text, number smallint, is_index boolean, target int, is_sampled boolean)
LANGUAGE sql STABLE AS $$
    SELECT c.oid::regclass, a.attname::text, a.attnum, c.relkind = 'i', coalesce(a.attstattarget, -1)::int,
           EXISTS (SELECT FROM pg_stats s
                   WHERE s.schemaname = 'recollect' AND s.tablename = c.relname AND s.attname = a.attname)
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relnamespace = 'recollect'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
      AND (c.relkind IN ('r', 'p') OR c.relkind = 'i' AND (
          SELECT i.indkey[a.attnum - 1] = 0 FROM pg_index i WHERE i.indexrelid = c.oid))
      AND a.atttypid <> ALL ('{bool, int2, int4, int8, float4, float8, date, timestamptz}'::regtype[])
      AND a.attname <> 'lexemes'
$$;

-- Forgets what is sampled of a column. Before 18, only a superuser may do so directly; changing a column's type to what it
-- is does it too, except where another column is computed from it.
CREATE OR REPLACE FUNCTION forget_statistics(p_relation regclass, p_column text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    kind text;
BEGIN
    IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        DELETE FROM pg_statistic s USING pg_attribute a
            WHERE s.starelid = p_relation AND a.attrelid = p_relation AND a.attname = p_column
              AND s.staattnum = a.attnum;
    ELSIF current_setting('server_version_num')::int >= 180000 THEN
        EXECUTE 'SELECT pg_clear_attribute_stats(''recollect'', c.relname::text, $2, inherited)
                 FROM pg_class c, unnest(ARRAY[true, false]) AS inherited WHERE c.oid = $1' USING p_relation, p_column;
    ELSE
        SELECT format_type(a.atttypid, a.atttypmod) INTO kind FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
            WHERE a.attrelid = p_relation AND a.attname = p_column AND c.relkind = 'r' AND NOT c.relispartition;
        IF FOUND THEN
            EXECUTE format('ALTER TABLE %s ALTER COLUMN %I TYPE %s', p_relation, p_column, kind);
        END IF;
    END IF;
EXCEPTION
    WHEN feature_not_supported THEN NULL; -- an erasure looks for what is left, and says so
END
$$;

-- Sees to it that nothing of content is sampled, in tables, partitions and indexes that were made since as well.
CREATE OR REPLACE FUNCTION forget_content_statistics() RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    part record;
BEGIN
    -- First, because changing a column's type makes the indexes on it anew, under other numbers.
    FOR part IN SELECT * FROM content_columns() WHERE is_sampled LOOP
        IF EXISTS (SELECT FROM pg_class c WHERE c.oid = part.relation) THEN
            PERFORM forget_statistics(part.relation, part.name);
        END IF;
    END LOOP;
    FOR part IN SELECT * FROM content_columns() WHERE target <> 0 LOOP
        IF part.is_index THEN
            EXECUTE format('ALTER INDEX %s ALTER COLUMN %s SET STATISTICS 0', part.relation, part.number);
        ELSE
            EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS 0', part.relation, part.name);
        END IF;
    END LOOP;
END
$$;

-- The sample of lexemes anew, without those of rows that are gone. Where the table is empty ANALYZE would leave the old
-- one; where an index is being built on it, this is left to the next time.
CREATE OR REPLACE FUNCTION sample_lexemes_anew() RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    part text;
    filled boolean;
BEGIN
    -- One at a time: ANALYZE fails where the row that it writes is removed meanwhile, which is what happens next here.
    PERFORM pg_advisory_xact_lock(hashtext('recollect.lexemes'), 0);
    FOREACH part IN ARRAY '{chunk_lexical, episode_lexical, fact_index}'::text[] LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %I)', part) INTO filled;
        -- Otherwise the indexes of a table with rows would be made anew for it, and ANALYZE replaces the sample anyway.
        IF NOT filled OR current_setting('server_version_num')::int >= 180000
           OR (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
            PERFORM forget_statistics(part::regclass, 'lexemes');
        END IF;
        EXECUTE format('ANALYZE (SKIP_LOCKED) %I (lexemes)', part);
    END LOOP;
END
$$;

SELECT forget_content_statistics();

-- What keeps tenants apart. This file comes after the other routines, whose functions it changes.
--
-- A transaction or connection says whose it is (recollect.tenant_id). Policies on every table with a tenant_id show it
-- that tenant's rows and nothing where no tenant is set. They bind recollect_app, the role that the program works as
-- and that owns nothing; the schema's owner, who migrates and builds indexes, is not bound. So nothing is FORCEd: the
-- search functions run as the owner, because below a policy the planner would not use the index on lexemes
-- (int[] && int[] is not leakproof), and they refuse any tenant but the one that is set.

-- An error where no tenant is set: a session that has lost it must not look like a store that is empty.
CREATE OR REPLACE FUNCTION current_tenant() RETURNS int
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
    tenant text := current_setting('recollect.tenant_id', true);
BEGIN
    IF coalesce(tenant, '') = '' THEN
        RAISE EXCEPTION 'no tenant is set' USING ERRCODE = 'RT004';
    END IF;
    RETURN tenant::int;
END
$$;

CREATE OR REPLACE FUNCTION require_tenant(p_tenant int) RETURNS void
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF p_tenant IS DISTINCT FROM nullif(current_setting('recollect.tenant_id', true), '')::int THEN
        RAISE EXCEPTION 'another tenant than the one that is set' USING ERRCODE = 'insufficient_privilege';
    END IF;
END
$$;

-- An error where no policy binds the role of the statement (an owner, a superuser, BYPASSRLS) and there are several
-- tenants: the program's own conditions would be all that keeps them apart.
CREATE OR REPLACE FUNCTION require_isolation() RETURNS void
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF NOT row_security_active('recollect.documents') AND EXISTS (SELECT FROM recollect.tenants OFFSET 1) THEN
        RAISE EXCEPTION 'row-level security does not bind the role %', quote_literal(current_user)
            USING ERRCODE = 'RT003';
    END IF;
END
$$;

-- True, or an error where the tenant is suspended and the connection is not one of those who look after tenants.
CREATE OR REPLACE FUNCTION require_active(p_tenant int) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
DECLARE
    suspended text;
BEGIN
    PERFORM recollect.require_isolation();
    SELECT t.name INTO suspended FROM recollect.tenants t WHERE t.tenant_id = p_tenant AND t.status = 'suspended';
    IF FOUND AND current_setting('recollect.even_suspended', true) IS DISTINCT FROM 'on' THEN
        RAISE EXCEPTION 'The tenant % is suspended.', quote_literal(suspended) USING ERRCODE = 'RT001';
    END IF;
    RETURN true;
END
$$;

-- The first step of a transaction: it waits for nobody but an erasure of the tenant, which waits for all of them to end.
CREATE OR REPLACE FUNCTION enter_tenant(p_tenant int) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtext('recollect.tenant'), p_tenant);
    PERFORM require_active(p_tenant);
END
$$;

-- The last step of a transaction that stores documents: it fails where they are more than the tenant may have. Writers
-- of a tenant with a quota come to this one after the other, so that they see each other; all others go on side by side.
CREATE OR REPLACE FUNCTION require_quota(p_tenant int) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    quota record;
    used record;
    bytes bigint;
BEGIN
    SELECT t.name, t.max_documents, t.max_chunks, t.max_bytes INTO quota FROM recollect.tenants t
        WHERE t.tenant_id = p_tenant
          AND (t.max_documents IS NOT NULL OR t.max_chunks IS NOT NULL OR t.max_bytes IS NOT NULL);
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('recollect.quota'), p_tenant);
    -- Statements of their own, after the lock: their snapshots hold what the lock waited for.
    SELECT sum(s.document_count)::bigint AS documents, sum(s.chunk_count)::bigint AS chunks INTO used
        FROM collection_state s
        WHERE s.tenant_id = p_tenant;
    IF used.documents > quota.max_documents THEN
        PERFORM refuse_over_quota('documents', quota.max_documents, used.documents, quota.name);
    ELSIF used.chunks > quota.max_chunks THEN
        PERFORM refuse_over_quota('chunks', quota.max_chunks, used.chunks, quota.name);
    END IF;
    IF quota.max_bytes IS NOT NULL THEN
        -- Every version's, however often a text is stored: what others have must not show in what is refused.
        SELECT coalesce(sum(octet_length(t.content)), 0) INTO bytes
            FROM document_contents c JOIN texts t USING (tenant_id, text_hash)
            WHERE c.tenant_id = p_tenant;
        bytes := bytes + (SELECT coalesce(sum(o.byte_count), 0) FROM originals o WHERE o.tenant_id = p_tenant);
        IF bytes > quota.max_bytes THEN
            PERFORM refuse_over_quota('bytes', quota.max_bytes, bytes, quota.name);
        END IF;
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION refuse_over_quota(p_quota text, p_limit bigint, p_used bigint, p_name text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'over quota' USING ERRCODE = 'RT002',
        DETAIL = json_build_object('quota', p_quota, 'limit', p_limit, 'used', p_used, 'name', p_name);
END
$$;

-- What other tenants let this one read.
CREATE OR REPLACE FUNCTION collections_shared_with(p_reader int)
RETURNS TABLE (tenant_id int, tenant_name text, collection_name text, active boolean)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    PERFORM require_tenant(p_reader);
    RETURN QUERY SELECT t.tenant_id, t.name, c.name, t.status = 'active'
        FROM collection_shares s
        JOIN collections c ON c.tenant_id = s.tenant_id AND c.collection_id = s.collection_id
        JOIN tenants t ON t.tenant_id = s.tenant_id
        WHERE s.reader_id = p_reader ORDER BY t.name, c.name;
END
$$;

-- Who reads a collection of one's own.
CREATE OR REPLACE FUNCTION readers_of_collection(p_tenant int, p_collection int) RETURNS TABLE (tenant_name text)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    PERFORM require_tenant(p_tenant);
    RETURN QUERY SELECT t.name FROM collection_shares s JOIN tenants t ON t.tenant_id = s.reader_id
        WHERE s.tenant_id = p_tenant AND s.collection_id = p_collection ORDER BY t.name;
END
$$;

DO $isolate$
DECLARE
    part record;
    has_role boolean;
BEGIN
    BEGIN
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'recollect_app') THEN
            CREATE ROLE recollect_app NOLOGIN;
        END IF;
    EXCEPTION
        WHEN duplicate_object OR unique_violation THEN NULL; -- another database of this server was faster
        WHEN insufficient_privilege THEN NULL; -- `recollect db check` says what that means
    END;
    has_role := EXISTS (SELECT FROM pg_roles WHERE rolname = 'recollect_app');
    IF has_role THEN
        BEGIN
            -- From PostgreSQL 16 on whoever made a role is its member, and may take it only when it was granted so.
            IF current_setting('server_version_num')::int < 160000 THEN
                IF NOT pg_has_role('recollect_app', 'MEMBER') THEN
                    EXECUTE format('GRANT recollect_app TO %I', current_user);
                END IF;
            ELSIF NOT pg_has_role('recollect_app', 'SET') THEN
                EXECUTE format('GRANT recollect_app TO %I WITH SET TRUE, INHERIT TRUE', current_user);
            END IF;
            -- Rows on their way wait in temporary tables: nothing is copied into a table under a policy.
            EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO recollect_app', current_database());
        EXCEPTION
            WHEN insufficient_privilege THEN NULL;
        END;
    END IF;
    -- What was granted or added meanwhile goes: another policy would let through what this one does not.
    REVOKE ALL ON SCHEMA recollect FROM PUBLIC;
    REVOKE ALL ON ALL TABLES IN SCHEMA recollect FROM PUBLIC;
    REVOKE ALL ON ALL SEQUENCES IN SCHEMA recollect FROM PUBLIC;
    IF has_role THEN
        REVOKE ALL ON SCHEMA recollect FROM recollect_app;
        REVOKE ALL ON ALL TABLES IN SCHEMA recollect FROM recollect_app;
        REVOKE ALL ON ALL SEQUENCES IN SCHEMA recollect FROM recollect_app;
    END IF;
    FOR part IN
        SELECT p.polrelid::regclass AS name, p.polname FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
        WHERE c.relnamespace = 'recollect'::regnamespace AND p.polname <> 'tenant'
    LOOP
        EXECUTE format('DROP POLICY %I ON %s', part.polname, part.name);
    END LOOP;
    FOR part IN
        SELECT c.oid::regclass AS name, c.relname, c.relrowsecurity AS secured, c.relforcerowsecurity AS forced,
               EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'tenant' AND p.polpermissive
                       AND p.polcmd = '*' AND p.polroles = '{0}' AND p.polwithcheck IS NULL
                       AND pg_get_expr(p.polqual, p.polrelid) = '(tenant_id = current_tenant())') AS has_policy
        FROM pg_class c
        WHERE c.relnamespace = 'recollect'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
          AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id')
    LOOP
        IF NOT part.secured THEN
            EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', part.name);
        END IF;
        IF part.forced THEN
            EXECUTE format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY', part.name);
        END IF;
        -- A setting is compared once a statement with the tenant that the statement names, not once a row.
        IF NOT part.has_policy THEN
            EXECUTE format('DROP POLICY IF EXISTS tenant ON %s', part.name);
            EXECUTE format('CREATE POLICY tenant ON %s USING
                (tenant_id = recollect.current_tenant())', part.name);
        END IF;
        IF has_role THEN
            EXECUTE format('GRANT %s ON %s TO recollect_app',
                CASE WHEN part.relname IN ('tenants', 'audit', 'audit_heads') THEN 'SELECT'
                     ELSE 'SELECT, INSERT, UPDATE, DELETE' END, part.name);
        END IF;
    END LOOP;
    FOR part IN
        SELECT p.oid::regprocedure AS name FROM pg_proc p
        WHERE p.pronamespace = 'recollect'::regnamespace
          AND p.proname IN ('dense_candidates', 'lexical_candidates', 'collections_shared_with', 'readers_of_collection', 'append_audit',
                            'enqueue_jobs', 'withdraw_job', 'begin_alike', 'settle_alike')
    LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = recollect, public, pg_temp', part.name);
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', part.name);
        IF has_role THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO recollect_app', part.name);
        END IF;
    END LOOP;
    IF has_role THEN
        GRANT USAGE ON SCHEMA recollect TO recollect_app;
        GRANT USAGE ON ALL SEQUENCES IN SCHEMA recollect TO recollect_app;
        GRANT SELECT ON schema_migrations, schema_routines TO recollect_app;
        REVOKE ALL ON SEQUENCE tenant_numbers, audit_numbers FROM recollect_app;
    END IF;
END
$isolate$;

-- A text goes with the last version that has it, whatever removes the versions (an erasure, a collection or a session that is
-- deleted, a session that is full) or gives them another text.

CREATE OR REPLACE FUNCTION drop_lone_texts() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    -- The erasure of a tenant removes every table's rows itself, and counts them.
    IF NOT EXISTS (SELECT FROM recollect.tenants t JOIN gone g USING (tenant_id) WHERE t.status = 'active') THEN
        RETURN NULL;
    END IF;
    -- Whoever stores the same text holds the row until their version is there, which the statement behind the lock sees.
    PERFORM FROM recollect.texts t
        WHERE (t.tenant_id, t.text_hash) IN (SELECT g.tenant_id, g.text_hash FROM gone g)
        ORDER BY t.tenant_id, t.text_hash FOR UPDATE;
    DELETE FROM recollect.texts t
        WHERE (t.tenant_id, t.text_hash) IN (SELECT g.tenant_id, g.text_hash FROM gone g)
          AND NOT EXISTS (SELECT FROM recollect.document_contents c
                          WHERE c.tenant_id = t.tenant_id AND c.text_hash = t.text_hash);
    RETURN NULL;
END
$$;

DO $triggers$
BEGIN
    -- A store that is brought up to date step by step does not have the table before its migration.
    IF to_regclass('recollect.texts') IS NOT NULL THEN
        CREATE OR REPLACE TRIGGER document_contents_deleted AFTER DELETE ON document_contents
            REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION drop_lone_texts();
        CREATE OR REPLACE TRIGGER document_contents_replaced AFTER UPDATE ON document_contents
            REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION drop_lone_texts();
    END IF;
END
$triggers$;

-- Rows
INSERT INTO recollect.tenants VALUES (1, 'default', 'active', NULL, NULL, NULL, '2026-11-29 01:28:04.44608+00', NULL, '615a7f7e-8ef7-4604-b6e7-0ef3a9a6a69c');
INSERT INTO recollect.tenants VALUES (2, 'acme', 'active', NULL, NULL, NULL, '2026-11-29 01:28:08.740459+00', NULL, 'a60c22ed-5166-4f6d-88ef-64f607424746');
INSERT INTO recollect.collections VALUES (1, 1, 'default', '', false, 'auto', 'hashing:16', 16, false, '{"size": 500, "unit": "characters", "overlap": 0, "strategy": "recursive", "tokenize": null, "algorithm": 3, "separators": null}', NULL, '{}', '{*}', '{}', '2026-11-29 01:28:05.571472+00', NULL, 1, NULL);
INSERT INTO recollect.collections VALUES (2, 2, 'board', '', false, 'auto', 'hashing:16', 16, false, '{"size": 500, "unit": "characters", "overlap": 0, "strategy": "recursive", "tokenize": null, "algorithm": 3, "separators": null}', NULL, '{user:chair}', '{role:board}', '{}', '2026-11-29 01:28:08.790504+00', NULL, 2, NULL);
INSERT INTO recollect.access_lists VALUES (1, 1, 0, NULL, '{*}', '{}', false);
INSERT INTO recollect.access_lists VALUES (1, 1, 1, 0, '{*}', '{}', false);
INSERT INTO recollect.access_lists VALUES (1, 1, 2, NULL, '{role:clerk}', '{user:eve}', false);
INSERT INTO recollect.access_lists VALUES (2, 2, 0, NULL, '{*}', '{}', false);
INSERT INTO recollect.sources VALUES (1, 1, 1, 'manual', 'manual', '{}', '2026-11-29 01:28:06.101901+00');
INSERT INTO recollect.sources VALUES (1, 2, 1, 'upload', 'upload', '{}', '2026-11-29 01:28:07.840891+00');
INSERT INTO recollect.sources VALUES (2, 3, 2, 'manual', 'manual', '{}', '2026-11-29 01:28:08.806917+00');
INSERT INTO recollect.documents VALUES (1, 1, 1, 1, 'hr/leave.md', '', 0, 0, DEFAULT, '2026-11-29 01:28:06.159997+00', NULL, NULL);
INSERT INTO recollect.documents VALUES (1, 3, 1, 1, 'hr/pay.md', '', 0, 2, DEFAULT, '2026-11-29 01:28:06.569353+00', NULL, NULL);
INSERT INTO recollect.documents VALUES (1, 4, 1, 1, 'end.md', '', 0, 0, DEFAULT, '2026-11-29 01:28:06.634733+00', NULL, NULL);
INSERT INTO recollect.documents VALUES (1, 5, 1, 1, 'gone.md', '', 0, 0, DEFAULT, '2026-11-29 01:28:06.699799+00', NULL, NULL);
INSERT INTO recollect.documents VALUES (1, 6, 1, 2, 'upload.txt', '', 0, 0, DEFAULT, '2026-11-29 01:28:07.840891+00', NULL, NULL);
INSERT INTO recollect.documents VALUES (2, 8, 2, 3, 'board.md', '', 0, 0, DEFAULT, '2026-11-29 01:28:08.851766+00', NULL, NULL);
INSERT INTO recollect.document_versions VALUES (1, 1, 1, 1, 1, 1, '2026-11-29 01:28:06.179675+00', '2026-11-29 01:28:06.483786+00', 'infinity', NULL, NULL, 'hr/leave.md', 'leave', NULL, NULL, 'text/plain', '{"year": 2026}', '{hr}', 'embedded', NULL, 1, '\xbbb523449b883e2b52b7a5f6bc06f194503217db4373aa96f9db24a456c6c7fd', NULL, '7d135e454b13137720b7e28f254de4ea', '{en}', NULL);
INSERT INTO recollect.document_versions VALUES (1, 2, 1, 1, 0, 2, '2026-11-29 01:28:06.483786+00', 'infinity', 'infinity', NULL, NULL, 'hr/leave.md', 'leave', NULL, NULL, 'text/plain', '{"year": 2027}', '{hr}', 'embedded', NULL, 1, '\x7d5cbef7555f6db3fd3895050f19f1c4831b5e1e6b180a5dc0f754b313f74a63', NULL, '286cad982aec0a6b582f79357d9cb931', '{en}', NULL);
INSERT INTO recollect.document_versions VALUES (1, 3, 3, 1, 2, 1, '2026-11-29 01:28:06.574675+00', 'infinity', 'infinity', NULL, NULL, 'hr/pay.md', 'pay', NULL, NULL, 'text/plain', '{}', '{}', 'embedded', NULL, 1, '\xf949895cc72c61f40f3e06b0278f951d2509251cc44fae15322e3a5334c1e857', NULL, '60a9f4eb200b3e010ee83f4d1cf2181f', '{en}', NULL);
INSERT INTO recollect.document_versions VALUES (1, 4, 4, 1, 0, 1, '2026-11-29 01:28:06.649494+00', 'infinity', '2126-11-05 01:28:06.649494+00', NULL, NULL, 'end.md', 'end', NULL, NULL, 'text/plain', '{}', '{}', 'embedded', NULL, 1, '\xab979d376df613767a1b468077d6f973307cbb604cef7ae06e12bffb32a56982', NULL, 'fb875dcf86c59956df43b53f12fcafb2', '{en}', NULL);
INSERT INTO recollect.document_versions VALUES (1, 5, 5, 1, 1, 1, '2026-11-29 01:28:06.708014+00', '2026-11-29 01:28:07.830142+00', 'infinity', NULL, NULL, 'gone.md', 'gone', NULL, NULL, 'text/plain', '{}', '{}', 'embedded', NULL, 1, '\xeae42067c25715b6893a7b4e093a015ea77a9120209af10e1d17a5d59f845922', NULL, 'fb875dcf86c59956df43b53f12fcafb2', '{en}', NULL);
INSERT INTO recollect.document_versions VALUES (1, 6, 6, 1, 0, 1, '2026-11-29 01:28:08.051129+00', 'infinity', 'infinity', NULL, NULL, 'upload.txt', 'Upload', NULL, NULL, 'text/plain', '{"format": "txt"}', '{}', 'embedded', NULL, 1, '\x34a0d834374adb3cbf557d6b44a92e67ced8064e8b58fe8364449aa1fe0fb9c1', '\x34a0d834374adb3cbf557d6b44a92e67ced8064e8b58fe8364449aa1fe0fb9c1', 'd7de7832e075467636e65048d84abe77', '{en}', NULL);
INSERT INTO recollect.document_versions VALUES (2, 7, 8, 2, 0, 1, '2026-11-29 01:28:08.862686+00', 'infinity', 'infinity', NULL, NULL, 'board.md', 'board', NULL, NULL, 'text/plain', '{}', '{}', 'embedded', NULL, 1, '\x91b29a3fd304cb3878d3e195456d6bc57a6c0b2016e1a7e0c0e14adfe2bc1356', NULL, 'fb875dcf86c59956df43b53f12fcafb2', '{en}', NULL);
INSERT INTO recollect.chunks VALUES (1, 1, 1, 0, 0, 28, NULL, NULL, NULL, 7, '\x9ef09bba6eea3e00c611a85e56f12a843b900aba72533ccbd050dd61fdefd275', '{}', 'Leave is thirty days a year.', '{}', '', NULL);
INSERT INTO recollect.chunks VALUES (1, 2, 2, 0, 0, 32, NULL, NULL, NULL, 9, '\x05dfbda3e99c52ebe7df2e71df33cb462846ca05eea7024c2e784edd0a6965fb', '{}', 'Leave is thirty-one days a year.', '{}', '', NULL);
INSERT INTO recollect.chunks VALUES (1, 3, 3, 0, 0, 30, NULL, NULL, NULL, 7, '\x653d28841bedfeebde9e533b6db7e9ca663a97862ea9ed04fc7c33561d5ca7f3', '{}', 'Salaries are paid on the 25th.', '{}', '', NULL);
INSERT INTO recollect.chunks VALUES (1, 4, 4, 0, 0, 8, NULL, NULL, NULL, 3, '\xab979d376df613767a1b468077d6f973307cbb604cef7ae06e12bffb32a56982', '{}', 'It ends.', '{}', '', NULL);
INSERT INTO recollect.chunks VALUES (1, 5, 5, 0, 0, 15, NULL, NULL, NULL, 4, '\x36ebd4c52e7c4deab3571e3fb8f5f71dc88fdbf700dfc2eec8a5a659cd1bab30', '{}', 'It was deleted.', '{}', '', NULL);
INSERT INTO recollect.chunks VALUES (1, 6, 6, 0, 0, 17, NULL, NULL, NULL, 4, '\x34a0d834374adb3cbf557d6b44a92e67ced8064e8b58fe8364449aa1fe0fb9c1', '{}', 'Uploads are kept.', '{}', '', NULL);
INSERT INTO recollect.chunks VALUES (2, 7, 7, 0, 0, 24, NULL, NULL, NULL, 6, '\x91b29a3fd304cb3878d3e195456d6bc57a6c0b2016e1a7e0c0e14adfe2bc1356', '{}', 'The board meets in Oslo.', '{}', '', NULL);
INSERT INTO recollect.chunk_lexical VALUES (1, 1, 1, 1, 1, '2026-11-29 01:28:06.179675+00', '2026-11-29 01:28:06.483786+00', 5, '{259031943,328649764,612050559,855522406}', '{259031943:1,328649764:1.375,612050559:1,855522406:1}/1000000000');
INSERT INTO recollect.chunk_lexical VALUES (1, 2, 1, 2, 0, '2026-11-29 01:28:06.483786+00', 'infinity', 6, '{259031943,328649764,520510846,612050559,855522406}', '{259031943:0.92436975,328649764:1.3017751,520510846:0.92436975,612050559:0.92436975,855522406:0.92436975}/1000000000');
INSERT INTO recollect.chunk_lexical VALUES (1, 3, 1, 3, 2, '2026-11-29 01:28:06.574675+00', 'infinity', 4, '{319077794,450374663,522821534,744687600}', '{319077794:1.089109,450374663:1.089109,522821534:1.089109,744687600:1.089109}/1000000000');
INSERT INTO recollect.chunk_lexical VALUES (1, 4, 1, 4, 0, '2026-11-29 01:28:06.649494+00', 'infinity', 1, '{322120950}', '{322120950:1.4864864}/1000000000');
INSERT INTO recollect.chunk_lexical VALUES (1, 5, 1, 5, 1, '2026-11-29 01:28:06.708014+00', '2026-11-29 01:28:07.830142+00', 2, '{370889109,889521919}', '{370889109:1.3253012,889521919:1.3253012}/1000000000');
INSERT INTO recollect.chunk_lexical VALUES (1, 6, 1, 6, 0, '2026-11-29 01:28:08.051129+00', 'infinity', 2, '{453239965,998277142}', '{453239965:1.3253012,998277142:1.3253012}/1000000000');
INSERT INTO recollect.chunk_lexical VALUES (2, 7, 2, 7, 0, '2026-11-29 01:28:08.862686+00', 'infinity', 3, '{479235965,834363338,907624251}', '{479235965:1,834363338:1,907624251:1}/1000000000');
INSERT INTO recollect.chunk_vectors VALUES (1, 1, 1, 1, 1, '2026-11-29 01:28:06.179675+00', '2026-11-29 01:28:06.483786+00', '[-0.08935547,0.2084961,-0.14892578,-0.119140625,-0.17871094,-0.08935547,0.08935547,-0.08935547,-0.6850586,0,0.08935547,0.5957031,-0.08935547,0,-0.08935547,0.08935547]');
INSERT INTO recollect.chunk_vectors VALUES (1, 2, 1, 2, 0, '2026-11-29 01:28:06.483786+00', 'infinity', '[-0.10644531,0.24841309,-0.17749023,-0.14196777,-0.21289062,-0.10644531,0.10644531,0.21289062,-0.46142578,0,0.10644531,0.70996094,-0.10644531,0,-0.10644531,0.10644531]');
INSERT INTO recollect.chunk_vectors VALUES (1, 3, 1, 3, 2, '2026-11-29 01:28:06.574675+00', 'infinity', '[-0.18029785,0,-0.090148926,-0.6010742,-0.3005371,0.390625,0,0.18029785,-0.090148926,0.18029785,0.21044922,0,-0.390625,0.090148926,-0.21044922,-0.18029785]');
INSERT INTO recollect.chunk_vectors VALUES (1, 4, 1, 4, 0, '2026-11-29 01:28:06.649494+00', 'infinity', '[0,-0.52783203,0.22607422,0,0,0,0,0,0,0.22607422,-0.75390625,0,0,-0.22607422,0,0]');
INSERT INTO recollect.chunk_vectors VALUES (1, 5, 1, 5, 1, '2026-11-29 01:28:06.708014+00', '2026-11-29 01:28:07.830142+00', '[0.10632324,0,0.46069336,0.46069336,0,0,-0.10632324,0.42529297,0.10632324,0.46069336,-0.3544922,0,0.10632324,0,0,-0.10632324]');
INSERT INTO recollect.chunk_vectors VALUES (1, 6, 1, 6, 0, '2026-11-29 01:28:08.051129+00', 'infinity', '[0,0.1116333,0.1116333,-0.7441406,0,0,0,-0.33496094,0,0,-0.1116333,0,-0.48388672,0.1116333,0,-0.2232666]');
INSERT INTO recollect.chunk_vectors VALUES (2, 7, 2, 7, 0, '2026-11-29 01:28:08.862686+00', 'infinity', '[-0.20361328,-0.67871094,0,0.40722656,0.20361328,0,0,-0.20361328,0,0.20361328,-0.20361328,0,-0.20361328,-0.20361328,0.20361328,-0.20361328]');
INSERT INTO recollect.collection_changes VALUES (1, 1, 1, 'd2d1f64b-1c4a-4505-b4cd-fd4b837e36a5', '{1}');
INSERT INTO recollect.collection_changes VALUES (1, 1, 2, 'debbc482-6224-4d25-8777-3a553d5f8289', '{0}');
INSERT INTO recollect.collection_changes VALUES (1, 1, 3, 'ef109d7f-bf68-4100-9b65-62d64c25aa5b', '{1}');
INSERT INTO recollect.collection_changes VALUES (1, 1, 3, 'ef109d7f-bf68-4100-9b65-62d64c25aa5b', '{1}');
INSERT INTO recollect.collection_changes VALUES (1, 1, 3, 'ef109d7f-bf68-4100-9b65-62d64c25aa5b', '{2}');
INSERT INTO recollect.collection_changes VALUES (1, 1, 4, 'f033c465-b688-46e5-bb3a-e66033add6ff', '{0}');
INSERT INTO recollect.collection_changes VALUES (1, 1, 5, '8b5454e5-c756-4700-b399-6dd323774678', '{3}');
INSERT INTO recollect.collection_changes VALUES (1, 1, 6, '760209b9-6c6c-4fdc-87b9-02c3c7c64f76', '{0}');
INSERT INTO recollect.collection_changes VALUES (1, 1, 7, 'ab7b8479-1366-4109-9bd8-0a0db3bc514a', '{4}');
INSERT INTO recollect.collection_changes VALUES (1, 1, 7, 'ab7b8479-1366-4109-9bd8-0a0db3bc514a', '{4}');
INSERT INTO recollect.collection_changes VALUES (1, 1, 8, '915150de-18b7-46e8-967c-c19bcde827d7', '{0}');
INSERT INTO recollect.collection_changes VALUES (1, 1, 9, '798c8fbf-e06a-44d0-89bd-9e95168390b4', '{5}');
INSERT INTO recollect.collection_changes VALUES (1, 1, 10, '668951d4-85f0-478b-9fea-c8d2382691ac', '{0}');
INSERT INTO recollect.collection_changes VALUES (1, 1, 11, '6ade749c-cfcb-444c-bf1e-c0543d1d6300', '{5}');
INSERT INTO recollect.collection_changes VALUES (1, 1, 11, '6ade749c-cfcb-444c-bf1e-c0543d1d6300', '{5}');
INSERT INTO recollect.collection_changes VALUES (1, 1, 12, 'b6d2c516-0946-4c85-9159-3897a51db5fa', '{6}');
INSERT INTO recollect.collection_changes VALUES (1, 1, 13, '3d9ff0a4-7d09-46a9-9a03-4cc7379c1a35', '{0}');
INSERT INTO recollect.collection_changes VALUES (2, 2, 1, '80b58408-dcd2-4a4e-b028-a3a70515b2b0', '{7}');
INSERT INTO recollect.collection_changes VALUES (2, 2, 2, '97301fdb-abdc-44b8-9218-9f480491a391', '{0}');
INSERT INTO recollect.collection_changes VALUES (2, 2, 3, '33b5c3f3-25bc-4af7-be7d-f2090cc27e41', '{}');
INSERT INTO recollect.collection_state VALUES (1, 1, 13, 4, 4, '2126-11-05 01:28:06.649494+00', 4, 13, 0, 5, '{en}', '74e2de9b-593b-42b5-90ad-5d91afe70473');
INSERT INTO recollect.collection_state VALUES (2, 2, 3, 1, 1, 'infinity', 1, 3, 0, 3, '{en}', 'fda6e8b9-b2eb-4804-ac6c-4ce3faaf065c');
INSERT INTO recollect.sessions VALUES (1, 1, 'talk', 'ann', 'hashing:16', '{}', 1, 3, '2026-11-29 01:28:08.393906+00', '2026-11-29 01:28:08.411677+00');
INSERT INTO recollect.episodes VALUES (1, 1, 1, 1, NULL, 'user', 'I live in Rome.', '{}', NULL, '2026-11-29 01:28:08.411677+00', 'infinity');
INSERT INTO recollect.consolidated_episodes VALUES (1, 1, '2026-11-29 01:28:08.615886+00', 'extractive');
INSERT INTO recollect.texts VALUES (1, '\xbbb523449b883e2b52b7a5f6bc06f194503217db4373aa96f9db24a456c6c7fd', 'Leave is thirty days a year.');
INSERT INTO recollect.texts VALUES (1, '\x7d5cbef7555f6db3fd3895050f19f1c4831b5e1e6b180a5dc0f754b313f74a63', 'Leave is thirty-one days a year.');
INSERT INTO recollect.texts VALUES (1, '\xf949895cc72c61f40f3e06b0278f951d2509251cc44fae15322e3a5334c1e857', 'Salaries are paid on the 25th.');
INSERT INTO recollect.texts VALUES (1, '\xab979d376df613767a1b468077d6f973307cbb604cef7ae06e12bffb32a56982', 'It ends.');
INSERT INTO recollect.texts VALUES (1, '\xeae42067c25715b6893a7b4e093a015ea77a9120209af10e1d17a5d59f845922', 'It was deleted.');
INSERT INTO recollect.texts VALUES (1, '\x34a0d834374adb3cbf557d6b44a92e67ced8064e8b58fe8364449aa1fe0fb9c1', 'Uploads are kept.');
INSERT INTO recollect.texts VALUES (2, '\x91b29a3fd304cb3878d3e195456d6bc57a6c0b2016e1a7e0c0e14adfe2bc1356', 'The board meets in Oslo.');
INSERT INTO recollect.document_contents VALUES (1, 1, '\xbbb523449b883e2b52b7a5f6bc06f194503217db4373aa96f9db24a456c6c7fd', '[]', '[]');
INSERT INTO recollect.document_contents VALUES (1, 2, '\x7d5cbef7555f6db3fd3895050f19f1c4831b5e1e6b180a5dc0f754b313f74a63', '[]', '[]');
INSERT INTO recollect.document_contents VALUES (1, 3, '\xf949895cc72c61f40f3e06b0278f951d2509251cc44fae15322e3a5334c1e857', '[]', '[]');
INSERT INTO recollect.document_contents VALUES (1, 4, '\xab979d376df613767a1b468077d6f973307cbb604cef7ae06e12bffb32a56982', '[]', '[]');
INSERT INTO recollect.document_contents VALUES (1, 5, '\xeae42067c25715b6893a7b4e093a015ea77a9120209af10e1d17a5d59f845922', '[]', '[]');
INSERT INTO recollect.document_contents VALUES (1, 6, '\x34a0d834374adb3cbf557d6b44a92e67ced8064e8b58fe8364449aa1fe0fb9c1', '[]', '[]');
INSERT INTO recollect.document_contents VALUES (2, 7, '\x91b29a3fd304cb3878d3e195456d6bc57a6c0b2016e1a7e0c0e14adfe2bc1356', '[]', '[]');
INSERT INTO recollect.embedding_cache VALUES (1, 'hashing:16', '\x9ef09bba6eea3e00c611a85e56f12a843b900aba72533ccbd050dd61fdefd275', '[-0.08935547,0.2084961,-0.14892578,-0.119140625,-0.17871094,-0.08935547,0.08935547,-0.08935547,-0.6850586,0,0.08935547,0.5957031,-0.08935547,0,-0.08935547,0.08935547]', '2026-11-29 01:28:06.159997+00');
INSERT INTO recollect.embedding_cache VALUES (1, 'hashing:16', '\x05dfbda3e99c52ebe7df2e71df33cb462846ca05eea7024c2e784edd0a6965fb', '[-0.10644531,0.24841309,-0.17749023,-0.14196777,-0.21289062,-0.10644531,0.10644531,0.21289062,-0.46142578,0,0.10644531,0.70996094,-0.10644531,0,-0.10644531,0.10644531]', '2026-11-29 01:28:06.459183+00');
INSERT INTO recollect.embedding_cache VALUES (1, 'hashing:16', '\x653d28841bedfeebde9e533b6db7e9ca663a97862ea9ed04fc7c33561d5ca7f3', '[-0.18029785,0,-0.090148926,-0.6010742,-0.3005371,0.390625,0,0.18029785,-0.090148926,0.18029785,0.21044922,0,-0.390625,0.090148926,-0.21044922,-0.18029785]', '2026-11-29 01:28:06.569353+00');
INSERT INTO recollect.embedding_cache VALUES (1, 'hashing:16', '\xab979d376df613767a1b468077d6f973307cbb604cef7ae06e12bffb32a56982', '[0,-0.52783203,0.22607422,0,0,0,0,0,0,0.22607422,-0.75390625,0,0,-0.22607422,0,0]', '2026-11-29 01:28:06.634733+00');
INSERT INTO recollect.embedding_cache VALUES (1, 'hashing:16', '\x36ebd4c52e7c4deab3571e3fb8f5f71dc88fdbf700dfc2eec8a5a659cd1bab30', '[0.10632324,0,0.46069336,0.46069336,0,0,-0.10632324,0.42529297,0.10632324,0.46069336,-0.3544922,0,0.10632324,0,0,-0.10632324]', '2026-11-29 01:28:06.699799+00');
INSERT INTO recollect.embedding_cache VALUES (1, 'hashing:16', '\x34a0d834374adb3cbf557d6b44a92e67ced8064e8b58fe8364449aa1fe0fb9c1', '[0,0.1116333,0.1116333,-0.7441406,0,0,0,-0.33496094,0,0,-0.1116333,0,-0.48388672,0.1116333,0,-0.2232666]', '2026-11-29 01:28:08.041878+00');
INSERT INTO recollect.embedding_cache VALUES (2, 'hashing:16', '\x91b29a3fd304cb3878d3e195456d6bc57a6c0b2016e1a7e0c0e14adfe2bc1356', '[-0.20361328,-0.67871094,0,0.40722656,0.20361328,0,0,-0.20361328,0,0.20361328,-0.20361328,0,-0.20361328,-0.20361328,0.20361328,-0.20361328]', '2026-11-29 01:28:08.851766+00');
INSERT INTO recollect.episode_lexical VALUES (1, 1, 1, 1, NULL, '2026-11-29 01:28:08.411677+00', 'infinity', 3, '{498696258,804037419,882129273}', '{498696258:1.5891647,804037419:1.5891647,882129273:1.5891647}/1000000000');
INSERT INTO recollect.episode_retrievals VALUES (1, 1, 1, '2026-11-29 01:28:08.57945+00', '2026-11-29 01:28:08.57945+00');
INSERT INTO recollect.episode_vectors VALUES (1, 1, 1, 1, NULL, '2026-11-29 01:28:08.411677+00', 'infinity', '[0.14001465,0,0,0.14001465,0.6069336,0.46679688,0,0.2800293,0.46679688,0,0.14001465,0,-0.14001465,0,0.14001465,0.14001465]');
INSERT INTO recollect.facts VALUES (1, 1, 1, 1, 1, 'I live in Rome.', 'i live in rome', 'user', 'residence', 'Rome', 'user', NULL, '2026-11-29 01:28:08.411677+00', '2026-11-29 01:28:08.610559+00', 'extractive');
INSERT INTO recollect.fact_evidence VALUES (1, 1, 1, 0, 15, 'source');
INSERT INTO recollect.fact_index VALUES (1, 1, 1, '[0.14001465,0,0,0.14001465,0.6069336,0.46679688,0,0.2800293,0.46679688,0,0.14001465,0,-0.14001465,0,0.14001465,0.14001465]', 3, '{498696258,804037419,882129273}', '{498696258:1.5891647,804037419:1.5891647,882129273:1.5891647}/1000000000');
INSERT INTO recollect.jobs VALUES (1, 1, 'ingest_upload', 'succeeded', 'default', NULL, 'upload', 'upload.txt', NULL, NULL, '{"name": "upload.txt", "sha256": "34a0d834374adb3cbf557d6b44a92e67ced8064e8b58fe8364449aa1fe0fb9c1", "mime_type": "text/plain", "byte_count": 17}', '{}', '[{"done": 1, "name": "read", "total": 1}, {"done": 1, "name": "cut", "total": 1}, {"done": 1, "name": "embed", "total": 1}, {"done": 1, "name": "store", "total": 1}]', '{"title": "Upload", "chunks": 1, "source": "upload", "status": "added", "version": 1, "document_id": 6}', NULL, 'default', '/default/upload/4ca04c2b34d43e001ec647b5824d76194c28a9587ca596766266f56174cd168a', 0, 3, 1, 0, 1, false, NULL, '2026-11-29 01:28:07.840891+00', NULL, '2026-11-29 01:28:08.011131+00', '2026-11-29 01:28:08.115444+00', 6);
INSERT INTO recollect.originals VALUES (1, '\x34a0d834374adb3cbf557d6b44a92e67ced8064e8b58fe8364449aa1fe0fb9c1', 17, '2026-11-29 01:28:07.840891+00');
INSERT INTO recollect.original_pieces VALUES (1, '\x34a0d834374adb3cbf557d6b44a92e67ced8064e8b58fe8364449aa1fe0fb9c1', 0, '\x55706c6f61647320617265206b6570742e');
INSERT INTO recollect.schema_routines VALUES (true, '31019e0572553c150debed0782f0ae7f55e7b02248dee74a7d36785458f27beb');
INSERT INTO recollect.session_terms VALUES (1, 498696258, 1, 1);
INSERT INTO recollect.session_terms VALUES (1, 804037419, 1, 1);
INSERT INTO recollect.session_terms VALUES (1, 882129273, 1, 1);
INSERT INTO recollect.term_stats VALUES (1, 1, 259031943, 1);
INSERT INTO recollect.term_stats VALUES (1, 1, 328649764, 1);
INSERT INTO recollect.term_stats VALUES (1, 1, 612050559, 1);
INSERT INTO recollect.term_stats VALUES (1, 1, 855522406, 1);
INSERT INTO recollect.term_stats VALUES (1, 1, 520510846, 1);
INSERT INTO recollect.term_stats VALUES (1, 1, 744687600, 1);
INSERT INTO recollect.term_stats VALUES (1, 1, 450374663, 1);
INSERT INTO recollect.term_stats VALUES (1, 1, 522821534, 1);
INSERT INTO recollect.term_stats VALUES (1, 1, 319077794, 1);
INSERT INTO recollect.term_stats VALUES (1, 1, 322120950, 1);
INSERT INTO recollect.term_stats VALUES (1, 1, 998277142, 1);
INSERT INTO recollect.term_stats VALUES (1, 1, 453239965, 1);
INSERT INTO recollect.term_stats VALUES (2, 2, 907624251, 1);
INSERT INTO recollect.term_stats VALUES (2, 2, 479235965, 1);
INSERT INTO recollect.term_stats VALUES (2, 2, 834363338, 1);
INSERT INTO recollect.version_originals VALUES (1, 6, '\x34a0d834374adb3cbf557d6b44a92e67ced8064e8b58fe8364449aa1fe0fb9c1', 'upload.txt', 'text/plain');
SELECT pg_catalog.setval('recollect.access_ids', 2, true);
SELECT pg_catalog.setval('recollect.access_numbers', 1, false);
SELECT pg_catalog.setval('recollect.audit_numbers', 1, false);
SELECT pg_catalog.setval('recollect.chunks_chunk_id_seq', 7, true);
SELECT pg_catalog.setval('recollect.closed_row_segments_segment_id_seq', 1, false);
SELECT pg_catalog.setval('recollect.collections_collection_id_seq', 2, true);
SELECT pg_catalog.setval('recollect.document_versions_version_id_seq', 7, true);
SELECT pg_catalog.setval('recollect.documents_document_id_seq', 8, true);
SELECT pg_catalog.setval('recollect.episodes_episode_id_seq', 1, true);
SELECT pg_catalog.setval('recollect.facts_fact_id_seq', 1, true);
SELECT pg_catalog.setval('recollect.jobs_job_id_seq', 1, true);
SELECT pg_catalog.setval('recollect.request_numbers', 1, false);
SELECT pg_catalog.setval('recollect.saved_cases_case_id_seq', 1, false);
SELECT pg_catalog.setval('recollect.sessions_session_id_seq', 1, true);
SELECT pg_catalog.setval('recollect.sources_source_id_seq', 3, true);
SELECT pg_catalog.setval('recollect.space_ids', 2, true);
SELECT pg_catalog.setval('recollect.tenant_numbers', 2, true);
