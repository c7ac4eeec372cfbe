-- versions: what is to be erased, by hashes, and what it counts for in its collection while it is current
SELECT v.document_id, v.version_id, v.content_hash, v.file_hash, v.collection_id, v.chunk_count, v.known_to = 'infinity'
FROM document_versions v WHERE v.tenant_id = %(tenant_id)s AND v.document_id = ANY (%(document_ids)s)
ORDER BY v.document_id, v.version

-- session_copies: documents of sessions that say, or said, what a version of these documents says; whoever is restricted
-- has no say in them
SELECT DISTINCT v.document_id FROM collections c JOIN document_versions v USING (tenant_id, collection_id)
WHERE c.tenant_id = %(tenant_id)s AND c.hidden AND NOT %(restricted)s AND v.content_hash IN (
    SELECT o.content_hash FROM document_versions o
    WHERE o.tenant_id = %(tenant_id)s AND o.document_id = ANY (%(document_ids)s::bigint[]))

-- contents: what some versions say, to find phrases that stand nowhere else
SELECT x.content FROM document_contents t JOIN texts x USING (tenant_id, text_hash)
WHERE t.tenant_id = %(tenant_id)s AND t.version_id = ANY (%(version_ids)s) ORDER BY t.version_id

-- turns: of all conversations, page by page
SELECT e.episode_id, s.name, s.user_id, e.position, e.content
FROM episodes e JOIN sessions s USING (tenant_id, session_id)
WHERE e.tenant_id = %(tenant_id)s AND e.episode_id > %(after)s AND (NOT %(restricted)s OR s.user_id = %(reader)s)
ORDER BY e.episode_id LIMIT %(limit)s

-- counts: rows that go, by kind; of texts and originals those that no other document has
SELECT
    (SELECT count(*) FROM documents d WHERE d.tenant_id = %(tenant_id)s AND d.document_id = ANY (%(document_ids)s)),
    count(*), coalesce(sum(v.chunk_count), 0)::bigint,
    (SELECT count(*) FROM chunk_vectors x
     WHERE x.tenant_id = %(tenant_id)s AND x.version_id = ANY (%(version_ids)s)),
    (SELECT count(*) FROM chunk_lexical x
     WHERE x.tenant_id = %(tenant_id)s AND x.version_id = ANY (%(version_ids)s)),
    (SELECT count(*) FROM chunks c JOIN chunk_token_vectors p USING (tenant_id, chunk_id)
     WHERE c.tenant_id = %(tenant_id)s AND c.version_id = ANY (%(version_ids)s)),
    (SELECT count(*) FROM version_acronyms a
     WHERE a.tenant_id = %(tenant_id)s AND a.version_id = ANY (%(version_ids)s)),
    (SELECT count(*) FROM (
        SELECT c.text_hash FROM document_contents c JOIN document_versions o USING (tenant_id, version_id)
        WHERE c.tenant_id = %(tenant_id)s AND c.text_hash IN (
            SELECT o.text_hash FROM document_contents o
            WHERE o.tenant_id = %(tenant_id)s AND o.version_id = ANY (%(version_ids)s))
        GROUP BY c.text_hash HAVING bool_and(o.document_id = ANY (%(document_ids)s))) texts),
    (SELECT count(*) FROM (
        SELECT r.file_hash FROM version_originals r JOIN document_versions o USING (tenant_id, version_id)
        WHERE r.tenant_id = %(tenant_id)s AND r.file_hash IN (
            SELECT o.file_hash FROM version_originals o
            WHERE o.tenant_id = %(tenant_id)s AND o.version_id = ANY (%(version_ids)s))
          AND NOT EXISTS (SELECT FROM job_uploads u JOIN jobs j USING (tenant_id, job_id)
                          WHERE u.tenant_id = r.tenant_id AND u.file_hash = r.file_hash
                            AND (j.document_id IS NULL OR j.document_id <> ALL (%(document_ids)s)))
          AND NOT EXISTS (SELECT FROM uploaded_files f WHERE f.tenant_id = r.tenant_id AND f.file_hash = r.file_hash)
        GROUP BY r.file_hash HAVING bool_and(o.document_id = ANY (%(document_ids)s))) originals)
