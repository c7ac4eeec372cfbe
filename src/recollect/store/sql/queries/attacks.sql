-- owner: of the schema
SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'recollect'

-- sample: a chunk of somebody, with what both retrievers hold of it
SELECT v.tenant_id, l.collection_id, v.space_id, v.embedding::text, l.weights::text
FROM recollect.chunk_vectors v JOIN recollect.chunk_lexical l USING (tenant_id, chunk_id)
WHERE v.known_to = 'infinity' LIMIT 1

-- tables: every table with a tenant, the columns that can be given to it, and whether it is a partition
SELECT c.relname::text,
       array_agg(a.attname::text ORDER BY a.attnum) FILTER (WHERE a.attgenerated = ''), c.relispartition
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = 'recollect'::regnamespace AND c.relkind IN ('r', 'p')
GROUP BY c.oid, c.relname, c.relispartition
HAVING bool_or(a.attname = 'tenant_id')
ORDER BY c.relname

-- definers: functions that run as the owner, with the first tenant and nothing else as arguments
SELECT p.oid::regproc::text, '1' || repeat(', NULL', p.pronargs - 1)
FROM pg_proc p
WHERE p.pronamespace = 'recollect'::regnamespace AND p.prosecdef AND p.pronargs > 0 AND p.proargtypes[0] = 'int'::regtype
ORDER BY 1

-- sequences: whether numbers can be set
SELECT c.relname::text, has_sequence_privilege(c.oid, 'UPDATE') FROM pg_class c
WHERE c.relnamespace = 'recollect'::regnamespace AND c.relkind = 'S' ORDER BY 1

-- leak: a function that the planner would call before anything else, and that tells of every row that it sees
CREATE FUNCTION pg_temp.leak(p_tenant int) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$
BEGIN
    PERFORM set_config('attack.leaked', p_tenant::text, true);
    RETURN false;
END
$$;
CREATE FUNCTION pg_temp.leaked() RETURNS SETOF text LANGUAGE sql AS $$
    SELECT current_setting('attack.leaked', true) WHERE current_setting('attack.leaked', true) <> ''
$$

-- shadow: what a function that names its check without a schema would meet in a session's own
CREATE FUNCTION pg_temp.require_tenant(p_tenant int) RETURNS void LANGUAGE sql AS 'SELECT';
CREATE TEMP TABLE tenants (tenant_id int, name text, status text);
SET LOCAL search_path = pg_temp, recollect, public

-- fruitless_statistics_of_columns_below_a_policy: what the planner keeps of them
SELECT FROM pg_stats s JOIN pg_class c ON c.relname = s.tablename AND c.relnamespace = 'recollect'::regnamespace
WHERE s.schemaname = 'recollect' AND c.relrowsecurity

-- dense_candidates: what may be read by nobody's lists
SELECT FROM dense_candidates(%(tenant)s, %(collection)s, %(space)s, ROW(NULL, NULL, NULL, NULL, NULL, '{}')::row_selection,
                             %(vector)s::halfvec, 5)

-- lexical_candidates: likewise by words
SELECT FROM lexical_candidates(%(tenant)s, %(collection)s, %(space)s, ROW(NULL, NULL, NULL, NULL, NULL, '{}')::row_selection, NULL,
                               %(weights)s::sparsevec, 5)

-- refused_role_bypass_policies: as an attribute
ALTER ROLE recollect_app BYPASSRLS

-- refused_policies_switch_them_off: for a statement
SET LOCAL row_security = off; SELECT FROM documents LIMIT 1

-- refused_policies_disable: for a table
ALTER TABLE documents DISABLE ROW LEVEL SECURITY

-- refused_policies_drop: of a table
DROP POLICY tenant ON documents

-- refused_policies_add: to a table
CREATE POLICY attack ON documents USING (true)

-- refused_triggers_switch_them_off: and foreign keys with them
SET LOCAL session_replication_role = replica

-- refused_functions_replace: the one that policies ask
CREATE OR REPLACE FUNCTION recollect.current_tenant() RETURNS int LANGUAGE sql AS 'SELECT 1'

-- refused_shadow_in_the_schema: before the program's own objects
CREATE FUNCTION recollect.require_tenant(bigint) RETURNS void LANGUAGE sql AS 'SELECT'

-- refused_shadow_in_public: an operator that fits better than PostgreSQL's own
CREATE OPERATOR public.&& (LEFTARG = int[], RIGHTARG = int[], FUNCTION = pg_catalog.array_eq)

-- refused_shadow_by_a_schema: of the role's own name
CREATE SCHEMA recollect_app

-- fruitless_grants_give_on: to everybody; PostgreSQL refuses it with a warning
GRANT SELECT ON documents TO PUBLIC;
SELECT FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 'recollect.documents'::regclass AND a.grantee = 0

-- refused_tenants_make_one: by hand
INSERT INTO tenants (tenant_id, name) VALUES (-1, 'attack')

-- refused_tenants_resume_one: that is suspended
UPDATE tenants SET status = 'active'

-- refused_audit_change: an entry
UPDATE audit SET actor = 'attack'

-- refused_audit_remove: an entry
DELETE FROM audit

-- refused_audit_forge: an entry
INSERT INTO audit SELECT * FROM audit WHERE false

-- refused_audit_rewrite: a chain's head
UPDATE audit_heads SET number = 0

-- refused_audit_drop: its partitions
SELECT drop_audit(now())

-- fruitless_audit_number_entries: or tenants; asked rather than done, because a number is never given back
SELECT FROM pg_class c WHERE c.oid IN ('audit_numbers'::regclass, 'tenant_numbers'::regclass)
    AND has_sequence_privilege(c.oid, 'USAGE, UPDATE')

-- refused_migrations_forge: a checksum
UPDATE schema_migrations SET checksum = ''

-- refused_passwords_read: of roles
SELECT FROM pg_authid

-- refused_statistics_read: as they are stored
SELECT FROM pg_statistic

-- refused_server_run_a_program: as its account
COPY (SELECT 1) TO PROGRAM 'true'

-- refused_server_read_a_file: of its account
SELECT pg_read_file('PG_VERSION')
