-- How much each credential has asked for lately, as the moment at which it will have had its due (GCRA): one row a bucket,
-- whoever serves it. Nothing is lost that a minute would not have forgotten, so nothing of it is logged.
CREATE UNLOGGED TABLE rate_limits (
    tenant_id  int    NOT NULL,
    bucket     text   NOT NULL,  -- a credential and a kind of request, or the tenant's own
    due        float8 NOT NULL,  -- seconds since 1970
    PRIMARY KEY (tenant_id, bucket)
) WITH (fillfactor = 50);

-- What a tenant has uploaded, a row a day.
CREATE TABLE uploads (
    tenant_id int    NOT NULL REFERENCES tenants,
    day       date   NOT NULL,
    bytes     bigint NOT NULL CHECK (bytes >= 0),
    PRIMARY KEY (tenant_id, day)
);

-- Writes that a client may send again without knowing whether the first one came through.
CREATE TABLE idempotent_requests (
    tenant_id       int         NOT NULL REFERENCES tenants,
    credential      text        NOT NULL,
    idempotency_key text        NOT NULL CHECK (idempotency_key <> ''),
    request_hash    bytea       NOT NULL CHECK (octet_length(request_hash) = 32), -- of the method, the path and the body
    run             uuid        NOT NULL DEFAULT gen_random_uuid(),
    status          smallint,   -- of the reply; NULL: the first request is under way
    headers         jsonb,
    body            bytea,      -- NULL: it was not kept, or was removed with what was erased
    began_at        timestamptz NOT NULL DEFAULT now(),
    expires_at      timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, credential, idempotency_key)
);

CREATE INDEX idempotent_requests_ended ON idempotent_requests (tenant_id, expires_at);

-- Who asked what, and which documents were shown to whom. Partitioned by time like the audit, whose chain holds a hash of
-- each batch of these.
CREATE SEQUENCE access_numbers;

CREATE TABLE access_log (
    tenant_id     int         NOT NULL,
    at            timestamptz NOT NULL,
    access_id     bigint      NOT NULL DEFAULT nextval('access_numbers'),
    actor         text        NOT NULL CHECK (actor <> ''),
    action        text        NOT NULL CHECK (action <> ''), -- search, ask, read, …
    request_id    text,
    question      text,        -- NULL: it was not kept, or is past its retention
    question_hash bytea,       -- keyed with the tenant's salt, so that nobody can try questions against it
    documents     bigint[]    NOT NULL DEFAULT '{}',
    versions      bigint[]    NOT NULL DEFAULT '{}', -- of each of them
    PRIMARY KEY (tenant_id, at, access_id)
) PARTITION BY RANGE (at);

ALTER SEQUENCE access_numbers OWNED BY access_log.access_id;

CREATE INDEX access_log_documents ON access_log USING gin (documents);
CREATE INDEX access_log_questions ON access_log (tenant_id, at) WHERE question IS NOT NULL;

CREATE TABLE access_log_default PARTITION OF access_log DEFAULT;
