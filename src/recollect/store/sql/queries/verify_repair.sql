-- set_fact_vector: what its conversation's model makes of a fact that is there still
UPDATE fact_index SET embedding = %(embedding)s WHERE tenant_id = %(tenant_id)s AND fact_id = %(fact_id)s

-- hold_collections: keeps every one of the tenant from being deleted meanwhile
SELECT 1 FROM collections WHERE tenant_id = %(tenant_id)s ORDER BY collection_id FOR KEY SHARE

-- add_states: counters for collections that lack them, to be counted next
INSERT INTO collection_state (tenant_id, collection_id) SELECT p.tenant_id, p.collection_id

-- add_access_lists: lists that are gone, with nobody on them: what was granted is not known
INSERT INTO access_lists (tenant_id, collection_id, access_id, grants)
SELECT %(tenant_id)s, u.collection_id, u.access_id, '{}'

-- touch_collections: replies that are cached were made by other rights
UPDATE collection_state SET revision = revision + 1 WHERE tenant_id = %(tenant_id)s

-- note_versions: rows of their chunks are about to change, beside them
INSERT INTO collection_changes (tenant_id, collection_id, version_ids)
SELECT v.tenant_id, v.collection_id, array_agg(v.version_id) FROM document_versions v
WHERE v.tenant_id = %(tenant_id)s AND v.document_id = ANY (%(document_ids)s)
GROUP BY v.tenant_id, v.collection_id ORDER BY v.collection_id

-- lock_state: the counters come last, as everywhere; who waits for them sees what was written before
SELECT 1 FROM collection_state WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s FOR UPDATE

-- recount: after the lock, in a statement of its own: its snapshot holds what the lock waited for
UPDATE collection_state s SET revision = s.revision + 1, document_count = n.documents, chunk_count = n.chunks,
    next_expiry = n.next_expiry, stats_pending = s.stats_pending + %(pending)s,
    languages = ARRAY (
        SELECT DISTINCT unnest(s.languages || l.analysed_as) FROM document_versions l
        WHERE l.tenant_id = s.tenant_id AND l.collection_id = s.collection_id ORDER BY 1)
FROM (SELECT count(*) AS documents, coalesce(sum(v.chunk_count), 0) AS chunks,
             coalesce(min(v.expires_at), 'infinity') AS next_expiry FROM document_versions v
      WHERE v.tenant_id = %(tenant_id)s AND v.collection_id = %(collection_id)s AND v.known_to = 'infinity') n
WHERE s.tenant_id = %(tenant_id)s AND s.collection_id = %(collection_id)s

-- set_reference_length: the one that the weights were made with
UPDATE collection_state SET reference_length = %(reference_length)s, revision = revision + 1
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s

-- copy_close_overlapping: a version ends where the next one begins; what segments know of their times no longer holds
WITH ended AS (
    UPDATE document_versions v SET known_to = greatest(n.next_from, v.known_from)
    FROM (SELECT version_id, lead(known_from) OVER (PARTITION BY document_id ORDER BY version) AS next_from
          FROM document_versions WHERE tenant_id = %(tenant_id)s AND document_id = ANY (%(document_ids)s)) n
    WHERE v.tenant_id = %(tenant_id)s AND n.version_id = v.version_id
      AND v.known_to > greatest(n.next_from, v.known_from) AND n.next_from IS NOT NULL
    RETURNING v.tenant_id, v.collection_id)
DELETE FROM closed_row_segments s USING ended e WHERE s.tenant_id = e.tenant_id AND s.collection_id = e.collection_id

-- copy_to_versions: who may read versions is their document's to say; what a past one was granted is known from its vectors,
-- or else lost, and then owners alone read it
WITH wrong AS (
    SELECT v.version_id, v.collection_id, d.access_id AS own, CASE WHEN v.known_to = 'infinity' THEN d.access_id ELSE (
               SELECT x.access_id FROM chunk_vectors x JOIN access_lists p ON p.tenant_id = x.tenant_id
                   AND p.collection_id = d.collection_id AND p.access_id = x.access_id AND p.beneath = d.access_id
               WHERE x.tenant_id = v.tenant_id AND x.version_id = v.version_id LIMIT 1) END AS known
    FROM document_versions v JOIN documents d ON d.tenant_id = v.tenant_id AND d.document_id = v.document_id
    WHERE v.tenant_id = %(tenant_id)s AND v.document_id = ANY (%(document_ids)s) AND (WRONG)),
