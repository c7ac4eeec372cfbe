-- Tenants: suspended or not, how much they may store, what they share.

ALTER TABLE tenants
    ADD COLUMN status        text   NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'suspended')),
    ADD COLUMN max_documents bigint CHECK (max_documents >= 0), -- current documents; NULL: any number
    ADD COLUMN max_chunks    bigint CHECK (max_chunks >= 0),    -- of current documents
    ADD COLUMN max_bytes     bigint CHECK (max_bytes >= 0);     -- of text, in every version that is kept

-- A tenant's number is never given to another one, lest what outlives it (receipts, backups) be taken for the other's.
CREATE SEQUENCE tenant_numbers AS int;
SELECT setval('tenant_numbers', (SELECT max(tenant_id) FROM tenants));

-- Who else may read a collection. The reader does not see the row, but is told what is shared with him.
CREATE TABLE collection_shares (
    tenant_id     int         NOT NULL, -- whose collection
    collection_id int         NOT NULL,
    reader_id     int         NOT NULL REFERENCES tenants ON DELETE CASCADE,
    created_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, collection_id, reader_id),
    CHECK (tenant_id <> reader_id),
    FOREIGN KEY (tenant_id, collection_id) REFERENCES collections ON DELETE CASCADE
);

CREATE INDEX collection_shares_by_reader ON collection_shares (reader_id);
