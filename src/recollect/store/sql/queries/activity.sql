-- add: to what was counted within the same minutes; in one order, so that no two wait for each other
INSERT INTO activity AS a (tenant_id, at, name, label, count, total, histogram)
SELECT %(tenant_id)s, e.at, e.name, e.label, e.count, e.total, e.histogram
FROM jsonb_to_recordset(%(entries)s) AS e (at timestamptz, name text, label text, count bigint, total float8, histogram int[])
ORDER BY e.name, e.at, e.label
ON CONFLICT (tenant_id, name, at, label) DO UPDATE SET
    count = a.count + excluded.count,
    total = a.total + excluded.total,
    histogram = ARRAY(SELECT coalesce(u.old, 0) + coalesce(u.new, 0)
                      FROM unnest(a.histogram, excluded.histogram) WITH ORDINALITY AS u (old, new, step) ORDER BY u.step)

-- series: what was counted, by whiles of so many seconds
WITH found AS (
    SELECT date_bin(make_interval(secs => %(seconds)s), at, %(since)s) AS bin, name, label, count, total, histogram
    FROM activity WHERE tenant_id = %(tenant_id)s AND at >= %(since)s AND at < %(until)s),
timed AS (
    SELECT s.bin, s.name, s.label, jsonb_object_agg(s.step - 1, s.count) AS histogram
    FROM (SELECT f.bin, f.name, f.label, u.step, sum(u.count) AS count
          FROM found f, unnest(f.histogram) WITH ORDINALITY AS u (count, step)
          WHERE u.count > 0 GROUP BY f.bin, f.name, f.label, u.step) s
    GROUP BY s.bin, s.name, s.label)
SELECT f.bin, f.name, f.label, sum(f.count)::bigint, sum(f.total), t.histogram
FROM found f LEFT JOIN timed t USING (bin, name, label)
GROUP BY f.bin, f.name, f.label, t.histogram ORDER BY f.bin, f.name, f.label

-- fold: minutes of more than a day ago become hours
WITH old AS (
    DELETE FROM activity
    WHERE tenant_id = %(tenant_id)s AND at < now() - interval '1 day' AND at <> date_trunc('hour', at, 'UTC')
    RETURNING date_trunc('hour', at, 'UTC') AS hour, name, label, count, total, histogram),
steps AS (
    SELECT o.hour, o.name, o.label, u.step, sum(u.count)::int AS count
    FROM old o, unnest(o.histogram) WITH ORDINALITY AS u (count, step) GROUP BY o.hour, o.name, o.label, u.step),
timed AS (
    SELECT hour, name, label, array_agg(count ORDER BY step) AS histogram FROM steps GROUP BY hour, name, label)
INSERT INTO activity AS a (tenant_id, at, name, label, count, total, histogram)
SELECT %(tenant_id)s, o.hour, o.name, o.label, sum(o.count), sum(o.total), coalesce(t.histogram, '{}')
FROM old o LEFT JOIN timed t USING (hour, name, label) GROUP BY o.hour, o.name, o.label, t.histogram
ON CONFLICT (tenant_id, name, at, label) DO UPDATE SET
    count = a.count + excluded.count,
    total = a.total + excluded.total,
    histogram = ARRAY(SELECT coalesce(u.old, 0) + coalesce(u.new, 0)
                      FROM unnest(a.histogram, excluded.histogram) WITH ORDINALITY AS u (old, new, step) ORDER BY u.step)

-- forget: what is too long ago
DELETE FROM activity WHERE tenant_id = %(tenant_id)s AND at < now() - make_interval(days => %(days)s)

-- database_bytes: of the whole store
SELECT pg_database_size(current_database())

-- requests: to providers of models, by whiles of so many seconds
SELECT date_bin(make_interval(secs => %(seconds)s), at, %(since)s), count(*), count(error),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY milliseconds) FILTER (WHERE error IS NULL),
       percentile_cont(0.95) WITHIN GROUP (ORDER BY milliseconds) FILTER (WHERE error IS NULL),
       percentile_cont(0.99) WITHIN GROUP (ORDER BY milliseconds) FILTER (WHERE error IS NULL),
       sum(input_tokens)::bigint, sum(output_tokens)::bigint, sum(cost)
FROM request_log
WHERE tenant_id = %(tenant_id)s AND at >= %(since)s AND at < %(until)s AND (%(kind)s::text IS NULL OR kind = %(kind)s)
GROUP BY 1 ORDER BY 1

-- jobs: that ended, by whiles of so many seconds
SELECT date_bin(make_interval(secs => %(seconds)s), finished_at, %(since)s), status, count(*)
FROM jobs
WHERE tenant_id = %(tenant_id)s AND finished_at >= %(since)s AND finished_at < %(until)s
  AND (%(everybodys)s OR asked_by = %(user)s)
GROUP BY 1, 2 ORDER BY 1, 2

-- recall: what approximate searches found of the exact result, by day
SELECT day, sum(dense_probes)::bigint, sum(dense_recall), sum(lexical_probes)::bigint, sum(lexical_recall)
FROM search_health WHERE tenant_id = %(tenant_id)s GROUP BY day ORDER BY day

-- feedback: on what contexts showed, since it was last reset
SELECT coalesce(sum(documents_helpful + memory_helpful), 0)::bigint, coalesce(sum(documents_not + memory_not), 0)::bigint
FROM context_feedback WHERE tenant_id = %(tenant_id)s

-- sizes: of the tables of the whole store with their indexes, the largest first; partitions count as their table
SELECT split_part(regexp_replace(c.relname, '_([0-9]{10}_[0-9]{10}|default)$', ''), '.', 1), sum(pg_table_size(c.oid))::bigint,
       sum(pg_indexes_size(c.oid))::bigint
FROM pg_class c WHERE c.relnamespace = 'recollect'::regnamespace AND c.relkind = 'r'
GROUP BY 1 ORDER BY sum(pg_total_relation_size(c.oid)) DESC LIMIT 12

-- expiring: current documents that expire soon; a condition follows
SELECT v.document_id, v.title, d.uri, v.expires_at
FROM document_versions v JOIN documents d USING (tenant_id, document_id)
WHERE v.tenant_id = %(tenant_id)s AND v.known_to = 'infinity' AND v.expires_at >= now()
  AND v.expires_at < now() + make_interval(days => %(days)s)

-- expiring_end: the end of expiring
ORDER BY v.expires_at, v.document_id LIMIT %(limit)s

-- unanswered: questions that nothing answers, the most frequent first
SELECT question, left(encode(question_hash, 'hex'), 12),
       coalesce(max(outcome) FILTER (WHERE outcome IN ('passages', 'refused')), max(outcome)),
       array_agg(DISTINCT split_part(action, '/', 2)) FILTER (WHERE outcome IN ('passages', 'refused')),
       greatest(count(*) FILTER (WHERE outcome IN ('passages', 'refused')),
                count(*) FILTER (WHERE outcome NOT IN ('passages', 'refused'))) AS times,
       max(at)
FROM access_log
WHERE tenant_id = %(tenant_id)s AND outcome IS NOT NULL AND at >= %(since)s AND at < %(until)s
GROUP BY question, question_hash ORDER BY times DESC, max(at) DESC LIMIT %(limit)s