lost AS (
    INSERT INTO access_lists (tenant_id, collection_id, grants, beneath)
    SELECT DISTINCT %(tenant_id)s::int, collection_id, '{}'::text[], own FROM wrong WHERE known IS NULL
    RETURNING collection_id, access_id, beneath)
UPDATE document_versions v SET access_id = coalesce(w.known, l.access_id)
FROM wrong w LEFT JOIN lost l ON l.collection_id = w.collection_id AND l.beneath = w.own
WHERE v.tenant_id = %(tenant_id)s AND v.version_id = w.version_id

-- copy_given_ids: versions have the ids that their documents were given
UPDATE document_versions v SET given_id = d.given_id FROM documents d
WHERE v.tenant_id = %(tenant_id)s AND v.document_id = ANY (%(document_ids)s)
AND d.tenant_id = v.tenant_id AND d.document_id = v.document_id AND v.given_id IS DISTINCT FROM d.given_id

-- copy_to_acronyms: acronyms are where their version is
UPDATE version_acronyms a SET collection_id = v.collection_id FROM document_versions v
WHERE v.tenant_id = %(tenant_id)s AND v.document_id = ANY (%(document_ids)s)
AND a.tenant_id = v.tenant_id AND a.version_id = v.version_id AND a.collection_id <> v.collection_id

-- copy_to_vectors: vectors are where and when their version is
UPDATE chunk_vectors x SET version_id = v.version_id, known_from = v.known_from, known_to = v.known_to,
    access_id = v.access_id
FROM document_versions v JOIN chunks c ON c.tenant_id = v.tenant_id AND c.version_id = v.version_id
WHERE v.tenant_id = %(tenant_id)s AND v.document_id = ANY (%(document_ids)s)
AND x.tenant_id = c.tenant_id AND x.chunk_id = c.chunk_id
AND (x.version_id, x.known_from, x.known_to, x.access_id)
    IS DISTINCT FROM (v.version_id, v.known_from, v.known_to, v.access_id)

-- drop_vectors: those of a collection that a condition names
DELETE FROM chunk_vectors d USING (SELECT x.tenant_id, x.chunk_id, x.space_id STRAY) w
WHERE d.tenant_id = w.tenant_id AND d.chunk_id = w.chunk_id AND d.space_id = w.space_id

-- copy_to_lexical: lexical rows are where and when their version is
UPDATE chunk_lexical l SET collection_id = v.collection_id, version_id = v.version_id, known_from = v.known_from,
    known_to = v.known_to, access_id = v.access_id
FROM document_versions v JOIN chunks c ON c.tenant_id = v.tenant_id AND c.version_id = v.version_id
WHERE v.tenant_id = %(tenant_id)s AND v.document_id = ANY (%(document_ids)s)
AND l.tenant_id = c.tenant_id AND l.chunk_id = c.chunk_id
AND (l.collection_id, l.version_id, l.known_from, l.known_to, l.access_id)
    IS DISTINCT FROM (v.collection_id, v.version_id, v.known_from, v.known_to, v.access_id)

-- document: what a version needs to be cut anew
SELECT v.uri, v.title, v.mime_type, v.language, t.headings, t.pages
FROM document_versions v LEFT JOIN document_contents t ON t.tenant_id = v.tenant_id AND t.version_id = v.version_id
WHERE v.tenant_id = %(tenant_id)s AND v.version_id = %(version_id)s

-- set_version: what a version says of its text and chunks; no row where it was erased meanwhile
UPDATE document_versions SET content_hash = %(content_hash)s, chunk_count = %(chunk_count)s
WHERE tenant_id = %(tenant_id)s AND version_id = %(version_id)s
RETURNING version_id

-- set_text: the text that a version was proven to have, in the place of what had its hash and was damaged
INSERT INTO texts (tenant_id, text_hash, content) VALUES (%(tenant_id)s, %(content_hash)s, %(content)s)
ON CONFLICT (tenant_id, text_hash) DO UPDATE SET content = excluded.content WHERE texts.content <> excluded.content

-- set_content: that it is this version's
INSERT INTO document_contents (tenant_id, version_id, text_hash)
VALUES (%(tenant_id)s, %(version_id)s, %(content_hash)s)
ON CONFLICT (tenant_id, version_id) DO UPDATE SET text_hash = excluded.text_hash
WHERE document_contents.text_hash <> excluded.text_hash

