-- add_states: counters for collections that lack them, to be counted next
INSERT INTO collection_state (tenant_id, collection_id) SELECT p.tenant_id, p.collection_id

-- recover_source: a place for documents whose own source is gone
INSERT INTO sources (tenant_id, collection_id, name, type)
SELECT DISTINCT p.tenant_id, p.collection_id, 'recovered', 'manual' FROM collections p
WHERE p.tenant_id = %(tenant_id)s AND (
    EXISTS (SELECT FROM document_versions v WHERE v.tenant_id = p.tenant_id AND v.collection_id = p.collection_id
            AND NOT EXISTS (SELECT FROM documents d WHERE d.tenant_id = v.tenant_id AND d.document_id = v.document_id))
    OR EXISTS (SELECT FROM documents d WHERE d.tenant_id = p.tenant_id AND d.collection_id = p.collection_id
               AND NOT EXISTS (
                   SELECT FROM sources s JOIN collections q USING (tenant_id, collection_id)
                   WHERE s.tenant_id = d.tenant_id AND s.source_id = d.source_id)))
ON CONFLICT DO NOTHING

-- recover_documents: documents for versions that have none; their number tells apart what has one path
INSERT INTO documents (tenant_id, document_id, collection_id, source_id, access_id, uri)
SELECT v.tenant_id, v.document_id, s.collection_id, s.source_id, v.access_id,
       CASE WHEN row_number() OVER (PARTITION BY s.source_id, v.uri ORDER BY v.document_id) = 1 AND NOT EXISTS (
                SELECT FROM documents d WHERE d.tenant_id = s.tenant_id AND d.source_id = s.source_id AND d.uri = v.uri)
            THEN v.uri ELSE v.uri || ' (document ' || v.document_id || ')' END
FROM (SELECT DISTINCT ON (w.document_id) w.tenant_id, w.document_id, w.collection_id, w.access_id, w.uri
      FROM document_versions w
      WHERE w.tenant_id = %(tenant_id)s AND NOT EXISTS (
          SELECT FROM documents d WHERE d.tenant_id = w.tenant_id AND d.document_id = w.document_id)
      ORDER BY w.document_id, w.version DESC) v
JOIN sources s ON s.tenant_id = v.tenant_id AND s.collection_id = v.collection_id AND s.name = 'recovered'
ON CONFLICT DO NOTHING

-- adopt_sourceless: documents of a source that is gone
UPDATE documents d SET source_id = r.source_id,
    uri = CASE WHEN EXISTS (SELECT FROM documents o WHERE o.tenant_id = d.tenant_id
                            AND o.collection_id = d.collection_id AND o.uri = d.uri AND o.document_id <> d.document_id)
               THEN d.uri || ' (document ' || d.document_id || ')' ELSE d.uri END
FROM sources r
WHERE d.tenant_id = %(tenant_id)s AND r.tenant_id = d.tenant_id AND r.collection_id = d.collection_id
AND r.name = 'recovered'
AND NOT EXISTS (
    SELECT FROM sources s JOIN collections q USING (tenant_id, collection_id)
    WHERE s.tenant_id = d.tenant_id AND s.source_id = d.source_id)

-- file_documents: documents go where their source is
UPDATE documents d SET collection_id = s.collection_id FROM sources s
WHERE d.tenant_id = %(tenant_id)s AND s.tenant_id = d.tenant_id AND s.source_id = d.source_id
AND s.collection_id <> d.collection_id
AND EXISTS (SELECT FROM collections p WHERE p.tenant_id = s.tenant_id AND p.collection_id = s.collection_id)

-- add_access_lists: lists that are gone: as the one of that number is in another collection, or else with nobody on it
INSERT INTO access_lists (tenant_id, collection_id, access_id, grants, denials)
SELECT %(tenant_id)s, u.collection_id, u.access_id,
       coalesce((SELECT o.grants FROM access_lists o WHERE o.tenant_id = %(tenant_id)s AND o.access_id = u.access_id
                 AND u.access_id <> 0 ORDER BY o.collection_id LIMIT 1), '{}'),
       coalesce((SELECT o.denials FROM access_lists o WHERE o.tenant_id = %(tenant_id)s AND o.access_id = u.access_id
                 AND u.access_id <> 0 ORDER BY o.collection_id LIMIT 1), '{}')

