-- since: the revision of a collection now, and what changed after one that it has had: NULL where that is not known
SELECT s.revision, s.revision_id::text,
    CASE WHEN s.revision_id = %(revision_id)s::uuid THEN '{}'
         WHEN EXISTS (SELECT FROM collection_changes n WHERE n.tenant_id = s.tenant_id AND n.collection_id = s.collection_id
                        AND n.revision = %(revision)s::bigint + 1 AND n.follows = %(revision_id)s::uuid)
         THEN ARRAY (SELECT DISTINCT unnest(c.version_ids) FROM collection_changes c
                     WHERE c.tenant_id = s.tenant_id AND c.collection_id = s.collection_id
                       AND c.revision > %(revision)s::bigint ORDER BY 1) END
FROM collection_state s WHERE s.tenant_id = %(tenant_id)s AND s.collection_id = %(collection_id)s
