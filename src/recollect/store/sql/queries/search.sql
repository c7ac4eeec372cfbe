-- widen: let the approximate index look at as many candidates as results are asked for, in this transaction
SELECT set_config('hnsw.ef_search', %(ef_search)s, true)

-- dense: the arm that compares embeddings
SELECT chunk_id, score FROM search_dense(%(tenant_id)s, %(collection_id)s, %(embedding)s, %(limit)s,
                                         %(version_ids)s, %(as_of)s, %(indexed)s)

-- lexical: the arm that compares words; scored again by the caller
SELECT chunk_id, length, weights FROM search_lexical(%(tenant_id)s, %(collection_id)s, %(conditions)s::text[], %(query)s,
                                                     %(limit)s, %(version_ids)s, %(as_of)s)

-- document_frequencies: in how many chunks each lexeme stands, by the last refresh
SELECT lexeme, document_frequency FROM term_stats
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s AND lexeme = ANY (%(lexemes)s)

-- similarities: cosine similarities of given chunks
SELECT chunk_id, (-(embedding <#> %(embedding)s))::real FROM chunk_vectors
WHERE tenant_id = %(tenant_id)s AND chunk_id = ANY (%(chunk_ids)s)

-- lexical_rows: lengths and weights of given chunks
SELECT chunk_id, length, weights FROM chunk_lexical
WHERE tenant_id = %(tenant_id)s AND chunk_id = ANY (%(chunk_ids)s)

-- passages: what is shown of given chunks; a chunk with a parent shows the parent's span
SELECT c.chunk_id, v.document_id, v.title, v.uri, c.section, c.page,
       coalesce(c.parent_start, c.start_offset), coalesce(c.parent_end, c.end_offset),
       CASE WHEN c.parent_start IS NULL THEN c.text
            ELSE (SELECT substr(t.content, c.parent_start + 1, c.parent_end - c.parent_start)
                  FROM document_contents t WHERE t.tenant_id = c.tenant_id AND t.version_id = c.version_id) END,
       v.metadata || c.metadata, v.department, v.tags, c.version_id
-- The chunks first, whatever the planner believes: before a store is analysed it would begin with every version.
FROM (SELECT * FROM chunks WHERE tenant_id = %(tenant_id)s AND chunk_id = ANY (%(chunk_ids)s) OFFSET 0) c
JOIN document_versions v USING (tenant_id, version_id)
