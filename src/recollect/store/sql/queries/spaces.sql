-- used: the space that a collection uses
SELECT c.space_id, c.embedding_model, c.embedding_dimension, 'used', c.created_at, c.collection_id, c.embedding_spec
FROM collections c WHERE c.tenant_id = %(tenant_id)s AND c.collection_id = %(collection_id)s

-- beside: the spaces beside it
SELECT s.space_id, s.embedding_model, s.embedding_dimension, s.status, s.since, s.collection_id, s.embedding_spec
FROM vector_spaces s WHERE s.tenant_id = %(tenant_id)s AND s.collection_id = %(collection_id)s
ORDER BY s.space_id

-- begin: a space that is to be filled, unless one is already
INSERT INTO vector_spaces (tenant_id, collection_id, status, embedding_model, embedding_dimension, embedding_spec)
VALUES (%(tenant_id)s, %(collection_id)s, 'filling', %(embedding_model)s, %(embedding_dimension)s, %(embedding_spec)s)
ON CONFLICT (tenant_id, collection_id, status) DO NOTHING

-- counts: chunks of every version, and those that have a vector in a space
SELECT count(*), count(x.chunk_id)
FROM document_versions v JOIN chunks c ON c.tenant_id = v.tenant_id AND c.version_id = v.version_id
LEFT JOIN chunk_vectors x ON x.tenant_id = c.tenant_id AND x.chunk_id = c.chunk_id AND x.space_id = %(space_id)s
WHERE v.tenant_id = %(tenant_id)s AND v.collection_id = %(collection_id)s

-- lacking: the next chunks, by version and position, that have no vector in a space
SELECT c.version_id, c.position
FROM document_versions v JOIN chunks c ON c.tenant_id = v.tenant_id AND c.version_id = v.version_id
WHERE v.tenant_id = %(tenant_id)s AND v.collection_id = %(collection_id)s AND v.version_id >= %(version_id)s
  AND (c.version_id, c.position) > (%(version_id)s, %(position)s)
  AND NOT EXISTS (SELECT FROM chunk_vectors x
                  WHERE x.tenant_id = c.tenant_id AND x.chunk_id = c.chunk_id AND x.space_id = %(space_id)s)
ORDER BY c.version_id, c.position LIMIT %(limit)s

-- texts: what is embedded of stretches of chunks, and the passage that late interaction reads of each, where it is wanted
SELECT c.version_id, c.position, c.chunk_id, c.content_hash, v.document_id, v.title, c.section, c.text, c.metadata,
       c.context,
       CASE WHEN NOT %(passages)s THEN '' WHEN c.parent_start IS NULL THEN c.text
            ELSE (SELECT substr(x.content, c.parent_start + 1, c.parent_end - c.parent_start)
                  FROM document_contents t JOIN texts x USING (tenant_id, text_hash)
                  WHERE t.tenant_id = c.tenant_id AND t.version_id = c.version_id) END
FROM unnest(%(version_ids)s::bigint[], %(firsts)s::int[], %(lasts)s::int[]) AS w (version_id, first, last)
JOIN chunks c ON c.tenant_id = %(tenant_id)s AND c.version_id = w.version_id AND c.position BETWEEN w.first AND w.last
JOIN document_versions v ON v.tenant_id = c.tenant_id AND v.version_id = c.version_id
ORDER BY c.version_id, c.position

-- hold_space: keeps a space until the end of the transaction, unless it is being dropped
SELECT FROM vector_spaces
WHERE tenant_id = %(tenant_id)s AND space_id = %(space_id)s AND status <> 'dropping' FOR KEY SHARE

-- hold_documents: nobody changes them, or who may read them, until the end of the transaction; in the order of writers
SELECT d.document_id FROM documents d
WHERE d.tenant_id = %(tenant_id)s AND d.document_id = ANY (%(document_ids)s)
ORDER BY coalesce(d.given_id, d.uri), d.document_id FOR SHARE

-- add_vectors: of chunks that are there still, and say what was embedded, with what their version says
INSERT INTO chunk_vectors (tenant_id, chunk_id, space_id, version_id, known_from, known_to, access_id, embedding)
SELECT c.tenant_id, c.chunk_id, %(space_id)s, v.version_id, v.known_from, v.known_to, v.access_id, u.embedding
FROM unnest(%(chunk_ids)s::bigint[], %(hashes)b::bytea[], %(embeddings)b::halfvec[]) AS u (chunk_id, hash, embedding)
JOIN chunks c ON c.tenant_id = %(tenant_id)s AND c.chunk_id = u.chunk_id AND c.content_hash = u.hash
JOIN document_versions v ON v.tenant_id = c.tenant_id AND v.version_id = c.version_id
ORDER BY c.chunk_id
ON CONFLICT (tenant_id, chunk_id, space_id) DO NOTHING RETURNING chunk_id

