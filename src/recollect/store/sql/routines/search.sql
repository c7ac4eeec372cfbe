-- The two search paths: the chunks that are nearest to a vector, and those that hold a query's words. They are functions
-- because row-level security would keep the planner from the GIN index (int[] && int[] is not leakproof): they run as the
-- schema's owner (tenant_isolation.sql) and apply the tenant themselves. EXECUTE with the collection and the bounds of
-- times as literals, because a partial index is used only when the planner can prove its condition, which it cannot for
-- a parameter.

-- The parts that a search looks through, as conditions; they have no row in common. The present is one: the current rows.
-- So is the past where everything is compared; where much was known then, it is the current rows that were known already,
-- the closed rows of each segment (store/history_index.py), and at last the rows of versions that no index is needed for.
-- What versions and access lists rows are confined to stands at $2 and $3 of what a path executes, versions besides at
-- $4; a caller who may read everything has no condition, and no cost. Expressions alone, which need no plan of their own:
-- a query here would be planned anew with every search.
CREATE OR REPLACE FUNCTION selected_parts(p_rows row_selection) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    confined text := CASE WHEN p_rows.versions IS NULL THEN '' ELSE ' AND version_id = ANY ($2)' END
                  || CASE WHEN p_rows.access_ids IS NULL THEN '' ELSE ' AND access_id = ANY ($3)' END;
    known text := CASE WHEN p_rows.as_of IS NULL THEN 'known_to = ''infinity'''
                       ELSE format('known_from <= %1$L::timestamptz AND known_to > %1$L::timestamptz', p_rows.as_of) END;
    parts text[] := '{}';
BEGIN
    IF p_rows.starts IS NULL THEN
        RETURN ARRAY[known || confined];
    END IF;
    FOR i IN 1 .. cardinality(p_rows.starts) LOOP
        parts := array_append(parts, CASE
            WHEN p_rows.starts[i] = 'infinity'
            THEN format('known_to = ''infinity'' AND known_from <= %L::timestamptz', p_rows.as_of)
            ELSE format('known_to >= %L::timestamptz AND known_to < %L::timestamptz AND %s',
                        p_rows.starts[i], p_rows.ends[i], known) END || confined);
    END LOOP;
    IF cardinality(p_rows.beside) > 0 THEN
        parts := array_append(parts, 'version_id = ANY ($4)' || confined);
    END IF;
    RETURN parts;
END
$$;

-- The best rows of the statements of all parts; of one, they are its own.
CREATE OR REPLACE FUNCTION best_of(p_parts text[], p_order text, p_limit int) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN cardinality(p_parts) = 1 THEN p_parts[1]
                ELSE format('SELECT * FROM (%s) AS parts ORDER BY %s LIMIT %s',
                            array_to_string(p_parts, ' UNION ALL '), p_order, p_limit) END
$$;

-- How vectors are compared: as the expression that the collection's HNSW index is on, or plainly.
CREATE OR REPLACE FUNCTION dense_distance(p_dimension int, p_indexed boolean) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p_indexed THEN format('embedding::halfvec(%1$s) <#> $1::halfvec(%1$s)', p_dimension)
                ELSE 'embedding <#> $1' END
$$;

