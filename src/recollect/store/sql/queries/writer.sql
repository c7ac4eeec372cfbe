-- hold_collection: keeps it, and the space that is written to, until the end of the transaction; taken before any document
SELECT collection_id, hidden, space_id FROM collections
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s
FOR KEY SHARE

-- hold_as_writer: the same for somebody who may read it, and what they may do there, which stays so until then
SELECT collection_id, hidden, space_id, owners && %(tokens)s::text[], (owners || writers) && %(tokens)s::text[] FROM collections
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s AND (owners && %(tokens)s::text[] OR granted(readers, %(reads)s::text[]))
FOR SHARE

-- hold_rights_of: who may do what in the collections of given documents stays so until the end of the transaction
SELECT collection_id FROM collections
WHERE tenant_id = %(tenant_id)s AND collection_id IN (
    SELECT d.collection_id FROM documents d
    WHERE d.tenant_id = %(tenant_id)s AND d.document_id = ANY (%(document_ids)s))
ORDER BY collection_id FOR SHARE

-- hold_collections_of: the same as hold_collection for the collections of given documents
SELECT collection_id FROM collections
WHERE tenant_id = %(tenant_id)s AND collection_id IN (
    SELECT d.collection_id FROM documents d
    WHERE d.tenant_id = %(tenant_id)s AND d.document_id = ANY (%(document_ids)s))
ORDER BY collection_id FOR KEY SHARE

-- ensure_documents: identities of given ids, and of the URIs of what has none; in order, so that two batches cannot lock each
-- other out
INSERT INTO documents (tenant_id, collection_id, source_id, uri, given_id, owner, twin)
SELECT %(tenant_id)s, %(collection_id)s, %(source_id)s, u.uri, u.given_id, u.owner, u.twin
FROM unnest(%(uris)s::text[], %(given_ids)s::text[], %(owners)s::text[], %(twins)s::bigint[])
    AS u (uri, given_id, owner, twin)
ORDER BY u.given_id NULLS FIRST, u.uri
ON CONFLICT DO NOTHING

-- ensure_own: the same of a writer's own documents; one that they may no longer read stays, and another comes beside it
INSERT INTO documents (tenant_id, collection_id, source_id, uri, given_id, owner, twin)
SELECT %(tenant_id)s, %(collection_id)s, %(source_id)s, u.uri, u.given_id, %(user)s, coalesce(max(d.document_id), 0)
FROM unnest(%(uris)s::text[], %(given_ids)s::text[]) AS u (uri, given_id)
LEFT JOIN documents d ON d.tenant_id = %(tenant_id)s AND d.source_id = %(source_id)s AND d.owner = %(user)s AND

-- ensure_own_end: the end of ensure_own, behind same_source or same_given_id
LEFT JOIN access_lists l ON l.tenant_id = d.tenant_id AND l.collection_id = d.collection_id AND l.access_id = d.access_id
GROUP BY u.uri, u.given_id
HAVING NOT coalesce(bool_or(granted(l.grants, %(reads)s::text[]) AND NOT l.denials && %(tokens)s::text[]), false)
ORDER BY u.given_id NULLS FIRST, u.uri
ON CONFLICT DO NOTHING

-- lock_documents: one writer a document at a time; of several that they have under a name, the latest is meant
SELECT coalesce(d.given_id, d.uri), d.given_id IS NOT NULL, d.document_id FROM documents d
WHERE d.tenant_id = %(tenant_id)s AND d.source_id = %(source_id)s

-- same_source: whether a document without a given id has the source of another one
d.uri = u.uri AND d.given_id IS NULL

-- same_given_id: whether a document has another one's given id
d.given_id = u.given_id

-- among_sources: whether a document `d` has one of these sources and no given id
d.uri = ANY (%(uris)s::text[]) AND d.given_id IS NULL

-- among_given_ids: whether a document `d` has one of these given ids
d.given_id = ANY (%(given_ids)s::text[])

