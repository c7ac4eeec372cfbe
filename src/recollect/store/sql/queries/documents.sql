-- ensure_source: a source by name, made where it is missing. What an import has put there is read from its origin from now on
INSERT INTO sources AS s (tenant_id, collection_id, name, type)
VALUES (%(tenant_id)s, %(collection_id)s, %(name)s, %(type)s)
ON CONFLICT (tenant_id, collection_id, name) DO UPDATE SET type = excluded.type
WHERE s.type = 'manual' AND s.name <> 'manual' AND s.type <> excluded.type

-- get_source: a source by name
SELECT s.source_id, s.name, s.type, k.location, coalesce(s.metadata->'given', '{}') FROM sources s
LEFT JOIN source_connections k ON k.tenant_id = s.tenant_id AND k.source_id = s.source_id AND k.connector = 'directory'
WHERE s.tenant_id = %(tenant_id)s AND s.collection_id = %(collection_id)s AND s.name = %(name)s

-- sources_named: which of these names are sources of a type, or folders that are read under names of their own
SELECT s.source_id, s.name, s.type, k.location, coalesce(s.metadata->'given', '{}') FROM sources s
LEFT JOIN source_connections k ON k.tenant_id = s.tenant_id AND k.source_id = s.source_id AND k.connector = 'directory'
WHERE s.tenant_id = %(tenant_id)s AND s.collection_id = %(collection_id)s AND s.type = %(type)s
  AND coalesce(k.location, s.name) = ANY (%(names)s)

