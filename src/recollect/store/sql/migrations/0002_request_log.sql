-- What is asked of providers of models: figures, never contents. No foreign key: what was paid for outlives its tenant's
-- documents, and goes with the tenant. Partitioned by time like the audit.
CREATE SEQUENCE request_numbers;

CREATE TABLE request_log (
    tenant_id        int         NOT NULL,
    at               timestamptz NOT NULL DEFAULT clock_timestamp(),
    request_id       bigint      NOT NULL DEFAULT nextval('request_numbers'),
    kind             text        NOT NULL CHECK (kind IN ('embed', 'rerank', 'answer')),
    provider         text        NOT NULL,
    model            text        NOT NULL,
    inputs           int         NOT NULL CHECK (inputs >= 0),
    input_tokens     bigint      NOT NULL CHECK (input_tokens >= 0),
    output_tokens    bigint      NOT NULL CHECK (output_tokens >= 0),
    tokens_estimated boolean     NOT NULL,
    attempts         int         NOT NULL CHECK (attempts >= 0),
    milliseconds     real        NOT NULL CHECK (milliseconds >= 0),
    error            text,       -- its kind; NULL: it succeeded
    status           smallint,   -- of HTTP, where a failure had one
    cost             double precision, -- NULL: unknown
    PRIMARY KEY (tenant_id, at, request_id)
) PARTITION BY RANGE (at);

ALTER SEQUENCE request_numbers OWNED BY request_log.request_id;

CREATE TABLE request_log_default PARTITION OF request_log DEFAULT;
