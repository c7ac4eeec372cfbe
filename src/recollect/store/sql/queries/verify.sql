-- room: the joins are large, and there is one of them at a time
SET LOCAL work_mem = '64MB'

-- tenants: all there are
SELECT tenant_id FROM tenants ORDER BY tenant_id

-- stateless_collections: collections without counters
FROM collections p WHERE p.tenant_id = %(tenant_id)s AND NOT EXISTS (
    SELECT FROM collection_state s WHERE s.tenant_id = p.tenant_id AND s.collection_id = p.collection_id)

-- missing_access_lists: lists that documents have, or the default of a collection, and that do not exist
FROM (
    SELECT p.collection_id, 0 AS access_id FROM collections p WHERE p.tenant_id = %(tenant_id)s
    UNION
    SELECT d.collection_id, d.access_id FROM documents d WHERE d.tenant_id = %(tenant_id)s) u
WHERE NOT EXISTS (
    SELECT FROM access_lists a
    WHERE a.tenant_id = %(tenant_id)s AND a.collection_id = u.collection_id AND a.access_id = u.access_id)

-- orphaned_documents: documents without any version that no job is about
FROM documents d WHERE d.tenant_id = %(tenant_id)s AND NOT EXISTS (
    SELECT FROM document_versions v WHERE v.tenant_id = d.tenant_id AND v.document_id = d.document_id)
  AND NOT EXISTS (SELECT FROM jobs j WHERE j.tenant_id = d.tenant_id AND j.document_id = d.document_id)

-- wrong_fact_vectors: facts whose vector is of another length than their conversation's, or not of unit length
FROM fact_index i JOIN facts f USING (tenant_id, fact_id)
JOIN sessions s ON s.tenant_id = i.tenant_id AND s.session_id = i.session_id
WHERE i.tenant_id = %(tenant_id)s AND (
    abs(l2_norm(i.embedding) - 1) > 0.01
    OR vector_dims(i.embedding) <> (SELECT vector_dims(v.embedding) FROM episode_vectors v
                                    WHERE v.tenant_id = i.tenant_id AND v.session_id = i.session_id
                                    ORDER BY v.episode_id LIMIT 1))

-- wrong_cached_embeddings: embeddings that are not of unit length, of another dimension than their model's, or of no chunk
FROM embedding_cache e WHERE e.tenant_id = %(tenant_id)s AND (
    abs(l2_norm(e.embedding) - 1) > 0.01
    OR EXISTS (SELECT FROM collections p WHERE p.tenant_id = e.tenant_id AND p.embedding_model = e.model
               AND p.embedding_dimension <> vector_dims(e.embedding))
    OR NOT EXISTS (SELECT FROM chunks c WHERE c.tenant_id = e.tenant_id AND c.content_hash = e.content_hash))

-- unowned_originals: originals that no version has, no job is to read, and nobody has sent to be kept
FROM originals o WHERE o.tenant_id = %(tenant_id)s AND NOT EXISTS (
    SELECT FROM version_originals v WHERE v.tenant_id = o.tenant_id AND v.file_hash = o.file_hash)
  AND NOT EXISTS (SELECT FROM job_uploads u WHERE u.tenant_id = o.tenant_id AND u.file_hash = o.file_hash)
  AND NOT EXISTS (SELECT FROM uploaded_files f WHERE f.tenant_id = o.tenant_id AND f.file_hash = o.file_hash)

-- unowned_texts: texts that no version has
FROM texts t WHERE t.tenant_id = %(tenant_id)s AND NOT EXISTS (
    SELECT FROM document_contents c WHERE c.tenant_id = t.tenant_id AND c.text_hash = t.text_hash)