-- touch_collections: replies that are cached were made by other rights
UPDATE collection_state SET revision = revision + 1 WHERE tenant_id = %(tenant_id)s

-- documents_to_mend: a page of the documents that a condition finds
SELECT DISTINCT v.document_id

-- documents_page: its end
AND v.document_id > %(after)s ORDER BY v.document_id LIMIT %(limit)s

-- chunks_page: the end of a statement that lists chunks
AND c.chunk_id > %(after)s ORDER BY c.chunk_id LIMIT %(limit)s

-- copy_to_versions: versions are named, and may be read, as their document; what a past one was granted is known from its
-- vectors, or else lost, and then owners alone read it
WITH wrong AS (
    SELECT v.version_id, d.collection_id, d.access_id, (
        SELECT x.access_id FROM chunk_vectors x JOIN access_lists p ON p.tenant_id = x.tenant_id
            AND p.collection_id = d.collection_id AND p.access_id = x.access_id AND p.beneath = d.access_id
        WHERE x.tenant_id = v.tenant_id AND x.version_id = v.version_id LIMIT 1) AS known
    FROM document_versions v JOIN documents d ON d.tenant_id = v.tenant_id AND d.document_id = v.document_id
    WHERE v.tenant_id = %(tenant_id)s AND v.document_id = ANY (%(document_ids)s) AND v.known_to <> 'infinity'
      AND NOT EXISTS (
        SELECT FROM access_lists p WHERE p.tenant_id = v.tenant_id AND p.collection_id = d.collection_id
          AND p.access_id = v.access_id AND p.beneath = d.access_id)),
lost AS (
    INSERT INTO access_lists (tenant_id, collection_id, grants, denials, beneath)
    SELECT DISTINCT %(tenant_id)s::int, collection_id, '{}'::text[], '{}'::text[], access_id FROM wrong
    WHERE known IS NULL
    RETURNING collection_id, access_id, beneath)
UPDATE document_versions v SET collection_id = d.collection_id, uri = d.uri,
    access_id = CASE WHEN v.known_to = 'infinity' THEN d.access_id ELSE coalesce((
        SELECT coalesce(w.known, l.access_id)
        FROM wrong w LEFT JOIN lost l ON l.collection_id = w.collection_id AND l.beneath = w.access_id
        WHERE w.version_id = v.version_id), v.access_id) END
FROM documents d
WHERE v.tenant_id = %(tenant_id)s AND v.document_id = ANY (%(document_ids)s)
AND d.tenant_id = v.tenant_id AND d.document_id = v.document_id
AND ((v.collection_id, v.uri) IS DISTINCT FROM (d.collection_id, d.uri)
     OR (v.known_to = 'infinity' AND v.access_id <> d.access_id)
     OR EXISTS (SELECT FROM wrong w WHERE w.version_id = v.version_id))

-- copy_to_acronyms: acronyms are where their version is
UPDATE version_acronyms a SET collection_id = v.collection_id FROM document_versions v
WHERE v.tenant_id = %(tenant_id)s AND v.document_id = ANY (%(document_ids)s)
AND a.tenant_id = v.tenant_id AND a.version_id = v.version_id AND a.collection_id <> v.collection_id

-- close_overlapping: a version ends where the next one begins; what segments know of their times no longer holds
WITH ended AS (
    UPDATE document_versions v SET known_to = greatest(n.next_from, v.known_from)
    FROM (SELECT version_id, lead(known_from) OVER (PARTITION BY document_id ORDER BY version) AS next_from
          FROM document_versions WHERE tenant_id = %(tenant_id)s AND document_id = ANY (%(document_ids)s)) n
    WHERE v.tenant_id = %(tenant_id)s AND v.document_id = ANY (%(document_ids)s) AND n.version_id = v.version_id
    AND v.known_to > greatest(n.next_from, v.known_from) AND n.next_from IS NOT NULL
    RETURNING v.tenant_id, v.collection_id)
DELETE FROM history_segments s USING ended e WHERE s.tenant_id = e.tenant_id AND s.collection_id = e.collection_id

