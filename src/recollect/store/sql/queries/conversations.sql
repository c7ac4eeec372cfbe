-- overview: conversations with the words that they begin with, the latest first; those that hold a text, where one is given
SELECT s.session_id, s.name, s.user_id, s.turn_count, s.created_at, s.updated_at, s.embedding_model, s.metadata,
       (SELECT left(e.content, 200) FROM episodes e
        WHERE e.tenant_id = s.tenant_id AND e.session_id = s.session_id ORDER BY e.position LIMIT 1)
FROM sessions s
WHERE s.tenant_id = %(tenant_id)s AND s.turn_count > 0
  AND (%(user_id)s::text IS NULL OR s.user_id = %(user_id)s)
  AND (NOT %(restricted)s OR s.user_id = %(reader)s)
  AND (%(after_id)s::bigint IS NULL OR (s.updated_at, s.session_id) < (%(after_at)s::timestamptz, %(after_id)s::bigint))
  AND (%(text)s::text IS NULL OR strpos(lower(s.metadata ->> 'title'), lower(%(text)s)) > 0
       OR EXISTS (SELECT FROM episodes e WHERE e.tenant_id = s.tenant_id AND e.session_id = s.session_id
                  AND strpos(lower(e.content), lower(%(text)s)) > 0))
ORDER BY s.updated_at DESC, s.session_id DESC LIMIT %(limit)s

-- turns_before: the last turns of a session, or those before a position; the latest first
SELECT e.episode_id, s.name, e.position, e.role, e.content, e.event_time, e.external_id, e.known_from, e.metadata
FROM sessions s JOIN episodes e USING (tenant_id, session_id)
WHERE s.tenant_id = %(tenant_id)s AND s.session_id = %(session_id)s
  AND (%(before)s::int IS NULL OR e.position < %(before)s)
  AND e.known_from <= coalesce(%(as_of)s::timestamptz, 'infinity')
  AND e.known_to > coalesce(%(as_of)s::timestamptz, clock_timestamp())
ORDER BY e.position DESC LIMIT %(limit)s

-- rename: what a conversation is called
UPDATE sessions SET metadata = (metadata - 'title') || %(named)s::jsonb
WHERE tenant_id = %(tenant_id)s AND session_id = %(session_id)s RETURNING session_id

-- judge: whether an answer helped, told once
UPDATE sessions SET metadata = metadata || jsonb_build_object(
    'helpful', coalesce(metadata -> 'helpful', '{}') || jsonb_build_object(%(position)s::text, %(helpful)s::boolean))
WHERE tenant_id = %(tenant_id)s AND session_id = %(session_id)s
  AND NOT coalesce(metadata -> 'helpful', '{}') ? %(position)s::text
RETURNING session_id
