-- rights: what somebody may do in a collection, and which of its lists they may read; a denial beats every grant
-- The lists that documents have, one look into the index each; one that is lost may be read by owners alone. Those of past
-- versions lie beneath them, and are wanted by searches of the past alone.
WITH RECURSIVE used AS (
    (SELECT d.access_id FROM documents d
     WHERE d.tenant_id = %(tenant_id)s AND d.collection_id = %(collection_id)s ORDER BY d.access_id LIMIT 1)
    UNION ALL
    SELECT (SELECT d.access_id FROM documents d
            WHERE d.tenant_id = %(tenant_id)s AND d.collection_id = %(collection_id)s AND d.access_id > u.access_id
            ORDER BY d.access_id LIMIT 1)
    FROM used u WHERE u.access_id IS NOT NULL)
SELECT c.owners && t.tokens OR granted(c.readers, t.reads), c.owners && t.tokens OR c.writers && t.tokens,
       coalesce(bool_and(l.readable), true),
       coalesce(array_agg(l.access_id ORDER BY l.access_id) FILTER (WHERE l.readable), '{}')
FROM collections c
CROSS JOIN (SELECT %(tokens)s::text[] AS tokens, %(reads)s::text[] AS reads) t
LEFT JOIN LATERAL (
    SELECT coalesce(p.access_id, u.access_id) AS access_id,
           coalesce(c.owners && t.tokens OR (granted(a.grants, t.reads) AND NOT a.denials && t.tokens AND (
               p.access_id IS NULL OR (granted(p.grants, t.reads) AND NOT p.denials && t.tokens))), false) AS readable
    FROM used u LEFT JOIN access_lists a ON a.tenant_id = c.tenant_id AND a.collection_id = c.collection_id
        AND a.access_id = u.access_id
    LEFT JOIN LATERAL (
        SELECT NULL::int AS access_id, NULL::text[] AS grants, NULL::text[] AS denials
        UNION ALL
        SELECT b.access_id, b.grants, b.denials FROM access_lists b
        WHERE %(past)s AND b.tenant_id = c.tenant_id AND b.collection_id = c.collection_id
          AND b.beneath = u.access_id) p ON true
    WHERE u.access_id IS NOT NULL) l ON true
WHERE c.tenant_id = %(tenant_id)s AND c.collection_id = %(collection_id)s
GROUP BY c.owners, c.readers, c.writers, t.tokens, t.reads

-- revision: of a collection
SELECT revision FROM collection_state WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s

-- counts: current documents and their chunks by list
SELECT access_id, count(*), sum(chunk_count)::bigint FROM document_versions
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s AND known_to = 'infinity'
GROUP BY access_id

-- may_read: whether somebody may read a document `d`, in whatever collection it is
EXISTS (SELECT FROM collections a LEFT JOIN access_lists l ON l.tenant_id = a.tenant_id
            AND l.collection_id = a.collection_id AND l.access_id = d.access_id
        WHERE a.tenant_id = d.tenant_id AND a.collection_id = d.collection_id
          AND (a.owners && %(tokens)s::text[]
               OR (granted(a.readers, %(reads)s::text[]) AND granted(l.grants, %(reads)s::text[])
                   AND NOT l.denials && %(tokens)s::text[])))

-- may_change: whether somebody may change a document `d` that they may read: as an owner of its collection, or as its own
-- owner who may write there
EXISTS (SELECT FROM collections c WHERE c.tenant_id = d.tenant_id AND c.collection_id = d.collection_id
          AND (c.owners && %(tokens)s::text[] OR (c.writers && %(tokens)s::text[] AND d.owner = %(user)s::text)))

-- owned: whether somebody owns a collection
SELECT 1 FROM collections
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s AND owners && %(tokens)s::text[]

-- given: documents by their id
SELECT d.document_id FROM documents d WHERE d.tenant_id = %(tenant_id)s AND d.document_id = ANY (%(document_ids)s::bigint[])