-- copy_to_vectors: vectors are where and when their version is
UPDATE chunk_vectors x SET collection_id = v.collection_id, version_id = v.version_id, known_from = v.known_from,
    known_to = v.known_to, access_id = v.access_id
FROM document_versions v JOIN chunks c ON c.tenant_id = v.tenant_id AND c.version_id = v.version_id
WHERE v.tenant_id = %(tenant_id)s AND v.document_id = ANY (%(document_ids)s)
AND x.tenant_id = c.tenant_id AND x.chunk_id = c.chunk_id
AND (x.collection_id, x.version_id, x.known_from, x.known_to, x.access_id)
    IS DISTINCT FROM (v.collection_id, v.version_id, v.known_from, v.known_to, v.access_id)

-- copy_to_lexical: lexical rows are where and when their version is
UPDATE chunk_lexical l SET collection_id = v.collection_id, version_id = v.version_id, known_from = v.known_from,
    known_to = v.known_to, access_id = v.access_id
FROM document_versions v JOIN chunks c ON c.tenant_id = v.tenant_id AND c.version_id = v.version_id
WHERE v.tenant_id = %(tenant_id)s AND v.document_id = ANY (%(document_ids)s)
AND l.tenant_id = c.tenant_id AND l.chunk_id = c.chunk_id
AND (l.collection_id, l.version_id, l.known_from, l.known_to, l.access_id)
    IS DISTINCT FROM (v.collection_id, v.version_id, v.known_from, v.known_to, v.access_id)

-- set_content: the text that a version was proven to have
INSERT INTO document_contents (tenant_id, version_id, content)
SELECT v.tenant_id, v.version_id, %(content)s FROM document_versions v
WHERE v.tenant_id = %(tenant_id)s AND v.version_id = %(version_id)s
ON CONFLICT (tenant_id, version_id) DO UPDATE SET content = excluded.content
WHERE document_contents.content <> excluded.content

-- set_version: what a version says of its text and chunks
UPDATE document_versions SET content_hash = %(content_hash)s, chunk_count = %(chunk_count)s
WHERE tenant_id = %(tenant_id)s AND version_id = %(version_id)s

-- free_positions: out of the way of the right ones
UPDATE chunks SET position = -1 - position WHERE tenant_id = %(tenant_id)s AND version_id = %(version_id)s

-- set_chunk: a chunk's place and text
UPDATE chunks SET position = %(position)s, start_offset = %(start)s, end_offset = %(end)s, text = %(text)s
WHERE tenant_id = %(tenant_id)s AND chunk_id = %(chunk_id)s

-- drop_chunks: of a version that is cut anew, with their rows in both arms
DELETE FROM chunks WHERE tenant_id = %(tenant_id)s AND version_id = %(version_id)s

-- add_chunk: of a version that is cut anew
INSERT INTO chunks (tenant_id, chunk_id, version_id, position, start_offset, end_offset, parent_start, parent_end, page,
    token_count, content_hash, section, text, metadata)
VALUES (%(tenant_id)s, %(chunk_id)s, %(version_id)s, %(position)s, %(start)s, %(end)s, %(parent_start)s,
    %(parent_end)s, %(page)s, %(token_count)s, %(key)s, %(section)s, %(text)s, %(metadata)s)

-- chunk_ids: numbers for the chunks of a version that is cut anew
SELECT nextval('chunks_chunk_id_seq') FROM generate_series(1, %(count)s)

-- set_key: the hash of what is indexed of a chunk
UPDATE chunks SET content_hash = %(key)s WHERE tenant_id = %(tenant_id)s AND chunk_id = %(chunk_id)s

-- set_vector: a chunk's vector, with what its version says
INSERT INTO chunk_vectors (tenant_id, chunk_id, collection_id, version_id, known_from, known_to, access_id, embedding)
SELECT c.tenant_id, c.chunk_id, v.collection_id, v.version_id, v.known_from, v.known_to, v.access_id, %(embedding)s
FROM chunks c JOIN document_versions v ON v.tenant_id = c.tenant_id AND v.version_id = c.version_id
WHERE c.tenant_id = %(tenant_id)s AND c.chunk_id = %(chunk_id)s
ON CONFLICT (tenant_id, chunk_id) DO UPDATE SET collection_id = excluded.collection_id,
    version_id = excluded.version_id, known_from = excluded.known_from, known_to = excluded.known_to,
    access_id = excluded.access_id, embedding = excluded.embedding

