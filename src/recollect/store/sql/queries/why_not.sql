-- named: documents that a name means by its words: a number, a source, or a given id
SELECT d.document_id, c.name, d.collection_id = %(collection_id)s,
       EXISTS (SELECT FROM document_versions v
               WHERE v.tenant_id = d.tenant_id AND v.document_id = d.document_id AND v.known_to = 'infinity')
FROM documents d JOIN collections c USING (tenant_id, collection_id)
WHERE d.tenant_id = %(tenant_id)s AND (d.document_id = %(document_id)s OR d.uri = %(name)s OR d.given_id = %(name)s)

-- alike: documents that a name may mean: a title, the end of a source, or a path that ends with a source
SELECT d.document_id, c.name, d.collection_id = %(collection_id)s, v.known_to = 'infinity'
FROM documents d
JOIN collections c USING (tenant_id, collection_id)
CROSS JOIN LATERAL (
    SELECT o.title, o.known_to FROM document_versions o
    WHERE o.tenant_id = d.tenant_id AND o.document_id = d.document_id ORDER BY o.version DESC LIMIT 1) v
WHERE d.tenant_id = %(tenant_id)s
  AND (lower(v.title) = lower(%(name)s) OR right(d.uri, length(%(name)s) + 1) = '/' || %(name)s
       OR right(%(name)s, length(d.uri) + 1) = '/' || d.uri)

-- named_order: the end of both
ORDER BY d.document_id LIMIT 100

-- standing: a document with the version that is known at a moment, or else its last one
SELECT d.document_id, v.title, d.uri, c.name, v.version_id, v.version,
       CASE WHEN %(as_of)s::timestamptz IS NULL THEN v.known_to = 'infinity'
            ELSE v.known_from <= %(as_of)s AND v.known_to > %(as_of)s END,
       v.known_from, nullif(v.known_to, 'infinity'), nullif(v.expires_at, 'infinity'),
       coalesce((SELECT a.grants || ARRAY(SELECT '!' || unnest(a.denials)) FROM access_lists a
                 WHERE a.tenant_id = d.tenant_id AND a.collection_id = d.collection_id AND a.access_id = d.access_id), '{}'),
       v.status, v.error, v.department, v.chunk_count,
       (SELECT count(*) FROM chunk_vectors e
        WHERE e.tenant_id = v.tenant_id AND e.version_id = v.version_id AND e.space_id = c.space_id),
       (SELECT count(*) FROM chunk_lexical l WHERE l.tenant_id = v.tenant_id AND l.version_id = v.version_id)
FROM documents d
JOIN collections c USING (tenant_id, collection_id)
CROSS JOIN LATERAL (
    SELECT * FROM document_versions v
    WHERE v.tenant_id = d.tenant_id AND v.document_id = d.document_id

-- latest: the end of standing
    ORDER BY (%(as_of)s::timestamptz IS NOT NULL AND v.known_from <= %(as_of)s AND v.known_to > %(as_of)s) DESC,
             v.version DESC LIMIT 1) v
WHERE d.tenant_id = %(tenant_id)s AND d.document_id = %(document_id)s

-- dense_rank: the best chunk of a version by similarity, and how many chunks come before it
WITH mine AS (
    SELECT m.chunk_id, (-(m.embedding <#> %(embedding)s))::real AS score FROM chunk_vectors m
    WHERE m.tenant_id = %(tenant_id)s AND m.version_id = %(version_id)s AND m.space_id = %(space_id)s
      AND (SELECT require_space(%(tenant_id)s, %(space_id)s))
    ORDER BY score DESC, m.chunk_id LIMIT 1)
SELECT mine.chunk_id, mine.score, (
    SELECT count(*) FROM chunk_vectors o
    WHERE o.tenant_id = %(tenant_id)s AND o.space_id = %(space_id)s
      AND CASE WHEN %(as_of)s::timestamptz IS NULL THEN o.known_to = 'infinity'
               ELSE o.known_from <= %(as_of)s AND o.known_to > %(as_of)s END
      AND (%(version_ids)s::bigint[] IS NULL OR o.version_id = ANY (%(version_ids)s))
  AND (%(access_ids)s::int[] IS NULL OR o.access_id = ANY (%(access_ids)s::int[]))
      AND ((-(o.embedding <#> %(embedding)s))::real, -o.chunk_id) > (mine.score, -mine.chunk_id))
FROM mine

-- stored_rank: how many chunks come before the best of a version by the stored weights
WITH mine AS (
    SELECT -(m.weights <#> %(query)s) AS score FROM chunk_lexical m
    WHERE m.tenant_id = %(tenant_id)s AND m.version_id = %(version_id)s ORDER BY score DESC LIMIT 1)
SELECT count(*) FROM chunk_lexical o CROSS JOIN mine
WHERE o.tenant_id = %(tenant_id)s AND o.collection_id = %(collection_id)s
  AND CASE WHEN %(as_of)s::timestamptz IS NULL THEN o.known_to = 'infinity'
           ELSE o.known_from <= %(as_of)s AND o.known_to > %(as_of)s END
  AND (%(version_ids)s::bigint[] IS NULL OR o.version_id = ANY (%(version_ids)s))
  AND (%(access_ids)s::int[] IS NULL OR o.access_id = ANY (%(access_ids)s::int[]))
  AND -(o.weights <#> %(query)s) > mine.score

-- lexemes: which of some lexemes stand in a version
SELECT DISTINCT l.lexeme FROM chunk_lexical c CROSS JOIN LATERAL unnest(c.lexemes) AS l (lexeme)
WHERE c.tenant_id = %(tenant_id)s AND c.version_id = %(version_id)s AND l.lexeme = ANY (%(lexemes)s)
