-- totals: what the tenant has
SELECT coalesce(sum(s.document_count), 0)::bigint, coalesce(sum(s.chunk_count), 0)::bigint
FROM collections c JOIN collection_state s USING (tenant_id, collection_id)
WHERE c.tenant_id = %(tenant_id)s AND NOT c.hidden

-- departments: current chunks by department
SELECT coalesce(v.department, ''), sum(v.chunk_count)::bigint FROM document_versions v
WHERE v.tenant_id = %(tenant_id)s AND v.known_to = 'infinity'
  AND (%(collection_id)s::int IS NULL OR v.collection_id = %(collection_id)s)
  AND v.collection_id NOT IN (SELECT c.collection_id FROM collections c WHERE c.tenant_id = %(tenant_id)s AND c.hidden)

-- readable: of documents that somebody may read; the condition and a parenthesis follow
v.document_id IN (SELECT d.document_id FROM documents d WHERE d.tenant_id = %(tenant_id)s

-- departments_order: the end of departments
GROUP BY 1 ORDER BY 1

-- readable_totals: what somebody may read
SELECT count(*), coalesce(sum(v.chunk_count), 0)::bigint
FROM document_versions v JOIN documents d USING (tenant_id, document_id)
WHERE v.tenant_id = %(tenant_id)s AND v.known_to = 'infinity'

-- store: the schema and its size
SELECT (SELECT max(version) FROM schema_migrations), pg_database_size(current_database())

-- check_contents: versions without their text
SELECT 'document version without its content', count(*) FROM document_versions v
WHERE v.tenant_id = %(tenant_id)s AND NOT EXISTS (
    SELECT FROM document_contents t WHERE t.tenant_id = v.tenant_id AND t.version_id = v.version_id)

-- check_chunk_counts: versions that lost or gained chunks
SELECT 'document version whose number of chunks is not what was written', count(*) FROM document_versions v
WHERE v.tenant_id = %(tenant_id)s AND v.chunk_count <> (
    SELECT count(*) FROM chunks c WHERE c.tenant_id = v.tenant_id AND c.version_id = v.version_id)

-- check_vectors: chunks that the dense arm cannot find
SELECT 'chunk without a vector', count(*) FROM chunks c
WHERE c.tenant_id = %(tenant_id)s AND NOT EXISTS (
    SELECT FROM chunk_vectors x WHERE x.tenant_id = c.tenant_id AND x.chunk_id = c.chunk_id)

-- check_lexical: chunks that the lexical arm cannot find
SELECT 'chunk without a lexical row', count(*) FROM chunks c
WHERE c.tenant_id = %(tenant_id)s AND NOT EXISTS (
    SELECT FROM chunk_lexical x WHERE x.tenant_id = c.tenant_id AND x.chunk_id = c.chunk_id)

-- check_known: arms that disagree with their version about what is current
SELECT 'chunk whose arms disagree with its version about when it is known', count(*)
FROM document_versions v JOIN chunk_vectors x USING (tenant_id, version_id)
JOIN chunk_lexical l ON l.tenant_id = x.tenant_id AND l.chunk_id = x.chunk_id
WHERE v.tenant_id = %(tenant_id)s AND (x.known_from, x.known_to, l.known_from, l.known_to)
    IS DISTINCT FROM (v.known_from, v.known_to, v.known_from, v.known_to)

-- check_access: versions or chunks that others may read than their document
SELECT 'document whose versions or chunks others may read than the document', count(*) FROM documents d
WHERE d.tenant_id = %(tenant_id)s AND EXISTS (
    SELECT FROM document_versions v
    LEFT JOIN chunk_vectors x ON x.tenant_id = v.tenant_id AND x.version_id = v.version_id
    LEFT JOIN chunk_lexical l ON l.tenant_id = x.tenant_id AND l.chunk_id = x.chunk_id
    WHERE v.tenant_id = d.tenant_id AND v.document_id = d.document_id
      AND (x.access_id <> v.access_id OR l.access_id <> v.access_id
           OR ((v.known_to <> 'infinity' OR v.access_id <> d.access_id) AND NOT EXISTS (
               SELECT FROM access_lists p WHERE p.tenant_id = v.tenant_id AND p.collection_id = v.collection_id
                 AND p.access_id = v.access_id AND p.beneath = d.access_id))))

-- contents_page: the text of some versions; comparing in the database would cut it anew for every chunk
SELECT version_id, content FROM document_contents
WHERE tenant_id = %(tenant_id)s AND version_id > %(after)s ORDER BY version_id LIMIT %(limit)s

-- chunk_texts: what the chunks of some versions say, and where
SELECT version_id, start_offset, end_offset, text FROM chunks
WHERE tenant_id = %(tenant_id)s AND version_id = ANY (%(version_ids)s)

-- check_counts: collections whose counters are wrong
SELECT 'collection whose counters are wrong', count(*)
FROM collection_state s CROSS JOIN LATERAL (
    SELECT count(*) AS documents, coalesce(sum(v.chunk_count), 0) AS chunks FROM document_versions v
    WHERE v.tenant_id = s.tenant_id AND v.collection_id = s.collection_id AND v.known_to = 'infinity') n
WHERE s.tenant_id = %(tenant_id)s AND (s.document_count <> n.documents OR s.chunk_count <> n.chunks)
