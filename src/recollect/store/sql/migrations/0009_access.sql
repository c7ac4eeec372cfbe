-- Who may read and write what.
--
-- Distinct lists of grants and denials are few, documents share them: a document, its versions and its chunks carry the
-- number of a list, and a search of somebody who may not read all of a collection asks for the lists that he may.
-- Tokens are 'user:…', 'role:…', 'department:…', 'group:…' and '*' for everybody of the tenant.

-- Numbers are never used again: a search under way may still hold the number of a list that is gone.
CREATE SEQUENCE access_ids AS int;

CREATE TABLE access_lists (
    tenant_id     int    NOT NULL,
    collection_id int    NOT NULL,
    access_id     int    NOT NULL DEFAULT nextval('access_ids'), -- 0: of every document that has no list of its own
    grants        text[] NOT NULL DEFAULT '{*}',
    denials       text[] NOT NULL DEFAULT '{}', -- stronger than any grant
    PRIMARY KEY (tenant_id, collection_id, access_id),
    FOREIGN KEY (tenant_id, collection_id) REFERENCES collections ON DELETE CASCADE
);

ALTER SEQUENCE access_ids OWNED BY access_lists.access_id;

ALTER TABLE collections
    ADD COLUMN owners  text[] NOT NULL DEFAULT '{}',  -- read everything in it, whatever its lists deny, and write
    ADD COLUMN readers text[] NOT NULL DEFAULT '{*}', -- for anybody else it does not exist
    ADD COLUMN writers text[] NOT NULL DEFAULT '{*}';

INSERT INTO access_lists (tenant_id, collection_id, access_id) SELECT tenant_id, collection_id, 0 FROM collections;

-- The document's is what counts, for its past too; the others are copies beside what is searched.
ALTER TABLE documents ADD COLUMN access_id int NOT NULL DEFAULT 0;
ALTER TABLE document_versions ADD COLUMN access_id int NOT NULL DEFAULT 0;
ALTER TABLE chunk_vectors ADD COLUMN access_id int NOT NULL DEFAULT 0;
ALTER TABLE chunk_lexical ADD COLUMN access_id int NOT NULL DEFAULT 0;

-- What the newest version of a document was given in the column that nothing asked for until now.
WITH given AS (
    SELECT v.tenant_id, v.collection_id, v.document_id, ARRAY(SELECT DISTINCT unnest(v.permissions) ORDER BY 1) AS grants
    FROM document_versions v
    WHERE NOT '*' = ANY (v.permissions) AND v.version = (
        SELECT max(n.version) FROM document_versions n
        WHERE n.tenant_id = v.tenant_id AND n.document_id = v.document_id)),
made AS (
    INSERT INTO access_lists (tenant_id, collection_id, grants)
    SELECT DISTINCT tenant_id, collection_id, grants FROM given
    RETURNING tenant_id, collection_id, access_id, grants)
UPDATE documents d SET access_id = made.access_id
FROM given JOIN made USING (tenant_id, collection_id, grants)
WHERE d.tenant_id = given.tenant_id AND d.document_id = given.document_id;

UPDATE document_versions v SET access_id = d.access_id FROM documents d
WHERE d.access_id <> 0 AND v.tenant_id = d.tenant_id AND v.document_id = d.document_id;
UPDATE chunk_vectors x SET access_id = v.access_id FROM document_versions v
WHERE v.access_id <> 0 AND x.tenant_id = v.tenant_id AND x.version_id = v.version_id;
UPDATE chunk_lexical x SET access_id = v.access_id FROM document_versions v
WHERE v.access_id <> 0 AND x.tenant_id = v.tenant_id AND x.version_id = v.version_id;

ALTER TABLE document_versions DROP COLUMN permissions;

CREATE INDEX documents_by_access ON documents (tenant_id, collection_id, access_id);
CREATE INDEX document_versions_by_access ON document_versions (tenant_id, collection_id, access_id)
    INCLUDE (chunk_count) WHERE known_to = 'infinity';

-- Few readable chunks are found by their lists and compared one by one. Equal keys take next to no room.
DROP INDEX chunk_vectors_current;
CREATE INDEX chunk_vectors_current ON chunk_vectors (tenant_id, collection_id, access_id) WHERE known_to = 'infinity';
DROP INDEX chunk_lexical_current;
CREATE INDEX chunk_lexical_current ON chunk_lexical (tenant_id, collection_id, access_id) WHERE known_to = 'infinity';