-- met: whether an ingest of the unrestricted caller meets a document `d`, rather than storing its own beside it
d.owner = '' AND d.twin = 0

-- met_by: whether an ingest of somebody meets it: as an owner of the collection what is the collection's, otherwise what is
-- their own and they may read; what holds nothing yet is about to be stored
EXISTS (SELECT FROM collections m LEFT JOIN access_lists l ON l.tenant_id = m.tenant_id
            AND l.collection_id = m.collection_id AND l.access_id = d.access_id
        WHERE m.tenant_id = d.tenant_id AND m.collection_id = d.collection_id
          AND CASE WHEN m.owners && %(tokens)s::text[] THEN d.owner = '' AND d.twin = 0
              ELSE d.owner = %(user)s::text AND (
                  granted(l.grants, %(reads)s::text[]) AND NOT l.denials && %(tokens)s::text[]
                  OR NOT EXISTS (SELECT FROM document_versions o
                                 WHERE o.tenant_id = d.tenant_id AND o.document_id = d.document_id)) END)

-- may_read_version: whether somebody may read a version `v`: by its own list, and a past one by its document's of today too
EXISTS (SELECT FROM collections a LEFT JOIN access_lists l ON l.tenant_id = a.tenant_id
            AND l.collection_id = a.collection_id AND l.access_id = v.access_id
        LEFT JOIN access_lists n ON n.tenant_id = a.tenant_id AND n.collection_id = a.collection_id
            AND n.access_id = coalesce(l.beneath, l.access_id)
        WHERE a.tenant_id = v.tenant_id AND a.collection_id = v.collection_id
          AND (a.owners && %(tokens)s::text[]
               OR (granted(a.readers, %(reads)s::text[]) AND granted(l.grants, %(reads)s::text[])
                   AND NOT l.denials && %(tokens)s::text[] AND granted(n.grants, %(reads)s::text[])
                   AND NOT n.denials && %(tokens)s::text[])))

