-- Which versions each revision of a collection changed (collection_changes), whatever statement changed them.

-- Notes the versions of a statement. Of a collection that is being deleted there is nothing to follow.
CREATE OR REPLACE FUNCTION note_changed_versions() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN -- a document may have moved to another collection
        INSERT INTO recollect.collection_changes (tenant_id, collection_id, version_ids)
        SELECT c.tenant_id, c.collection_id, array_agg(v.version_id)
        FROM (SELECT tenant_id, collection_id, version_id FROM former
              UNION SELECT tenant_id, collection_id, version_id FROM touched) v
        JOIN recollect.collections c USING (tenant_id, collection_id)
        GROUP BY c.tenant_id, c.collection_id ORDER BY c.tenant_id, c.collection_id;
    ELSE
        INSERT INTO recollect.collection_changes (tenant_id, collection_id, version_ids)
        SELECT c.tenant_id, c.collection_id, array_agg(v.version_id)
        FROM touched v JOIN recollect.collections c USING (tenant_id, collection_id)
        GROUP BY c.tenant_id, c.collection_id ORDER BY c.tenant_id, c.collection_id;
    END IF;
    RETURN NULL;
END
$$;

-- Gives what the transaction has noted the revision that begins. Its row is locked until the transaction ends, so revisions
-- follow one another as transactions do.
CREATE OR REPLACE FUNCTION begin_revision() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.revision_id := gen_random_uuid();
    UPDATE recollect.collection_changes SET revision = NEW.revision, follows = OLD.revision_id
        WHERE tenant_id = NEW.tenant_id AND collection_id = NEW.collection_id AND revision IS NULL;
    IF NOT FOUND THEN
        INSERT INTO recollect.collection_changes (tenant_id, collection_id, revision, follows, version_ids)
            VALUES (NEW.tenant_id, NEW.collection_id, NEW.revision, OLD.revision_id, '{}');
    END IF;
    -- Whoever is further behind reads the collection whole. Counted now and then, because it reads what is kept.
    IF NEW.revision % 256 = 0 THEN
        DELETE FROM recollect.collection_changes d
            WHERE d.tenant_id = NEW.tenant_id AND d.collection_id = NEW.collection_id AND d.revision <= (
                SELECT max(k.revision)
                FROM (SELECT c.revision, sum(1 + cardinality(c.version_ids)) OVER (ORDER BY c.revision DESC) AS later
                      FROM recollect.collection_changes c
                      WHERE c.tenant_id = NEW.tenant_id AND c.collection_id = NEW.collection_id) k
                WHERE k.later > 30000);
    END IF;
    RETURN NEW;
END
$$;

-- At the end of a transaction: a revision for what it has changed and given none.
CREATE OR REPLACE FUNCTION complete_revision() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM recollect.collection_changes c
               WHERE c.tenant_id = NEW.tenant_id AND c.collection_id = NEW.collection_id AND c.revision IS NULL) THEN
        UPDATE recollect.collection_state s SET revision = s.revision + 1
            WHERE s.tenant_id = NEW.tenant_id AND s.collection_id = NEW.collection_id;
    END IF;
    RETURN NULL;
END
$$;

DO $triggers$
BEGIN
    -- A store that is brought up to date step by step does not have the table before its migration.
    IF to_regclass('recollect.collection_changes') IS NOT NULL THEN
        CREATE OR REPLACE TRIGGER document_versions_inserted AFTER INSERT ON document_versions
            REFERENCING NEW TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION note_changed_versions();
        CREATE OR REPLACE TRIGGER document_versions_updated AFTER UPDATE ON document_versions
            REFERENCING OLD TABLE AS former NEW TABLE AS touched
            FOR EACH STATEMENT EXECUTE FUNCTION note_changed_versions();
        CREATE OR REPLACE TRIGGER document_versions_deleted AFTER DELETE ON document_versions
            REFERENCING OLD TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION note_changed_versions();
        CREATE OR REPLACE TRIGGER collection_state_revised BEFORE UPDATE OF revision ON collection_state
            FOR EACH ROW WHEN (NEW.revision <> OLD.revision) EXECUTE FUNCTION begin_revision();
        -- A constraint's trigger cannot be replaced.
        IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgname = 'collection_changes_completed' AND tgenabled = 'O') THEN
            DROP TRIGGER IF EXISTS collection_changes_completed ON collection_changes;
            CREATE CONSTRAINT TRIGGER collection_changes_completed AFTER INSERT ON collection_changes
                DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.revision IS NULL)
                EXECUTE FUNCTION complete_revision();
        END IF;
    END IF;
END
$triggers$;
