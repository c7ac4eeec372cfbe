-- tenants: all that are active
SELECT tenant_id FROM tenants WHERE status = 'active' ORDER BY tenant_id

-- claim: a task of a tenant, unless somebody began it less than so many seconds ago
INSERT INTO upkeep AS u (tenant_id, task, begun_at) VALUES (%(tenant_id)s, %(task)s, now())
ON CONFLICT (tenant_id, task) DO UPDATE SET begun_at = excluded.begun_at
    WHERE u.begun_at <= now() - make_interval(secs => %(seconds)s)
RETURNING 1
