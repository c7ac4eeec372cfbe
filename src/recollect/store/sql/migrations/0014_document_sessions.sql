-- Sessions with documents of their own: each has a collection that is hidden from everybody but the session, and goes
-- with it, so that nothing of it is left anywhere.

ALTER TABLE collections ADD COLUMN hidden boolean NOT NULL DEFAULT false;

CREATE TABLE document_sessions (
    tenant_id     int         NOT NULL,
    collection_id int         NOT NULL,
    name          text        NOT NULL CHECK (name <> ''),      -- the caller's id
    owner         text        CHECK (owner <> ''),              -- the user who created it, where there was one
    ttl_seconds   float8      CHECK (ttl_seconds > 0),          -- none: until it is ended
    max_documents int         NOT NULL CHECK (max_documents > 0),
    when_full     text        NOT NULL CHECK (when_full IN ('error', 'oldest')),
    auto_cleanup  boolean     NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at    timestamptz NOT NULL DEFAULT 'infinity',
    PRIMARY KEY (tenant_id, collection_id),
    UNIQUE (tenant_id, name),
    FOREIGN KEY (tenant_id, collection_id) REFERENCES collections ON DELETE CASCADE
);

CREATE INDEX document_sessions_by_expiry ON document_sessions (tenant_id, expires_at);
