-- A document with a given id is identified by that id, and its source is only what it says: several may share one.
ALTER TABLE documents
    ADD COLUMN given_id text CHECK (given_id <> ''); -- NULL: its source identifies it
ALTER TABLE documents
    ALTER COLUMN given_id SET STATISTICS 0;
ALTER TABLE documents
    DROP CONSTRAINT documents_by_source,
    ADD CONSTRAINT documents_by_source UNIQUE NULLS NOT DISTINCT (tenant_id, source_id, uri, given_id, owner, twin);
CREATE UNIQUE INDEX documents_by_given_id ON documents (tenant_id, given_id, source_id, owner, twin)
    WHERE given_id IS NOT NULL;
ALTER TABLE document_versions
    ADD COLUMN given_id text; -- its document's, beside uri, so that searches need not read the document
ALTER TABLE document_versions
    ALTER COLUMN given_id SET STATISTICS 0;
