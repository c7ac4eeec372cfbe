-- When what is done every so many hours was done last, so that of several processes one does it.
CREATE TABLE upkeep (
    tenant_id int         NOT NULL REFERENCES tenants ON DELETE CASCADE,
    task      text        NOT NULL,
    begun_at  timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, task)
);
