-- endings: how versions that were known at a moment ended since: when, whether their time was over, and when the
-- document's next version became known
SELECT v.version_id, v.known_to, v.known_to >= v.expires_at,
       (SELECT min(n.known_from) FROM document_versions n
        WHERE n.tenant_id = v.tenant_id AND n.document_id = v.document_id AND n.version > v.version)
FROM document_versions v
WHERE v.tenant_id = %(tenant_id)s AND v.version_id = ANY (%(version_ids)s) AND v.known_to < 'infinity'

-- siblings: other documents of the same edition group, and of each the chunk nearest to a given one; of groups with more
-- members than the limit, none. The given ones first, and texts last, each by its key: a planner that has no statistics yet
-- would read every chunk again for each vector of the collection.
WITH given AS MATERIALIZED (
    SELECT r.chunk_id, o.document_id, o.collection_id, o.edition_group,
           (SELECT x.embedding FROM chunk_vectors x
            WHERE x.tenant_id = %(tenant_id)s AND x.chunk_id = r.chunk_id AND x.space_id = %(space_id)s) AS embedding
    FROM unnest(%(chunk_ids)s::bigint[], %(document_ids)s::bigint[]) AS r (chunk_id, document_id)
    JOIN documents o ON o.tenant_id = %(tenant_id)s AND o.document_id = r.document_id
    WHERE (SELECT require_space(%(tenant_id)s, %(space_id)s)))
SELECT g.chunk_id, d.document_id, d.uri, d.event_from,
       (SELECT c.text FROM chunks c WHERE c.tenant_id = %(tenant_id)s AND c.chunk_id = nearest.chunk_id), d.department
FROM given g
CROSS JOIN LATERAL (
    SELECT s.*, count(*) OVER () AS members FROM (
        SELECT m.document_id, m.uri, v.version_id, v.event_from, v.department FROM documents m
        JOIN document_versions v ON v.tenant_id = m.tenant_id AND v.document_id = m.document_id
        WHERE m.tenant_id = %(tenant_id)s AND m.collection_id = g.collection_id AND m.edition_group = g.edition_group
          AND m.document_id <> g.document_id
          AND CASE WHEN %(as_of)s::timestamptz IS NULL THEN v.known_to = 'infinity' AND v.expires_at > now()
                   ELSE v.known_from <= %(as_of)s AND v.known_to > %(as_of)s AND v.expires_at > %(as_of)s END
          AND (%(access_ids)s::int[] IS NULL OR v.access_id = ANY (%(access_ids)s::int[]))
        LIMIT %(limit)s + 1) s) d
CROSS JOIN LATERAL (
    SELECT y.chunk_id FROM chunk_vectors y
    WHERE y.tenant_id = %(tenant_id)s AND y.version_id = d.version_id AND y.space_id = %(space_id)s
    ORDER BY y.embedding <#> g.embedding, y.chunk_id LIMIT 1) nearest
WHERE g.embedding IS NOT NULL AND d.members <= %(limit)s
ORDER BY g.chunk_id, d.uri
