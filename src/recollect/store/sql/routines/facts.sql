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
