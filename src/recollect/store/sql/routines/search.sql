-- The two search paths. They are functions because row-level security would keep the planner from the GIN index
-- (int[] && int[] is not leakproof): they run as the schema's owner (tenant_isolation.sql) and apply the tenant
-- themselves. EXECUTE with the collection as a literal, because a partial index is used only when the planner can prove
-- its condition, which it cannot for a parameter.

CREATE OR REPLACE FUNCTION known_condition(p_as_of timestamptz) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p_as_of IS NULL THEN 'known_to = ''infinity'''
                ELSE format('known_from <= %1$L::timestamptz AND known_to > %1$L::timestamptz', p_as_of) END
$$;

-- Which rows an arm may give out: of some document versions, and of some access lists; NULL for all of either. They stand
-- at $2 and $3 of what an arm executes. A caller who may read everything has no condition, and no cost.
CREATE OR REPLACE FUNCTION allowed_condition(p_versions bigint[], p_access int[]) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p_versions IS NULL THEN '' ELSE 'AND version_id = ANY ($2) ' END
        || CASE WHEN p_access IS NULL THEN '' ELSE 'AND access_id = ANY ($3)' END
$$;

-- How the dense arm compares: as the expression that the collection's HNSW index is on, or plainly.
CREATE OR REPLACE FUNCTION dense_distance(p_dimension int, p_indexed boolean) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p_indexed THEN format('embedding::halfvec(%1$s) <#> $1::halfvec(%1$s)', p_dimension)
                ELSE 'embedding <#> $1' END
$$;

-- Nearest chunks by inner product (of unit vectors: cosine similarity), best first.
-- p_versions: only chunks of these document versions; NULL for all.
-- p_access: only chunks of documents with these access lists; NULL for all.
-- p_indexed: through the collection's HNSW index (approximate), otherwise every row is compared (exact).
-- p_ef_search: how many candidates the index keeps; NULL: the session's setting.
CREATE OR REPLACE FUNCTION search_dense(
    p_tenant int, p_collection int, p_embedding halfvec, p_limit int,
    p_versions bigint[] DEFAULT NULL, p_as_of timestamptz DEFAULT NULL, p_indexed boolean DEFAULT false,
    p_ef_search int DEFAULT NULL, p_access int[] DEFAULT NULL
) RETURNS TABLE (chunk_id bigint, version_id bigint, score real)
LANGUAGE plpgsql STABLE SET enable_seqscan = on AS $$
BEGIN
    PERFORM require_tenant(p_tenant);
    IF p_ef_search IS NOT NULL THEN
        PERFORM set_config('hnsw.ef_search', p_ef_search::text, true);
    END IF;
    -- Sorted again outside: an iterative scan of the index gives out its rows in a relaxed order.
    RETURN QUERY EXECUTE format(
        'WITH nearest AS MATERIALIZED (
             SELECT chunk_id, version_id, (-(%1$s))::real AS score FROM chunk_vectors
             WHERE tenant_id = %2$s AND collection_id = %3$s AND %4$s %5$s
             ORDER BY %1$s %6$s LIMIT %7$s)
         SELECT n.chunk_id, n.version_id, n.score FROM nearest n ORDER BY n.score DESC, n.chunk_id',
        dense_distance(vector_dims(p_embedding), p_indexed), p_tenant, p_collection, known_condition(p_as_of),
        allowed_condition(p_versions, p_access),
        CASE WHEN p_indexed THEN '' ELSE ', chunk_id' END, p_limit)
    USING p_embedding, p_versions, p_access;
END
$$;