FROM document_versions v WHERE v.tenant_id = %(tenant_id)s AND v.version_id = ANY (%(version_ids)s)

-- traces: what the versions are called and filed under; hashes of chunks that no other document has, in one pass over the
-- chunks, however many there are; hashes of contents and files that none has, or is to have; and other documents of which
-- a version has the same content
SELECT ARRAY (
    SELECT DISTINCT n.name FROM document_versions v CROSS JOIN LATERAL (
        SELECT v.title AS name UNION SELECT v.uri UNION SELECT v.given_id UNION SELECT unnest(v.tags)
        UNION SELECT m #>> '{}' FROM jsonb_path_query(v.metadata, 'lax $.** ? (@.type() == "string")') m
        UNION SELECT unnest(c.section) FROM chunks c WHERE c.tenant_id = v.tenant_id AND c.version_id = v.version_id) n
    WHERE v.tenant_id = %(tenant_id)s AND v.version_id = ANY (%(version_ids)s)
      AND octet_length(n.name) BETWEEN %(shortest)s AND 1000),
ARRAY (
    SELECT c.content_hash FROM chunks c
    WHERE c.tenant_id = %(tenant_id)s AND c.content_hash IN (
        SELECT o.content_hash FROM chunks o
        WHERE o.tenant_id = %(tenant_id)s AND o.version_id = ANY (%(version_ids)s))
    GROUP BY c.content_hash HAVING bool_and(c.version_id = ANY (%(version_ids)s))),
ARRAY (
    SELECT h.hash FROM document_versions v CROSS JOIN LATERAL (VALUES (v.content_hash), (v.file_hash)) AS h (hash)
    WHERE v.tenant_id = %(tenant_id)s AND h.hash = ANY (%(hashes)b)
      AND NOT EXISTS (SELECT FROM job_uploads u JOIN jobs j USING (tenant_id, job_id)
                      WHERE u.tenant_id = v.tenant_id AND u.file_hash = h.hash
                        AND (j.document_id IS NULL OR j.document_id <> ALL (%(document_ids)s)))
      AND NOT EXISTS (SELECT FROM uploaded_files f WHERE f.tenant_id = v.tenant_id AND f.file_hash = h.hash)
    GROUP BY h.hash HAVING bool_and(v.document_id = ANY (%(document_ids)s))),
ARRAY (
    SELECT DISTINCT document_id FROM document_versions
    WHERE tenant_id = %(tenant_id)s AND content_hash = ANY (%(content_hashes)b) AND document_id <> ALL (%(document_ids)s)
    ORDER BY document_id)

-- shared_phrases: those phrases that stand in other documents too
SELECT p.phrase FROM unnest(%(phrases)s::text[]) AS p (phrase)
WHERE EXISTS (SELECT FROM texts t
              WHERE t.tenant_id = %(tenant_id)s AND strpos(t.content, p.phrase) > 0
                AND EXISTS (SELECT FROM document_contents c
                            WHERE c.tenant_id = t.tenant_id AND c.text_hash = t.text_hash
                              AND c.version_id <> ALL (%(version_ids)s)))

-- hold_texts: texts of these documents, until the end of the transaction; in order, as they are written
SELECT FROM texts t
WHERE t.tenant_id = %(tenant_id)s AND t.text_hash IN (
    SELECT c.text_hash FROM document_contents c JOIN document_versions v USING (tenant_id, version_id)
    WHERE v.tenant_id = %(tenant_id)s AND v.document_id = ANY (%(document_ids)s))
ORDER BY t.text_hash FOR UPDATE