-- indexes: the vector indexes of spaces, whether each is usable, and whether somebody is at work on it
SELECT substring(c.relname FROM '[0-9]+$')::int, i.indisvalid,
       EXISTS (SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 2
               AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
               AND l.classid::bigint = (hashtext('recollect.dense_index')::bigint & 4294967295)
               AND l.objid::text = substring(c.relname FROM '[0-9]+$')),
       EXISTS (SELECT FROM collections p WHERE p.space_id::text = substring(c.relname FROM '[0-9]+$'))
       OR EXISTS (SELECT FROM vector_spaces s WHERE s.space_id::text = substring(c.relname FROM '[0-9]+$'))
FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
WHERE i.indrelid = 'chunk_vectors'::regclass AND c.relname ~ '^chunk_vectors_hnsw_[0-9]{1,9}$'

-- versions_with_documents: of a collection
FROM document_versions v JOIN documents d ON d.tenant_id = v.tenant_id AND d.document_id = v.document_id
WHERE v.tenant_id = %(tenant_id)s AND v.collection_id = %(collection_id)s

-- other_readers: who may read a version is not what its document says; a past one's list lies beneath the document's
CASE WHEN v.known_to = 'infinity' THEN v.access_id <> d.access_id ELSE NOT EXISTS (
    SELECT FROM access_lists p WHERE p.tenant_id = v.tenant_id AND p.collection_id = v.collection_id
      AND p.access_id = v.access_id AND p.beneath = d.access_id) END

-- other_given_ids: a version is not said to have the id that its document was given
v.given_id IS DISTINCT FROM d.given_id

-- overlapping_versions: versions that were not closed when the next one began; a document has one current at most
FROM (
    SELECT tenant_id, document_id, version_id, known_from, known_to,
           lead(known_from) OVER (PARTITION BY document_id ORDER BY version) AS next_from
    FROM document_versions WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s) v
WHERE v.known_to > greatest(v.next_from, v.known_from) AND v.next_from IS NOT NULL

-- wrong_acronym_copies: acronyms that name another collection than their version
FROM version_acronyms a JOIN document_versions v ON v.tenant_id = a.tenant_id AND v.version_id = a.version_id
WHERE v.tenant_id = %(tenant_id)s AND v.collection_id = %(collection_id)s AND a.collection_id <> v.collection_id

-- chunks_with_rows: every chunk of a collection beside its rows in both retrievers, in the space that searches use
FROM collections p
JOIN document_versions v ON v.tenant_id = p.tenant_id AND v.collection_id = p.collection_id
JOIN chunks c ON c.tenant_id = v.tenant_id AND c.version_id = v.version_id
LEFT JOIN chunk_vectors x ON x.tenant_id = c.tenant_id AND x.chunk_id = c.chunk_id AND x.space_id = p.space_id
LEFT JOIN chunk_lexical l ON l.tenant_id = c.tenant_id AND l.chunk_id = c.chunk_id
WHERE p.tenant_id = %(tenant_id)s AND p.collection_id = %(collection_id)s

-- missing_vectors: the dense retriever cannot find these chunks
x.chunk_id IS NULL

-- wrong_vectors: of another dimension than the collection's, or not of unit length
vector_dims(x.embedding) <> p.embedding_dimension OR abs(l2_norm(x.embedding) - 1) > 0.01

-- stale_vector_copies: what stands beside the vector is not what its version says
(x.version_id, x.known_from, x.known_to, x.access_id)
    IS DISTINCT FROM (v.version_id, v.known_from, v.known_to, v.access_id) AND x.chunk_id IS NOT NULL

-- vectors_elsewhere: every vector of a collection's chunks in another space than the one that searches use
FROM collections p
JOIN document_versions v ON v.tenant_id = p.tenant_id AND v.collection_id = p.collection_id
JOIN chunks c ON c.tenant_id = v.tenant_id AND c.version_id = v.version_id
JOIN chunk_vectors x ON x.tenant_id = c.tenant_id AND x.chunk_id = c.chunk_id AND x.space_id <> p.space_id
LEFT JOIN vector_spaces s ON s.tenant_id = p.tenant_id AND s.collection_id = p.collection_id AND s.space_id = x.space_id
WHERE p.tenant_id = %(tenant_id)s AND p.collection_id = %(collection_id)s