-- add_tokens: the token vectors of chunks whose vectors were added
INSERT INTO chunk_token_vectors (tenant_id, chunk_id, space_id, packed)
SELECT %(tenant_id)s, u.chunk_id, %(space_id)s, u.packed
FROM unnest(%(added)s::bigint[], %(packed)b::bytea[]) AS u (chunk_id, packed)
ON CONFLICT (tenant_id, chunk_id, space_id) DO UPDATE SET packed = excluded.packed

-- hold_alone: nobody writes to a collection, or changes its space, until the end of the transaction
SELECT c.space_id, c.embedding_model, c.embedding_dimension, 'used', c.created_at, c.collection_id, c.embedding_spec
FROM collections c WHERE c.tenant_id = %(tenant_id)s AND c.collection_id = %(collection_id)s FOR UPDATE

-- take: a space that a collection is about to use
DELETE FROM vector_spaces s
WHERE s.tenant_id = %(tenant_id)s AND s.collection_id = %(collection_id)s AND s.space_id = %(space_id)s
  AND s.status <> 'dropping'
RETURNING s.collection_id, s.space_id, s.status, s.embedding_model, s.embedding_dimension, s.embedding_spec, s.since

-- keep: the one that it has used
INSERT INTO vector_spaces (tenant_id, collection_id, space_id, status, embedding_model, embedding_dimension, embedding_spec)
SELECT tenant_id, collection_id, space_id, 'kept', embedding_model, embedding_dimension, embedding_spec
FROM collections WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s

-- use: a space that lacks nothing
UPDATE collections SET space_id = %(space_id)s, first_model = coalesce(first_model, embedding_model),
    embedding_model = %(embedding_model)s, embedding_dimension = %(embedding_dimension)s, embedding_spec = %(embedding_spec)s
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s

-- leave_copies: copies of the collection have no more to follow: they hold vectors of another space
UPDATE collection_state SET revision_id = gen_random_uuid()
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s

-- touch: cached replies were found in another space
UPDATE collection_state SET revision = revision + 1
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s

-- give_up: from now on searches that know a space are told that it is gone
UPDATE vector_spaces SET status = 'dropping', since = clock_timestamp()
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s AND space_id = %(space_id)s

-- stretch: where so many rows of vectors behind one end; none where there are fewer
SELECT x.chunk_id FROM chunk_vectors x WHERE x.tenant_id = %(tenant_id)s AND x.chunk_id > %(after)s
ORDER BY x.chunk_id OFFSET %(rows)s LIMIT 1

-- remove_vectors: of a space, among so many rows
DELETE FROM chunk_vectors
WHERE tenant_id = %(tenant_id)s AND space_id = %(space_id)s AND chunk_id > %(after)s
  AND (%(until)s::bigint IS NULL OR chunk_id <= %(until)s)

-- remove_tokens: the token vectors of these
DELETE FROM chunk_token_vectors
WHERE tenant_id = %(tenant_id)s AND space_id = %(space_id)s AND chunk_id > %(after)s
  AND (%(until)s::bigint IS NULL OR chunk_id <= %(until)s)

-- remove: a space of which nothing is left
DELETE FROM vector_spaces WHERE tenant_id = %(tenant_id)s AND space_id = %(space_id)s AND status = 'dropping'

-- segments: the closed-row segments of a collection
SELECT segment_id, closed_from::text, closed_before::text FROM closed_row_segments
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s ORDER BY closed_before

-- indexes: of a space
SELECT c.relname::text, i.indisvalid FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
WHERE i.indrelid = 'chunk_vectors'::regclass AND c.relname ~ ('^chunk_vectors_(hnsw_' || %(space_id)s || '|past_' || %(space_id)s || '_[0-9]+)$')

-- previous: the collections with a space that is kept for the way back longer than so many days
SELECT s.collection_id, c.name FROM vector_spaces s JOIN collections c USING (tenant_id, collection_id)
WHERE s.tenant_id = %(tenant_id)s AND s.status = 'kept' AND s.since <= clock_timestamp() - make_interval(days => %(days)s)
ORDER BY s.collection_id

-- sample: some current chunks of a collection, chosen by hash, with what may be asked for them
SELECT c.chunk_id, v.title, c.section, c.text
FROM document_versions v JOIN chunks c ON c.tenant_id = v.tenant_id AND c.version_id = v.version_id
WHERE v.tenant_id = %(tenant_id)s AND v.collection_id = %(collection_id)s AND v.known_to = 'infinity'
ORDER BY hashint8(c.chunk_id), c.chunk_id LIMIT %(limit)s
