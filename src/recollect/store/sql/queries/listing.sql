-- page: the entries of a page of stored documents, read from their versions alone, with more behind them where they are
-- counted; what they are sorted by, conditions and the order follow
WITH found AS MATERIALIZED (
    SELECT v.tenant_id, v.version_id, v.document_id, row_number() OVER () AS place FROM (
        SELECT v.tenant_id, v.version_id, v.document_id FROM document_versions v
        WHERE v.tenant_id = %(tenant_id)s AND v.known_to = 'infinity'


-- whole: in collections that may be read as a whole
v.collection_id = ANY (%(whole)s::int[])

-- confined: or in those of which some lists may be read
(v.collection_id = ANY (%(whole)s::int[]) OR (v.collection_id, v.access_id) IN (
    SELECT * FROM unnest(%(confined)s::int[], %(lists)s::int[])))

-- of_sources: that came from these
EXISTS (SELECT FROM documents d WHERE d.tenant_id = v.tenant_id AND d.document_id = v.document_id
          AND d.source_id = ANY (%(source_ids)s::bigint[]))

-- text: where words are looked for
lower(v.title || chr(10) || v.uri)

-- title_at: where a page of titles begins, or ends: addresses hold no more than the beginning of a title
coalesce((SELECT t.title FROM document_versions t
          WHERE t.tenant_id = %(tenant_id)s AND t.document_id = %(document_id)s AND t.known_to = 'infinity'
            AND starts_with(t.title, %(key)s)), %(key)s)

-- granted: that are granted to somebody
EXISTS (SELECT FROM access_lists a WHERE a.tenant_id = v.tenant_id AND a.collection_id = v.collection_id
          AND a.access_id = v.access_id AND a.grants @> ARRAY[%(grant)s::text])

-- sources: of a name
SELECT source_id FROM sources
WHERE tenant_id = %(tenant_id)s AND name = %(origin)s AND collection_id = ANY (%(collection_ids)s::int[])

-- shown: what is shown of the entries of a page; what may be read follows
) v), page AS (SELECT * FROM found WHERE place <= %(shown)s)
SELECT d.document_id, d.uri, v.title, c.name, v.version, v.department, v.mime_type, v.language, v.metadata, v.tags,
       v.chunk_count, encode(v.content_hash, 'hex'), v.known_from, v.event_from, s.name, NULL, v.status, v.error, s.type,
       d.given_id, nullif(v.expires_at, 'infinity'), a.grants, a.denials, d.access_id = 0 OR coalesce(a.by_default, true),
       (SELECT count(*) FROM found)
FROM page p JOIN document_versions v USING (tenant_id, version_id)
JOIN documents d ON d.tenant_id = p.tenant_id AND d.document_id = p.document_id
JOIN collections c ON c.tenant_id = d.tenant_id AND c.collection_id = d.collection_id
JOIN sources s ON s.tenant_id = d.tenant_id AND s.source_id = d.source_id
LEFT JOIN access_lists a ON a.tenant_id = d.tenant_id AND a.collection_id = d.collection_id AND a.access_id = d.access_id
WHERE v.known_to = 'infinity'

-- unstored: documents whose latest job has not stored them, and that have no current version; few, whatever was stored
SELECT d.document_id, d.uri, d.uri, c.name, 0, NULL, '', NULL, '{}'::jsonb, '{}'::text[], 0, '', j.created_at, NULL, s.name,
       NULL, CASE WHEN j.status IN ('pending', 'running') THEN 'pending' ELSE 'error' END, j.error, s.type, d.given_id, j.job_id
