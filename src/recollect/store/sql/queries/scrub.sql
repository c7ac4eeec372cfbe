-- due: documents, turns and tenants that were erased since the last scrub
SELECT coalesce(sum(CASE action WHEN 'erase' THEN jsonb_array_length(details -> 'documents')
                                WHEN 'forget' THEN (details ->> 'turns')::int ELSE 1 END), 0)::bigint
FROM audit WHERE action IN ('erase', 'forget', 'erase_tenant')
  AND at > (SELECT coalesce(max(at), '-infinity') FROM audit WHERE action = 'scrub')

-- alone: whether nobody else is at it; until the session lets go
SELECT pg_try_advisory_lock(hashtext('recollect.scrub'), 0)

-- let_go: of that
SELECT pg_advisory_unlock(hashtext('recollect.scrub'), 0)

-- tables: small ones first; the audit holds no content, and may be long
SELECT c.relname FROM pg_class c
WHERE c.relnamespace = 'recollect'::regnamespace AND c.relkind = 'r' AND c.relname !~ '^audit'
ORDER BY pg_relation_size(c.oid), c.relname

-- files: of these tables and of the planner's statistics, with their TOAST tables and indexes
WITH heaps AS (
    SELECT c.oid, c.reltoastrelid FROM pg_class c
    WHERE c.relnamespace = 'recollect'::regnamespace AND c.relkind = 'r' AND c.relname !~ '^audit'
       OR c.oid IN ('pg_catalog.pg_statistic'::regclass, 'pg_catalog.pg_statistic_ext_data'::regclass)),
stored AS (SELECT oid FROM heaps UNION SELECT reltoastrelid FROM heaps WHERE reltoastrelid <> 0)
SELECT c.oid::regclass::text, pg_relation_filepath(c.oid) FROM pg_class c
WHERE c.oid IN (SELECT oid FROM stored UNION
                SELECT i.indexrelid FROM pg_index i WHERE i.indrelid IN (SELECT oid FROM stored))

-- vectors: what the largest index of a collection is made of
SELECT coalesce(max(s.chunk_count), 0), coalesce(max(c.embedding_dimension), 1)
FROM collection_state s JOIN collections c USING (tenant_id, collection_id)

-- places: every column of a table that can hold a text
SELECT c.relname, a.attname
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = 'recollect'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
  AND a.atttypid = ANY ('{text, text[], varchar, json, jsonb}'::regtype[])

-- segments: of the write-ahead log
SELECT name FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$'

-- next_segment: the one that is written to, after what is written now
SELECT pg_walfile_name(pg_logical_emit_message(false, 'recollect', 'scrub'))
