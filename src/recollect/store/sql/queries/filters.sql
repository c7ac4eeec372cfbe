-- matching_versions: the versions of a collection that pass a filter; conditions are appended with AND
SELECT array_agg(v.version_id ORDER BY v.version_id), sum(v.chunk_count)
FROM document_versions v
WHERE v.tenant_id = %(tenant_id)s AND v.collection_id = %(collection_id)s

-- known_now: the current version
v.known_to = 'infinity'

-- known_as_of: the version that was current at a moment
v.known_from <= %(as_of)s AND v.known_to > %(as_of)s AND v.expires_at > %(as_of)s

-- unexpired: what is current and due, but not closed yet, is left out
v.expires_at > now()

-- documents: where conditions are counted, in a collection or for one version of it
FROM document_versions v
WHERE v.tenant_id = %(tenant_id)s AND v.collection_id = %(collection_id)s
  AND (%(version_id)s::bigint IS NULL OR v.version_id = %(version_id)s)

-- readable: the versions that the caller may read
v.access_id = ANY (%(access_ids)s::int[])