-- drop_chunks: of a version that is cut anew, with their rows in both retrievers
DELETE FROM chunks WHERE tenant_id = %(tenant_id)s AND version_id = %(version_id)s

-- add_chunk: of a version that is cut anew
INSERT INTO chunks (tenant_id, version_id, position, start_offset, end_offset, parent_start, parent_end, page, token_count,
    content_hash, section, text, metadata)
VALUES (%(tenant_id)s, %(version_id)s, %(position)s, %(start)s, %(end)s, %(parent_start)s, %(parent_end)s, %(page)s,
    %(token_count)s, %(key)s, %(section)s, %(text)s, %(metadata)s)

-- set_chunk: a chunk's text, and the hash of what is indexed of it
UPDATE chunks SET text = %(text)s, content_hash = %(key)s
WHERE tenant_id = %(tenant_id)s AND version_id = %(version_id)s AND position = %(position)s
  AND (text <> %(text)s OR content_hash <> %(key)s)

-- drop_replaced: the cached embedding of a chunk that will be embedded with another context, unless a chunk of another version has it
DELETE FROM embedding_cache e USING chunks c
WHERE c.tenant_id = %(tenant_id)s AND c.version_id = %(version_id)s AND c.position = %(position)s
  AND c.context <> %(context)s AND e.tenant_id = c.tenant_id AND e.content_hash = c.content_hash
  AND NOT EXISTS (SELECT FROM chunks o WHERE o.tenant_id = c.tenant_id AND o.content_hash = c.content_hash
                  AND o.version_id <> c.version_id)

-- set_context: what situates a chunk, and who wrote it
UPDATE chunks SET context = %(context)s, context_by = %(context_by)s
WHERE tenant_id = %(tenant_id)s AND version_id = %(version_id)s AND position = %(position)s

-- drop_vectors_elsewhere: of a chunk, in other spaces than the one that searches use: they are filled anew before another is
DELETE FROM chunk_vectors x USING chunks c
WHERE c.tenant_id = %(tenant_id)s AND c.version_id = %(version_id)s AND c.position = %(position)s
  AND x.tenant_id = c.tenant_id AND x.chunk_id = c.chunk_id AND x.space_id <> %(space_id)s

-- drop_tokens_elsewhere: likewise
DELETE FROM chunk_token_vectors x USING chunks c
WHERE c.tenant_id = %(tenant_id)s AND c.version_id = %(version_id)s AND c.position = %(position)s
  AND x.tenant_id = c.tenant_id AND x.chunk_id = c.chunk_id AND x.space_id <> %(space_id)s

-- set_vector: a chunk's vector, with what its version says
INSERT INTO chunk_vectors (tenant_id, chunk_id, space_id, version_id, known_from, known_to, access_id, embedding)
SELECT c.tenant_id, c.chunk_id, %(space_id)s, v.version_id, v.known_from, v.known_to, v.access_id, %(embedding)s
FROM chunks c JOIN document_versions v ON v.tenant_id = c.tenant_id AND v.version_id = c.version_id
WHERE c.tenant_id = %(tenant_id)s AND c.version_id = %(version_id)s AND c.position = %(position)s
ON CONFLICT (tenant_id, chunk_id, space_id) DO UPDATE SET embedding = excluded.embedding

-- set_lexical: a chunk's terms, with what its version says
INSERT INTO chunk_lexical (tenant_id, chunk_id, collection_id, version_id, known_from, known_to, access_id, length,
    lexemes, weights)
SELECT c.tenant_id, c.chunk_id, v.collection_id, v.version_id, v.known_from, v.known_to, v.access_id, %(length)s,
    %(lexemes)s, %(weights)s
FROM chunks c JOIN document_versions v ON v.tenant_id = c.tenant_id AND v.version_id = c.version_id
WHERE c.tenant_id = %(tenant_id)s AND c.version_id = %(version_id)s AND c.position = %(position)s
ON CONFLICT (tenant_id, chunk_id) DO UPDATE SET length = excluded.length, lexemes = excluded.lexemes,
    weights = excluded.weights

-- set_tokens: a chunk's token vectors
INSERT INTO chunk_token_vectors (tenant_id, chunk_id, space_id, packed)
SELECT c.tenant_id, c.chunk_id, %(space_id)s, %(packed)s FROM chunks c
WHERE c.tenant_id = %(tenant_id)s AND c.version_id = %(version_id)s AND c.position = %(position)s
ON CONFLICT (tenant_id, chunk_id, space_id) DO UPDATE SET packed = excluded.packed
