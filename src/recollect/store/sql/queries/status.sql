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

-- languages: chunks of the documents stored last, by the language that each was analysed in
SELECT coalesce(v.language, v.analysed_as[1]), sum(v.chunk_count)::bigint
FROM (SELECT language, analysed_as, chunk_count FROM document_versions
      WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s AND known_to = 'infinity'
      ORDER BY known_from DESC LIMIT %(limit)s) v
WHERE coalesce(v.language, v.analysed_as[1]) IS NOT NULL
GROUP BY 1

-- store: the schema and its size
SELECT (SELECT max(version) FROM schema_migrations), pg_database_size(current_database())
