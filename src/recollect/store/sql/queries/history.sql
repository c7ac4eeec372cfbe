-- document: whose versions these are
SELECT d.document_id, d.uri, c.name, d.given_id FROM documents d JOIN collections c USING (tenant_id, collection_id)
WHERE d.tenant_id = %(tenant_id)s AND d.document_id = %(document_id)s

-- versions: every version of a document, oldest first
SELECT v.version, v.version_id, v.title, v.known_from, nullif(v.known_to, 'infinity'), nullif(v.expires_at, 'infinity'),
       v.event_from, v.event_to, v.chunk_count, length(x.content), encode(v.content_hash, 'hex'), v.department, v.tags
FROM document_versions v JOIN document_contents t USING (tenant_id, version_id)
JOIN texts x USING (tenant_id, text_hash)
JOIN documents d USING (tenant_id, document_id)
WHERE v.tenant_id = %(tenant_id)s AND v.document_id = %(document_id)s
  AND v.known_from <= coalesce(%(as_of)s::timestamptz, 'infinity')

-- in_order: the end of versions
ORDER BY v.version

-- content: what one version said
SELECT x.content FROM document_versions v JOIN document_contents t USING (tenant_id, version_id)
JOIN texts x USING (tenant_id, text_hash)
JOIN documents d USING (tenant_id, document_id)
WHERE v.tenant_id = %(tenant_id)s AND v.document_id = %(document_id)s AND v.version = %(version)s

-- known_at: which of these versions were known at a moment
SELECT version_id FROM document_versions
WHERE tenant_id = %(tenant_id)s AND version_id = ANY (%(version_ids)s)
  AND known_from <= %(at)s AND known_to > %(at)s AND expires_at > %(at)s

-- old_version: the version that is to be restored, with the tags and the access list that the document has today
SELECT v.version_id, v.collection_id, v.chunk_count, n.tags, d.access_id
FROM document_versions v JOIN document_versions n ON n.tenant_id = v.tenant_id AND n.version_id = %(latest_id)s
JOIN documents d ON d.tenant_id = v.tenant_id AND d.document_id = v.document_id
WHERE v.tenant_id = %(tenant_id)s AND v.document_id = %(document_id)s AND v.version = %(version)s

-- attached_then: what hangs on a document and is deleted now, as it was when a version of the document ended, if it went
-- in the moment in which that version or a later one did: not what was deleted by itself
SELECT DISTINCT ON (d.document_id) d.document_id, v.version
FROM document_versions w
JOIN documents d ON d.tenant_id = w.tenant_id AND d.attached_to = w.document_id
JOIN document_versions v ON v.tenant_id = d.tenant_id AND v.document_id = d.document_id
    AND v.known_from < w.known_to AND v.known_to >= w.known_to
WHERE w.tenant_id = %(tenant_id)s AND w.document_id = %(document_id)s AND w.version = %(version)s
  AND (SELECT max(n.known_to) FROM document_versions n
       WHERE n.tenant_id = d.tenant_id AND n.document_id = d.document_id) IN (
      SELECT l.known_to FROM document_versions l
      WHERE l.tenant_id = w.tenant_id AND l.document_id = w.document_id AND l.known_to < 'infinity'
        AND l.known_to >= w.known_to)

-- each_once: the end of attached_then
ORDER BY d.document_id, v.version

-- restore_version: what the document said then; whose it is, and the stamp of the file that was read last, as of today,
-- so that neither old grants come back nor the next ingest of an unchanged file undoes it
INSERT INTO document_versions (tenant_id, version_id, document_id, collection_id, version, uri, title, department,
    language, mime_type, metadata, tags, access_id, chunk_count, content_hash, file_hash, fingerprint, event_from,
    event_to, known_from, analysed_as, given_id)
SELECT o.tenant_id, %(version_id)s, o.document_id, o.collection_id, n.version + 1, n.uri, o.title, n.department,
    o.language, o.mime_type, o.metadata, n.tags, %(access_id)s, o.chunk_count, o.content_hash, n.file_hash,
    n.fingerprint, o.event_from, o.event_to, %(now)s, o.analysed_as, n.given_id
FROM document_versions o JOIN document_versions n ON n.tenant_id = o.tenant_id AND n.version_id = %(latest_id)s
WHERE o.tenant_id = %(tenant_id)s AND o.version_id = %(old_id)s

