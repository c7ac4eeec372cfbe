-- What people say of the passages they were shown, counted: weights follow from the counts, and from nothing else.

CREATE TABLE context_feedback (
    tenant_id         int         NOT NULL REFERENCES tenants,
    session_id        bigint,     -- on contexts of this conversation; none: of no conversation in particular
    documents_helpful bigint      NOT NULL DEFAULT 0 CHECK (documents_helpful >= 0),
    documents_not     bigint      NOT NULL DEFAULT 0 CHECK (documents_not >= 0),
    memory_helpful    bigint      NOT NULL DEFAULT 0 CHECK (memory_helpful >= 0),
    memory_not        bigint      NOT NULL DEFAULT 0 CHECK (memory_not >= 0),
    updated_at        timestamptz NOT NULL DEFAULT now(),
    UNIQUE NULLS NOT DISTINCT (tenant_id, session_id),
    FOREIGN KEY (tenant_id, session_id) REFERENCES sessions ON DELETE CASCADE
);
