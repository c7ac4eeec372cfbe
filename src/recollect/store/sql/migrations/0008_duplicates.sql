-- What finds documents that say the same, or nearly so (ingest/sketches.py): equal bands are rare, but for texts that have
-- most of their words in common.
CREATE TABLE version_bands (
    tenant_id  int    NOT NULL,
    version_id bigint NOT NULL,
    band       int    NOT NULL,
    PRIMARY KEY (tenant_id, version_id, band),
    FOREIGN KEY (tenant_id, version_id) REFERENCES document_versions ON DELETE CASCADE
);

CREATE INDEX version_bands_by_band ON version_bands (tenant_id, band);
CREATE INDEX document_versions_by_content ON document_versions (tenant_id, content_hash);
