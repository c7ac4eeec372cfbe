-- record: something was done; the last statement of its transaction
SELECT audit_id, at FROM append_audit(%(tenant_id)s, %(actions)s, %(actors)s, %(details)s)

-- page: the newest entries first; a receipt with what its proof found afterwards, which is an entry of its own
SELECT a.audit_id, a.at, a.action, a.actor,
       CASE WHEN p.details IS NULL THEN a.details ELSE a.details || (p.details - 'receipt_id') END AS details,
       a.number, encode(a.hash, 'hex') AS hash
FROM audit a LEFT JOIN LATERAL (
    SELECT o.details FROM audit o
    WHERE a.action = 'erase' AND o.tenant_id = a.tenant_id AND o.action = 'erase_proof' AND o.audit_id > a.audit_id
      AND (o.details ->> 'receipt_id')::bigint = a.audit_id
    ORDER BY o.audit_id DESC LIMIT 1) p ON true
WHERE a.tenant_id = %(tenant_id)s AND (%(action)s::text IS NULL OR a.action = %(action)s)
  AND (%(before)s::bigint IS NULL OR a.audit_id < %(before)s)
  AND (%(since)s::timestamptz IS NULL OR a.at >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR a.at < %(until)s)
ORDER BY a.at DESC, a.audit_id DESC LIMIT %(limit)s

-- entries: as they were hashed, oldest first
SELECT content, hash, previous_hash FROM (
    SELECT a.at, a.action, a.audit_id, a.hash, lag(a.hash, 1, h.dropped_hash) OVER w AS previous_hash,
           audit_content(a.tenant_id, a.number, a.audit_id, a.at, a.action, a.actor, a.details) AS content
    FROM audit a JOIN audit_heads h USING (tenant_id)
    WHERE a.tenant_id = %(tenant_id)s WINDOW w AS (ORDER BY a.at, a.audit_id)) e
WHERE (%(action)s::text IS NULL OR action = %(action)s)
  AND (%(since)s::timestamptz IS NULL OR at >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR at < %(until)s)
ORDER BY at, audit_id

-- chains: whose entries there are, or were
SELECT tenant_id FROM audit_heads UNION SELECT tenant_id FROM audit ORDER BY tenant_id

-- verify: a chain's two ends, its newest entry, and the first entry that does not follow from the one before it
WITH chained AS (
    SELECT a.number, a.audit_id, a.at, coalesce(lag(a.number) OVER w, h.dropped, 0) AS before,
           a.hash IS DISTINCT FROM sha256(
               coalesce(lag(a.hash) OVER w, h.dropped_hash, decode(repeat('00', 32), 'hex')) || convert_to(
                   audit_content(a.tenant_id, a.number, a.audit_id, a.at, a.action, a.actor, a.details), 'UTF8')) AS other
    FROM audit a LEFT JOIN audit_heads h USING (tenant_id)
    WHERE a.tenant_id = %(tenant_id)s WINDOW w AS (ORDER BY a.at, a.audit_id)),
broken AS (
    SELECT before + 1 AS number, audit_id, at, number <> before + 1 AS missing FROM chained
    WHERE other OR number <> before + 1 ORDER BY at, audit_id LIMIT 1),
newest AS (
    SELECT number, audit_id, at, hash FROM audit WHERE tenant_id = %(tenant_id)s ORDER BY at DESC, audit_id DESC LIMIT 1)
SELECT coalesce(h.dropped, 0), coalesce(h.number, 0), h.hash, n.number, n.audit_id, n.at, n.hash,
       b.number, b.audit_id, b.at, b.missing
FROM (SELECT) one LEFT JOIN audit_heads h ON h.tenant_id = %(tenant_id)s
     LEFT JOIN newest n ON true LEFT JOIN broken b ON true

-- go_on: a chain whose entries are gone goes on behind them
UPDATE audit_heads SET dropped = number, dropped_hash = hash WHERE tenant_id = %(tenant_id)s

-- drop_old: partitions past their retention
SELECT drop_audit(now() - make_interval(days => %(days)s))
