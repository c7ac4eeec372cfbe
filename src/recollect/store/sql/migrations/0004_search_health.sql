-- How searches fare, by collection and day: what the caches answered, and how much of the exact result a sample of
-- approximate searches found. Counts and sums only: neither queries nor results are kept.

CREATE TABLE search_health (
    tenant_id        int              NOT NULL,
    collection_id    int              NOT NULL,
    day              date             NOT NULL, -- UTC
    result_hits      bigint           NOT NULL DEFAULT 0,
    result_misses    bigint           NOT NULL DEFAULT 0,
    embedding_hits   bigint           NOT NULL DEFAULT 0, -- of queries
    embedding_misses bigint           NOT NULL DEFAULT 0,
    probes           bigint           NOT NULL DEFAULT 0,
    dense_probes     bigint           NOT NULL DEFAULT 0,
    dense_recall     double precision NOT NULL DEFAULT 0, -- their sum
    dense_worst      real,
    lexical_probes   bigint           NOT NULL DEFAULT 0,
    lexical_recall   double precision NOT NULL DEFAULT 0,
    lexical_worst    real,
    last_probe       timestamptz,
    PRIMARY KEY (tenant_id, collection_id, day),
    FOREIGN KEY (tenant_id, collection_id) REFERENCES collections ON DELETE CASCADE
) WITH (fillfactor = 70); -- its few rows are updated all the time
