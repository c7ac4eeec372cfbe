-- listed: documents of collections, by id; the conditions and listed_order follow
SELECT d.document_id, d.uri, v.title, c.name, v.version_id, v.department, v.tags, octet_length(x.content), v.known_from,
       v.event_from, v.mime_type, d.given_id
FROM documents d
JOIN document_versions v USING (tenant_id, document_id)
JOIN document_contents t USING (tenant_id, version_id)
JOIN texts x USING (tenant_id, text_hash)
JOIN collections c ON c.tenant_id = d.tenant_id AND c.collection_id = d.collection_id
WHERE d.tenant_id = %(tenant_id)s AND d.collection_id = ANY (%(collection_ids)s::int[])
  AND d.document_id > %(after)s AND (%(department)s::text IS NULL OR v.department = %(department)s)
  AND (%(name)s::text IS NULL OR strpos(lower(d.uri), lower(%(name)s)) > 0
       OR strpos(lower(v.title), lower(%(name)s)) > 0)

-- listed_order: the end of listed
ORDER BY d.document_id LIMIT %(limit)s

-- sizes: how long the texts of collections are, which is known without reading them; the conditions and sizes_order follow
SELECT d.document_id, v.version_id, octet_length(x.content)
FROM documents d
JOIN document_versions v USING (tenant_id, document_id)
JOIN document_contents t USING (tenant_id, version_id)
JOIN texts x USING (tenant_id, text_hash)
WHERE d.tenant_id = %(tenant_id)s AND d.collection_id = ANY (%(collection_ids)s::int[])
  AND d.document_id >= %(from_document)s AND (%(document_id)s::bigint IS NULL OR d.document_id = %(document_id)s)
  AND (%(department)s::text IS NULL OR v.department = %(department)s)

-- sizes_order: the end of sizes
ORDER BY d.document_id LIMIT %(limit)s

-- texts: of some versions; the conditions and texts_order follow
SELECT d.document_id, d.uri, v.title, c.name, v.version_id, x.content
FROM documents d
JOIN document_versions v USING (tenant_id, document_id)
JOIN document_contents t USING (tenant_id, version_id)
JOIN texts x USING (tenant_id, text_hash)
JOIN collections c ON c.tenant_id = d.tenant_id AND c.collection_id = d.collection_id
WHERE d.tenant_id = %(tenant_id)s AND d.collection_id = ANY (%(collection_ids)s::int[])
  AND v.version_id = ANY (%(version_ids)s::bigint[])

-- texts_order: the end of texts
ORDER BY d.document_id

-- part: a range of one document's text, and what tells where it stands; the conditions follow
SELECT d.document_id, d.uri, v.title, c.name, v.version_id, length(x.content),
       substr(x.content, %(start)s::int + 1, %(length)s::int), t.headings, t.pages, v.mime_type
FROM documents d
JOIN document_versions v USING (tenant_id, document_id)
JOIN document_contents t USING (tenant_id, version_id)
JOIN texts x USING (tenant_id, text_hash)
JOIN collections c ON c.tenant_id = d.tenant_id AND c.collection_id = d.collection_id
WHERE d.tenant_id = %(tenant_id)s AND d.collection_id = ANY (%(collection_ids)s::int[])
  AND d.document_id = %(document_id)s

-- sections: where the sections begin that were found when a version was cut
SELECT section, min(start_offset) FROM chunks
WHERE tenant_id = %(tenant_id)s AND version_id = %(version_id)s AND section <> '{}'
GROUP BY section ORDER BY 2

-- chunks: what a version was cut into, in order, as far as it holds something of a range
SELECT chunk_id, position, start_offset, end_offset, text, section, page, token_count, context FROM chunks
WHERE tenant_id = %(tenant_id)s AND version_id = %(version_id)s AND position > %(after)s
  AND end_offset > %(start)s::int AND start_offset < %(end)s::int
ORDER BY position LIMIT %(limit)s

-- unexpired: what has not expired, where what has could not be closed
v.expires_at > now()

-- unexpired_then: what had not expired at a moment, closed or not
v.expires_at > %(as_of)s
