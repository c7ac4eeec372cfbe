-- Cached embeddings belong to the chunks of their texts, and are kept and removed with them. Those that no chunk has (of
-- documents that were refused, of collections that were deleted) have nobody to take them along.
DELETE FROM embedding_cache e WHERE NOT EXISTS (
    SELECT FROM chunks c WHERE c.tenant_id = e.tenant_id AND c.content_hash = e.content_hash);
