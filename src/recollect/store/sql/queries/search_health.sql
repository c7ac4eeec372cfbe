-- unhurried: a count that a crash loses is no loss, and nobody waits long for a lock
SELECT set_config('synchronous_commit', 'off', true), set_config('lock_timeout', '1s', true)

-- add: what happened today; nothing where the collection is gone, or going
INSERT INTO search_health AS h (
    tenant_id, collection_id, day, result_hits, result_misses, embedding_hits, embedding_misses, probes,
    dense_probes, dense_recall, dense_worst, lexical_probes, lexical_recall, lexical_worst, last_probe)
SELECT c.tenant_id, c.collection_id, (now() AT TIME ZONE 'UTC')::date,
       %(result_hits)s, %(result_misses)s, %(embedding_hits)s, %(embedding_misses)s, %(probes)s::bigint,
       %(dense_probes)s, %(dense_recall)s, %(dense_worst)s::real,
       %(lexical_probes)s, %(lexical_recall)s, %(lexical_worst)s::real,
       CASE WHEN %(probes)s::bigint > 0 THEN now() END
FROM collections c
WHERE c.tenant_id = %(tenant_id)s AND c.collection_id = %(collection_id)s
FOR KEY SHARE OF c SKIP LOCKED
ON CONFLICT (tenant_id, collection_id, day) DO UPDATE SET
    result_hits = h.result_hits + excluded.result_hits,
    result_misses = h.result_misses + excluded.result_misses,
    embedding_hits = h.embedding_hits + excluded.embedding_hits,
    embedding_misses = h.embedding_misses + excluded.embedding_misses,
    probes = h.probes + excluded.probes,
    dense_probes = h.dense_probes + excluded.dense_probes,
    dense_recall = h.dense_recall + excluded.dense_recall,
    dense_worst = least(h.dense_worst, excluded.dense_worst),
    lexical_probes = h.lexical_probes + excluded.lexical_probes,
    lexical_recall = h.lexical_recall + excluded.lexical_recall,
    lexical_worst = least(h.lexical_worst, excluded.lexical_worst),
    last_probe = greatest(h.last_probe, excluded.last_probe)

-- forget: days that are too long ago
DELETE FROM search_health
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s
  AND day <= (now() AT TIME ZONE 'UTC')::date - %(days)s::int

-- recent: the last days of every collection that was searched
SELECT collection_id, sum(result_hits)::bigint AS result_hits, sum(result_misses)::bigint AS result_misses,
       sum(embedding_hits)::bigint AS embedding_hits, sum(embedding_misses)::bigint AS embedding_misses,
       sum(probes)::bigint AS probes, sum(dense_probes)::bigint AS dense_probes, sum(lexical_probes)::bigint AS lexical_probes,
       sum(dense_recall) / nullif(sum(dense_probes), 0) AS recall_dense, min(dense_worst) AS recall_dense_worst,
       sum(lexical_recall) / nullif(sum(lexical_probes), 0) AS recall_lexical, min(lexical_worst) AS recall_lexical_worst,
       max(last_probe) AS last_probe
FROM search_health
WHERE tenant_id = %(tenant_id)s AND day > (now() AT TIME ZONE 'UTC')::date - %(days)s::int
GROUP BY collection_id

-- passages: a chunk of each of some current versions, drawn at random
SELECT c.text FROM (
    SELECT v.version_id, floor(random() * v.chunk_count)::int AS position FROM document_versions v
    WHERE v.tenant_id = %(tenant_id)s AND v.collection_id = %(collection_id)s AND v.known_to = 'infinity' AND v.chunk_count > 0
    ORDER BY random() LIMIT %(count)s) drawn
JOIN chunks c ON c.tenant_id = %(tenant_id)s AND c.version_id = drawn.version_id AND c.position = drawn.position
