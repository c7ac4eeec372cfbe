-- get_many: packed token vectors of given chunks
SELECT chunk_id, packed FROM chunk_token_vectors
WHERE tenant_id = %(tenant_id)s AND chunk_id = ANY (%(chunk_ids)s)

-- copy: one row a chunk
COPY chunk_token_vectors (tenant_id, chunk_id, packed) FROM STDIN (FORMAT BINARY)

-- wanted: whether a collection stores them
SELECT token_vectors FROM collections WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s

-- set_wanted: for chunks that are stored from now on
UPDATE collections SET token_vectors = %(wanted)s
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s
RETURNING collection_id
