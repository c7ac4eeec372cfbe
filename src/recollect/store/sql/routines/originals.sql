-- An original goes with the last version that has it, the last job that is to read it and the last file that was sent to be
-- kept: whatever removes versions (an erasure, a collection or a session that is deleted, a session that is full), jobs or
-- files removes what only they had.

CREATE OR REPLACE FUNCTION drop_lone_originals() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    -- The erasure of a tenant removes every table's rows itself, and counts them.
    IF NOT EXISTS (SELECT FROM recollect.tenants t JOIN gone g USING (tenant_id) WHERE t.status = 'active') THEN
        RETURN NULL;
    END IF;
    -- Whoever stores the same bytes holds the row until their version is there, which the statement behind the lock sees.
    PERFORM FROM recollect.originals o
        WHERE (o.tenant_id, o.file_hash) IN (SELECT g.tenant_id, g.file_hash FROM gone g)
        ORDER BY o.tenant_id, o.file_hash FOR UPDATE;
    DELETE FROM recollect.originals o
        WHERE (o.tenant_id, o.file_hash) IN (SELECT g.tenant_id, g.file_hash FROM gone g)
          AND NOT EXISTS (SELECT FROM recollect.version_originals v
                          WHERE v.tenant_id = o.tenant_id AND v.file_hash = o.file_hash)
          AND NOT EXISTS (SELECT FROM recollect.job_uploads u
                          WHERE u.tenant_id = o.tenant_id AND u.file_hash = o.file_hash)
          AND NOT EXISTS (SELECT FROM recollect.uploaded_files f
                          WHERE f.tenant_id = o.tenant_id AND f.file_hash = o.file_hash);
    RETURN NULL;
END
$$;

DO $triggers$
BEGIN
    -- A store that is brought up to date step by step does not have the table before its migration.
    IF to_regclass('recollect.version_originals') IS NOT NULL THEN
        CREATE OR REPLACE TRIGGER version_originals_deleted AFTER DELETE ON version_originals
            REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION drop_lone_originals();
        CREATE OR REPLACE TRIGGER version_originals_replaced AFTER UPDATE ON version_originals
            REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION drop_lone_originals();
    END IF;
    IF to_regclass('recollect.job_uploads') IS NOT NULL THEN
        CREATE OR REPLACE TRIGGER job_uploads_deleted AFTER DELETE ON job_uploads
            REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION drop_lone_originals();
    END IF;
    IF to_regclass('recollect.uploaded_files') IS NOT NULL THEN
        CREATE OR REPLACE TRIGGER uploaded_files_deleted AFTER DELETE ON uploaded_files
            REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION drop_lone_originals();
    END IF;
END
$triggers$;
