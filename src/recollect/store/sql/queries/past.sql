-- segments: the segments of a collection, whether each may hold rows known at a moment, and whether any version had
-- expired then and is known as of it nevertheless, because it was closed later or will be; one row at least
SELECT lapsed.any, s.closed_from::text, s.closed_before::text, s.chunk_count, s.begins, s.ends, s.closed_before > %(as_of)s
FROM (SELECT EXISTS (
          SELECT FROM document_versions v
          WHERE v.tenant_id = %(tenant_id)s AND v.collection_id = %(collection_id)s
            AND v.expires_at < v.known_to AND v.expires_at <= %(as_of)s AND v.known_to > %(as_of)s) AS any) lapsed
LEFT JOIN closed_row_segments s ON s.tenant_id = %(tenant_id)s AND s.collection_id = %(collection_id)s
ORDER BY s.closed_before

-- known_then: the versions known at a moment, by the part that they belong to: 0 for what is current still, 1, 2, … for
-- the ranges given of the time when they were closed; one more than a part's limit says that there are too many
(SELECT 0, v.version_id, v.chunk_count FROM document_versions v
 WHERE v.tenant_id = %(tenant_id)s AND v.collection_id = %(collection_id)s
   AND v.known_to = 'infinity' AND v.known_from <= %(as_of)s
 LIMIT %(few)s + 1)
UNION ALL
SELECT part.number::int, v.version_id, v.chunk_count
FROM unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[], %(limits)s::int[])
     WITH ORDINALITY AS part (first, past, most, number)
CROSS JOIN LATERAL (
    SELECT o.version_id, o.chunk_count FROM document_versions o
    WHERE o.tenant_id = %(tenant_id)s AND o.collection_id = %(collection_id)s
      AND o.known_to >= greatest(part.first, %(as_of)s) AND o.known_to < part.past
      AND o.known_to > %(as_of)s AND o.known_from <= %(as_of)s
    LIMIT part.most + 1) v

-- uncovered: chunks of closed versions that no segment holds
SELECT coalesce(sum(v.chunk_count), 0)::bigint
FROM (SELECT coalesce(max(s.closed_before), '-infinity') AS past FROM closed_row_segments s
      WHERE s.tenant_id = %(tenant_id)s AND s.collection_id = %(collection_id)s) last
LEFT JOIN document_versions v ON v.tenant_id = %(tenant_id)s AND v.collection_id = %(collection_id)s
      AND v.known_to >= last.past AND v.known_to < 'infinity'

-- last_segment: the newest segment
SELECT segment_id, closed_from::text, chunk_count FROM closed_row_segments
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s ORDER BY closed_before DESC LIMIT 1

-- covered_until: where the last segment ends
SELECT coalesce(max(closed_before), '-infinity')::text FROM closed_row_segments
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s

-- hold: keeps a collection from being deleted until the end of the transaction
SELECT collection_id FROM collections
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s FOR KEY SHARE

-- lock_state: whoever closes what has expired, as of a moment that may lie in a segment, does so before or after
SELECT FROM collection_state WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s FOR UPDATE

-- widen: versions were closed as of a moment that lies in segments, which may begin before all others of theirs
UPDATE closed_row_segments s SET begins[1] = least(s.begins[1], v.first)
FROM (SELECT min(extract(epoch FROM known_from))::float8 AS first, min(known_to) AS closed
      FROM document_versions WHERE tenant_id = %(tenant_id)s AND version_id = ANY (%(version_ids)s)) v
WHERE s.tenant_id = %(tenant_id)s AND s.collection_id = %(collection_id)s
  AND s.closed_before > v.closed AND (s.begins[1] > v.first) IS NOT FALSE

-- number: of a new segment, the moment that it ends at, and whether it begins before that: nobody who writes at present
-- closes a version before it
SELECT nextval(pg_get_serial_sequence('recollect.closed_row_segments', 'segment_id'))::int, past::text,
       past > %(first)s::timestamptz
FROM (SELECT least(clock_timestamp(), %(until)s::timestamptz,
                   (SELECT min(a.xact_start) FROM pg_stat_activity a
                    WHERE a.datname = current_database())) AS past) bound

-- add: a segment whose indexes are made, with what it holds
INSERT INTO closed_row_segments (tenant_id, collection_id, segment_id, closed_from, closed_before, chunk_count, begins, ends)
SELECT %(tenant_id)s, %(collection_id)s, %(segment_id)s, %(first)s::timestamptz, %(past)s::timestamptz,
       coalesce(sum(v.chunk_count), 0),
       coalesce(percentile_disc(%(shares)s::float8[]) WITHIN GROUP (ORDER BY extract(epoch FROM v.known_from)::float8), '{}'),
       coalesce(percentile_disc(%(shares)s::float8[]) WITHIN GROUP (ORDER BY extract(epoch FROM v.known_to)::float8), '{}')
FROM document_versions v
WHERE v.tenant_id = %(tenant_id)s AND v.collection_id = %(collection_id)s
  AND v.known_to >= %(first)s::timestamptz AND v.known_to < %(past)s::timestamptz

-- replace: segments that a larger one took the place of
DELETE FROM closed_row_segments
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s AND segment_id = ANY (%(segment_ids)s)

-- leftovers: indexes of a collection's segments that there are no more, or were never finished; those of words have the
-- collection's number, those of vectors their space's
WITH spaces AS (
    SELECT p.collection_id, p.space_id FROM collections p
    UNION ALL
    SELECT v.collection_id, v.space_id FROM vector_spaces v)
SELECT c.relname FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
CROSS JOIN LATERAL regexp_match(c.relname, '^chunk_(vectors|lexical)_past_([0-9]{1,9})_([0-9]{1,9})$') AS m (part)
LEFT JOIN spaces a ON m.part[1] = 'vectors' AND a.space_id = m.part[2]::int
WHERE c.relnamespace = 'recollect'::regnamespace AND m.part IS NOT NULL
  AND CASE WHEN m.part[1] = 'lexical' THEN m.part[2]::int = %(collection_id)s
           ELSE coalesce(a.collection_id, %(collection_id)s) = %(collection_id)s END
  AND NOT EXISTS (SELECT FROM closed_row_segments s
                  WHERE s.collection_id = %(collection_id)s AND s.segment_id = m.part[3]::int
                    AND (m.part[1] = 'lexical' OR a.space_id IS NOT NULL))

-- ownerless: vector indexes of spaces that no collection has any more
SELECT substring(c.relname FROM '[0-9]+$')::int
FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
WHERE i.indrelid = 'chunk_vectors'::regclass AND c.relname ~ '^chunk_vectors_hnsw_[0-9]{1,9}$'
  AND NOT EXISTS (SELECT FROM collections p WHERE p.space_id::text = substring(c.relname FROM '[0-9]+$'))
  AND NOT EXISTS (SELECT FROM vector_spaces s WHERE s.space_id::text = substring(c.relname FROM '[0-9]+$'))
