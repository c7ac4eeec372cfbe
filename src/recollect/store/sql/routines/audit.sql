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
