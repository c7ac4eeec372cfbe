-- Token vectors are a model's as a chunk's vector is: they belong to a space, so that another model's stand beside those in use
-- while a collection changes to it, and the way back finds its own.
ALTER TABLE chunk_token_vectors ADD COLUMN space_id int;
UPDATE chunk_token_vectors t SET space_id = p.space_id
FROM chunks c JOIN document_versions v ON v.tenant_id = c.tenant_id AND v.version_id = c.version_id
JOIN collections p ON p.tenant_id = v.tenant_id AND p.collection_id = v.collection_id
WHERE c.tenant_id = t.tenant_id AND c.chunk_id = t.chunk_id;
ALTER TABLE chunk_token_vectors ALTER COLUMN space_id SET NOT NULL,
    DROP CONSTRAINT chunk_token_vectors_pkey, ADD PRIMARY KEY (tenant_id, chunk_id, space_id);