-- some_version: whether somebody may read some version of a document `d`, of which the condition follows
EXISTS (SELECT FROM document_versions v WHERE v.tenant_id = d.tenant_id AND v.document_id = d.document_id

-- in_sight: whether a document `d` is in nobody's session, or in the session that is read
NOT EXISTS (SELECT FROM collections h
            WHERE h.tenant_id = d.tenant_id AND h.collection_id = d.collection_id AND h.hidden
              AND h.collection_id IS DISTINCT FROM %(session)s::int)

-- of_collection: who owns, reads and writes a collection, and who reads what has no list of its own
SELECT c.owners, c.readers, c.writers, a.grants, a.denials
FROM collections c JOIN access_lists a USING (tenant_id, collection_id)
WHERE c.tenant_id = %(tenant_id)s AND c.collection_id = %(collection_id)s AND a.access_id = 0

-- of_documents: who may read given documents, by their id
SELECT d.document_id, d.uri, c.name,
       (SELECT v.department FROM document_versions v
        WHERE v.tenant_id = d.tenant_id AND v.document_id = d.document_id ORDER BY v.version DESC LIMIT 1),
       d.access_id, a.grants, a.denials
FROM documents d
JOIN collections c USING (tenant_id, collection_id)
JOIN access_lists a ON a.tenant_id = d.tenant_id AND a.collection_id = d.collection_id AND a.access_id = d.access_id
WHERE d.tenant_id = %(tenant_id)s AND d.document_id = ANY (%(document_ids)s::bigint[])
ORDER BY d.document_id

-- lists_of_documents: the lists of locked documents, and whether anything is stored of them yet
SELECT d.document_id, d.access_id, a.grants, a.denials, coalesce(a.by_default, false),
       EXISTS (SELECT FROM document_versions v WHERE v.tenant_id = d.tenant_id AND v.document_id = d.document_id)
FROM documents d
LEFT JOIN access_lists a ON a.tenant_id = d.tenant_id AND a.collection_id = d.collection_id AND a.access_id = d.access_id
WHERE d.tenant_id = %(tenant_id)s AND d.document_id = ANY (%(document_ids)s::bigint[])

-- documents_of_source: every document that came from a folder, a domain or another source of that name
SELECT d.document_id FROM documents d JOIN sources s USING (tenant_id, source_id)
WHERE d.tenant_id = %(tenant_id)s AND d.collection_id = %(collection_id)s AND s.name = %(name)s

-- default_list: what the documents of a collection have that have no list of their own
SELECT grants, denials FROM access_lists
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s AND access_id = 0

-- defaulted: current documents of sources that have the default, by their department and list; of the condition that an
-- ingest meets them, the rest follows
SELECT v.department, d.access_id, array_agg(d.document_id)
FROM documents d JOIN document_versions v USING (tenant_id, document_id)
JOIN access_lists a ON a.tenant_id = d.tenant_id AND a.collection_id = d.collection_id AND a.access_id = d.access_id
WHERE d.tenant_id = %(tenant_id)s AND d.source_id = ANY (%(source_ids)s) AND v.known_to = 'infinity'
  AND (a.by_default OR (d.access_id = 0 AND NOT %(everyone)s))

-- by_list: the end of defaulted
GROUP BY v.department, d.access_id

-- hold_collection: who may do what in it changes; whoever writes as somebody in particular waits, or is waited for
SELECT %(tokens)s::text[] IS NULL OR owners && %(tokens)s::text[] FROM collections
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s
FOR NO KEY UPDATE

-- set_collection: who owns, reads and writes it; NULL for no change
UPDATE collections SET owners = coalesce(%(owners)s, owners), readers = coalesce(%(readers)s, readers),
    writers = coalesce(%(writers)s, writers)
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s

-- close_unused: for whom alone a collection without documents exists
UPDATE collections c SET readers = %(readers)s
WHERE c.tenant_id = %(tenant_id)s AND c.collection_id = %(collection_id)s AND NOT EXISTS (
    SELECT FROM documents d WHERE d.tenant_id = c.tenant_id AND d.collection_id = c.collection_id)

-- lock_lists: of locked documents; whoever adds a document to one of them waits, and then finds it as it is
SELECT a.collection_id, a.access_id, a.grants, a.denials FROM access_lists a
WHERE a.tenant_id = %(tenant_id)s AND (a.collection_id, a.access_id) IN (
    SELECT d.collection_id, d.access_id FROM documents d
    WHERE d.tenant_id = %(tenant_id)s AND d.document_id = ANY (%(document_ids)s::bigint[]))
ORDER BY a.collection_id, a.access_id FOR UPDATE

-- lock_default: the list of what has none of its own
SELECT grants, denials FROM access_lists
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s AND access_id = 0
FOR UPDATE

-- members: locked documents by their list
SELECT collection_id, access_id, array_agg(document_id ORDER BY document_id) FROM documents
WHERE tenant_id = %(tenant_id)s AND document_id = ANY (%(document_ids)s::bigint[])
GROUP BY collection_id, access_id ORDER BY collection_id, access_id

-- has_others: whether other documents share a list
SELECT EXISTS (SELECT FROM documents
               WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s AND access_id = %(access_id)s
                 AND document_id <> ALL (%(document_ids)s::bigint[]))

-- set_list: of nobody else's documents
UPDATE access_lists SET grants = %(grants)s, denials = %(denials)s, by_default = false
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s AND access_id = %(access_id)s

-- find_list: a list of that content, which then stays what it is until the end of the transaction
SELECT access_id FROM access_lists
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s AND access_id <> 0 AND beneath IS NULL
  AND by_default = %(by_default)s AND grants = %(grants)s::text[] AND denials = %(denials)s::text[]
ORDER BY access_id LIMIT 1 FOR KEY SHARE

-- make_list: a list of its own number
INSERT INTO access_lists (tenant_id, collection_id, grants, denials, by_default)
VALUES (%(tenant_id)s, %(collection_id)s, %(grants)s, %(denials)s, %(by_default)s)
RETURNING access_id

-- move_documents: locked documents to another list
UPDATE documents SET access_id = %(access_id)s
WHERE tenant_id = %(tenant_id)s AND document_id = ANY (%(document_ids)s::bigint[])

-- place_documents: locked documents that nothing is stored of yet, each to its list
UPDATE documents d SET access_id = n.access_id
FROM unnest(%(document_ids)s::bigint[], %(access_ids)s::int[]) AS n (document_id, access_id)
WHERE d.tenant_id = %(tenant_id)s AND d.document_id = n.document_id AND d.access_id <> n.access_id

-- move_current: with their current versions
UPDATE document_versions SET access_id = %(access_id)s
WHERE tenant_id = %(tenant_id)s AND document_id = ANY (%(document_ids)s::bigint[]) AND known_to = 'infinity'
  AND access_id <> %(access_id)s

-- add_past: what their past versions were granted, beneath the list that they have now
INSERT INTO access_lists (tenant_id, collection_id, grants, denials, beneath)
SELECT DISTINCT p.tenant_id, p.collection_id, p.grants, p.denials, %(access_id)s::int
FROM document_versions v JOIN access_lists p ON p.tenant_id = v.tenant_id AND p.collection_id = v.collection_id
    AND p.access_id = v.access_id
WHERE v.tenant_id = %(tenant_id)s AND v.document_id = ANY (%(document_ids)s::bigint[]) AND v.known_to <> 'infinity'
  AND NOT EXISTS (
    SELECT FROM access_lists k WHERE k.tenant_id = p.tenant_id AND k.collection_id = p.collection_id
      AND k.beneath = %(access_id)s AND k.grants = p.grants AND k.denials = p.denials)

-- move_past: past versions, which keep what they were granted
UPDATE document_versions v SET access_id = (
    SELECT min(k.access_id) FROM access_lists p JOIN access_lists k ON k.tenant_id = p.tenant_id
        AND k.collection_id = p.collection_id AND k.beneath = %(access_id)s
        AND k.grants = p.grants AND k.denials = p.denials
    WHERE p.tenant_id = v.tenant_id AND p.collection_id = v.collection_id AND p.access_id = v.access_id)
WHERE v.tenant_id = %(tenant_id)s AND v.document_id = ANY (%(document_ids)s::bigint[]) AND v.known_to <> 'infinity'
  AND EXISTS (SELECT FROM access_lists q WHERE q.tenant_id = v.tenant_id AND q.collection_id = v.collection_id
                AND q.access_id = v.access_id AND q.beneath IS DISTINCT FROM %(access_id)s)

-- move_vectors: with every vector
UPDATE chunk_vectors x SET access_id = v.access_id FROM document_versions v
WHERE v.tenant_id = %(tenant_id)s AND v.document_id = ANY (%(document_ids)s::bigint[])
  AND x.tenant_id = v.tenant_id AND x.version_id = v.version_id AND x.access_id <> v.access_id

-- move_lexical: with every lexical row
UPDATE chunk_lexical x SET access_id = v.access_id FROM document_versions v
WHERE v.tenant_id = %(tenant_id)s AND v.document_id = ANY (%(document_ids)s::bigint[])
  AND x.tenant_id = v.tenant_id AND x.version_id = v.version_id AND x.access_id <> v.access_id

-- drop_unused: locked lists that no document has any more, with what lies beneath
DELETE FROM access_lists a
WHERE a.tenant_id = %(tenant_id)s AND a.collection_id = %(collection_id)s AND %(access_id)s::int <> 0
  AND %(access_id)s::int IN (a.access_id, a.beneath) AND NOT EXISTS (
    SELECT FROM documents d
    WHERE d.tenant_id = a.tenant_id AND d.collection_id = a.collection_id AND d.access_id = %(access_id)s)

-- touch: cached replies and rights are of the past now; the last statement of a change
UPDATE collection_state SET revision = revision + 1
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s