-- meets: those that hold a document which an ingest meets, of which the condition follows: whose name a file gets must
-- not depend on folders that others have ingested
EXISTS (SELECT FROM documents d WHERE d.tenant_id = s.tenant_id AND d.source_id = s.source_id

-- empty: those that hold nothing
NOT EXISTS (SELECT FROM documents n WHERE n.tenant_id = s.tenant_id AND n.source_id = s.source_id)

-- stamps: how the current versions of given URIs were read
SELECT d.uri, v.file_hash, v.fingerprint, d.document_id, v.version, v.chunk_count
FROM documents d JOIN document_versions v USING (tenant_id, document_id)
WHERE d.tenant_id = %(tenant_id)s AND d.source_id = %(source_id)s AND d.uri = ANY (%(uris)s) AND d.given_id IS NULL
  AND v.known_to = 'infinity' AND v.expires_at > now()

-- by_age: the end of stamps
ORDER BY d.document_id

-- current_uris: one page of the current documents of a source, by URI; what is attached to one goes with it, and what was
-- given an id is no file
SELECT d.uri, d.document_id
FROM documents d JOIN document_versions v USING (tenant_id, document_id)
WHERE d.tenant_id = %(tenant_id)s AND d.source_id = %(source_id)s AND v.known_to = 'infinity'
  AND d.attached_to IS NULL AND d.given_id IS NULL AND (d.uri, d.document_id) > (%(after)s, %(after_id)s) AND starts_with(d.uri, %(prefix)s)

-- web_pages: one page of the current documents of a source, by URI, with how each was fetched
SELECT d.uri, d.document_id, v.file_hash, v.fingerprint, v.metadata
FROM documents d JOIN document_versions v USING (tenant_id, document_id)
WHERE d.tenant_id = %(tenant_id)s AND d.source_id = %(source_id)s AND v.known_to = 'infinity'
  AND d.given_id IS NULL AND (d.uri, d.document_id) > (%(after)s, %(after_id)s)

-- source_metadata: what is noted of a source
SELECT metadata FROM sources WHERE tenant_id = %(tenant_id)s AND source_id = %(source_id)s

-- note_source: something more of it
UPDATE sources SET metadata = metadata || %(metadata)s::jsonb
WHERE tenant_id = %(tenant_id)s AND source_id = %(source_id)s

-- by_uri: the end of current_uris and web_pages
ORDER BY d.uri, d.document_id LIMIT %(limit)s

-- held_twice: documents of inner directories that the outer directory's source holds as well
SELECT d.document_id
FROM sources o
JOIN sources s ON s.tenant_id = o.tenant_id AND s.collection_id = o.collection_id AND s.source_id <> o.source_id
    AND s.type = 'directory'
LEFT JOIN source_connections k ON k.tenant_id = s.tenant_id AND k.source_id = s.source_id AND k.connector = 'directory'
JOIN documents d ON d.tenant_id = s.tenant_id AND d.source_id = s.source_id
JOIN documents u ON u.tenant_id = o.tenant_id AND u.source_id = o.source_id AND u.owner = d.owner
    AND u.uri = substr(coalesce(k.location, s.name), length(%(below)s) + 1) || '/' || d.uri
    AND u.given_id IS NULL AND d.given_id IS NULL
WHERE o.tenant_id = %(tenant_id)s AND o.source_id = %(source_id)s AND o.type = 'directory'
  AND starts_with(coalesce(k.location, s.name), %(below)s)
  AND EXISTS (SELECT FROM document_versions v
              WHERE v.tenant_id = d.tenant_id AND v.document_id = d.document_id AND v.known_to = 'infinity')
  AND EXISTS (SELECT FROM document_versions v
              WHERE v.tenant_id = u.tenant_id AND v.document_id = u.document_id AND v.known_to = 'infinity')

-- get: one document with its content
SELECT d.document_id, d.uri, v.title, c.name, v.version, v.department, v.mime_type, v.language, v.metadata, v.tags,
       v.chunk_count, encode(v.content_hash, 'hex'), v.known_from, v.event_from, s.name, x.content, v.status, v.error, s.type,
       d.given_id
FROM documents d
JOIN document_versions v USING (tenant_id, document_id)
JOIN document_contents t USING (tenant_id, version_id)
JOIN texts x USING (tenant_id, text_hash)
JOIN collections c ON c.tenant_id = d.tenant_id AND c.collection_id = d.collection_id
JOIN sources s ON s.tenant_id = d.tenant_id AND s.source_id = d.source_id
WHERE d.tenant_id = %(tenant_id)s AND d.document_id = %(document_id)s

-- list_page: documents without their contents, newest id last
SELECT d.document_id, d.uri, v.title, c.name, v.version, v.department, v.mime_type, v.language, v.metadata, v.tags,
       v.chunk_count, encode(v.content_hash, 'hex'), v.known_from, v.event_from, s.name, NULL, v.status, v.error, s.type,
       d.given_id
FROM documents d
JOIN document_versions v USING (tenant_id, document_id)
JOIN collections c ON c.tenant_id = d.tenant_id AND c.collection_id = d.collection_id
JOIN sources s ON s.tenant_id = d.tenant_id AND s.source_id = d.source_id
WHERE d.tenant_id = %(tenant_id)s AND d.collection_id = %(collection_id)s
  AND (%(department)s::text IS NULL OR v.department = %(department)s)
  AND (%(source)s::text IS NULL OR d.uri = %(source)s OR s.name = %(source)s)
  AND v.tags @> %(tags)s::text[]

-- list_order: the end of list_page
AND d.document_id > %(after)s ORDER BY d.document_id LIMIT %(limit)s

-- list_newest: the end of list_page where the newest id is first
AND (%(after)s = 0 OR d.document_id < %(after)s) ORDER BY d.document_id DESC LIMIT %(limit)s

-- ids_by_uri: documents of a given URI, in every source
SELECT d.document_id FROM documents d JOIN document_versions v USING (tenant_id, document_id)
WHERE d.tenant_id = %(tenant_id)s AND d.uri = %(uri)s

-- ids_by_given_id: documents of a given id, which the source may stand before
SELECT d.document_id FROM documents d JOIN document_versions v USING (tenant_id, document_id)
WHERE d.tenant_id = %(tenant_id)s AND d.given_id = ANY (%(given_ids)s::text[])
  AND %(name)s IN (d.given_id, d.uri || '#' || d.given_id)

-- filterable: what current documents of some collections can be filtered by; conditions and filterable_kinds follow
WITH seen AS (
    SELECT v.department, v.tags, v.metadata
    FROM documents d JOIN document_versions v USING (tenant_id, document_id)
    WHERE d.tenant_id = %(tenant_id)s AND d.collection_id = ANY (%(collection_ids)s)

-- filterable_kinds: the end of filterable
)
SELECT 'department', department FROM seen WHERE department IS NOT NULL GROUP BY 2
UNION ALL SELECT 'tags', tag FROM seen, unnest(tags) AS tag GROUP BY 2
UNION ALL SELECT 'metadata', key FROM seen, jsonb_object_keys(metadata) AS key GROUP BY 2
ORDER BY 1, 2

-- whereabouts: the collections and the origins of documents, and how they are named
SELECT d.document_id, c.name, s.name, d.uri, d.given_id
FROM documents d
JOIN collections c ON c.tenant_id = d.tenant_id AND c.collection_id = d.collection_id
JOIN sources s ON s.tenant_id = d.tenant_id AND s.source_id = d.source_id
WHERE d.tenant_id = %(tenant_id)s AND d.document_id = ANY (%(document_ids)s)
ORDER BY c.name, d.document_id

-- roots: the roots of documents of given URIs; conditions follow
SELECT d.document_id, d.uri, s.name
FROM documents d JOIN document_versions v USING (tenant_id, document_id)
JOIN sources s ON s.tenant_id = d.tenant_id AND s.source_id = d.source_id
WHERE d.tenant_id = %(tenant_id)s AND d.collection_id = %(collection_id)s AND d.uri = ANY (%(uris)s::text[])
  AND d.given_id IS NULL

-- by_root: documents by the end of their root's name and their URI, where another root of the collection has that URI too
SELECT d.document_id FROM documents d JOIN sources s ON s.tenant_id = d.tenant_id AND s.source_id = d.source_id
WHERE d.tenant_id = %(tenant_id)s AND d.uri = ANY (%(uris)s::text[]) AND d.given_id IS NULL
  AND right('/' || ltrim(s.name, '/') || '/' || d.uri, length(%(name)s) + 1) = '/' || %(name)s
  AND EXISTS (SELECT FROM documents o WHERE o.tenant_id = d.tenant_id AND o.collection_id = d.collection_id
                AND o.uri = d.uri AND o.source_id <> d.source_id AND o.given_id IS NULL)

-- by_id: whether there is such a document, current or closed
SELECT d.document_id FROM documents d WHERE d.tenant_id = %(tenant_id)s AND d.document_id = %(document_id)s

-- given: those of some documents
SELECT d.document_id FROM documents d
WHERE d.tenant_id = %(tenant_id)s AND d.document_id = ANY (%(document_ids)s::bigint[])

-- ever_by_uri: documents of a given URI, in every source, current or closed
SELECT d.document_id FROM documents d WHERE d.tenant_id = %(tenant_id)s AND d.uri = %(uri)s

-- ever_by_given_id: documents of a given id, current or closed
SELECT d.document_id FROM documents d
WHERE d.tenant_id = %(tenant_id)s AND d.given_id = ANY (%(given_ids)s::text[])
  AND %(name)s IN (d.given_id, d.uri || '#' || d.given_id)

-- known_now: the current version
v.known_to = 'infinity'

-- known_as_of: the version that was current at a moment
v.known_from <= %(as_of)s AND v.known_to > %(as_of)s

-- hold_collection: keeps it from being deleted until the end of the transaction; taken before any document
SELECT collection_id FROM collections
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s
FOR KEY SHARE

-- lock_inner_documents: in the order of every writer
SELECT d.document_id FROM documents d JOIN sources s USING (tenant_id, source_id)
LEFT JOIN source_connections k ON k.tenant_id = s.tenant_id AND k.source_id = s.source_id AND k.connector = 'directory'
WHERE d.tenant_id = %(tenant_id)s AND s.collection_id = %(collection_id)s AND s.source_id <> %(source_id)s
  AND (s.type = 'directory' AND starts_with(coalesce(k.location, s.name) || '/', %(directory)s || '/')
       -- What an import has put below the path of a folder: one inside the directory, or around it.
       OR s.type = 'manual' AND starts_with(s.name, '/')
          AND starts_with(rtrim(s.name, '/') || '/' || d.uri, %(directory)s || '/'))

-- in_order: the end of lock_inner_documents
ORDER BY coalesce(d.given_id, d.uri), d.document_id FOR UPDATE OF d

-- adopt_documents: documents of a directory, and of those inside it, move to it under their longer path, and their versions
-- with them
UPDATE documents d SET source_id = %(source_id)s, uri = i.uri
FROM (SELECT DISTINCT ON (m.given_id, CASE WHEN m.given_id IS NULL THEN p.uri END, m.owner, m.twin)
             m.tenant_id, m.document_id, p.uri
      FROM documents m JOIN sources s USING (tenant_id, source_id)
      LEFT JOIN source_connections k ON k.tenant_id = s.tenant_id AND k.source_id = s.source_id AND k.connector = 'directory'
      CROSS JOIN LATERAL (
          SELECT substr(rtrim(coalesce(k.location, s.name), '/') || '/' || m.uri, length(%(directory)s) + 2) AS uri) p
      WHERE m.tenant_id = %(tenant_id)s AND m.document_id = ANY (%(document_ids)s::bigint[])
      ORDER BY m.given_id, CASE WHEN m.given_id IS NULL THEN p.uri END, m.owner, m.twin, m.document_id) i
WHERE d.tenant_id = %(tenant_id)s AND i.tenant_id = d.tenant_id AND i.document_id = d.document_id AND NOT EXISTS (
      SELECT FROM documents o WHERE o.tenant_id = d.tenant_id AND o.source_id = %(source_id)s AND o.owner = d.owner
        AND o.uri = i.uri AND o.given_id IS NULL AND d.given_id IS NULL)
  AND NOT EXISTS (
      SELECT FROM documents o WHERE o.tenant_id = d.tenant_id AND o.source_id = %(source_id)s AND o.owner = d.owner
        AND o.given_id = d.given_id)
RETURNING d.document_id

-- drop_former: what a directory was read as before it had a name of its own, once it holds nothing
DELETE FROM sources s WHERE s.tenant_id = %(tenant_id)s AND s.collection_id = %(collection_id)s AND s.type = 'directory'
  AND s.name = %(directory)s AND s.source_id <> %(source_id)s
  AND NOT EXISTS (SELECT FROM documents d WHERE d.tenant_id = s.tenant_id AND d.source_id = s.source_id)
  AND NOT EXISTS (SELECT FROM source_connections k WHERE k.tenant_id = s.tenant_id AND k.source_id = s.source_id)
