-- connect: a source is read by a connector from now on
INSERT INTO source_connections (tenant_id, source_id, connector, location, settings, interval_seconds)
VALUES (%(tenant_id)s, %(source_id)s, %(connector)s, %(location)s, %(settings)s, %(interval_seconds)s)
ON CONFLICT (tenant_id, source_id) DO NOTHING
RETURNING source_id

-- disconnect: it is read no longer; what was stored of it stays
DELETE FROM source_connections WHERE tenant_id = %(tenant_id)s AND source_id = %(source_id)s

-- drop_empty: a source without documents leaves nothing
DELETE FROM sources s WHERE s.tenant_id = %(tenant_id)s AND s.source_id = %(source_id)s
  AND NOT EXISTS (SELECT FROM documents d WHERE d.tenant_id = s.tenant_id AND d.source_id = s.source_id)

-- records: sources with what is known of their refreshing
SELECT s.source_id, s.name, s.type, c.name, k.connector, k.location, k.settings, k.interval_seconds, k.state, k.problem,
       k.began_at, k.refreshed_at,
       (SELECT count(*) FROM documents d JOIN document_versions v USING (tenant_id, document_id)
        WHERE d.tenant_id = s.tenant_id AND d.source_id = s.source_id AND v.known_to = 'infinity'),
       (SELECT count(*) FROM source_items i
        WHERE i.tenant_id = s.tenant_id AND i.source_id = s.source_id AND i.problem IS NOT NULL),
       coalesce(s.metadata->'given', '{}')
FROM sources s
JOIN collections c ON c.tenant_id = s.tenant_id AND c.collection_id = s.collection_id
LEFT JOIN source_connections k ON k.tenant_id = s.tenant_id AND k.source_id = s.source_id
WHERE s.tenant_id = %(tenant_id)s AND NOT c.hidden
  AND (%(collection_id)s::int IS NULL OR s.collection_id = %(collection_id)s)
  AND (%(name)s::text IS NULL OR s.name = %(name)s)
  AND (NOT %(due)s OR k.interval_seconds IS NOT NULL
       AND coalesce(k.began_at, '-infinity') + make_interval(secs => k.interval_seconds) <= now())
  AND ARRAY[c.name, s.type, s.name] > %(after)s::text[]
ORDER BY c.name, s.type, s.name LIMIT %(limit)s

-- progress: where a connector goes on, and the number of its listing
SELECT cursor, listing FROM source_connections WHERE tenant_id = %(tenant_id)s AND source_id = %(source_id)s

-- begin: a refresh begins
UPDATE source_connections SET state = 'refreshing', began_at = clock_timestamp(), problem = NULL
WHERE tenant_id = %(tenant_id)s AND source_id = %(source_id)s

-- forget_cursor: the next refresh reads everything
UPDATE source_connections SET cursor = NULL WHERE tenant_id = %(tenant_id)s AND source_id = %(source_id)s

-- begin_listing: what is named from now on bears a number of its own
UPDATE source_connections SET listing = listing + 1
WHERE tenant_id = %(tenant_id)s AND source_id = %(source_id)s
RETURNING listing

-- save_cursor: what came before is stored
UPDATE source_connections SET cursor = %(cursor)s WHERE tenant_id = %(tenant_id)s AND source_id = %(source_id)s

-- end: a refresh has come to its end
UPDATE source_connections SET state = 'fresh', problem = NULL, refreshed_at = clock_timestamp()
WHERE tenant_id = %(tenant_id)s AND source_id = %(source_id)s

-- fail: it has not
UPDATE source_connections SET state = 'error', problem = %(problem)s,
    began_at = CASE state WHEN 'refreshing' THEN began_at ELSE clock_timestamp() END
WHERE tenant_id = %(tenant_id)s AND source_id = %(source_id)s

-- items: what is known of some
SELECT uri, document_id, revision, fingerprint, grants, problem FROM source_items
WHERE tenant_id = %(tenant_id)s AND source_id = %(source_id)s AND uri = ANY (%(uris)s)

-- save_items: some were read
INSERT INTO source_items AS i
    (tenant_id, source_id, uri, document_id, revision, fingerprint, grants, problem, listing)
SELECT %(tenant_id)s, %(source_id)s, n.uri, d.document_id, n.revision, n.fingerprint, n.grants::text[], n.problem,
       %(listing)s
FROM unnest(%(uris)s::text[], %(document_ids)s::bigint[], %(revisions)s::text[], %(fingerprints)s::text[],
            %(grants)s::text[], %(problems)s::text[]) AS n (uri, document_id, revision, fingerprint, grants, problem)
-- One that was erased meanwhile leaves no trace here.
LEFT JOIN documents d ON d.tenant_id = %(tenant_id)s AND d.document_id = n.document_id
WHERE d.document_id IS NOT NULL OR n.document_id IS NULL
ON CONFLICT (tenant_id, source_id, uri) DO UPDATE SET
    document_id = coalesce(excluded.document_id, i.document_id), revision = excluded.revision,
    fingerprint = excluded.fingerprint, grants = excluded.grants, problem = excluded.problem, gone = false,
    listing = greatest(i.listing, excluded.listing)

-- touch_items: some are there still
UPDATE source_items SET listing = greatest(listing, %(listing)s), gone = false
WHERE tenant_id = %(tenant_id)s AND source_id = %(source_id)s AND uri = ANY (%(uris)s)
  AND (listing < %(listing)s OR gone)

-- mark_removed: the source says that these have gone
UPDATE source_items SET gone = true
WHERE tenant_id = %(tenant_id)s AND source_id = %(source_id)s AND uri = ANY (%(uris)s)

-- mark_unnamed: a listing has ended that did not name these
UPDATE source_items SET gone = true
WHERE tenant_id = %(tenant_id)s AND source_id = %(source_id)s AND listing < %(listing)s AND NOT gone

-- counts: items with a document, and those of them that have gone
SELECT count(*), count(*) FILTER (WHERE gone) FROM source_items
WHERE tenant_id = %(tenant_id)s AND source_id = %(source_id)s AND document_id IS NOT NULL

-- gone_items: a page of those that have gone
SELECT uri, document_id FROM source_items
WHERE tenant_id = %(tenant_id)s AND source_id = %(source_id)s AND gone ORDER BY uri LIMIT %(limit)s

-- forget_items: they are closed
DELETE FROM source_items
WHERE tenant_id = %(tenant_id)s AND source_id = %(source_id)s AND uri = ANY (%(uris)s) AND gone

-- documents: every document of a source, current or not
SELECT d.document_id FROM documents d
WHERE d.tenant_id = %(tenant_id)s AND d.source_id = %(source_id)s ORDER BY d.document_id

-- connector_of: what reads a document's source
SELECT c.connector FROM documents d JOIN source_connections c USING (tenant_id, source_id)
WHERE d.tenant_id = %(tenant_id)s AND d.document_id = %(document_id)s
