-- add: a file whose bytes are kept
INSERT INTO uploaded_files (tenant_id, file_hash, name, mime_type, purpose, sent_by, principal, expires_at)
VALUES (%(tenant_id)s, %(file_hash)b, %(name)s, %(mime_type)s, %(purpose)s, %(user)s, %(principal)s,
        coalesce(now() + make_interval(secs => %(seconds)s::float8), 'infinity'))
RETURNING file_id

-- page: of whoever asks, by number; the order follows
SELECT f.file_id, f.name, f.mime_type, o.byte_count, f.file_hash, f.purpose, f.sent_by, f.created_at,
       nullif(f.expires_at, 'infinity')
FROM uploaded_files f JOIN originals o USING (tenant_id, file_hash)
WHERE f.tenant_id = %(tenant_id)s AND f.expires_at > now()
  AND (NOT %(own)s OR f.sent_by = %(user)s::text OR %(user)s::text IS NULL AND f.principal = %(principal)s::jsonb)
  AND (%(file_ids)s::bigint[] IS NULL OR f.file_id = ANY (%(file_ids)s::bigint[]))
  AND (%(purpose)s::text IS NULL OR f.purpose = %(purpose)s)

-- oldest_first: the end of page
  AND f.file_id > %(after)s ORDER BY f.file_id LIMIT %(limit)s

-- newest_first: the end of page from the largest number on
  AND (%(after)s = 0 OR f.file_id < %(after)s) ORDER BY f.file_id DESC LIMIT %(limit)s

-- is_wanted: whether there is such a file, whoever sent it, and it was not taken out of a collection while a job stores it there
SELECT EXISTS (SELECT FROM uploaded_files
               WHERE tenant_id = %(tenant_id)s AND file_id = %(file_id)s AND expires_at > now())
   AND NOT EXISTS (SELECT FROM jobs WHERE tenant_id = %(tenant_id)s AND source = %(source)s
                   AND collection = %(collection)s AND status = 'running' AND arguments ? 'detached')

-- delete: one of whoever asks
DELETE FROM uploaded_files f
WHERE f.tenant_id = %(tenant_id)s AND f.file_id = %(file_id)s
  AND (NOT %(own)s OR f.sent_by = %(user)s::text OR %(user)s::text IS NULL AND f.principal = %(principal)s::jsonb)
RETURNING 1

-- delete_expired: whose time is over
DELETE FROM uploaded_files WHERE tenant_id = %(tenant_id)s AND expires_at <= now()

-- delete_of_documents: those that documents were made from
DELETE FROM uploaded_files f USING documents d JOIN sources s USING (tenant_id, source_id)
WHERE f.tenant_id = %(tenant_id)s AND d.tenant_id = f.tenant_id AND d.document_id = ANY (%(document_ids)s::bigint[])
  AND s.type = 'upload' AND s.name = 'file-' || f.file_id

-- documents: that were made from a file, wherever they are
SELECT d.document_id, d.collection_id, c.name
FROM collections c
JOIN sources s ON s.tenant_id = c.tenant_id AND s.collection_id = c.collection_id AND s.name = %(source)s AND s.type = 'upload'
JOIN documents d ON d.tenant_id = s.tenant_id AND d.source_id = s.source_id
WHERE c.tenant_id = %(tenant_id)s AND NOT c.hidden ORDER BY d.document_id

-- files_of: of documents the file that each was made from
SELECT d.document_id, substr(s.name, 6)::bigint
FROM documents d JOIN sources s USING (tenant_id, source_id)
WHERE d.tenant_id = %(tenant_id)s AND d.document_id = ANY (%(document_ids)s::bigint[])
  AND s.type = 'upload' AND s.name ~ '^file-[1-9][0-9]{0,17}$'

-- forget_unstored: a document of which nothing was ever stored, unless somebody is storing it
DELETE FROM documents d WHERE d.tenant_id = %(tenant_id)s AND d.document_id = %(document_id)s
  AND NOT EXISTS (SELECT FROM document_versions v WHERE v.tenant_id = d.tenant_id AND v.document_id = d.document_id)
  AND NOT EXISTS (SELECT FROM jobs j WHERE j.tenant_id = d.tenant_id AND j.document_id = d.document_id
                  AND j.status IN ('pending', 'running'))

-- detach: let the jobs know that are to store a document, and have not
UPDATE jobs SET arguments = arguments || '{"detached": true}'
WHERE tenant_id = %(tenant_id)s AND document_id = %(document_id)s AND status IN ('pending', 'running') RETURNING job_id

-- batch: the jobs that were asked for together, with the documents that they are about; where nobody cancelled one, no
-- attempt could succeed
SELECT j.job_id, CASE WHEN j.status = 'cancelled' AND NOT j.cancel_requested THEN 'failed' ELSE j.status END, j.created_at, j.collection, j.document_id FROM jobs j
WHERE j.tenant_id = %(tenant_id)s AND j.arguments ->> 'batch' = %(batch)s AND j.arguments ? 'batch'
  AND (NOT %(own)s OR j.asked_by = %(user)s::text OR %(user)s::text IS NULL AND j.principal = %(principal)s::jsonb)
ORDER BY j.job_id

-- unstored_counts: by collection, the documents that jobs are to store, and those that they could not
SELECT collection_id, count(*) FILTER (WHERE status IN ('pending', 'running')),
       count(*) FILTER (WHERE status = 'failed' OR status = 'cancelled' AND NOT cancel_requested),
       count(*) FILTER (WHERE status = 'cancelled' AND cancel_requested)
FROM (SELECT DISTINCT ON (j.document_id) d.collection_id, j.status, j.cancel_requested FROM jobs j
      JOIN documents d ON d.tenant_id = j.tenant_id AND d.document_id = j.document_id
      WHERE j.tenant_id = %(tenant_id)s
        AND (NOT %(own)s OR j.asked_by = %(user)s::text OR %(user)s::text IS NULL AND j.principal = %(principal)s::jsonb)
        AND NOT EXISTS (SELECT FROM document_versions v WHERE v.tenant_id = d.tenant_id
                        AND v.document_id = d.document_id AND v.known_to = 'infinity')
      ORDER BY j.document_id, j.job_id DESC) latest
WHERE status <> 'succeeded' GROUP BY collection_id
