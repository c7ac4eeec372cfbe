-- Sources that are refreshed: where they are, how they are read, and how far. Secrets are named, never stored.
CREATE TABLE source_connections (
    tenant_id        int         NOT NULL,
    source_id        bigint      NOT NULL,
    connector        text        NOT NULL,
    location         text        NOT NULL,
    settings         jsonb       NOT NULL DEFAULT '{}',
    interval_seconds float8      CHECK (interval_seconds > 0), -- NULL: refreshed when somebody asks
    cursor           text,                                     -- the connector's; NULL: from the beginning
    listing          bigint      NOT NULL DEFAULT 0,           -- the number of the listing that runs, or ran last
    state            text        NOT NULL DEFAULT 'new' CHECK (state IN ('new', 'refreshing', 'fresh', 'error')),
    problem          text,
    began_at         timestamptz,
    refreshed_at     timestamptz,                              -- when it was last read to its end
    PRIMARY KEY (tenant_id, source_id),
    FOREIGN KEY (tenant_id, source_id) REFERENCES sources ON DELETE CASCADE
);

-- What such a source named: what of it need not be fetched again, and what was not named any more.
CREATE TABLE source_items (
    tenant_id   int     NOT NULL,
    source_id   bigint  NOT NULL,
    uri         text    NOT NULL,
    document_id bigint,                     -- NULL: it could not be stored
    revision    text    NOT NULL,
    fingerprint text    NOT NULL,           -- of what else its version depends on
    grants      text[],                     -- as the source said last; NULL: it says nothing
    problem     text,                       -- why it could not be stored
    listing     bigint  NOT NULL,           -- that named it last
    gone        boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant_id, source_id, uri),
    FOREIGN KEY (tenant_id, source_id) REFERENCES source_connections ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, document_id) REFERENCES documents ON DELETE CASCADE
);

CREATE INDEX source_items_by_document ON source_items (tenant_id, document_id);
