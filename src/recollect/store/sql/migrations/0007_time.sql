-- Time: documents that expire, and a record of what was done to documents.

-- When the next current version of the collection expires, or earlier: one look at this row, which every search reads
-- anyway, tells whether anything has to be closed first. Writers lower it, closing computes it anew.
ALTER TABLE collection_state ADD COLUMN next_expiry timestamptz NOT NULL DEFAULT 'infinity';

CREATE INDEX document_versions_expiring ON document_versions (tenant_id, collection_id, expires_at)
    WHERE known_to = 'infinity' AND expires_at < 'infinity';

UPDATE collection_state s SET next_expiry = coalesce(
    (SELECT min(v.expires_at) FROM document_versions v
     WHERE v.tenant_id = s.tenant_id AND v.collection_id = s.collection_id AND v.known_to = 'infinity'
       AND v.expires_at < 'infinity'), 'infinity');

-- What was done, when and by whom; never what a document said. No foreign key: a receipt outlives its tenant.
-- Partitioned by time, so that what is past its retention is dropped whole (routines/partitions.sql makes and drops the
-- partitions). What no partition was made for goes to the default one, and moves out of it when one is made.
CREATE SEQUENCE audit_numbers;

CREATE TABLE audit (
    tenant_id int         NOT NULL,
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    audit_id  bigint      NOT NULL DEFAULT nextval('audit_numbers'),
    action    text        NOT NULL, -- erase, restore, …
    actor     text        NOT NULL,
    details   jsonb       NOT NULL DEFAULT '{}',
    PRIMARY KEY (tenant_id, at, audit_id)
) PARTITION BY RANGE (at);

ALTER SEQUENCE audit_numbers OWNED BY audit.audit_id;

CREATE TABLE audit_default PARTITION OF audit DEFAULT;