-- hold_cached: embeddings of texts of these documents, until the end of the transaction; in order, as they are written
SELECT FROM embedding_cache e
WHERE e.tenant_id = %(tenant_id)s AND e.content_hash IN (
    SELECT c.content_hash FROM chunks c JOIN document_versions v USING (tenant_id, version_id)
    WHERE v.tenant_id = %(tenant_id)s AND v.document_id = ANY (%(document_ids)s))
ORDER BY e.content_hash, e.model FOR UPDATE

-- erase_cached: embeddings of chunks that no other document has; in order, as `put_many` of the cache
DELETE FROM embedding_cache e USING (
    SELECT k.model, k.content_hash FROM embedding_cache k
    WHERE k.tenant_id = %(tenant_id)s AND k.content_hash = ANY (%(chunk_hashes)b)
    ORDER BY k.content_hash, k.model FOR UPDATE) AS found
WHERE e.tenant_id = %(tenant_id)s AND e.model = found.model AND e.content_hash = found.content_hash

-- erase_saved_cases: test cases that quote them, or name a source or an id that no other document has
WITH gone AS (
    SELECT DISTINCT v.uri FROM document_versions v
    WHERE v.tenant_id = %(tenant_id)s AND v.version_id = ANY (%(version_ids)s)
      AND NOT EXISTS (SELECT FROM document_versions o
                      WHERE o.tenant_id = v.tenant_id AND o.uri = v.uri AND o.document_id <> ALL (%(document_ids)s))
    UNION SELECT d.given_id FROM documents d
    WHERE d.tenant_id = %(tenant_id)s AND d.document_id = ANY (%(document_ids)s)
      AND NOT EXISTS (SELECT FROM documents o WHERE o.tenant_id = d.tenant_id AND o.given_id = d.given_id
                        AND o.document_id <> ALL (%(document_ids)s)))
DELETE FROM saved_cases s WHERE s.tenant_id = %(tenant_id)s AND EXISTS (
    SELECT FROM (SELECT s.name UNION ALL
                 SELECT t #>> '{}' FROM jsonb_path_query(s.definition, 'lax $.** ? (@.type() == "string")') t) AS one (told)
    WHERE one.told IN (SELECT uri FROM gone)
       OR EXISTS (SELECT FROM unnest(%(phrases)s::text[]) AS p (phrase) WHERE strpos(one.told, p.phrase) > 0))

-- places: every column of a tenant's table that can hold a text or a hash
SELECT c.relname, a.attname, t.typname = 'bytea'
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_type t ON t.oid = a.atttypid
WHERE c.relnamespace = 'recollect'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
  AND t.typname IN ('text', '_text', 'varchar', 'json', 'jsonb', 'bytea')
  AND EXISTS (SELECT FROM pg_attribute k WHERE k.attrelid = c.oid AND k.attname = 'tenant_id')
ORDER BY c.relname, a.attnum

-- forget_samples: nothing of content is sampled from now on
SELECT forget_content_statistics()

-- sample_lexemes: without those of rows that went
SELECT sample_lexemes_anew()

-- remains: those of some hashes that are of files that jobs are to read, or that somebody has sent to be kept; columns of
-- content of which something is sampled (none, where that could be cleared); and what decides how long the write-ahead
-- log is kept
SELECT ARRAY (
    SELECT file_hash FROM job_uploads WHERE tenant_id = %(tenant_id)s AND file_hash = ANY (%(hashes)b::bytea[])
    UNION SELECT file_hash FROM uploaded_files WHERE tenant_id = %(tenant_id)s AND file_hash = ANY (%(hashes)b::bytea[])),
    ARRAY (SELECT relation::text || '.' || name FROM content_columns() WHERE is_sampled),
    (SELECT jsonb_object_agg(name, setting || coalesce(unit, '')) FROM pg_settings
     WHERE name IN ('archive_mode', 'checkpoint_timeout', 'max_wal_size', 'wal_keep_size', 'wal_recycle'))
