-- The planner's statistics hold samples of columns: whole values, also of rows that are gone since, until a later ANALYZE
-- of a table that is not empty. So nothing is sampled of what documents and conversations say; sizes of tables,
-- and statistics of numbers and times, are what plans need. Lexemes, which are hashes, are the exception: how common a
-- word is decides how it is looked for. An erasure takes their sample anew.

-- Columns that may hold content, indexed expressions included, and whether something is sampled of them now.
CREATE OR REPLACE FUNCTION content_columns()
RETURNS TABLE (relation regclass, name text, number smallint, is_index boolean, target int, is_sampled boolean)
LANGUAGE sql STABLE AS $$
    SELECT c.oid::regclass, a.attname::text, a.attnum, c.relkind = 'i', coalesce(a.attstattarget, -1)::int,
           EXISTS (SELECT FROM pg_stats s
                   WHERE s.schemaname = 'recollect' AND s.tablename = c.relname AND s.attname = a.attname)
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relnamespace = 'recollect'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
      AND (c.relkind IN ('r', 'p') OR c.relkind = 'i' AND (
          SELECT i.indkey[a.attnum - 1] = 0 FROM pg_index i WHERE i.indexrelid = c.oid))
      AND a.atttypid <> ALL ('{bool, int2, int4, int8, float4, float8, date, timestamptz}'::regtype[])
      AND a.attname <> 'lexemes'
$$;

-- Forgets what is sampled of a column. Before 18, only a superuser may do so directly; changing a column's type to what it
-- is does it too, except where another column is computed from it.
CREATE OR REPLACE FUNCTION forget_statistics(p_relation regclass, p_column text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    kind text;
BEGIN
    IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        DELETE FROM pg_statistic s USING pg_attribute a
            WHERE s.starelid = p_relation AND a.attrelid = p_relation AND a.attname = p_column
              AND s.staattnum = a.attnum;
    ELSIF current_setting('server_version_num')::int >= 180000 THEN
        EXECUTE 'SELECT pg_clear_attribute_stats(''recollect'', c.relname::text, $2, inherited)
                 FROM pg_class c, unnest(ARRAY[true, false]) AS inherited WHERE c.oid = $1' USING p_relation, p_column;
    ELSE
        SELECT format_type(a.atttypid, a.atttypmod) INTO kind FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
            WHERE a.attrelid = p_relation AND a.attname = p_column AND c.relkind = 'r' AND NOT c.relispartition;
        IF FOUND THEN
            EXECUTE format('ALTER TABLE %s ALTER COLUMN %I TYPE %s', p_relation, p_column, kind);
        END IF;
    END IF;
EXCEPTION
    WHEN feature_not_supported THEN NULL; -- an erasure looks for what is left, and says so
END
$$;

-- Sees to it that nothing of content is sampled, in tables, partitions and indexes that were made since as well.
CREATE OR REPLACE FUNCTION forget_content_statistics() RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    part record;
BEGIN
    -- First, because changing a column's type makes the indexes on it anew, under other numbers.
    FOR part IN SELECT * FROM content_columns() WHERE is_sampled LOOP
        IF EXISTS (SELECT FROM pg_class c WHERE c.oid = part.relation) THEN
            PERFORM forget_statistics(part.relation, part.name);
        END IF;
    END LOOP;
    FOR part IN SELECT * FROM content_columns() WHERE target <> 0 LOOP
        IF part.is_index THEN
            EXECUTE format('ALTER INDEX %s ALTER COLUMN %s SET STATISTICS 0', part.relation, part.number);
        ELSE
            EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS 0', part.relation, part.name);
        END IF;
    END LOOP;
END
$$;

-- The sample of lexemes anew, without those of rows that are gone. Where the table is empty ANALYZE would leave the old
-- one; where an index is being built on it, this is left to the next time.
CREATE OR REPLACE FUNCTION sample_lexemes_anew() RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    part text;
    filled boolean;
BEGIN
    -- One at a time: ANALYZE fails where the row that it writes is removed meanwhile, which is what happens next here.
    PERFORM pg_advisory_xact_lock(hashtext('recollect.lexemes'), 0);
    FOREACH part IN ARRAY '{chunk_lexical, episode_lexical, fact_index}'::text[] LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %I)', part) INTO filled;
        -- Otherwise the indexes of a table with rows would be made anew for it, and ANALYZE replaces the sample anyway.
        IF NOT filled OR current_setting('server_version_num')::int >= 180000
           OR (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
            PERFORM forget_statistics(part::regclass, 'lexemes');
        END IF;
        EXECUTE format('ANALYZE (SKIP_LOCKED) %I (lexemes)', part);
    END LOOP;
END
$$;

SELECT forget_content_statistics();
