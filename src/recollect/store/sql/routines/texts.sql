-- A text goes with the last version that has it, whatever removes the versions (an erasure, a collection or a session that is
-- deleted, a session that is full) or gives them another text.

CREATE OR REPLACE FUNCTION drop_lone_texts() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    -- The erasure of a tenant removes every table's rows itself, and counts them.
    IF NOT EXISTS (SELECT FROM recollect.tenants t JOIN gone g USING (tenant_id) WHERE t.status = 'active') THEN
        RETURN NULL;
    END IF;
    -- Whoever stores the same text holds the row until their version is there, which the statement behind the lock sees.
    PERFORM FROM recollect.texts t
        WHERE (t.tenant_id, t.text_hash) IN (SELECT g.tenant_id, g.text_hash FROM gone g)
        ORDER BY t.tenant_id, t.text_hash FOR UPDATE;
    DELETE FROM recollect.texts t
        WHERE (t.tenant_id, t.text_hash) IN (SELECT g.tenant_id, g.text_hash FROM gone g)
          AND NOT EXISTS (SELECT FROM recollect.document_contents c
                          WHERE c.tenant_id = t.tenant_id AND c.text_hash = t.text_hash);
    RETURN NULL;
END
$$;

DO $triggers$
BEGIN
    -- A store that is brought up to date step by step does not have the table before its migration.
    IF to_regclass('recollect.texts') IS NOT NULL THEN
        CREATE OR REPLACE TRIGGER document_contents_deleted AFTER DELETE ON document_contents
            REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION drop_lone_texts();
        CREATE OR REPLACE TRIGGER document_contents_replaced AFTER UPDATE ON document_contents
            REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION drop_lone_texts();
    END IF;
END
$triggers$;
