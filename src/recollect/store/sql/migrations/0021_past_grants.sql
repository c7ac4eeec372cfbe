-- A past version keeps the grants that it had when it was closed, and whoever reads it needs its document's of today too.
--
-- So the past has lists of its own: what was granted then, beneath the list that the document has now.

ALTER TABLE access_lists ADD COLUMN beneath int; -- of past versions: their document's list; NULL: a list of documents

CREATE INDEX access_lists_beneath ON access_lists (tenant_id, collection_id, beneath) WHERE beneath IS NOT NULL;

-- Of what was closed until now no more is known than what its document has.
INSERT INTO access_lists (tenant_id, collection_id, grants, denials, beneath)
SELECT a.tenant_id, a.collection_id, a.grants, a.denials, a.access_id FROM access_lists a
WHERE EXISTS (SELECT FROM document_versions v WHERE v.tenant_id = a.tenant_id AND v.collection_id = a.collection_id
                AND v.access_id = a.access_id AND v.known_to <> 'infinity');

UPDATE document_versions v SET access_id = a.access_id FROM access_lists a
WHERE v.known_to <> 'infinity' AND a.tenant_id = v.tenant_id AND a.collection_id = v.collection_id
  AND a.beneath = v.access_id;
UPDATE chunk_vectors x SET access_id = v.access_id FROM document_versions v
WHERE v.known_to <> 'infinity' AND x.tenant_id = v.tenant_id AND x.version_id = v.version_id;
UPDATE chunk_lexical x SET access_id = v.access_id FROM document_versions v
WHERE v.known_to <> 'infinity' AND x.tenant_id = v.tenant_id AND x.version_id = v.version_id;
