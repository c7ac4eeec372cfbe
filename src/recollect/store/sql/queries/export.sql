-- documents: the current documents of a collection, one page at a time. Who may read them is said wherever it is not everybody:
-- a list that is lost is nobody's. A folder is named by where it is. Another store's numbers are never those of this one, so
-- that an imported `twin` is negative
SELECT v.document_id, v.version_id, v.uri, x.content, v.title, v.metadata, v.tags, v.department, v.language,
       v.mime_type, v.event_from, v.event_to, t.headings, t.pages, r.name, r.mime_type, o.byte_count, o.file_hash,
       CASE WHEN a.access_id = 0 AND a.grants = '{*}' AND a.denials = '{}' THEN NULL
            ELSE coalesce(nullif(a.grants, '{}'), '{!*}') || ARRAY(SELECT '!' || unnest(a.denials)) END,
       coalesce(k.location, s.name), nullif(v.expires_at, 'infinity'), d.owner, abs(d.twin), c.readers, d.given_id, d.attached_to
FROM document_versions v JOIN document_contents t USING (tenant_id, version_id)
JOIN texts x USING (tenant_id, text_hash)
JOIN documents d ON d.tenant_id = v.tenant_id AND d.document_id = v.document_id
JOIN collections c ON c.tenant_id = d.tenant_id AND c.collection_id = d.collection_id
JOIN sources s ON s.tenant_id = d.tenant_id AND s.source_id = d.source_id
LEFT JOIN source_connections k ON k.tenant_id = s.tenant_id AND k.source_id = s.source_id AND k.connector = 'directory'
LEFT JOIN access_lists a ON a.tenant_id = d.tenant_id AND a.collection_id = d.collection_id AND a.access_id = d.access_id
LEFT JOIN version_originals r ON r.tenant_id = v.tenant_id AND r.version_id = v.version_id
LEFT JOIN originals o ON o.tenant_id = r.tenant_id AND o.file_hash = r.file_hash
WHERE v.tenant_id = %(tenant_id)s AND v.collection_id = %(collection_id)s AND v.document_id > %(after)s
  AND v.known_to = 'infinity' AND v.expires_at > now()

-- messages: what documents hang on, by number
SELECT d.document_id, d.uri, d.given_id FROM documents d
WHERE d.tenant_id = %(tenant_id)s AND d.document_id = ANY (%(document_ids)s)

-- stands: whether a version is there still
SELECT 1 FROM document_versions WHERE tenant_id = %(tenant_id)s AND version_id = %(version_id)s

-- page: the end of documents
ORDER BY v.document_id LIMIT %(limit)s

-- chunks: the chunks of given versions, in order
SELECT c.version_id, c.start_offset, c.end_offset, x.embedding, c.section, c.page, c.token_count, c.parent_start,
       c.parent_end, c.metadata, c.context, c.context_by
FROM chunks c JOIN chunk_vectors x USING (tenant_id, chunk_id)
WHERE c.tenant_id = %(tenant_id)s AND c.version_id = ANY (%(version_ids)s) AND x.space_id = %(space_id)s
  AND require_space(%(tenant_id)s, %(space_id)s)
ORDER BY c.version_id, c.position
