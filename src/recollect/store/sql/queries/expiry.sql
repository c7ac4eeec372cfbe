-- set_expiry: when given versions expire: so many seconds after a moment; the earliest of them
WITH expiring AS (
    UPDATE document_versions v SET expires_at = coalesce(%(since)s::timestamptz, statement_timestamp()) + make_interval(secs => u.seconds)
    FROM unnest(%(version_ids)s::bigint[], %(seconds)s::float8[]) AS u (version_id, seconds)
    WHERE v.tenant_id = %(tenant_id)s AND v.version_id = u.version_id
    RETURNING v.expires_at)
SELECT min(expires_at) FROM expiring

-- lower_next_expiry: nothing of the collection expires unnoticed
UPDATE collection_state SET next_expiry = least(next_expiry, %(next_expiry)s)
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s

-- hold_collection: keeps it from being deleted until the end of the transaction; taken before any document
SELECT collection_id FROM collections
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s
FOR KEY SHARE

-- due: versions whose time has come, of documents that nobody is writing at the moment, locked as every writer does
SELECT v.version_id
FROM documents d JOIN document_versions v USING (tenant_id, document_id)
WHERE v.tenant_id = %(tenant_id)s AND v.collection_id = %(collection_id)s
  AND v.known_to = 'infinity' AND v.expires_at < 'infinity' AND v.expires_at <= now()
ORDER BY d.uri, d.document_id LIMIT %(limit)s
FOR UPDATE OF d SKIP LOCKED

-- close_expired: they were known until they expired, not until somebody noticed
UPDATE document_versions SET known_to = greatest(expires_at, known_from)
WHERE tenant_id = %(tenant_id)s AND version_id = ANY (%(version_ids)s) AND known_to = 'infinity' AND expires_at <= now()
RETURNING collection_id, chunk_count, version_id

-- close_vectors: the closed versions leave the dense retriever
UPDATE chunk_vectors x SET known_to = v.known_to, access_id = v.access_id FROM document_versions v
WHERE v.tenant_id = %(tenant_id)s AND v.version_id = ANY (%(version_ids)s) AND x.tenant_id = v.tenant_id
  AND x.version_id = v.version_id AND x.known_to = 'infinity'

-- close_lexical: the closed versions leave the lexical retriever
UPDATE chunk_lexical x SET known_to = v.known_to, access_id = v.access_id FROM document_versions v
WHERE v.tenant_id = %(tenant_id)s AND v.version_id = ANY (%(version_ids)s) AND x.tenant_id = v.tenant_id
  AND x.version_id = v.version_id AND x.known_to = 'infinity'

-- lock_state: whoever stores an expiry lowers next_expiry in this row, before or after this transaction
SELECT FROM collection_state WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s FOR UPDATE

-- settle_next_expiry: the next expiry of what is current, and whether that is still to come
UPDATE collection_state s SET next_expiry = coalesce(
    (SELECT min(v.expires_at) FROM document_versions v
     WHERE v.tenant_id = %(tenant_id)s AND v.collection_id = %(collection_id)s AND v.known_to = 'infinity'
       AND v.expires_at < 'infinity'), 'infinity')
WHERE s.tenant_id = %(tenant_id)s AND s.collection_id = %(collection_id)s
RETURNING s.next_expiry > now()

-- due_collections: collections of a tenant in which something may be due
SELECT c.collection_id FROM collections c JOIN collection_state s USING (tenant_id, collection_id)
WHERE c.tenant_id = %(tenant_id)s AND s.next_expiry <= now()
  AND (%(collection_id)s::int IS NULL OR c.collection_id = %(collection_id)s)
ORDER BY c.collection_id

-- current_version: the current version of a locked document
SELECT version_id, collection_id FROM document_versions
WHERE tenant_id = %(tenant_id)s AND document_id = %(document_id)s AND known_to = 'infinity'

-- keep: a version that never expires
UPDATE document_versions SET expires_at = 'infinity'
WHERE tenant_id = %(tenant_id)s AND version_id = %(version_id)s