-- stray_vectors: of a space that the collection does not have; or one there that a chunk is better without
s.space_id IS NULL OR vector_dims(x.embedding) <> s.embedding_dimension OR abs(l2_norm(x.embedding) - 1) > 0.01

-- stale_copies_elsewhere: what stands beside the vector is not what its version says
(x.version_id, x.known_from, x.known_to, x.access_id)
    IS DISTINCT FROM (v.version_id, v.known_from, v.known_to, v.access_id)

-- missing_lexical_rows: the lexical retriever cannot find these chunks
l.chunk_id IS NULL

-- stale_lexical_copies: what stands beside the terms is not what its version says
(l.collection_id, l.version_id, l.known_from, l.known_to, l.access_id)
    IS DISTINCT FROM (v.collection_id, v.version_id, v.known_from, v.known_to, v.access_id) AND l.chunk_id IS NOT NULL

-- missing_token_vectors: the collection stores them, but not of these chunks
p.token_vectors AND NOT EXISTS (
    SELECT FROM chunk_token_vectors t
    WHERE t.tenant_id = c.tenant_id AND t.chunk_id = c.chunk_id AND t.space_id = p.space_id)

-- versions: one page of a collection's versions
SELECT v.document_id, v.version_id, v.uri, v.title, v.chunk_count, v.content_hash, v.known_to = 'infinity',
       v.analysed_as[1]
FROM document_versions v
WHERE v.tenant_id = %(tenant_id)s AND v.collection_id = %(collection_id)s AND v.version_id > %(after)s
ORDER BY v.version_id LIMIT %(limit)s

-- versions_by_id: the same of given ones
SELECT v.document_id, v.version_id, v.uri, v.title, v.chunk_count, v.content_hash, v.known_to = 'infinity',
       v.analysed_as[1]
FROM document_versions v
WHERE v.tenant_id = %(tenant_id)s AND v.version_id = ANY (%(version_ids)s)
ORDER BY v.version_id

-- contents: the texts of some versions
SELECT version_id, content FROM document_contents JOIN texts USING (tenant_id, text_hash)
WHERE tenant_id = %(tenant_id)s AND version_id = ANY (%(version_ids)s)

-- chunks: the chunks of some versions
SELECT version_id, chunk_id, position, start_offset, end_offset, parent_start, parent_end, content_hash, section, text,
       context, metadata
FROM chunks WHERE tenant_id = %(tenant_id)s AND version_id = ANY (%(version_ids)s)
ORDER BY version_id, position

-- lexical_sample: some lexical rows with the text that they were made of, chosen by hash
SELECT c.chunk_id, c.version_id, v.title, c.section, c.text, l.length, l.lexemes, sparsevec_send(l.weights), c.context,
       v.analysed_as[1], c.metadata
FROM (SELECT s.tenant_id, s.chunk_id FROM chunk_lexical s
      WHERE s.tenant_id = %(tenant_id)s AND s.collection_id = %(collection_id)s
      ORDER BY hashint8(s.chunk_id), s.chunk_id LIMIT %(limit)s) AS chosen
JOIN chunk_lexical l USING (tenant_id, chunk_id)
JOIN chunks c USING (tenant_id, chunk_id)
JOIN document_versions v ON v.tenant_id = c.tenant_id AND v.version_id = c.version_id

-- lexical_page: all of them, page by page
SELECT c.chunk_id, c.version_id, v.title, c.section, c.text, l.length, l.lexemes, sparsevec_send(l.weights), c.context,
       v.analysed_as[1], c.metadata
FROM chunk_lexical l
JOIN chunks c USING (tenant_id, chunk_id)
JOIN document_versions v ON v.tenant_id = c.tenant_id AND v.version_id = c.version_id
WHERE l.tenant_id = %(tenant_id)s AND l.collection_id = %(collection_id)s AND l.chunk_id > %(after)s
ORDER BY l.chunk_id LIMIT %(limit)s