-- set_lexical: a chunk's terms, with what its version says
INSERT INTO chunk_lexical (tenant_id, chunk_id, collection_id, version_id, known_from, known_to, access_id, length,
    lexemes, weights)
SELECT c.tenant_id, c.chunk_id, v.collection_id, v.version_id, v.known_from, v.known_to, v.access_id, %(length)s,
    %(lexemes)s, %(weights)s
FROM chunks c JOIN document_versions v ON v.tenant_id = c.tenant_id AND v.version_id = c.version_id
WHERE c.tenant_id = %(tenant_id)s AND c.chunk_id = %(chunk_id)s
ON CONFLICT (tenant_id, chunk_id) DO UPDATE SET collection_id = excluded.collection_id,
    version_id = excluded.version_id, known_from = excluded.known_from, known_to = excluded.known_to,
    access_id = excluded.access_id, length = excluded.length, lexemes = excluded.lexemes, weights = excluded.weights

-- set_tokens: a chunk's token vectors
INSERT INTO chunk_token_vectors (tenant_id, chunk_id, packed)
SELECT c.tenant_id, c.chunk_id, %(packed)s FROM chunks c
WHERE c.tenant_id = %(tenant_id)s AND c.chunk_id = %(chunk_id)s
ON CONFLICT (tenant_id, chunk_id) DO UPDATE SET packed = excluded.packed

-- neighbourhood: chunks with those beside them, and what is needed to make what is stored of them
SELECT DISTINCT v.document_id, c.version_id, v.title, c.position, c.chunk_id, c.section, c.text, c.start_offset,
    c.end_offset, c.parent_start, c.parent_end
FROM chunks w
JOIN chunks c ON c.tenant_id = w.tenant_id AND c.version_id = w.version_id
    AND c.position BETWEEN w.position - 1 AND w.position + 1
JOIN document_versions v ON v.tenant_id = c.tenant_id AND v.version_id = c.version_id
WHERE w.tenant_id = %(tenant_id)s AND w.chunk_id = ANY (%(chunk_ids)s)
ORDER BY c.version_id, c.position

-- document: what a version needs to be cut anew
SELECT v.uri, v.title, v.mime_type, v.language, t.headings, t.pages
FROM document_versions v LEFT JOIN document_contents t ON t.tenant_id = v.tenant_id AND t.version_id = v.version_id
WHERE v.tenant_id = %(tenant_id)s AND v.version_id = %(version_id)s

-- lock_state: the counters come last, as everywhere; who waits for them sees what was written before
SELECT 1 FROM collection_state WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s FOR UPDATE

-- hold_collections: keeps every one of the tenant from being deleted meanwhile
SELECT 1 FROM collections WHERE tenant_id = %(tenant_id)s ORDER BY collection_id FOR KEY SHARE

-- state: whether a version is there still, and current
SELECT known_to = 'infinity', chunk_count FROM document_versions
WHERE tenant_id = %(tenant_id)s AND version_id = %(version_id)s

-- recount: after the lock, in a statement of its own: its snapshot holds what the lock waited for
UPDATE collection_state s SET revision = s.revision + 1, document_count = n.documents, chunk_count = n.chunks,
    next_expiry = n.next_expiry
FROM (SELECT count(*) AS documents, coalesce(sum(v.chunk_count), 0) AS chunks,
             coalesce(min(v.expires_at), 'infinity') AS next_expiry FROM document_versions v
      WHERE v.tenant_id = %(tenant_id)s AND v.collection_id = %(collection_id)s AND v.known_to = 'infinity') n
WHERE s.tenant_id = %(tenant_id)s AND s.collection_id = %(collection_id)s

-- touch: cached replies are of the past now; terms that were changed wait to be counted
UPDATE collection_state SET revision = revision + 1, stats_pending = stats_pending + %(pending)s
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s

-- set_reference_length: the one that the weights were made with
UPDATE collection_state SET reference_length = %(reference_length)s, revision = revision + 1
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s
