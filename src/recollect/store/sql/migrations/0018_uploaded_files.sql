-- Files that were sent before anybody said where they belong: kept for whoever sent them, found by no search, until they are
-- deleted or their time is over. A collection that is given one stores it as a document of the source `file-NUMBER`.
CREATE TABLE uploaded_files (
    tenant_id  int         NOT NULL REFERENCES tenants,
    -- Of the numbers of documents, so that one number is never a file and another document.
    file_id    bigint      NOT NULL DEFAULT nextval('documents_document_id_seq'),
    file_hash  bytea       NOT NULL,
    name       text        NOT NULL CHECK (name <> ''),
    mime_type  text        NOT NULL,
    purpose    text        NOT NULL CHECK (purpose <> ''),
    sent_by    text        CHECK (sent_by <> ''),  -- the principal's user
    principal  jsonb       CHECK (jsonb_typeof(principal) = 'object'), -- who sent it; NULL: the store's owner
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL DEFAULT 'infinity',
    PRIMARY KEY (tenant_id, file_id),
    FOREIGN KEY (tenant_id, file_hash) REFERENCES originals
);

CREATE INDEX uploaded_files_by_hash ON uploaded_files (tenant_id, file_hash);
CREATE INDEX uploaded_files_expiring ON uploaded_files (tenant_id, expires_at) WHERE expires_at < 'infinity';

-- What is noted of collections that expire when nobody uses them, and what programs have written on them.
CREATE TABLE collection_notes (
    tenant_id      int         NOT NULL,
    collection_id  int         NOT NULL,
    metadata       jsonb       NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(metadata) = 'object'),
    idle_days      int         CHECK (idle_days > 0), -- its documents are closed after so many without use; NULL: never
    last_active_at timestamptz NOT NULL DEFAULT now(),
    expired_at     timestamptz, -- when they were; NULL: they are there
    PRIMARY KEY (tenant_id, collection_id),
    FOREIGN KEY (tenant_id, collection_id) REFERENCES collections ON DELETE CASCADE
);

-- Jobs that were asked for together.
CREATE INDEX jobs_by_batch ON jobs (tenant_id, (arguments ->> 'batch'), job_id) WHERE arguments ? 'batch';
