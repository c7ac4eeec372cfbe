-- dense: the chunks nearest to a vector, with their lexical rows where those are wanted
SELECT chunk_id, length, sparsevec_send(weights), similarity, halfvec_send(embedding)
FROM dense_candidates(%(tenant_id)s, %(collection_id)s, %(space_id)s,
                      ROW(%(as_of)s, %(starts)s::timestamptz[], %(ends)s::timestamptz[], %(beside)s::bigint[],
                          %(version_ids)s::bigint[], %(access_ids)s::int[])::row_selection,
                      %(embedding)s, %(limit)s, %(indexed)s, %(ef_search)s, %(words)s, %(vectors)s)

-- lexical: the chunks that hold words, with their similarities where a vector is given; scored again by the caller
SELECT chunk_id, length, sparsevec_send(weights), similarity, halfvec_send(embedding)
FROM lexical_candidates(%(tenant_id)s, %(collection_id)s, %(space_id)s,
                        ROW(%(as_of)s, %(starts)s::timestamptz[], %(ends)s::timestamptz[], %(beside)s::bigint[],
                          %(version_ids)s::bigint[], %(access_ids)s::int[])::row_selection,
                        %(conditions)s::text[], %(query)s, %(limit)s, %(embedding)s::halfvec, %(vectors)s)

-- both: what dense (0), lexical (1) and, where context is wanted, beside (2: of what these found) give, in one statement
WITH d AS MATERIALIZED (
    SELECT * FROM dense_candidates(%(tenant_id)s, %(collection_id)s, %(space_id)s,
                                   ROW(%(as_of)s, %(starts)s::timestamptz[], %(ends)s::timestamptz[], %(beside)s::bigint[],
                                       %(version_ids)s::bigint[], %(access_ids)s::int[])::row_selection,
                                   %(embedding)s, %(limit)s, %(indexed)s, %(ef_search)s, true, %(vectors)s)
), l AS MATERIALIZED (
    SELECT * FROM lexical_candidates(%(tenant_id)s, %(collection_id)s, %(space_id)s,
                                     ROW(%(as_of)s, %(starts)s::timestamptz[], %(ends)s::timestamptz[], %(beside)s::bigint[],
                                         %(version_ids)s::bigint[], %(access_ids)s::int[])::row_selection,
                                     %(conditions)s::text[], %(query)s, %(limit)s, %(embedding)s::halfvec, %(vectors)s)
)
SELECT 0, chunk_id, length, sparsevec_send(weights), similarity, halfvec_send(embedding) FROM d
UNION ALL
SELECT 1, chunk_id, length, sparsevec_send(weights), similarity, halfvec_send(embedding) FROM l
UNION ALL
SELECT 2, n.beside, x.length, sparsevec_send(x.weights), NULL, NULL
FROM (SELECT c.chunk_id AS beside, o.chunk_id
      FROM (SELECT chunk_id, version_id, position - 1 AS before, position + 1 AS after FROM chunks
            WHERE %(context)s AND tenant_id = %(tenant_id)s
              AND chunk_id = ANY (ARRAY(SELECT chunk_id FROM d WHERE length IS NOT NULL UNION ALL SELECT chunk_id FROM l))
            OFFSET 0) c
      JOIN chunks o ON o.tenant_id = %(tenant_id)s AND o.version_id = c.version_id
                   AND o.position BETWEEN c.before AND c.after AND o.chunk_id <> c.chunk_id OFFSET 0) n
JOIN chunk_lexical x ON x.tenant_id = %(tenant_id)s AND x.chunk_id = n.chunk_id

-- document_frequencies: in how many chunks each lexeme stands, by the last refresh
SELECT lexeme, document_frequency FROM term_stats
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s AND lexeme = ANY (%(lexemes)s)

