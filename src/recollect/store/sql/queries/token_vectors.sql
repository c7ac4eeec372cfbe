-- get_many: packed token vectors that a model made of given chunks
SELECT t.chunk_id, t.packed FROM chunk_token_vectors t
WHERE t.tenant_id = %(tenant_id)s AND t.chunk_id = ANY (%(chunk_ids)s) AND t.space_id IN (
    SELECT p.space_id FROM collections p WHERE p.tenant_id = %(tenant_id)s AND p.embedding_model = %(model)s
    UNION ALL SELECT s.space_id FROM vector_spaces s
    WHERE s.tenant_id = %(tenant_id)s AND s.embedding_model = %(model)s)

-- copy: one row a chunk
COPY chunk_token_vectors (tenant_id, chunk_id, space_id, packed) FROM STDIN (FORMAT BINARY)