-- exactly: those and no others of that name
(coalesce(d.given_id, d.uri), d.given_id IS NOT NULL, d.owner, d.twin) IN (
    SELECT coalesce(u.given_id, u.uri), u.given_id IS NOT NULL, u.owner, u.twin
    FROM unnest(%(uris)s::text[], %(given_ids)s::text[], %(owners)s::text[], %(twins)s::bigint[])
        AS u (uri, given_id, owner, twin))

-- rename: locked documents with given ids are shown with the sources that they have from now on, and so are their versions
UPDATE documents d SET uri = n.uri
FROM unnest(%(document_ids)s::bigint[], %(uris)s::text[]) AS n (document_id, uri)
WHERE d.tenant_id = %(tenant_id)s AND d.document_id = n.document_id AND d.given_id IS NOT NULL AND d.uri <> n.uri
RETURNING d.document_id

-- in_order: the end of lock_documents
ORDER BY coalesce(d.given_id, d.uri), d.document_id FOR UPDATE OF d

-- lock_documents_by_id: one writer a document at a time
SELECT document_id FROM documents
WHERE tenant_id = %(tenant_id)s AND document_id = ANY (%(document_ids)s)
ORDER BY coalesce(given_id, uri), document_id FOR UPDATE

-- attached: what is attached to documents, by number
SELECT document_id FROM documents
WHERE tenant_id = %(tenant_id)s AND attached_to = ANY (%(document_ids)s::bigint[])

-- attached_now: the current versions of what is attached to documents, but for some of it
SELECT d.document_id, v.version_id FROM documents d JOIN document_versions v USING (tenant_id, document_id)
WHERE d.tenant_id = %(tenant_id)s AND d.attached_to = ANY (%(document_ids)s::bigint[])
  AND d.document_id <> ALL (%(kept)s::bigint[]) AND v.known_to = 'infinity'

-- attach: documents hang on the one that they are attached to
UPDATE documents d SET attached_to = p.attached_to
FROM unnest(%(document_ids)s::bigint[], %(messages)s::bigint[]) AS p (document_id, attached_to)
WHERE d.tenant_id = %(tenant_id)s AND d.document_id = p.document_id AND d.attached_to IS DISTINCT FROM p.attached_to

-- ensure_below: identities of what is attached to a document, beside it and its owner's
INSERT INTO documents (tenant_id, collection_id, source_id, uri, given_id, owner, twin)
SELECT d.tenant_id, d.collection_id, d.source_id, u.uri, u.given_id, d.owner, d.twin
FROM documents d, unnest(%(uris)s::text[], %(given_ids)s::text[]) AS u (uri, given_id)
WHERE d.tenant_id = %(tenant_id)s AND d.document_id = %(document_id)s
ORDER BY u.given_id NULLS FIRST, u.uri
ON CONFLICT DO NOTHING

-- below: those identities, of which the condition follows
SELECT coalesce(d.given_id, d.uri), d.given_id IS NOT NULL, d.document_id FROM documents m
JOIN documents d USING (tenant_id, source_id, owner, twin)
WHERE m.tenant_id = %(tenant_id)s AND m.document_id = %(document_id)s

-- outermost: what is attached to a document hangs on the document, or on what that hangs on itself
SELECT coalesce(attached_to, document_id) FROM documents
WHERE tenant_id = %(tenant_id)s AND document_id = %(document_id)s

-- named_apart: whether something hangs on a document whose name is not below its own: not what was read out of its file
SELECT EXISTS (
    SELECT FROM documents d JOIN documents o ON o.tenant_id = d.tenant_id AND o.attached_to = d.document_id
    WHERE d.tenant_id = %(tenant_id)s AND d.document_id = %(document_id)s AND NOT starts_with(o.uri, d.uri || '/'))

-- messages: what documents may hang on, their owner's: of several of a name their twin, or the latest; if it hangs on another
-- itself, that one
SELECT DISTINCT ON (a.document_id) a.document_id, coalesce(d.attached_to, d.document_id)
FROM unnest(%(document_ids)s::bigint[], %(uris)s::text[], %(given_ids)s::text[]) AS u (document_id, uri, given_id)
JOIN documents a ON a.tenant_id = %(tenant_id)s AND a.document_id = u.document_id
JOIN documents d ON d.tenant_id = a.tenant_id AND d.source_id = a.source_id AND d.owner = a.owner
WHERE d.tenant_id = %(tenant_id)s

