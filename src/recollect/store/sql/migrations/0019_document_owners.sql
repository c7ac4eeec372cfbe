-- Who may write: nobody but a collection's owners and the writers that are named. And whose a document is: what a writer
-- stores is his, beside what others have stored under the same name.

ALTER TABLE collections ALTER COLUMN writers SET DEFAULT '{}';
UPDATE collections SET writers = '{}' WHERE writers = '{*}' AND NOT hidden;

ALTER TABLE documents
    ADD COLUMN owner text   NOT NULL DEFAULT '', -- the writer who stored it; '': the collection's, as its owners stored it
    ADD COLUMN twin  bigint NOT NULL DEFAULT 0;  -- the latest of the owner's of that name when this one came beside it

ALTER TABLE documents DROP CONSTRAINT documents_tenant_id_source_id_uri_key;
ALTER TABLE documents ADD CONSTRAINT documents_by_source UNIQUE (tenant_id, source_id, uri, owner, twin);
