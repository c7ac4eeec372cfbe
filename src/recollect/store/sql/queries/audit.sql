-- record: something was done
INSERT INTO audit (tenant_id, action, actor, details) VALUES (%(tenant_id)s, %(action)s, %(actor)s, %(details)s)
RETURNING audit_id, at

-- complete: what became known of it afterwards
UPDATE audit SET details = details || %(details)s
WHERE tenant_id = %(tenant_id)s AND at = %(at)s AND audit_id = %(audit_id)s

-- page: the newest records first
SELECT audit_id, at, action, actor, details FROM audit
WHERE tenant_id = %(tenant_id)s AND (%(action)s::text IS NULL OR action = %(action)s)
  AND (%(before)s::bigint IS NULL OR audit_id < %(before)s)
ORDER BY at DESC, audit_id DESC LIMIT %(limit)s

-- drop_old: partitions past their retention
SELECT drop_time_partitions('audit', now() - make_interval(days => %(days)s))

-- make_partitions: of the time to come
SELECT make_time_partitions('audit', %(unit)s, %(ahead)s)
