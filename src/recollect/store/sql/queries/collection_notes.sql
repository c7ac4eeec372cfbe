-- all: what is noted of collections, by their numbers
SELECT collection_id, metadata, idle_days, last_active_at, expired_at FROM collection_notes
WHERE tenant_id = %(tenant_id)s

-- note: what is given; the rest stays. Whoever writes here uses the collection
INSERT INTO collection_notes AS n (tenant_id, collection_id, metadata, idle_days)
VALUES (%(tenant_id)s, %(collection_id)s, coalesce(%(metadata)s::jsonb, '{}'), nullif(%(idle_days)s::int, 0))
ON CONFLICT (tenant_id, collection_id) DO UPDATE
SET metadata = coalesce(%(metadata)s::jsonb, n.metadata),
    idle_days = CASE WHEN %(idle_days)s::int IS NULL THEN n.idle_days ELSE nullif(%(idle_days)s::int, 0) END,
    last_active_at = now(), expired_at = NULL

-- use: that a collection which may expire was written to
UPDATE collection_notes SET last_active_at = now(), expired_at = NULL
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s

-- count_searches: searches are counted by day already, and what counts them forgets them sooner
UPDATE collection_notes n SET last_active_at = least(h.day_end, now())
FROM (SELECT collection_id, (max(day) + 1) AT TIME ZONE 'UTC' AS day_end FROM search_health
      WHERE tenant_id = %(tenant_id)s GROUP BY collection_id) h
WHERE n.tenant_id = %(tenant_id)s AND n.collection_id = h.collection_id AND n.idle_days IS NOT NULL
  AND h.day_end > n.last_active_at

-- idle: collections whose time without use is over, and into which nothing came meanwhile
SELECT n.collection_id FROM collection_notes n
WHERE n.tenant_id = %(tenant_id)s AND n.expired_at IS NULL
  AND n.last_active_at + make_interval(days => n.idle_days) <= now()
  AND NOT EXISTS (SELECT FROM document_versions v
                  WHERE v.tenant_id = n.tenant_id AND v.collection_id = n.collection_id AND v.known_to = 'infinity'
                    AND v.known_from + make_interval(days => n.idle_days) > now())

-- current_documents: the next of a collection
SELECT document_id FROM document_versions
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s AND known_to = 'infinity'
ORDER BY document_id LIMIT %(limit)s

-- expire: its documents are closed
UPDATE collection_notes SET expired_at = now() WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s
