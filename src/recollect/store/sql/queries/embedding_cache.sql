-- get_many: cached embeddings of a model
SELECT content_hash, halfvec_send(embedding) FROM embedding_cache
WHERE tenant_id = %(tenant_id)s AND model = %(model)s AND content_hash = ANY (%(content_hashes)b)

-- put_many: keep embeddings; what is there already stays
INSERT INTO embedding_cache (tenant_id, model, content_hash, embedding)
SELECT %(tenant_id)s, %(model)s, u.content_hash, u.embedding
FROM unnest(%(content_hashes)b::bytea[], %(embeddings)b::halfvec[]) AS u (content_hash, embedding)
ORDER BY u.content_hash
ON CONFLICT DO NOTHING

-- drop_unowned: embeddings of texts that no chunk has
DELETE FROM embedding_cache e WHERE e.tenant_id = %(tenant_id)s AND NOT EXISTS (
    SELECT FROM chunks c WHERE c.tenant_id = e.tenant_id AND c.content_hash = e.content_hash)