-- tokens_sample: some token vectors, chosen by hash
SELECT t.chunk_id, chosen.version_id, t.packed FROM (
    SELECT s.tenant_id, s.chunk_id, s.space_id, s.version_id FROM chunk_vectors s
    WHERE s.tenant_id = %(tenant_id)s AND s.space_id = %(space_id)s
    ORDER BY hashint8(s.chunk_id), s.chunk_id LIMIT %(limit)s) AS chosen
JOIN chunk_token_vectors t USING (tenant_id, chunk_id, space_id)

-- tokens_page: all of them, page by page
SELECT t.chunk_id, s.version_id, t.packed
FROM chunk_token_vectors t JOIN chunk_vectors s USING (tenant_id, chunk_id, space_id)
WHERE s.tenant_id = %(tenant_id)s AND s.space_id = %(space_id)s AND t.chunk_id > %(after)s
ORDER BY t.chunk_id LIMIT %(limit)s

-- counters: what the counters say beside what there is
SELECT s.document_count, s.chunk_count, n.documents, n.chunks, coalesce(s.next_expiry > n.next_expiry, false)
FROM collection_state s CROSS JOIN LATERAL (
    SELECT count(*) AS documents, coalesce(sum(v.chunk_count), 0)::bigint AS chunks,
           min(v.expires_at) AS next_expiry FROM document_versions v
    WHERE v.tenant_id = s.tenant_id AND v.collection_id = s.collection_id AND v.known_to = 'infinity') n
WHERE s.tenant_id = %(tenant_id)s AND s.collection_id = %(collection_id)s

-- term_statistics: terms whose frequency differs by more than what was written since the last count
WITH counted AS (
    SELECT u.lexeme, count(*) AS chunks FROM chunk_lexical l CROSS JOIN LATERAL unnest(l.lexemes) AS u (lexeme)
    WHERE l.tenant_id = %(tenant_id)s AND l.collection_id = %(collection_id)s AND l.known_to = 'infinity'
    GROUP BY u.lexeme),
known AS (
    SELECT t.lexeme, t.document_frequency FROM term_stats t
    WHERE t.tenant_id = %(tenant_id)s AND t.collection_id = %(collection_id)s),
state AS (
    SELECT s.stats_pending FROM collection_state s
    WHERE s.tenant_id = %(tenant_id)s AND s.collection_id = %(collection_id)s)
SELECT count(*) FROM counted FULL JOIN known USING (lexeme)
WHERE abs(coalesce(known.document_frequency, 0) - coalesce(counted.chunks, 0)) > (SELECT stats_pending FROM state)

-- term_totals: the totals that belong to them; their length can be compared only where nothing is waiting
SELECT (s.stats_pending < 0 OR abs(s.stats_chunks - n.chunks) > s.stats_pending)::int
     + (s.stats_pending = 0 AND s.stats_terms <> n.terms)::int
FROM collection_state s CROSS JOIN LATERAL (
    SELECT count(*) AS chunks, coalesce(sum(l.length), 0)::bigint AS terms FROM chunk_lexical l
    WHERE l.tenant_id = s.tenant_id AND l.collection_id = s.collection_id AND l.known_to = 'infinity') n
WHERE s.tenant_id = %(tenant_id)s AND s.collection_id = %(collection_id)s

-- reference_length: the one kept
SELECT reference_length FROM collection_state WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s

-- tables: every table that has a file
SELECT relname::text FROM pg_class
WHERE relnamespace = 'recollect'::regnamespace AND relkind = 'r' ORDER BY relname

-- index_of: an index by the number of its file or by its name
SELECT c.relname::text FROM pg_class c
WHERE c.relnamespace = 'recollect'::regnamespace AND c.relkind = 'i'
  AND (c.oid = pg_filenode_relation(0, %(file)s::oid) OR c.relname = %(name)s::text)
