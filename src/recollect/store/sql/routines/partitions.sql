-- Partitions by time of tables that only ever grow. Each partition's name says what it covers, in hours of UTC:
-- audit_2026110100_2026120100. A table has a default partition, so that writing never waits for one to be made.

CREATE OR REPLACE FUNCTION time_partitions(p_table text)
RETURNS TABLE (name text, first timestamptz, past timestamptz)
LANGUAGE sql STABLE AS $$
    SELECT c.relname::text,
           to_timestamp(split_part(right(c.relname, 21), '_', 1), 'YYYYMMDDHH24')::timestamp AT TIME ZONE 'UTC',
           to_timestamp(right(c.relname, 10), 'YYYYMMDDHH24')::timestamp AT TIME ZONE 'UTC'
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = to_regclass(p_table) AND c.relname ~ '_[0-9]{10}_[0-9]{10}$'
$$;

-- Makes the partitions from now on, so many beyond the present one, and those of the past that rows wait for in the
-- default partition; what is there already stays as it is, of whatever length. Returns how many were made.
-- p_unit: hour, day, week or month. p_column: the time that the table is partitioned by.
CREATE OR REPLACE FUNCTION make_time_partitions(p_table text, p_unit text, p_ahead int, p_column text DEFAULT 'at')
RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    step CONSTANT interval := ('1 ' || p_unit)::interval;
    present CONSTANT timestamp := date_trunc(p_unit, now() AT TIME ZONE 'UTC');
    start timestamp;
    finish timestamp;
    covered timestamptz;
    wanted boolean;
    part text;
    made int := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('recollect.partitions'), hashtext(p_table));
    EXECUTE format('SELECT date_trunc(%L, min(%I) AT TIME ZONE ''UTC'') FROM %I', p_unit, p_column, p_table || '_default')
        INTO start;
    start := least(start, present);
    WHILE start < present + (p_ahead + 1) * step LOOP
        SELECT t.past INTO covered FROM time_partitions(p_table) t
            WHERE t.first <= start AT TIME ZONE 'UTC' AND t.past > start AT TIME ZONE 'UTC';
        IF FOUND THEN
            start := covered AT TIME ZONE 'UTC';
            CONTINUE;
        END IF;
        SELECT least(date_trunc(p_unit, start) + step, min(t.first) AT TIME ZONE 'UTC') INTO finish
            FROM time_partitions(p_table) t WHERE t.first > start AT TIME ZONE 'UTC';
        EXECUTE format('SELECT EXISTS (SELECT FROM %I WHERE %I >= $1 AND %2$I < $2)', p_table || '_default', p_column)
            INTO wanted USING start AT TIME ZONE 'UTC', finish AT TIME ZONE 'UTC';
        IF wanted OR finish > present THEN
            -- What is written meanwhile would come to the default partition, after its rows were moved out of it.
            EXECUTE format('LOCK TABLE %I IN SHARE ROW EXCLUSIVE MODE', p_table);
            part := format('%s_%s_%s', p_table, to_char(start, 'YYYYMMDDHH24'), to_char(finish, 'YYYYMMDDHH24'));
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', part, p_table);
            EXECUTE format('WITH moved AS (DELETE FROM %I WHERE %I >= $1 AND %2$I < $2 RETURNING *)
                            INSERT INTO %3$I SELECT * FROM moved', p_table || '_default', p_column, part)
                USING start AT TIME ZONE 'UTC', finish AT TIME ZONE 'UTC';
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', p_table, part,
                           start AT TIME ZONE 'UTC', finish AT TIME ZONE 'UTC');
            made := made + 1;
        END IF;
        start := finish;
    END LOOP;
    IF made > 0 THEN
        PERFORM forget_content_statistics();
    END IF;
    RETURN made;
END
$$;

-- Drops the partitions that end before a moment, whole, and deletes what is older from the default one.
CREATE OR REPLACE FUNCTION drop_time_partitions(p_table text, p_before timestamptz, p_column text DEFAULT 'at')
RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
    part text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('recollect.partitions'), hashtext(p_table));
    FOR part IN SELECT t.name FROM time_partitions(p_table) t WHERE t.past <= p_before ORDER BY t.first LOOP
        EXECUTE format('DROP TABLE %I', part);
        RETURN NEXT part;
    END LOOP;
    EXECUTE format('DELETE FROM %I WHERE %I < $1', p_table || '_default', p_column) USING p_before;
END
$$;
