-- page: tenants by name, each with what it stores
SELECT t.tenant_id, t.name, t.status, t.created_at, t.max_documents, t.max_chunks, t.max_bytes, t.pii,
       coalesce(u.documents, 0)::bigint, coalesce(u.chunks, 0)::bigint
FROM tenants t LEFT JOIN (
    SELECT tenant_id, sum(document_count) AS documents, sum(chunk_count) AS chunks
    FROM collection_state GROUP BY tenant_id) u USING (tenant_id)
WHERE t.name > %(after)s ORDER BY t.name LIMIT %(limit)s

-- one: a tenant by number or by name, with what it stores
SELECT t.tenant_id, t.name, t.status, t.created_at, t.max_documents, t.max_chunks, t.max_bytes, t.pii,
       (SELECT coalesce(sum(s.document_count), 0)::bigint FROM collection_state s WHERE s.tenant_id = t.tenant_id),
       (SELECT coalesce(sum(s.chunk_count), 0)::bigint FROM collection_state s WHERE s.tenant_id = t.tenant_id),
       (SELECT coalesce(sum(octet_length(x.content)), 0)::bigint
        FROM document_contents c JOIN texts x USING (tenant_id, text_hash) WHERE c.tenant_id = t.tenant_id)
       + (SELECT coalesce(sum(o.byte_count), 0)::bigint FROM originals o WHERE o.tenant_id = t.tenant_id)
FROM tenants t WHERE t.tenant_id = %(tenant_id)s OR t.name = %(name)s

-- hold: a tenant's row until the end of the transaction, so that what is read of it is what is changed; writers of its
-- documents do not wait for that
SELECT FROM tenants WHERE tenant_id = %(tenant_id)s OR name = %(name)s FOR NO KEY UPDATE

-- identity: the tenant of a number or a name
SELECT tenant_id, name FROM tenants WHERE tenant_id = %(tenant_id)s OR name = %(name)s

-- named: whether there is one of that name
SELECT EXISTS (SELECT FROM tenants WHERE name = %(name)s)

-- create: a tenant of a new number, unless its name or the number is taken
INSERT INTO tenants (tenant_id, name, max_documents, max_chunks, max_bytes)
VALUES (nextval('tenant_numbers'), %(name)s, %(max_documents)s, %(max_chunks)s, %(max_bytes)s)
ON CONFLICT DO NOTHING
RETURNING tenant_id

-- set_status: active or suspended
UPDATE tenants SET status = %(status)s WHERE tenant_id = %(tenant_id)s

-- set_quota: how much it may store
UPDATE tenants SET max_documents = %(max_documents)s, max_chunks = %(max_chunks)s, max_bytes = %(max_bytes)s
WHERE tenant_id = %(tenant_id)s

-- set_pii: what becomes of personal data in what it stores
UPDATE tenants SET pii = %(pii)s WHERE tenant_id = %(tenant_id)s

-- privacy: that, and the salt of its names
SELECT pii, uuid_send(pii_salt) FROM tenants WHERE tenant_id = %(tenant_id)s

-- alone: until the end of the transaction, no other one of the tenant is under way
SELECT pg_try_advisory_xact_lock(hashtext('recollect.tenant'), %(tenant_id)s)

-- tables: every table with rows of tenants, and those that it refers to
SELECT c.relname::text, ARRAY(
    SELECT f.relname::text FROM pg_constraint k JOIN pg_class f ON f.oid = k.confrelid
    WHERE k.conrelid = c.oid AND k.contype = 'f' AND k.confrelid <> c.oid AND NOT f.relispartition)
FROM pg_class c
WHERE c.relnamespace = 'recollect'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
  AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id')
ORDER BY c.relname

-- collection_ids: of a tenant
SELECT collection_id FROM collections WHERE tenant_id = %(tenant_id)s ORDER BY collection_id

-- unguarded: tables whose policies do not bind the role of this connection
SELECT c.relname::text FROM pg_class c
WHERE c.relnamespace = 'recollect'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
  AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id')
  AND NOT row_security_active(c.oid)
ORDER BY c.relname

-- roles: whom the connection works as, and whom it logged in as
SELECT current_user::text, session_user::text

-- remedies: what an administrator has to run so that policies bind the program's role; none where they do
SELECT statement FROM (
    SELECT session_user AS login, current_setting('server_version_num')::int >= 160000 AS granted_to_set,
           (SELECT relowner FROM pg_class WHERE oid = 'recollect.documents'::regclass) AS owner) s
LEFT JOIN pg_roles r ON r.rolname = %(role)s
CROSS JOIN LATERAL (VALUES
    (r.oid IS NULL, format('CREATE ROLE %%I NOLOGIN;', %(role)s::text)),
    (r.rolsuper OR r.rolbypassrls, format('ALTER ROLE %%I NOSUPERUSER NOBYPASSRLS;', %(role)s::text)),
    (r.oid = owner, format('REASSIGN OWNED BY %%I TO the_role_of_your_dsn;', %(role)s::text)),
    (r.oid <> owner AND NOT r.rolsuper AND pg_has_role(r.oid, owner, 'USAGE'),
     format('REVOKE %%I FROM %%I;', pg_get_userbyid(owner), %(role)s::text)),
    (login <> %(role)s::text
     AND (r.oid IS NULL OR NOT pg_has_role(login, r.oid, CASE WHEN granted_to_set THEN 'SET' ELSE 'MEMBER' END)),
     format('GRANT %%I TO %%I%%s;', %(role)s::text, login,
            CASE WHEN granted_to_set THEN ' WITH SET TRUE, INHERIT TRUE' ELSE '' END))
) AS needed (wanting, statement)
WHERE wanting

-- share: let another tenant read a collection
INSERT INTO collection_shares (tenant_id, collection_id, reader_id)
SELECT tenant_id, collection_id, %(reader_id)s FROM collections
WHERE tenant_id = %(tenant_id)s AND name = %(name)s
ON CONFLICT DO NOTHING RETURNING 1

-- unshare: keep another tenant from it again
DELETE FROM collection_shares s USING collections c
WHERE s.tenant_id = %(tenant_id)s AND c.tenant_id = s.tenant_id AND c.collection_id = s.collection_id
  AND c.name = %(name)s AND s.reader_id = %(reader_id)s
RETURNING 1

-- shared_with: what other tenants let this one read
SELECT tenant_id, tenant_name, collection_name, active FROM collections_shared_with(%(tenant_id)s)

-- readers: whom a collection is shared with
SELECT tenant_name FROM readers_of_collection(%(tenant_id)s, %(collection_id)s)

-- sessions: conversations, in order
SELECT session_id, name, user_id FROM sessions WHERE tenant_id = %(tenant_id)s ORDER BY session_id

-- turns: of a conversation, as `remember --file` reads them
SELECT external_id, role, content, event_time, metadata FROM episodes
WHERE tenant_id = %(tenant_id)s AND session_id = %(session_id)s ORDER BY position
