-- What is attached to a message is a document of its own, which goes with the message's: it is closed, erased and granted
-- with it. Messages that lie in messages hang on the outermost.
ALTER TABLE documents
    ADD COLUMN attached_to bigint CHECK (attached_to <> document_id);
ALTER TABLE documents
    ADD CONSTRAINT documents_attached_to_fkey FOREIGN KEY (tenant_id, attached_to)
        REFERENCES documents (tenant_id, document_id) ON DELETE CASCADE;
CREATE INDEX documents_attached ON documents (tenant_id, attached_to) WHERE attached_to IS NOT NULL;