-- Which chunks are scored by words: those that hold a lexeme of every set, or without sets all that score at all.
CREATE OR REPLACE FUNCTION lexical_condition(p_conditions text[], p_query text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce((SELECT string_agg(format('lexemes && %L::int[]', c), ' AND ') FROM unnest(p_conditions) AS c),
                    format('(weights <#> %s) < 0', p_query))
$$;

-- True, or an error where a space was dropped: a search that began with it must not take it for empty. Asked in the
-- statement that reads its vectors, so that both see the same moment.
CREATE OR REPLACE FUNCTION require_space(p_tenant int, p_space int) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    PERFORM FROM recollect.collections c WHERE c.tenant_id = p_tenant AND c.space_id = p_space;
    IF NOT FOUND THEN
        PERFORM FROM recollect.vector_spaces s WHERE s.tenant_id = p_tenant AND s.space_id = p_space AND s.status <> 'dropping';
        IF NOT FOUND THEN
            RAISE EXCEPTION 'the vector space % is gone', p_space USING ERRCODE = 'RT005';
        END IF;
    END IF;
    RETURN true;
END
$$;

-- Nearest chunks by inner product (of unit vectors: cosine similarity), best first, with their lexical rows, so that every
-- chunk has both scores. Those are looked up chunk by chunk, whatever the planner believes of the tables' sizes.
-- p_indexed: through HNSW indexes (approximate), otherwise every row is compared (exact).
-- p_ef_search: how many candidates an index keeps; NULL: the session's setting.
-- p_words, p_vectors: with the lexical rows; with the stored vectors.
CREATE OR REPLACE FUNCTION dense_candidates(
    p_tenant int, p_collection int, p_space int, p_rows row_selection, p_embedding halfvec, p_limit int,
    p_indexed boolean DEFAULT false, p_ef_search int DEFAULT NULL, p_words boolean DEFAULT true,
    p_vectors boolean DEFAULT false
) RETURNS TABLE (chunk_id bigint, length int, weights sparsevec, similarity real, embedding halfvec)
LANGUAGE plpgsql STABLE SET enable_seqscan = on SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    part text;
    indexed boolean;
    parts text[] := '{}';
BEGIN
    PERFORM require_tenant(p_tenant);
    PERFORM require_space(p_tenant, p_space);
    IF p_ef_search IS NOT NULL THEN
        PERFORM set_config('hnsw.ef_search', p_ef_search::text, true);
    END IF;
    FOREACH part IN ARRAY selected_parts(p_rows) LOOP
        indexed := p_indexed AND part NOT LIKE 'version_id = ANY ($4)%';
        parts := array_append(parts, format(
            '(SELECT chunk_id, (-(%1$s))::real AS similarity, %2$s AS embedding FROM chunk_vectors
              WHERE tenant_id = %3$s AND space_id = %4$s AND %5$s ORDER BY %1$s %6$s LIMIT %7$s)',
            dense_distance(vector_dims(p_embedding), indexed),
            CASE WHEN p_vectors THEN 'embedding' ELSE 'NULL::halfvec' END, p_tenant, p_space, part,
            CASE WHEN indexed THEN '' ELSE ', chunk_id' END, p_limit));
    END LOOP;
    IF parts = '{}' THEN
        RETURN;
    END IF;
    -- An iterative scan of an index gives out its rows in a relaxed order, so they are sorted again outside.
    RETURN QUERY EXECUTE format(
        'SELECT d.chunk_id, %1$s, d.similarity, d.embedding
         FROM (%2$s) d %3$s ORDER BY d.similarity DESC, d.chunk_id',
        CASE WHEN p_words THEN 'x.length, x.weights' ELSE 'NULL::int, NULL::sparsevec' END,
        best_of(parts, 'similarity DESC, chunk_id', p_limit),
        CASE WHEN p_words THEN format('LEFT JOIN chunk_lexical x ON x.tenant_id = %s AND x.chunk_id = d.chunk_id', p_tenant) END)
    USING p_embedding, p_rows.versions, p_rows.access_ids, p_rows.beside;
END
$$;

-- Chunks by the inner product of their BM25 weights with the query's IDFs, best first, with their similarities to
-- p_embedding where it is given; the columns are those of dense_candidates.
-- p_conditions: int[] literals; a chunk holds at least one lexeme of each. The GIN index answers them together, so that
-- only chunks that meet all of them are read. Without any, every chunk is scored: in a small collection that takes less
-- than looking the lexemes up.
CREATE OR REPLACE FUNCTION lexical_candidates(
    p_tenant int, p_collection int, p_space int, p_rows row_selection, p_conditions text[], p_query sparsevec, p_limit int,
    p_embedding halfvec DEFAULT NULL, p_vectors boolean DEFAULT false
) RETURNS TABLE (chunk_id bigint, length int, weights sparsevec, similarity real, embedding halfvec)
LANGUAGE plpgsql STABLE SET enable_seqscan = on SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    part text;
    scored text := lexical_condition(p_conditions, '$5');
    parts text[] := '{}';
