-- tenant: whether there is such a tenant
SELECT 1 FROM tenants WHERE tenant_id = %(tenant_id)s

-- create: a collection, unless one of that name exists
INSERT INTO collections (tenant_id, name, description, embedding_model, embedding_dimension, language, chunking,
                         token_vectors, embedding_spec)
VALUES (%(tenant_id)s, %(name)s, %(description)s, %(embedding_model)s, %(embedding_dimension)s, %(language)s,
        %(chunking)s, %(token_vectors)s, %(embedding_spec)s)
ON CONFLICT (tenant_id, name) DO NOTHING
RETURNING collection_id

-- create_state: the counters of a new collection, and who may read what has no access list of its own
WITH list AS (
    INSERT INTO access_lists (tenant_id, collection_id, access_id) VALUES (%(tenant_id)s, %(collection_id)s, 0))
INSERT INTO collection_state (tenant_id, collection_id) VALUES (%(tenant_id)s, %(collection_id)s)

-- get: one collection by name, with its counters
SELECT c.collection_id, c.name, c.description, c.embedding_model, c.embedding_dimension, c.space_id,
       coalesce(c.first_model, c.embedding_model), c.language, c.chunking,
       c.created_at, s.revision, s.document_count, s.chunk_count, s.stats_chunks, s.stats_terms, s.stats_pending,
       s.reference_length,
       EXISTS (SELECT FROM pg_index i
               WHERE i.indexrelid = to_regclass('recollect.chunk_vectors_hnsw_' || c.space_id)
                 AND i.indisvalid) AS indexed,
       c.refusal, c.token_vectors, c.tenant_id, s.next_expiry <= now() AS expiry_due, c.hidden,
       c.embedding_spec, s.languages, s.revision_id::text
FROM collections c JOIN collection_state s USING (tenant_id, collection_id)
WHERE c.tenant_id = %(tenant_id)s AND c.name = %(name)s
  -- A session's collection exists for the session alone, and no longer than the session.
  AND (NOT c.hidden OR (c.collection_id = %(session)s::int AND EXISTS (
      SELECT FROM document_sessions d
      WHERE d.tenant_id = c.tenant_id AND d.collection_id = c.collection_id AND d.expires_at > clock_timestamp())))
  AND (SELECT require_active(%(tenant_id)s))

-- as_text: the beginning of get, for its row as text
SELECT p::text FROM

-- with_text: the beginning of get, for its columns and then its row as text
SELECT p.*, p::text FROM

-- list_all: collections by name, behind one, with their counters; so many at most, or all
SELECT c.collection_id, c.name, c.description, c.embedding_model, c.embedding_dimension, c.space_id,
       coalesce(c.first_model, c.embedding_model), c.language, c.chunking,
       c.created_at, s.revision, s.document_count, s.chunk_count, s.stats_chunks, s.stats_terms, s.stats_pending,
       s.reference_length,
       EXISTS (SELECT FROM pg_index i
               WHERE i.indexrelid = to_regclass('recollect.chunk_vectors_hnsw_' || c.space_id)
                 AND i.indisvalid) AS indexed,
       c.refusal, c.token_vectors, c.tenant_id, s.next_expiry <= now() AS expiry_due, c.hidden,
       c.embedding_spec, s.languages, s.revision_id::text
FROM collections c JOIN collection_state s USING (tenant_id, collection_id)
WHERE c.tenant_id = %(tenant_id)s AND (NOT c.hidden OR %(hidden)s) AND c.name > %(after)s
  AND (NOT %(active)s OR (SELECT require_active(%(tenant_id)s)))
ORDER BY c.name
LIMIT %(limit)s

-- hold: a collection's row until the end of the transaction, so that what is read of it is what is changed
SELECT FROM collections WHERE tenant_id = %(tenant_id)s AND name = %(name)s AND NOT hidden FOR NO KEY UPDATE

-- describe: say something else of a collection
UPDATE collections SET description = %(description)s
WHERE tenant_id = %(tenant_id)s AND name = %(name)s AND NOT hidden RETURNING 1

-- keep_similarities: where a model's similarities lie; a collection that is being changed does without
UPDATE collections c SET embedding_spec = c.embedding_spec || jsonb_build_object('similarities', %(similarities)s::jsonb)
FROM (SELECT collection_id FROM collections
      WHERE tenant_id = %(tenant_id)s AND embedding_model = %(model)s AND embedding_spec IS NOT NULL
      FOR NO KEY UPDATE SKIP LOCKED) free
WHERE c.tenant_id = %(tenant_id)s AND c.collection_id = free.collection_id

-- delete: a collection and everything in it
DELETE FROM collections WHERE tenant_id = %(tenant_id)s AND name = %(name)s AND NOT hidden RETURNING collection_id

-- set_reference_length: the first writer's estimate stays
UPDATE collection_state SET reference_length = coalesce(reference_length, %(reference_length)s)
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s
RETURNING reference_length

-- refresh_term_stats: recount document frequencies and the average length, and tell whether the planner takes the store
-- for much smaller than it is; -1 tuples: it never looked
SELECT refresh_term_stats(%(tenant_id)s, %(collection_id)s),
    sum(chunk_count) > 1.5 * (SELECT greatest(reltuples, 0) FROM pg_class WHERE oid = 'chunks'::regclass)
FROM collection_state WHERE tenant_id = %(tenant_id)s

-- analyze: tell the planner how large the tables are; of the large columns it needs to know nothing
ANALYZE (SKIP_LOCKED) documents, document_versions, document_contents (tenant_id, version_id), texts (tenant_id),
    chunks (tenant_id, chunk_id, version_id, position), term_stats,
    chunk_vectors (tenant_id, chunk_id, space_id, version_id, known_from, known_to, access_id),
    chunk_lexical (tenant_id, chunk_id, collection_id, version_id, known_from, known_to, access_id)

-- set_refusal: when answers are refused; NULL for the built-in rule
UPDATE collections SET refusal = %(refusal)s WHERE tenant_id = %(tenant_id)s AND name = %(name)s
RETURNING collection_id