-- latest_first: the end of messages
ORDER BY a.document_id, d.twin = a.twin DESC, d.document_id DESC

-- to_hang: those documents that do not hang on their message yet
SELECT d.document_id FROM unnest(%(document_ids)s::bigint[], %(messages)s::bigint[]) AS p (document_id, attached_to)
JOIN documents d ON d.tenant_id = %(tenant_id)s AND d.document_id = p.document_id
WHERE d.attached_to IS DISTINCT FROM p.attached_to

-- hang: locked documents hang on messages, with what hung on them; a message that was erased or hung meanwhile is none
UPDATE documents d SET attached_to = m.document_id
FROM unnest(%(document_ids)s::bigint[], %(messages)s::bigint[]) AS p (document_id, attached_to), documents m
WHERE d.tenant_id = %(tenant_id)s AND p.document_id IN (d.document_id, d.attached_to)
  AND m.tenant_id = d.tenant_id AND m.document_id = p.attached_to AND m.attached_to IS NULL AND m.document_id <> d.document_id

-- latest_versions: the newest version of each document, and whether it is current
SELECT DISTINCT ON (document_id) document_id, version_id, version, known_to = 'infinity', content_hash, fingerprint,
       chunk_count, file_hash, expires_at <= clock_timestamp(), known_from, uri, given_id
FROM document_versions
WHERE tenant_id = %(tenant_id)s AND document_id = ANY (%(document_ids)s)
ORDER BY document_id, version DESC

-- moment: now, or the latest moment known of these documents: versions must not overlap where a clock was set back
SELECT greatest(clock_timestamp(), max(known_from), max(known_to) FILTER (WHERE known_to <> 'infinity'))
FROM document_versions
WHERE tenant_id = %(tenant_id)s AND document_id = ANY (%(document_ids)s)

-- restamp: the same content in other bytes, so that the next run need not read them again
UPDATE document_versions SET file_hash = %(file_hash)s
WHERE tenant_id = %(tenant_id)s AND version_id = %(version_id)s

-- allocate: numbers for the versions and chunks of a batch
SELECT ARRAY(SELECT nextval('document_versions_version_id_seq') FROM generate_series(1, %(versions)s)),
       ARRAY(SELECT nextval('chunks_chunk_id_seq') FROM generate_series(1, %(chunks)s))

-- add_past_lists: what versions that are about to be closed are granted, for them to keep beneath their document's list
INSERT INTO access_lists (tenant_id, collection_id, grants, denials, beneath)
SELECT DISTINCT a.tenant_id, a.collection_id, a.grants, a.denials, a.access_id
FROM document_versions v JOIN access_lists a ON a.tenant_id = v.tenant_id AND a.collection_id = v.collection_id
    AND a.access_id = v.access_id
WHERE v.tenant_id = %(tenant_id)s AND v.version_id = ANY (%(version_ids)s) AND v.known_to = 'infinity'
  AND NOT EXISTS (
    SELECT FROM access_lists p WHERE p.tenant_id = a.tenant_id AND p.collection_id = a.collection_id
      AND p.beneath = a.access_id AND p.grants = a.grants AND p.denials = a.denials)

-- keep_grants: versions that are about to be closed get these lists; where theirs is lost, owners alone read them still
UPDATE document_versions v SET access_id = (
    SELECT min(p.access_id) FROM access_lists p WHERE p.tenant_id = a.tenant_id AND p.collection_id = a.collection_id
      AND p.beneath = a.access_id AND p.grants = a.grants AND p.denials = a.denials)
FROM access_lists a
WHERE v.tenant_id = %(tenant_id)s AND v.version_id = ANY (%(version_ids)s) AND v.known_to = 'infinity'
  AND a.tenant_id = v.tenant_id AND a.collection_id = v.collection_id AND a.access_id = v.access_id

