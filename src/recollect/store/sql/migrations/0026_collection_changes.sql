-- What each revision of a collection changed, so that a copy of it can follow: a row a statement that changed versions, and
-- at least one a revision. The newest are kept (routines/changes.sql).
CREATE TABLE collection_changes (
    tenant_id     int      NOT NULL,
    collection_id int      NOT NULL,
    revision      bigint,             -- that it belongs to; NULL: the transaction that writes it has not come so far
    follows       uuid,               -- the revision_id of the revision before
    version_ids   bigint[] NOT NULL,  -- 0 among them: statistics of terms were counted
    FOREIGN KEY (tenant_id, collection_id) REFERENCES collections ON DELETE CASCADE
);
CREATE INDEX collection_changes_by_revision ON collection_changes (tenant_id, collection_id, revision);
-- A revision's number is given again where its transaction was lost: by a crash without synchronous commits, a promotion, a
-- restore. This is not.
ALTER TABLE collection_state ADD COLUMN revision_id uuid NOT NULL DEFAULT gen_random_uuid();
ALTER TABLE collection_changes
    ALTER COLUMN follows SET STATISTICS 0,
    ALTER COLUMN version_ids SET STATISTICS 0;
ALTER TABLE collection_state ALTER COLUMN revision_id SET STATISTICS 0;
