-- create_collection: the hidden collection of a session, unless it has one; its name cannot be given to any other
INSERT INTO collections (tenant_id, name, embedding_model, embedding_dimension, language, chunking, token_vectors,
                         owners, readers, writers, hidden, embedding_spec)
VALUES (%(tenant_id)s, %(collection)s, %(embedding_model)s, %(embedding_dimension)s, %(language)s, %(chunking)s,
        %(token_vectors)s, %(owners)s, %(others)s, %(others)s, true, %(embedding_spec)s)
ON CONFLICT (tenant_id, name) DO NOTHING
RETURNING collection_id

-- create: a session that begins now
INSERT INTO document_sessions (tenant_id, collection_id, name, owner, ttl_seconds, max_documents, when_full,
                               auto_cleanup, created_at, expires_at)
SELECT %(tenant_id)s, %(collection_id)s, %(name)s, %(owner)s, %(ttl_seconds)s, %(max_documents)s, %(when_full)s,
       %(auto_cleanup)s, n.now, coalesce(n.now + make_interval(secs => %(ttl_seconds)s), 'infinity')
FROM (SELECT clock_timestamp() AS now) n

-- sessions: what is known of sessions; conditions follow
SELECT s.collection_id, c.name, s.name, s.owner, s.ttl_seconds, s.created_at, nullif(s.expires_at, 'infinity'),
       s.expires_at <= clock_timestamp(), s.max_documents, s.when_full, s.auto_cleanup, t.document_count, t.chunk_count,
       c.language, c.embedding_model
FROM document_sessions s
JOIN collections c USING (tenant_id, collection_id)
JOIN collection_state t USING (tenant_id, collection_id)
WHERE s.tenant_id = %(tenant_id)s

-- named: those of an id that the caller may read, their own first
s.name = %(name)s
AND (%(tokens)s::text[] IS NULL OR c.owners && %(tokens)s::text[] OR c.readers && %(tokens)s::text[])
ORDER BY s.owner IS NOT DISTINCT FROM %(owner)s::text DESC, s.created_at, s.collection_id LIMIT 2

-- own: those of the caller, the ones that expire first at the beginning
(%(tokens)s::text[] IS NULL OR c.owners && %(tokens)s::text[])
AND (%(after_name)s::text IS NULL OR (s.expires_at, s.name, coalesce(s.owner, ''))
     > (coalesce(%(after_at)s::timestamptz, 'infinity'), %(after_name)s::text, coalesce(%(after_owner)s::text, '')))
ORDER BY s.expires_at, s.name, coalesce(s.owner, '') LIMIT %(limit)s OFFSET %(offset)s

-- renew: its time begins anew, unless it is over
UPDATE document_sessions
SET expires_at = coalesce(clock_timestamp() + make_interval(secs => ttl_seconds), 'infinity')
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s AND expires_at > clock_timestamp()
RETURNING 1

-- hold: one writer of a session at a time, and none of one whose time is over
SELECT name, max_documents, when_full, expires_at <= clock_timestamp() FROM document_sessions
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s
FOR UPDATE

-- others: how many documents a session holds beside those that are being written
SELECT count(*) FROM document_versions
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s AND known_to = 'infinity'
  AND expires_at > clock_timestamp() AND document_id <> ALL (%(document_ids)s::bigint[])

-- surplus: documents for which there is no room, those whose text came first; one writer at a time numbers versions
SELECT document_id, chunk_count FROM document_versions
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s AND known_to = 'infinity'
  AND expires_at > clock_timestamp()
ORDER BY version_id DESC OFFSET %(max_documents)s

-- hold_collection: nobody writes into it until the end of the transaction
SELECT collection_id FROM collections
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s
FOR UPDATE

-- document_count: of a session that nobody writes into
SELECT document_count FROM collection_state WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s

-- end: with everything in it
DELETE FROM collections WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s AND hidden

-- end_expired: the session that expired first, unless it is being written, renewed or ended
WITH due AS (
    SELECT s.collection_id FROM document_sessions s JOIN collections c USING (tenant_id, collection_id)
    WHERE s.tenant_id = %(tenant_id)s AND s.expires_at <= clock_timestamp()
      AND (s.auto_cleanup OR NOT %(automatic)s) AND (%(name)s::text IS NULL OR s.name = %(name)s)
    ORDER BY s.expires_at LIMIT 1
    FOR UPDATE OF c, s SKIP LOCKED)
DELETE FROM collections c USING due
WHERE c.tenant_id = %(tenant_id)s AND c.collection_id = due.collection_id AND c.hidden
RETURNING c.collection_id
