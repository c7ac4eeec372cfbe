-- The files that documents were read from, as they came, where they are kept: each once a tenant, whatever documents and
-- versions have it, in pieces that are read and written one at a time. What no version has any more goes with the last
-- one that had it (routines/originals.sql).

CREATE TABLE originals (
    tenant_id  int         NOT NULL REFERENCES tenants,
    file_hash  bytea       NOT NULL, -- SHA-256 of its bytes
    byte_count bigint      NOT NULL CHECK (byte_count >= 0),
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, file_hash)
);

CREATE TABLE original_pieces (
    tenant_id int   NOT NULL,
    file_hash bytea NOT NULL,
    number    int   NOT NULL CHECK (number >= 0), -- 0, 1, …
    data      bytea NOT NULL,
    PRIMARY KEY (tenant_id, file_hash, number),
    FOREIGN KEY (tenant_id, file_hash) REFERENCES originals ON DELETE CASCADE
);

CREATE TABLE version_originals (
    tenant_id  int    NOT NULL,
    version_id bigint NOT NULL,
    file_hash  bytea  NOT NULL,
    name       text   NOT NULL, -- as its sender wrote it
    mime_type  text   NOT NULL,
    PRIMARY KEY (tenant_id, version_id),
    FOREIGN KEY (tenant_id, version_id) REFERENCES document_versions ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, file_hash) REFERENCES originals
);

CREATE INDEX version_originals_by_hash ON version_originals (tenant_id, file_hash);
