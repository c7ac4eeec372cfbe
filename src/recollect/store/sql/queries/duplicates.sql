-- copy_bands: sixteen rows a version, or none
COPY version_bands (tenant_id, version_id, band) FROM STDIN (FORMAT BINARY)

-- content_of: a document's text, as it is known
SELECT v.version_id, v.content_hash, x.content
FROM documents d JOIN document_versions v USING (tenant_id, document_id)
JOIN document_contents t USING (tenant_id, version_id)
JOIN texts x USING (tenant_id, text_hash)
WHERE d.tenant_id = %(tenant_id)s AND d.document_id = %(document_id)s

-- same: other documents with the same text; the conditions and by_id follow
SELECT d.document_id, d.uri, v.title, c.name, s.name
FROM document_versions v JOIN documents d USING (tenant_id, document_id)
JOIN collections c ON c.tenant_id = d.tenant_id AND c.collection_id = d.collection_id
JOIN sources s ON s.tenant_id = d.tenant_id AND s.source_id = d.source_id
WHERE v.tenant_id = %(tenant_id)s AND v.content_hash = %(content_hash)b AND d.document_id <> %(document_id)s

-- by_id: the end of same
ORDER BY d.document_id LIMIT %(limit)s

-- alike: other documents that share bands with a version; the conditions and most_first follow
SELECT d.document_id, d.uri, v.title, c.name, s.name, x.content
FROM (SELECT o.version_id, count(*) AS shared FROM version_bands b
      JOIN version_bands o ON o.tenant_id = b.tenant_id AND o.band = b.band AND o.version_id <> b.version_id
      WHERE b.tenant_id = %(tenant_id)s AND b.version_id = %(version_id)s
      GROUP BY o.version_id) n
JOIN document_versions v ON v.tenant_id = %(tenant_id)s AND v.version_id = n.version_id
JOIN documents d ON d.tenant_id = v.tenant_id AND d.document_id = v.document_id
JOIN document_contents t ON t.tenant_id = v.tenant_id AND t.version_id = v.version_id
JOIN texts x ON x.tenant_id = t.tenant_id AND x.text_hash = t.text_hash
JOIN collections c ON c.tenant_id = d.tenant_id AND c.collection_id = d.collection_id
JOIN sources s ON s.tenant_id = d.tenant_id AND s.source_id = d.source_id
WHERE d.document_id <> %(document_id)s AND v.content_hash <> %(content_hash)b

-- most_first: the end of alike
ORDER BY n.shared DESC, d.document_id LIMIT %(limit)s

-- groups: texts that several documents of some collections have; the conditions and several follow
SELECT array_agg(d.document_id ORDER BY d.document_id), array_agg(d.uri ORDER BY d.document_id),
       array_agg(v.title ORDER BY d.document_id), array_agg(c.name ORDER BY d.document_id),
       array_agg(s.name ORDER BY d.document_id)
FROM document_versions v JOIN documents d USING (tenant_id, document_id)
JOIN collections c ON c.tenant_id = d.tenant_id AND c.collection_id = d.collection_id
JOIN sources s ON s.tenant_id = d.tenant_id AND s.source_id = d.source_id
WHERE v.tenant_id = %(tenant_id)s

-- several: the end of groups
GROUP BY v.content_hash HAVING count(*) > 1 AND min(d.document_id) > %(after)s
ORDER BY min(d.document_id) LIMIT %(limit)s
