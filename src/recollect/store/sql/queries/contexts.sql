-- pending: current versions of which a chunk was not asked about by a model and prompt
SELECT v.version_id FROM document_versions v
WHERE v.tenant_id = %(tenant_id)s AND v.collection_id = %(collection_id)s AND v.known_to = 'infinity'
  AND v.version_id > %(after)s AND EXISTS (
    SELECT FROM chunks c WHERE c.tenant_id = v.tenant_id AND c.version_id = v.version_id
      AND c.context_by IS DISTINCT FROM %(made_by)s)
ORDER BY v.version_id LIMIT %(limit)s

-- size: how many they are, and how many bytes are given to a model for them
SELECT count(DISTINCT v.version_id), count(*), coalesce(sum(
    octet_length(c.text) + least(octet_length(x.content), %(beginning)s) + least(octet_length(x.content), 2 * %(around)s)), 0)
FROM document_versions v JOIN document_contents t USING (tenant_id, version_id)
JOIN texts x USING (tenant_id, text_hash)
JOIN chunks c ON c.tenant_id = v.tenant_id AND c.version_id = v.version_id
WHERE v.tenant_id = %(tenant_id)s AND v.collection_id = %(collection_id)s AND v.known_to = 'infinity'
  AND EXISTS (SELECT FROM chunks p WHERE p.tenant_id = v.tenant_id AND p.version_id = v.version_id
              AND p.context_by IS DISTINCT FROM %(made_by)s)
