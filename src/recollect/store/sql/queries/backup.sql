-- tables: every table with the columns that are stored (not those that the database computes), and what it refers to
SELECT c.relname::text,
       (SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''),
       ARRAY(SELECT DISTINCT f.relname::text FROM pg_constraint r JOIN pg_class f ON f.oid = r.confrelid
             WHERE r.conrelid = c.oid AND r.contype = 'f' AND r.confrelid <> c.oid)
FROM pg_class c
WHERE c.relnamespace = 'recollect'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
  AND c.relname NOT IN ('schema_migrations', 'schema_routines')
ORDER BY c.relname;

-- sequences: every sequence with the table and column that draws from it, where one owns it
SELECT c.relname::text, t.relname::text, a.attname::text
FROM pg_class c
LEFT JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype IN ('a', 'i')
                     AND d.refclassid = 'pg_class'::regclass AND d.refobjsubid > 0
LEFT JOIN pg_class t ON t.oid = d.refobjid
LEFT JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
WHERE c.relnamespace = 'recollect'::regnamespace AND c.relkind = 'S'
ORDER BY c.relname;

-- secondary_indexes: the indexes that no constraint needs and no partition shares, with what makes them
SELECT c.relname::text, pg_get_indexdef(i.indexrelid)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
WHERE t.relnamespace = 'recollect'::regnamespace AND t.relkind = 'r' AND NOT t.relispartition
  AND NOT EXISTS (SELECT FROM pg_constraint r WHERE r.conindid = i.indexrelid)
ORDER BY c.relname;

-- in_use: whether a store holds what somebody put into it
SELECT EXISTS (SELECT FROM recollect.documents) OR EXISTS (SELECT FROM recollect.sessions)
    OR EXISTS (SELECT FROM recollect.tenants WHERE tenant_id <> 1);

-- unqueue: jobs that have not ended are in no queue and begin anew; by tenant
WITH open AS (UPDATE recollect.jobs SET queue_id = NULL, status = 'pending' WHERE status IN ('pending', 'running')
              RETURNING tenant_id, job_id)
SELECT tenant_id, array_agg(job_id) FROM open GROUP BY tenant_id
