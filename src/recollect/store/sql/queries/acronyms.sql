-- frequent: the acronyms that current documents of a collection explain
SELECT a.short, a.long, sum(a.occurrences)::int AS occurrences
FROM version_acronyms a JOIN document_versions v USING (tenant_id, version_id)
WHERE a.tenant_id = %(tenant_id)s AND a.collection_id = %(collection_id)s AND v.known_to = 'infinity'
  AND (%(access_ids)s::int[] IS NULL OR v.access_id = ANY (%(access_ids)s::int[]))
GROUP BY a.short, a.long ORDER BY occurrences DESC, a.short, a.long LIMIT %(limit)s

-- copy: one row an acronym of a version
COPY version_acronyms (tenant_id, version_id, collection_id, short, long, occurrences) FROM STDIN (FORMAT BINARY)