BEGIN
    PERFORM require_tenant(p_tenant);
    IF p_embedding IS NOT NULL THEN
        PERFORM require_space(p_tenant, p_space);
    END IF;
    FOREACH part IN ARRAY selected_parts(p_rows) LOOP
        parts := array_append(parts, format(
            '(SELECT chunk_id, length, weights, weights <#> $5 AS distance FROM chunk_lexical
              WHERE tenant_id = %1$s AND collection_id = %2$s AND %3$s AND %4$s
              ORDER BY weights <#> $5, chunk_id LIMIT %5$s)', p_tenant, p_collection, part, scored, p_limit));
    END LOOP;
    IF parts = '{}' THEN
        RETURN;
    END IF;
    RETURN QUERY EXECUTE format(
        'SELECT l.chunk_id, l.length, l.weights, %1$s, %2$s
         FROM (%3$s) l %4$s',
        CASE WHEN p_embedding IS NULL THEN 'NULL::real' ELSE '(-(v.embedding <#> $1))::real' END,
        CASE WHEN p_vectors THEN 'v.embedding' ELSE 'NULL::halfvec' END, best_of(parts, 'distance, chunk_id', p_limit),
        CASE WHEN p_embedding IS NOT NULL THEN
            format('LEFT JOIN chunk_vectors v ON v.tenant_id = %s AND v.chunk_id = l.chunk_id AND v.space_id = %s',
                   p_tenant, p_space) END)
    USING p_embedding, p_rows.versions, p_rows.access_ids, p_rows.beside, p_query;
END
$$;

-- Recounts a collection's document frequencies and average length. Where they are others, that is a revision of its own.
-- Returns false where another session is at it.
CREATE OR REPLACE FUNCTION refresh_term_stats(p_tenant int, p_collection int) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    counted bigint;
    chunks bigint;
    terms bigint;
    differs boolean;
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
        SELECT l.lexeme, count(*)
        FROM (SELECT unnest(c.lexemes) AS lexeme FROM chunk_lexical c
              WHERE c.tenant_id = p_tenant AND c.collection_id = p_collection AND c.known_to = 'infinity') l
        GROUP BY l.lexeme;
    DELETE FROM term_stats t WHERE t.tenant_id = p_tenant AND t.collection_id = p_collection
        AND NOT EXISTS (SELECT FROM fresh_term_stats f WHERE f.lexeme = t.lexeme);
    differs := FOUND;
    INSERT INTO term_stats AS t (tenant_id, collection_id, lexeme, document_frequency)
        SELECT p_tenant, p_collection, f.lexeme, f.document_frequency FROM fresh_term_stats f
        ON CONFLICT (tenant_id, collection_id, lexeme) DO UPDATE
            SET document_frequency = excluded.document_frequency
            WHERE t.document_frequency <> excluded.document_frequency;
    differs := differs OR FOUND;
    SELECT count(*), coalesce(sum(c.length), 0) INTO chunks, terms FROM chunk_lexical c
        WHERE c.tenant_id = p_tenant AND c.collection_id = p_collection AND c.known_to = 'infinity';
    SELECT differs OR s.stats_chunks <> chunks OR s.stats_terms <> terms INTO differs FROM collection_state s
        WHERE s.tenant_id = p_tenant AND s.collection_id = p_collection;
    IF differs THEN
        INSERT INTO collection_changes (tenant_id, collection_id, version_ids) VALUES (p_tenant, p_collection, '{0}');
    END IF;
    UPDATE collection_state s
        SET stats_pending = s.stats_pending - counted, stats_chunks = chunks, stats_terms = terms,
            revision = s.revision + differs::int
        WHERE s.tenant_id = p_tenant AND s.collection_id = p_collection;
    DROP TABLE fresh_term_stats;
    RETURN true;
END
$$;