FROM jobs j
JOIN documents d ON d.tenant_id = j.tenant_id AND d.document_id = j.document_id
JOIN collections c ON c.tenant_id = d.tenant_id AND c.collection_id = d.collection_id
JOIN sources s ON s.tenant_id = d.tenant_id AND s.source_id = d.source_id
WHERE j.tenant_id = %(tenant_id)s AND j.status = ANY (%(statuses)s::text[])
  AND (NOT %(own)s OR j.asked_by = %(user)s::text OR %(user)s::text IS NULL AND j.principal = %(principal)s::jsonb)
  AND NOT EXISTS (
      SELECT FROM jobs l WHERE l.tenant_id = j.tenant_id AND l.document_id = j.document_id AND l.job_id > j.job_id
        AND (NOT %(own)s OR l.asked_by = %(user)s::text OR %(user)s::text IS NULL AND l.principal = %(principal)s::jsonb))
  AND NOT EXISTS (SELECT FROM document_versions v
                  WHERE v.tenant_id = d.tenant_id AND v.document_id = d.document_id AND v.known_to = 'infinity')
  AND d.collection_id = ANY (%(collection_ids)s::int[])
  AND (%(origin)s::text IS NULL OR s.name = %(origin)s)
  AND (%(changed_from)s::timestamptz IS NULL OR j.created_at >= %(changed_from)s)
  AND (%(changed_to)s::timestamptz IS NULL OR j.created_at < %(changed_to)s)
  AND NOT EXISTS (SELECT FROM unnest(%(words)s::text[]) AS w (word) WHERE strpos(lower(d.uri), lower(w.word)) = 0)

-- choices: what some collections' newest documents can be filtered by, the commonest first
WITH seen AS MATERIALIZED (
    SELECT v.department, v.tags, v.metadata, v.mime_type FROM document_versions v
    WHERE v.tenant_id = %(tenant_id)s AND v.known_to = 'infinity'

-- choices_of: the end of choices
    ORDER BY v.document_id DESC LIMIT %(most)s)
(SELECT 'department', department, count(*) FROM seen WHERE department IS NOT NULL GROUP BY 2 ORDER BY 3 DESC, 2 LIMIT 100)
UNION ALL (SELECT 'tag', tag, count(*) FROM seen, unnest(tags) AS tag GROUP BY 2 ORDER BY 3 DESC, 2 LIMIT 100)
UNION ALL (SELECT 'type', mime_type, count(*) FROM seen GROUP BY 2 ORDER BY 3 DESC, 2 LIMIT 100)
UNION ALL (SELECT 'metadata', key, count(*) FROM seen, jsonb_object_keys(metadata) AS key GROUP BY 2 ORDER BY 3 DESC, 2 LIMIT 100)

-- source_names: where documents of some collections come from
SELECT DISTINCT name FROM sources
WHERE tenant_id = %(tenant_id)s AND collection_id = ANY (%(collection_ids)s::int[]) ORDER BY name LIMIT 200

-- unstored_counts: how many documents of each collection wait, and failed
SELECT d.collection_id, count(*) FILTER (WHERE j.status IN ('pending', 'running')),
       count(*) FILTER (WHERE j.status IN ('failed', 'cancelled'))
FROM jobs j JOIN documents d ON d.tenant_id = j.tenant_id AND d.document_id = j.document_id
WHERE j.tenant_id = %(tenant_id)s AND j.status = ANY (%(statuses)s::text[])
  AND (NOT %(own)s OR j.asked_by = %(user)s::text OR %(user)s::text IS NULL AND j.principal = %(principal)s::jsonb)
  AND NOT EXISTS (
      SELECT FROM jobs l WHERE l.tenant_id = j.tenant_id AND l.document_id = j.document_id AND l.job_id > j.job_id
        AND (NOT %(own)s OR l.asked_by = %(user)s::text OR %(user)s::text IS NULL AND l.principal = %(principal)s::jsonb))
  AND NOT EXISTS (SELECT FROM document_versions v
                  WHERE v.tenant_id = d.tenant_id AND v.document_id = d.document_id AND v.known_to = 'infinity')
GROUP BY d.collection_id

-- sizes: what current documents take: their texts as they are stored, and the kept originals; conditions follow
SELECT coalesce(sum(pg_column_size(x.content)), 0)::bigint, coalesce(sum(o.byte_count), 0)::bigint
FROM document_versions v
JOIN document_contents t USING (tenant_id, version_id)
JOIN texts x USING (tenant_id, text_hash)
LEFT JOIN version_originals k USING (tenant_id, version_id)
LEFT JOIN originals o ON o.tenant_id = k.tenant_id AND o.file_hash = k.file_hash
WHERE v.tenant_id = %(tenant_id)s AND v.known_to = 'infinity'