-- Which chunks the lexical arm scores: those that hold a lexeme of every set, or without sets all that score at all.
CREATE OR REPLACE FUNCTION lexical_condition(p_conditions text[], p_query text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce((SELECT string_agg(format('lexemes && %L::int[]', c), ' AND ') FROM unnest(p_conditions) AS c),
                    format('(weights <#> %s) < 0', p_query))
$$;

-- Chunks by the inner product of their BM25 weights with the query's IDFs, best first.
-- p_conditions: int[] literals; a chunk holds at least one lexeme of each. The GIN index answers them together, so that
-- only chunks that meet all of them are read. Without any, every chunk is scored: in a small collection that takes less
-- than looking the lexemes up.
CREATE OR REPLACE FUNCTION search_lexical(
    p_tenant int, p_collection int, p_conditions text[], p_query sparsevec, p_limit int,
    p_versions bigint[] DEFAULT NULL, p_as_of timestamptz DEFAULT NULL, p_access int[] DEFAULT NULL
) RETURNS TABLE (chunk_id bigint, version_id bigint, length int, weights sparsevec)
LANGUAGE plpgsql STABLE SET enable_seqscan = on AS $$
BEGIN
    PERFORM require_tenant(p_tenant);
    RETURN QUERY EXECUTE format(
        'SELECT chunk_id, version_id, length, weights FROM chunk_lexical
         WHERE tenant_id = %1$s AND collection_id = %2$s AND %3$s AND %4$s %5$s
         ORDER BY weights <#> $1, chunk_id LIMIT %6$s',
        p_tenant, p_collection, known_condition(p_as_of),
        lexical_condition(p_conditions, '$1'),
        allowed_condition(p_versions, p_access), p_limit)
    USING p_query, p_versions, p_access;
END
$$;

-- The arms of a hybrid search: each one's chunks with their rows in the other's table, so that every chunk has both
-- scores. Two functions, because two cores can run them at the same time. The arguments are those of search_dense and
-- search_lexical; p_vectors: with the stored vectors. What an arm found is looked up in the other's table chunk by
-- chunk, whatever the planner believes of their sizes.
CREATE OR REPLACE FUNCTION hybrid_dense(
    p_tenant int, p_collection int, p_embedding halfvec, p_limit int,
    p_versions bigint[] DEFAULT NULL, p_as_of timestamptz DEFAULT NULL, p_indexed boolean DEFAULT false,
    p_ef_search int DEFAULT NULL, p_vectors boolean DEFAULT false, p_access int[] DEFAULT NULL
) RETURNS TABLE (chunk_id bigint, length int, weights sparsevec, similarity real, embedding halfvec)
LANGUAGE plpgsql STABLE SET enable_seqscan = on SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    PERFORM require_tenant(p_tenant);
    IF p_ef_search IS NOT NULL THEN
        PERFORM set_config('hnsw.ef_search', p_ef_search::text, true);
    END IF;
    RETURN QUERY EXECUTE format(
        'SELECT d.chunk_id, x.length, x.weights, d.similarity, d.embedding
         FROM (SELECT chunk_id, (-(%1$s))::real AS similarity, %8$s AS embedding FROM chunk_vectors
               WHERE tenant_id = %2$s AND collection_id = %3$s AND %4$s %5$s
               ORDER BY %1$s %6$s LIMIT %7$s) d
         LEFT JOIN chunk_lexical x ON x.tenant_id = %2$s AND x.chunk_id = d.chunk_id
         ORDER BY d.similarity DESC, d.chunk_id',
        dense_distance(vector_dims(p_embedding), p_indexed), p_tenant, p_collection, known_condition(p_as_of),
        allowed_condition(p_versions, p_access),
        CASE WHEN p_indexed THEN '' ELSE ', chunk_id' END, p_limit,
        CASE WHEN p_vectors THEN 'embedding' ELSE 'NULL::halfvec' END)
    USING p_embedding, p_versions, p_access;
END
$$;

CREATE OR REPLACE FUNCTION hybrid_lexical(
    p_tenant int, p_collection int, p_embedding halfvec, p_conditions text[], p_query sparsevec, p_limit int,
    p_versions bigint[] DEFAULT NULL, p_as_of timestamptz DEFAULT NULL, p_vectors boolean DEFAULT false,
    p_access int[] DEFAULT NULL
) RETURNS TABLE (chunk_id bigint, length int, weights sparsevec, similarity real, embedding halfvec)
LANGUAGE plpgsql STABLE SET enable_seqscan = on SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    PERFORM require_tenant(p_tenant);
    RETURN QUERY EXECUTE format(
        'SELECT l.chunk_id, l.length, l.weights, (-(v.embedding <#> $1))::real, %6$s
         FROM (SELECT chunk_id, length, weights FROM chunk_lexical
               WHERE tenant_id = %1$s AND collection_id = %2$s AND %3$s AND %4$s %5$s
               ORDER BY weights <#> $4, chunk_id LIMIT %7$s) l
         LEFT JOIN chunk_vectors v ON v.tenant_id = %1$s AND v.chunk_id = l.chunk_id',
        p_tenant, p_collection, known_condition(p_as_of), lexical_condition(p_conditions, '$4'),
        allowed_condition(p_versions, p_access),
        CASE WHEN p_vectors THEN 'v.embedding' ELSE 'NULL::halfvec' END, p_limit)
    USING p_embedding, p_versions, p_access, p_query;
END
$$;

-- Recounts a collection's document frequencies and average length. Returns false where another session is at it.
CREATE OR REPLACE FUNCTION refresh_term_stats(p_tenant int, p_collection int) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    counted bigint;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('recollect.term_stats'), p_collection) THEN
        RETURN false;
    END IF;
    -- Taken before anything else, as writers do: a deletion of the collection then waits, and nobody waits in a circle.
    PERFORM FROM collections c WHERE c.tenant_id = p_tenant AND c.collection_id = p_collection FOR KEY SHARE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    -- Read before counting: what is written meanwhile stays pending. The row is locked at the very end only, because
    -- every writer needs it.
    SELECT s.stats_pending INTO counted FROM collection_state s
        WHERE s.tenant_id = p_tenant AND s.collection_id = p_collection;
    CREATE TEMP TABLE IF NOT EXISTS fresh_term_stats (lexeme int PRIMARY KEY, document_frequency int) ON COMMIT DROP;
    INSERT INTO fresh_term_stats
        SELECT l.lexeme, count(*) FROM chunk_lexical c CROSS JOIN LATERAL unnest(c.lexemes) AS l (lexeme)
        WHERE c.tenant_id = p_tenant AND c.collection_id = p_collection AND c.known_to = 'infinity'
        GROUP BY l.lexeme;
    DELETE FROM term_stats t WHERE t.tenant_id = p_tenant AND t.collection_id = p_collection
        AND NOT EXISTS (SELECT FROM fresh_term_stats f WHERE f.lexeme = t.lexeme);
    INSERT INTO term_stats AS t (tenant_id, collection_id, lexeme, document_frequency)
        SELECT p_tenant, p_collection, f.lexeme, f.document_frequency FROM fresh_term_stats f
        ON CONFLICT (tenant_id, collection_id, lexeme) DO UPDATE
            SET document_frequency = excluded.document_frequency
            WHERE t.document_frequency <> excluded.document_frequency;
    UPDATE collection_state s
        SET stats_pending = s.stats_pending - counted, stats_chunks = n.chunks, stats_terms = n.terms
        FROM (SELECT count(*) AS chunks, coalesce(sum(c.length), 0) AS terms FROM chunk_lexical c
              WHERE c.tenant_id = p_tenant AND c.collection_id = p_collection AND c.known_to = 'infinity') n
        WHERE s.tenant_id = p_tenant AND s.collection_id = p_collection;
    DROP TABLE fresh_term_stats;
    RETURN true;
END
$$;