-- close_versions: from now on they are history
UPDATE document_versions SET known_to = %(now)s
WHERE tenant_id = %(tenant_id)s AND version_id = ANY (%(version_ids)s) AND known_to = 'infinity'
RETURNING collection_id, chunk_count

-- close_vectors: the closed versions leave the dense retriever, in every space
UPDATE chunk_vectors x SET known_to = %(now)s, access_id = v.access_id FROM document_versions v
WHERE v.tenant_id = %(tenant_id)s AND v.version_id = ANY (%(version_ids)s) AND x.tenant_id = v.tenant_id
  AND x.version_id = v.version_id AND x.known_to = 'infinity'

-- close_lexical: the closed versions leave the lexical retriever
UPDATE chunk_lexical x SET known_to = %(now)s, access_id = v.access_id FROM document_versions v
WHERE v.tenant_id = %(tenant_id)s AND v.version_id = ANY (%(version_ids)s) AND x.tenant_id = v.tenant_id
  AND x.version_id = v.version_id AND x.known_to = 'infinity'

-- copy_versions: one row a version
COPY document_versions (tenant_id, version_id, document_id, collection_id, version, uri, title, department, language,
    mime_type, metadata, tags, chunk_count, content_hash, file_hash, fingerprint, event_from, event_to, known_from,
    access_id, analysed_as, given_id)
FROM STDIN (FORMAT BINARY)

-- copy_texts: one row a text
COPY texts (tenant_id, text_hash, content) FROM STDIN (FORMAT BINARY)

-- hold_texts: the end of moving them on. What is there is locked until the end of the transaction, in the order of hashes,
-- and stays as it is, unless it is damaged
ON CONFLICT (tenant_id, text_hash) DO UPDATE SET content = excluded.content WHERE texts.content <> excluded.content

-- copy_contents: one row a version
COPY document_contents (tenant_id, version_id, text_hash, headings, pages) FROM STDIN (FORMAT BINARY)

-- copy_chunks: one row a chunk
COPY chunks (tenant_id, chunk_id, version_id, position, start_offset, end_offset, parent_start, parent_end, page,
    token_count, content_hash, section, text, metadata, context, context_by)
FROM STDIN (FORMAT BINARY)

-- copy_vectors: one row a chunk
COPY chunk_vectors (tenant_id, chunk_id, space_id, version_id, known_from, access_id, embedding)
FROM STDIN (FORMAT BINARY)

-- copy_lexical: one row a chunk
COPY chunk_lexical (tenant_id, chunk_id, collection_id, version_id, known_from, access_id, length, lexemes, weights)
FROM STDIN (FORMAT BINARY)

-- count: what a batch changed
UPDATE collection_state SET revision = revision + 1, document_count = document_count + %(documents)s,
    chunk_count = chunk_count + %(chunks)s, stats_pending = stats_pending + %(pending)s,
    next_expiry = least(next_expiry, %(next_expiry)s),
    languages = CASE WHEN %(languages)s::text[] <@ languages THEN languages
                ELSE ARRAY (SELECT DISTINCT unnest(languages || %(languages)s::text[]) ORDER BY 1) END
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s

-- require_quota: fails where the tenant has more now than it may have
SELECT require_quota(%(tenant_id)s)

-- current_version_ids: the current versions of given documents
SELECT version_id FROM document_versions
WHERE tenant_id = %(tenant_id)s AND document_id = ANY (%(document_ids)s) AND known_to = 'infinity'

-- erase_documents: with every version, chunk, vector and lexical row, by cascade
DELETE FROM documents WHERE tenant_id = %(tenant_id)s AND document_id = ANY (%(document_ids)s)

-- settle: sort what waits in the lexical index's list into the index; needs its owner's rights, and can wait without
SELECT gin_clean_pending_list(c.oid) FROM pg_class c
WHERE c.oid = 'chunk_lexical_lexemes'::regclass AND pg_has_role(c.relowner, 'USAGE')