-- similarities: cosine similarities of given chunks, in the spaces that they were found in
SELECT chunk_id, (-(embedding <#> %(embedding)s))::real FROM chunk_vectors
WHERE tenant_id = %(tenant_id)s AND chunk_id = ANY (%(chunk_ids)s) AND space_id = ANY (%(space_ids)s::int[])
  AND (SELECT bool_and(require_space(%(tenant_id)s, s)) FROM unnest(%(space_ids)s::int[]) AS s)

-- lexical_rows: lengths and weights of given chunks
SELECT chunk_id, length, sparsevec_send(weights) FROM chunk_lexical
WHERE tenant_id = %(tenant_id)s AND chunk_id = ANY (%(chunk_ids)s)

-- beside: lengths and weights of the chunks before and after given ones in their documents, by the id of the given one
SELECT n.beside, x.length, sparsevec_send(x.weights)
-- The given chunks first, as in passages; then by the indexes that make rows unique, of which the planner knows how few they give.
-- Which positions are wanted is computed within: arithmetic is not leakproof, so beside a policy it would be no condition
-- of an index, and every chunk of a document would be read for each of it that is given.
FROM (SELECT c.chunk_id AS beside, o.chunk_id
      FROM (SELECT chunk_id, version_id, position - 1 AS before, position + 1 AS after FROM chunks
            WHERE tenant_id = %(tenant_id)s AND chunk_id = ANY (%(chunk_ids)s) OFFSET 0) c
      JOIN chunks o ON o.tenant_id = %(tenant_id)s AND o.version_id = c.version_id
                   AND o.position BETWEEN c.before AND c.after AND o.chunk_id <> c.chunk_id OFFSET 0) n
JOIN chunk_lexical x ON x.tenant_id = %(tenant_id)s AND x.chunk_id = n.chunk_id

-- passages: what is shown of given chunks, the parent's span where there is one, and whether collections have given revisions
SELECT c.chunk_id, v.document_id, v.title, v.uri, c.section, c.page,
       coalesce(c.parent_start, c.start_offset), coalesce(c.parent_end, c.end_offset),
       CASE WHEN c.parent_start IS NULL THEN c.text
            ELSE (SELECT substr(x.content, c.parent_start + 1, c.parent_end - c.parent_start)
                  FROM document_contents t JOIN texts x USING (tenant_id, text_hash)
                  WHERE t.tenant_id = c.tenant_id AND t.version_id = c.version_id) END,
       v.metadata || c.metadata, v.department, v.tags, c.version_id, v.event_from,
       v.given_id IS NULL
       AND EXISTS (SELECT FROM documents o WHERE o.tenant_id = v.tenant_id AND o.collection_id = v.collection_id AND o.uri = v.uri
                     AND o.document_id <> v.document_id),
       v.given_id,
       NOT EXISTS (SELECT FROM unnest(%(collection_ids)s::int[], %(revisions)s::bigint[]) AS r (collection_id, revision)
                   LEFT JOIN collection_state s ON s.tenant_id = %(tenant_id)s AND s.collection_id = r.collection_id
                   WHERE s.revision IS DISTINCT FROM r.revision)
-- The chunks first, whatever the planner believes: before a store is analysed it would begin with every version.
FROM (SELECT * FROM chunks WHERE tenant_id = %(tenant_id)s AND chunk_id = ANY (%(chunk_ids)s::bigint[]) OFFSET 0) c
JOIN document_versions v USING (tenant_id, version_id)

-- compared: the beginning of passages, for its columns and then whether a collection has a row that is given as text
SELECT p.*, %(record)s IN

-- departments: of given chunks
SELECT c.chunk_id, v.department
FROM (SELECT * FROM chunks WHERE tenant_id = %(tenant_id)s AND chunk_id = ANY (%(chunk_ids)s) OFFSET 0) c
JOIN document_versions v USING (tenant_id, version_id)

-- vectors: stored vectors of given chunks, in the spaces that they were found in
SELECT chunk_id, halfvec_send(embedding) FROM chunk_vectors
WHERE tenant_id = %(tenant_id)s AND chunk_id = ANY (%(chunk_ids)s) AND space_id = ANY (%(space_ids)s::int[])
  AND (SELECT bool_and(require_space(%(tenant_id)s, s)) FROM unnest(%(space_ids)s::int[]) AS s)

-- spans: the characters of given versions between given offsets
SELECT w.version_id, w.start_offset, w.end_offset,
       substr(x.content, w.start_offset + 1, w.end_offset - w.start_offset)
FROM unnest(%(version_ids)s::bigint[], %(starts)s::int[], %(ends)s::int[]) AS w (version_id, start_offset, end_offset)
JOIN document_contents t ON t.tenant_id = %(tenant_id)s AND t.version_id = w.version_id
JOIN texts x ON x.tenant_id = t.tenant_id AND x.text_hash = t.text_hash

-- passages_outlined: as passages, with the headings and pages that tell where each character stands, as outlines has them
SELECT c.chunk_id, v.document_id, v.title, v.uri, c.section, c.page, w.start_offset, w.end_offset,
       CASE WHEN c.parent_start IS NULL THEN c.text
            ELSE (SELECT substr(x.content, w.start_offset + 1, w.end_offset - w.start_offset)
                  FROM texts x WHERE x.tenant_id = t.tenant_id AND x.text_hash = t.text_hash) END,
       v.metadata || c.metadata, v.department, v.tags, c.version_id, v.event_from,
       v.given_id IS NULL
       AND EXISTS (SELECT FROM documents o WHERE o.tenant_id = v.tenant_id AND o.collection_id = v.collection_id AND o.uri = v.uri
                     AND o.document_id <> v.document_id),
       v.given_id,
       NOT EXISTS (SELECT FROM unnest(%(collection_ids)s::int[], %(revisions)s::bigint[]) AS r (collection_id, revision)
                   LEFT JOIN collection_state s ON s.tenant_id = %(tenant_id)s AND s.collection_id = r.collection_id
                   WHERE s.revision IS DISTINCT FROM r.revision),
       t.version_id IS NOT NULL, h.marks, p.marks
FROM (SELECT * FROM chunks WHERE tenant_id = %(tenant_id)s AND chunk_id = ANY (%(chunk_ids)s::bigint[]) OFFSET 0) c
JOIN document_versions v USING (tenant_id, version_id)
LEFT JOIN document_contents t USING (tenant_id, version_id)
CROSS JOIN LATERAL (SELECT coalesce(c.parent_start, c.start_offset) AS start_offset,
                           coalesce(c.parent_end, c.end_offset) AS end_offset) w
CROSS JOIN LATERAL (
    SELECT jsonb_agg(k.mark ORDER BY k.n) AS marks
    FROM (SELECT DISTINCT ON (CASE WHEN (m ->> 2)::int <= w.start_offset THEN m ->> 0 ELSE 'within ' || n END) m, n
          FROM jsonb_array_elements(t.headings) WITH ORDINALITY AS e (m, n)
          WHERE (m ->> 2)::int < w.end_offset
          ORDER BY CASE WHEN (m ->> 2)::int <= w.start_offset THEN m ->> 0 ELSE 'within ' || n END, n DESC
         ) AS k (mark, n)) h
CROSS JOIN LATERAL (
    SELECT jsonb_agg(k.mark ORDER BY k.n) AS marks
    FROM (SELECT m, n, (m ->> 1)::int AS start_offset, max((m ->> 1)::int) FILTER (WHERE (m ->> 1)::int <= w.start_offset) OVER () AS first
          FROM jsonb_array_elements(t.pages) WITH ORDINALITY AS e (m, n)
          WHERE (m ->> 1)::int < w.end_offset) AS k (mark, n, start_offset, first)
    WHERE k.start_offset >= coalesce(k.first, 0)) p

-- outlines: of spans of versions, the headings and pages that tell where each character stands: those that begin within,
-- and before them the last heading of each level and the last page
SELECT w.version_id, w.start_offset, w.end_offset, h.marks, p.marks
FROM unnest(%(version_ids)s::bigint[], %(starts)s::int[], %(ends)s::int[]) AS w (version_id, start_offset, end_offset)
JOIN document_contents t ON t.tenant_id = %(tenant_id)s AND t.version_id = w.version_id
CROSS JOIN LATERAL (
    SELECT jsonb_agg(k.mark ORDER BY k.n) AS marks
    FROM (SELECT DISTINCT ON (CASE WHEN (m ->> 2)::int <= w.start_offset THEN m ->> 0 ELSE 'within ' || n END) m, n
          FROM jsonb_array_elements(t.headings) WITH ORDINALITY AS e (m, n)
          WHERE (m ->> 2)::int < w.end_offset
          ORDER BY CASE WHEN (m ->> 2)::int <= w.start_offset THEN m ->> 0 ELSE 'within ' || n END, n DESC
         ) AS k (mark, n)) h
CROSS JOIN LATERAL (
    SELECT jsonb_agg(k.mark ORDER BY k.n) AS marks
    FROM (SELECT m, n, (m ->> 1)::int AS start_offset, max((m ->> 1)::int) FILTER (WHERE (m ->> 1)::int <= w.start_offset) OVER () AS first
          FROM jsonb_array_elements(t.pages) WITH ORDINALITY AS e (m, n)
          WHERE (m ->> 1)::int < w.end_offset) AS k (mark, n, start_offset, first)
    WHERE k.start_offset >= coalesce(k.first, 0)) p

-- stretches: given chunks with so many of their neighbours on either side, as one span
SELECT c.chunk_id, n.start_offset, n.end_offset,
       substr(x.content, n.start_offset + 1, n.end_offset - n.start_offset), f.section, f.page
FROM chunks c
CROSS JOIN LATERAL (
    SELECT min(coalesce(o.parent_start, o.start_offset)) AS start_offset,
           max(coalesce(o.parent_end, o.end_offset)) AS end_offset, min(o.position) AS first
    FROM chunks o
    WHERE o.tenant_id = c.tenant_id AND o.version_id = c.version_id
      AND o.position BETWEEN c.position - %(neighbours)s AND c.position + %(neighbours)s) n
-- By the index, whatever the planner believes: before a store is analysed it would compare every chunk of the document.
CROSS JOIN LATERAL (
    SELECT section, page FROM chunks o
    WHERE o.tenant_id = c.tenant_id AND o.version_id = c.version_id AND o.position = n.first OFFSET 0) f
JOIN document_contents t ON t.tenant_id = c.tenant_id AND t.version_id = c.version_id
JOIN texts x ON x.tenant_id = t.tenant_id AND x.text_hash = t.text_hash
WHERE c.tenant_id = %(tenant_id)s AND c.chunk_id = ANY (%(chunk_ids)s)
