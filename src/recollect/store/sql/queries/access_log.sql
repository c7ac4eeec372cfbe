-- numbers: of the next accesses
SELECT nextval('access_numbers') FROM generate_series(1, %(count)s)

-- append: many at once
INSERT INTO access_log (tenant_id, at, access_id, actor, action, request_id, question, question_hash, documents, versions,
                        outcome)
SELECT %(tenant_id)s, e.at, e.access_id, e.actor, e.action, e.request_id, e.question, decode(e.question_hash, 'hex'),
       e.documents, e.versions, e.outcome
FROM jsonb_to_recordset(%(entries)s) AS e (
    at timestamptz, access_id bigint, actor text, action text, request_id text, question text, question_hash text,
    documents bigint[], versions bigint[], outcome text)

-- page: newest first
SELECT access_id, at, actor, action, request_id, question, encode(question_hash, 'hex') AS question_hash, documents,
       versions
FROM access_log
WHERE tenant_id = %(tenant_id)s
  AND (%(document)s::bigint IS NULL OR documents @> ARRAY[%(document)s]::bigint[])
  AND (%(actor)s::text IS NULL OR actor = %(actor)s OR starts_with(actor, %(actor)s || ' ('))
  AND (%(before)s::bigint IS NULL OR access_id < %(before)s)
  AND (%(since)s::timestamptz IS NULL OR at >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR at < %(until)s)
ORDER BY access_id DESC LIMIT %(limit)s

-- batch: as it was hashed
SELECT access_id, at, actor, action, request_id, NULL AS question, encode(question_hash, 'hex') AS question_hash, documents,
       versions
FROM access_log WHERE tenant_id = %(tenant_id)s AND access_id = ANY (%(ids)s) ORDER BY access_id

-- batches: what the audit's chain holds of them
SELECT audit_id, at, details FROM audit WHERE tenant_id = %(tenant_id)s AND action = 'access' ORDER BY at, audit_id

-- forget_questions: that are past their retention; their hashes stay
UPDATE access_log SET question = NULL
WHERE tenant_id = %(tenant_id)s AND question IS NOT NULL AND at < now() - make_interval(days => %(days)s)
