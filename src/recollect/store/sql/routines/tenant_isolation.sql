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
