-- ensure_source: a source by name, made where it is missing
INSERT INTO sources (tenant_id, collection_id, name, type)
VALUES (%(tenant_id)s, %(collection_id)s, %(name)s, %(type)s)
ON CONFLICT (tenant_id, collection_id, name) DO NOTHING

-- get_source: a source by name
SELECT source_id, name, type FROM sources
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s AND name = %(name)s

-- sources_named: which of these names are sources of a type
SELECT source_id, name, type FROM sources
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s AND type = %(type)s AND name = ANY (%(names)s)

-- stamps: how the current versions of given URIs were read
SELECT d.uri, v.file_hash, v.fingerprint, d.document_id, v.version, v.chunk_count
FROM documents d JOIN document_versions v USING (tenant_id, document_id)
WHERE d.tenant_id = %(tenant_id)s AND d.source_id = %(source_id)s AND d.uri = ANY (%(uris)s)
  AND v.known_to = 'infinity'

-- current_uris: one page of the current documents of a source, by URI
SELECT d.uri, d.document_id
FROM documents d JOIN document_versions v USING (tenant_id, document_id)
WHERE d.tenant_id = %(tenant_id)s AND d.source_id = %(source_id)s AND v.known_to = 'infinity'
  AND d.uri > %(after)s AND starts_with(d.uri, %(prefix)s)
ORDER BY d.uri LIMIT %(limit)s

-- get: one document with its content
SELECT d.document_id, d.uri, v.title, c.name, v.version, v.department, v.mime_type, v.language, v.metadata, v.tags,
       v.chunk_count, encode(v.content_hash, 'hex'), v.known_from, v.event_from, s.name, t.content
FROM documents d
JOIN document_versions v USING (tenant_id, document_id)
JOIN document_contents t USING (tenant_id, version_id)
JOIN collections c ON c.tenant_id = d.tenant_id AND c.collection_id = d.collection_id
JOIN sources s ON s.tenant_id = d.tenant_id AND s.source_id = d.source_id
WHERE d.tenant_id = %(tenant_id)s AND d.document_id = %(document_id)s

-- list_page: documents without their contents, newest id last
SELECT d.document_id, d.uri, v.title, c.name, v.version, v.department, v.mime_type, v.language, v.metadata, v.tags,
       v.chunk_count, encode(v.content_hash, 'hex'), v.known_from, v.event_from, s.name, NULL
FROM documents d
JOIN document_versions v USING (tenant_id, document_id)
JOIN collections c ON c.tenant_id = d.tenant_id AND c.collection_id = d.collection_id
JOIN sources s ON s.tenant_id = d.tenant_id AND s.source_id = d.source_id
WHERE d.tenant_id = %(tenant_id)s AND d.collection_id = %(collection_id)s AND d.document_id > %(after)s
  AND (%(department)s::text IS NULL OR v.department = %(department)s)

-- list_order: the end of list_page
ORDER BY d.document_id LIMIT %(limit)s

-- ids_by_uri: documents of a given URI, in every source
SELECT d.document_id FROM documents d JOIN document_versions v USING (tenant_id, document_id)
WHERE d.tenant_id = %(tenant_id)s AND d.uri = %(uri)s

-- known_now: the current version
v.known_to = 'infinity'

-- known_as_of: the version that was current at a moment
v.known_from <= %(as_of)s AND v.known_to > %(as_of)s
