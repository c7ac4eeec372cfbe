-- The search arms as of a moment of the past, in parts: the current rows that were known already, the closed rows of
-- each segment (store/history_index.py), and the rows of given versions, which no index of an arm is needed for. Every
-- part gives its best rows, of which the best are taken. As in search.sql the collection and the bounds of the parts
-- are literals, because the planner must prove the conditions of partial indexes.

-- The conditions of the parts. p_starts, p_ends: what segments hold by known_to; p_current: whether current rows count
-- as one; p_versions: whether there are versions besides, parameter $2.
CREATE OR REPLACE FUNCTION past_parts(
    p_as_of timestamptz, p_current boolean, p_starts timestamptz[], p_ends timestamptz[], p_versions boolean
) RETURNS SETOF text
LANGUAGE sql IMMUTABLE AS $$
    SELECT format('known_to = ''infinity'' AND known_from <= %L::timestamptz', p_as_of) WHERE p_current
    UNION ALL
    SELECT format('known_to >= %L::timestamptz AND known_to < %L::timestamptz AND known_from <= %L::timestamptz '
                  'AND known_to > %3$L::timestamptz', s.first, s.past, p_as_of)
    FROM unnest(p_starts, p_ends) AS s (first, past)
    UNION ALL
    SELECT 'version_id = ANY ($2)' WHERE p_versions
$$;

-- The dense arm, its chunks with their lexical rows; the columns are hybrid_dense's.
CREATE OR REPLACE FUNCTION past_dense(
    p_tenant int, p_collection int, p_embedding halfvec, p_limit int, p_as_of timestamptz, p_current boolean,
    p_starts timestamptz[], p_ends timestamptz[], p_versions bigint[], p_ef_search int, p_vectors boolean
) RETURNS TABLE (chunk_id bigint, length int, weights sparsevec, similarity real, embedding halfvec)
LANGUAGE plpgsql STABLE SET enable_seqscan = on SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    nearest text;
BEGIN
    PERFORM require_tenant(p_tenant);
    IF p_ef_search IS NOT NULL THEN
        PERFORM set_config('hnsw.ef_search', p_ef_search::text, true);
    END IF;
    SELECT string_agg(format(
        '(SELECT chunk_id, (-(%1$s))::real AS similarity, %2$s AS embedding FROM chunk_vectors
          WHERE tenant_id = %3$s AND collection_id = %4$s AND %5$s ORDER BY %1$s LIMIT %6$s)',
        dense_distance(vector_dims(p_embedding), part NOT LIKE 'version_id%'),
        CASE WHEN p_vectors THEN 'embedding' ELSE 'NULL::halfvec' END, p_tenant, p_collection, part, p_limit),
        ' UNION ALL ')
        INTO nearest
        FROM past_parts(p_as_of, p_current, p_starts, p_ends, cardinality(p_versions) > 0) AS part;
    IF nearest IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY EXECUTE format(
        'SELECT d.chunk_id, x.length, x.weights, d.similarity, d.embedding
         FROM (SELECT * FROM (%s) AS parts ORDER BY similarity DESC, chunk_id LIMIT %s) d
         LEFT JOIN chunk_lexical x ON x.tenant_id = %s AND x.chunk_id = d.chunk_id
         ORDER BY d.similarity DESC, d.chunk_id', nearest, p_limit, p_tenant)
    USING p_embedding, p_versions;
END
$$;

-- The lexical arm, its chunks with their similarities; the columns are hybrid_lexical's. Without p_embedding there are
-- no similarities.
CREATE OR REPLACE FUNCTION past_lexical(
    p_tenant int, p_collection int, p_embedding halfvec, p_conditions text[], p_query sparsevec, p_limit int,
    p_as_of timestamptz, p_current boolean, p_starts timestamptz[], p_ends timestamptz[], p_versions bigint[],
    p_vectors boolean
) RETURNS TABLE (chunk_id bigint, length int, weights sparsevec, similarity real, embedding halfvec)
LANGUAGE plpgsql STABLE SET enable_seqscan = on SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    best text;
BEGIN
    PERFORM require_tenant(p_tenant);
    SELECT string_agg(format(
        '(SELECT chunk_id, length, weights, weights <#> $3 AS distance FROM chunk_lexical
          WHERE tenant_id = %1$s AND collection_id = %2$s AND %3$s AND %4$s
          ORDER BY weights <#> $3, chunk_id LIMIT %5$s)',
        p_tenant, p_collection, part, lexical_condition(p_conditions, '$3'), p_limit), ' UNION ALL ')
        INTO best
        FROM past_parts(p_as_of, p_current, p_starts, p_ends, cardinality(p_versions) > 0) AS part;
    IF best IS NULL THEN
        RETURN;
    END IF;
    IF p_embedding IS NULL THEN
        RETURN QUERY EXECUTE format(
            'SELECT chunk_id, length, weights, NULL::real, NULL::halfvec
             FROM (%s) AS parts ORDER BY distance, chunk_id LIMIT %s', best, p_limit)
        USING p_embedding, p_versions, p_query;
    ELSE
        RETURN QUERY EXECUTE format(
            'SELECT l.chunk_id, l.length, l.weights, (-(v.embedding <#> $1))::real, %s
             FROM (SELECT * FROM (%s) AS parts ORDER BY distance, chunk_id LIMIT %s) l
             LEFT JOIN chunk_vectors v ON v.tenant_id = %s AND v.chunk_id = l.chunk_id',
            CASE WHEN p_vectors THEN 'v.embedding' ELSE 'NULL::halfvec' END, best, p_limit, p_tenant)
        USING p_embedding, p_versions, p_query;
    END IF;
END
$$;