-- restore_content: the text of the restored version
INSERT INTO document_contents (tenant_id, version_id, text_hash, headings, pages)
SELECT tenant_id, %(version_id)s, text_hash, headings, pages FROM document_contents
WHERE tenant_id = %(tenant_id)s AND version_id = %(old_id)s

-- restore_original: the file that it was read from, where that is kept
INSERT INTO version_originals (tenant_id, version_id, file_hash, name, mime_type)
SELECT tenant_id, %(version_id)s, file_hash, name, mime_type FROM version_originals
WHERE tenant_id = %(tenant_id)s AND version_id = %(old_id)s

-- restore_bands: what nearly equal texts are found by
INSERT INTO version_bands (tenant_id, version_id, band)
SELECT tenant_id, %(version_id)s, band FROM version_bands
WHERE tenant_id = %(tenant_id)s AND version_id = %(old_id)s

-- restore_chunks: its chunks with everything that hangs on them, under new numbers
WITH old AS MATERIALIZED (
    SELECT c.chunk_id, nextval('chunks_chunk_id_seq') AS fresh FROM chunks c
    WHERE c.tenant_id = %(tenant_id)s AND c.version_id = %(old_id)s ORDER BY c.position),
restored AS (
    INSERT INTO chunks (tenant_id, chunk_id, version_id, position, start_offset, end_offset, parent_start, parent_end,
        page, token_count, content_hash, section, text, metadata, context, context_by)
    SELECT c.tenant_id, o.fresh, %(version_id)s, c.position, c.start_offset, c.end_offset, c.parent_start, c.parent_end,
        c.page, c.token_count, c.content_hash, c.section, c.text, c.metadata, c.context, c.context_by
    FROM old o JOIN chunks c ON c.tenant_id = %(tenant_id)s AND c.chunk_id = o.chunk_id),
vectors AS (
    INSERT INTO chunk_vectors (tenant_id, chunk_id, space_id, version_id, known_from, access_id, embedding)
    SELECT x.tenant_id, o.fresh, x.space_id, %(version_id)s, %(now)s, %(access_id)s, x.embedding
    FROM old o JOIN chunk_vectors x ON x.tenant_id = %(tenant_id)s AND x.chunk_id = o.chunk_id
    WHERE NOT EXISTS (SELECT FROM vector_spaces s
                      WHERE s.tenant_id = x.tenant_id AND s.space_id = x.space_id AND s.status = 'dropping')),
words AS (
    INSERT INTO chunk_lexical (tenant_id, chunk_id, collection_id, version_id, known_from, access_id, length, lexemes,
        weights)
    SELECT l.tenant_id, o.fresh, l.collection_id, %(version_id)s, %(now)s, %(access_id)s, l.length, l.lexemes, l.weights
    FROM old o JOIN chunk_lexical l ON l.tenant_id = %(tenant_id)s AND l.chunk_id = o.chunk_id),
tokens AS (
    INSERT INTO chunk_token_vectors (tenant_id, chunk_id, space_id, packed)
    SELECT p.tenant_id, o.fresh, p.space_id, p.packed
    FROM old o JOIN chunk_token_vectors p ON p.tenant_id = %(tenant_id)s AND p.chunk_id = o.chunk_id
    WHERE NOT EXISTS (SELECT FROM vector_spaces s
                      WHERE s.tenant_id = p.tenant_id AND s.space_id = p.space_id AND s.status = 'dropping'))
INSERT INTO version_acronyms (tenant_id, version_id, collection_id, short, long, occurrences)
SELECT tenant_id, %(version_id)s, collection_id, short, long, occurrences FROM version_acronyms
WHERE tenant_id = %(tenant_id)s AND version_id = %(old_id)s

-- allocate: the number of the restored version
SELECT nextval('document_versions_version_id_seq')

-- span: when what somebody may read first became known, and when it last changed; a condition follows
SELECT min(v.known_from), greatest(max(v.known_from), max(v.known_to) FILTER (WHERE v.known_to < 'infinity'))
FROM document_versions v JOIN documents d USING (tenant_id, document_id)
WHERE v.tenant_id = %(tenant_id)s AND v.collection_id = ANY (%(collection_ids)s)
