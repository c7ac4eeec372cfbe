-- hold: the row of an original until the end of the transaction, made where it is missing
INSERT INTO originals (tenant_id, file_hash, byte_count) VALUES (%(tenant_id)s, %(file_hash)b, %(byte_count)s)
ON CONFLICT (tenant_id, file_hash) DO UPDATE SET byte_count = excluded.byte_count

-- is_kept: whether its bytes are there; asked behind the lock, whose snapshot holds what it waited for
SELECT EXISTS (SELECT FROM original_pieces WHERE tenant_id = %(tenant_id)s AND file_hash = %(file_hash)b)

-- add_piece: the next bytes of one
INSERT INTO original_pieces (tenant_id, file_hash, number, data)
VALUES (%(tenant_id)s, %(file_hash)b, %(number)s, %(data)b)

-- attach: say that a version was read from it
INSERT INTO version_originals (tenant_id, version_id, file_hash, name, mime_type)
VALUES (%(tenant_id)s, %(version_id)s, %(file_hash)b, %(name)s, %(mime_type)s)
ON CONFLICT (tenant_id, version_id) DO UPDATE
SET file_hash = excluded.file_hash, name = excluded.name, mime_type = excluded.mime_type

-- hold_of_documents: those that versions of documents have, before anything of these is removed
SELECT FROM originals o
WHERE o.tenant_id = %(tenant_id)s AND o.file_hash IN (
    SELECT r.file_hash FROM version_originals r JOIN document_versions v USING (tenant_id, version_id)
    WHERE v.tenant_id = %(tenant_id)s AND v.document_id = ANY (%(document_ids)s))
ORDER BY o.file_hash FOR UPDATE

-- of_document: the original of a document's version; the conditions follow
SELECT r.name, r.mime_type, o.byte_count, o.file_hash
FROM documents d
JOIN document_versions v USING (tenant_id, document_id)
JOIN version_originals r USING (tenant_id, version_id)
JOIN originals o ON o.tenant_id = r.tenant_id AND o.file_hash = r.file_hash
WHERE d.tenant_id = %(tenant_id)s AND d.collection_id = ANY (%(collection_ids)s::int[])
  AND d.document_id = %(document_id)s

-- piece: some bytes of one
SELECT data FROM original_pieces
WHERE tenant_id = %(tenant_id)s AND file_hash = %(file_hash)b AND number = %(number)s

-- page: originals by hash
SELECT file_hash, byte_count FROM originals
WHERE tenant_id = %(tenant_id)s AND file_hash > %(after)b ORDER BY file_hash LIMIT %(limit)s

-- named_page: the same, with the names that they have first
SELECT o.file_hash, o.byte_count, r.name, r.mime_type FROM originals o CROSS JOIN LATERAL (
    (SELECT v.name, v.mime_type FROM version_originals v
     WHERE v.tenant_id = o.tenant_id AND v.file_hash = o.file_hash ORDER BY v.version_id LIMIT 1)
    UNION ALL
    (SELECT f.name, f.mime_type FROM uploaded_files f
     WHERE f.tenant_id = o.tenant_id AND f.file_hash = o.file_hash ORDER BY f.file_id LIMIT 1)
    LIMIT 1) r
WHERE o.tenant_id = %(tenant_id)s AND o.file_hash > %(after)b ORDER BY o.file_hash LIMIT %(limit)s

-- unowned: whether no version has one, no job is to read it, and nobody has sent it to be kept
SELECT NOT EXISTS (SELECT FROM version_originals WHERE tenant_id = %(tenant_id)s AND file_hash = %(file_hash)b)
   AND NOT EXISTS (SELECT FROM job_uploads WHERE tenant_id = %(tenant_id)s AND file_hash = %(file_hash)b)
   AND NOT EXISTS (SELECT FROM uploaded_files WHERE tenant_id = %(tenant_id)s AND file_hash = %(file_hash)b)

-- add_upload: say that a job is to read one
INSERT INTO job_uploads (tenant_id, job_id, file_hash) VALUES (%(tenant_id)s, %(job_id)s, %(file_hash)b)

-- uploaded: how long an original is that some job is to read
SELECT byte_count FROM originals o WHERE o.tenant_id = %(tenant_id)s AND o.file_hash = %(file_hash)b
  AND EXISTS (SELECT FROM job_uploads u WHERE u.tenant_id = o.tenant_id AND u.file_hash = o.file_hash)

-- drop_uploads: no job is to read one any more
DELETE FROM job_uploads WHERE tenant_id = %(tenant_id)s AND file_hash = %(file_hash)b
