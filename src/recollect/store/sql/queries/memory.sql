-- ensure_session: make it where it is missing
INSERT INTO sessions (tenant_id, name, user_id, embedding_model, metadata)
VALUES (%(tenant_id)s, %(name)s, %(user_id)s, %(embedding_model)s, %(metadata)s)
ON CONFLICT (tenant_id, name, user_id) DO NOTHING

-- session: those of a name, the user's own first, then nobody's; whoever is restricted has their own alone
SELECT session_id, name, user_id, turn_count, created_at, updated_at, embedding_model, metadata FROM sessions
WHERE tenant_id = %(tenant_id)s AND name = %(name)s AND (NOT %(restricted)s OR user_id = %(reader)s)
ORDER BY user_id IS NOT DISTINCT FROM %(user_id)s::text DESC, user_id IS NULL DESC, session_id LIMIT 2

-- lock_session: whoever appends to it does so alone
SELECT session_id FROM sessions WHERE tenant_id = %(tenant_id)s AND session_id = %(session_id)s FOR UPDATE

-- sessions_page: the latest first
SELECT session_id, name, user_id, turn_count, created_at, updated_at, embedding_model, metadata FROM sessions
WHERE tenant_id = %(tenant_id)s AND (%(user_id)s::text IS NULL OR user_id = %(user_id)s)
  AND (NOT %(restricted)s OR user_id = %(reader)s)
  AND (%(after_id)s::bigint IS NULL OR (updated_at, session_id) < (%(after_at)s::timestamptz, %(after_id)s::bigint))
ORDER BY updated_at DESC, session_id DESC LIMIT %(limit)s OFFSET %(offset)s

-- delete_session: with its episodes and everything that was made of them, by cascade
DELETE FROM sessions WHERE tenant_id = %(tenant_id)s AND session_id = %(session_id)s RETURNING turn_count

-- last_position: where a session ends
SELECT coalesce(max(position), 0) FROM episodes WHERE tenant_id = %(tenant_id)s AND session_id = %(session_id)s

-- tail: the last turns of a session, oldest first
SELECT position, role, content, event_time FROM (
    SELECT position, role, content, event_time FROM episodes
    WHERE tenant_id = %(tenant_id)s AND session_id = %(session_id)s
    ORDER BY position DESC LIMIT %(limit)s) AS last
ORDER BY position

-- stored_turns: turns that are there already, by the caller's ids
SELECT external_id, position, role, content FROM episodes
WHERE tenant_id = %(tenant_id)s AND session_id = %(session_id)s AND external_id = ANY (%(turn_ids)s)

-- allocate: numbers for new episodes
SELECT ARRAY(SELECT nextval('episodes_episode_id_seq') FROM generate_series(1, %(count)s))

-- copy_episodes: one row a turn
COPY episodes (tenant_id, episode_id, session_id, position, external_id, role, content, event_time, known_from, metadata)
FROM STDIN (FORMAT BINARY)

-- copy_vectors: one row a turn
COPY episode_vectors (tenant_id, episode_id, session_id, position, event_time, known_from, embedding)
FROM STDIN (FORMAT BINARY)

-- copy_lexical: one row a turn
COPY episode_lexical (tenant_id, episode_id, session_id, position, event_time, known_from, length, lexemes, weights)
FROM STDIN (FORMAT BINARY)

-- count_terms: in how many more turns each lexeme stands
INSERT INTO session_terms AS t (tenant_id, lexeme, session_id, frequency)
SELECT %(tenant_id)s, n.lexeme, %(session_id)s, n.frequency
FROM unnest(%(lexemes)s::int[], %(frequencies)s::int[]) AS n (lexeme, frequency)
ON CONFLICT (tenant_id, lexeme, session_id) DO UPDATE SET frequency = t.frequency + excluded.frequency

-- count_turns: what an append adds to its session
UPDATE sessions SET turn_count = turn_count + %(turns)s, term_count = term_count + %(terms)s,
    updated_at = greatest(updated_at, %(now)s)
WHERE tenant_id = %(tenant_id)s AND session_id = %(session_id)s

-- searched: the sessions that a recall looks into, with their sizes
SELECT session_id, turn_count, term_count, embedding_model FROM sessions
WHERE tenant_id = %(tenant_id)s AND turn_count > 0
  AND (%(everything)s OR session_id = ANY (%(named)s::bigint[]) OR user_id = %(user_id)s)
  AND (NOT %(restricted)s OR user_id = %(reader)s)
  AND (SELECT require_active(%(tenant_id)s))

-- document_frequencies: in how many turns of given sessions each lexeme stands; looked up one by one, whatever the
-- planner believes of sessions that have just begun
SELECT l.lexeme, s.frequency
FROM unnest(%(lexemes)s::int[]) AS l (lexeme)
CROSS JOIN LATERAL (
    SELECT sum(t.frequency)::bigint AS frequency FROM session_terms t
    WHERE t.tenant_id = %(tenant_id)s AND t.lexeme = l.lexeme AND t.session_id = ANY (%(session_ids)s::bigint[])) AS s
WHERE s.frequency > 0

-- tenant_frequencies: in how many turns of the tenant each lexeme stands
SELECT lexeme, sum(frequency)::bigint FROM session_terms
WHERE tenant_id = %(tenant_id)s AND lexeme = ANY (%(lexemes)s)
GROUP BY lexeme

-- dense: turns by their similarity to a vector, with their words where those are wanted; looked up one by one, whatever
-- the planner believes of sessions that have just begun
SELECT v.episode_id, l.length, sparsevec_send(l.weights), v.similarity, NULL, v.session_id, v.position
FROM (SELECT episode_id, session_id, position, (-(embedding <#> %(embedding)s))::real AS similarity FROM episode_vectors
      WHERE tenant_id = %(tenant_id)s AND (%(session_ids)s::bigint[] IS NULL OR session_id = ANY (%(session_ids)s))
        AND known_from <= coalesce(%(as_of)s::timestamptz, 'infinity')
        AND known_to > coalesce(%(as_of)s::timestamptz, clock_timestamp())
        AND (%(since)s::timestamptz IS NULL OR event_time >= %(since)s)
        AND (%(until)s::timestamptz IS NULL OR event_time < %(until)s)
      ORDER BY embedding <#> %(embedding)s, episode_id LIMIT %(limit)s) v
LEFT JOIN LATERAL (SELECT length, weights FROM episode_lexical
                   WHERE %(words)s AND tenant_id = %(tenant_id)s AND episode_id = v.episode_id LIMIT 1) l ON true

-- lexical: turns by their words, with their similarities where a vector is given; scored again by the caller
SELECT l.episode_id, l.length, sparsevec_send(l.weights), v.similarity, NULL, l.session_id, l.position
FROM (SELECT episode_id, session_id, position, length, weights FROM episode_lexical
      WHERE tenant_id = %(tenant_id)s AND (%(session_ids)s::bigint[] IS NULL OR session_id = ANY (%(session_ids)s))
        AND lexemes && %(lexemes)s::int[]
        AND known_from <= coalesce(%(as_of)s::timestamptz, 'infinity')
        AND known_to > coalesce(%(as_of)s::timestamptz, clock_timestamp())
        AND (%(since)s::timestamptz IS NULL OR event_time >= %(since)s)
        AND (%(until)s::timestamptz IS NULL OR event_time < %(until)s)
      ORDER BY weights <#> %(query)s, episode_id LIMIT %(limit)s) l
LEFT JOIN LATERAL (SELECT (-(embedding <#> %(embedding)s::halfvec))::real AS similarity FROM episode_vectors
                   WHERE %(embedding)s::halfvec IS NOT NULL AND tenant_id = %(tenant_id)s AND episode_id = l.episode_id
                   LIMIT 1) v ON true

-- surroundings: given turns with so many before and after them, as far as they were known
-- In a store whose tables were never analysed, a join would be planned as one of all turns with all that are given.
SELECT h.episode_id, e.episode_id, s.name, s.user_id, e.position, e.role, e.content, e.event_time, e.external_id,
       e.known_from, e.metadata
FROM (SELECT episode_id, session_id, position FROM episodes
      WHERE tenant_id = %(tenant_id)s AND episode_id = ANY (%(episode_ids)s) OFFSET 0) AS h
CROSS JOIN LATERAL (
    SELECT * FROM episodes n
    WHERE n.tenant_id = %(tenant_id)s AND n.session_id = h.session_id
      AND n.position BETWEEN h.position - %(before)s AND h.position + %(after)s
    OFFSET 0
) AS e
JOIN sessions s ON s.tenant_id = %(tenant_id)s AND s.session_id = h.session_id
WHERE e.known_from <= coalesce(%(as_of)s::timestamptz, 'infinity')
  AND e.known_to > coalesce(%(as_of)s::timestamptz, clock_timestamp())
ORDER BY e.session_id, e.position

-- turns_page: a session's turns in their order
SELECT e.episode_id, s.name, e.position, e.role, e.content, e.event_time, e.external_id, e.known_from, e.metadata
FROM sessions s JOIN episodes e USING (tenant_id, session_id)
WHERE s.tenant_id = %(tenant_id)s AND s.session_id = %(session_id)s AND e.position > %(after)s
  AND e.known_from <= coalesce(%(as_of)s::timestamptz, 'infinity')
  AND e.known_to > coalesce(%(as_of)s::timestamptz, clock_timestamp())
ORDER BY e.position LIMIT %(limit)s

-- note_retrievals: how often episodes were found; in order, so that of two who write one waits
INSERT INTO episode_retrievals AS r (tenant_id, episode_id, retrievals, first_at, last_at)
SELECT %(tenant_id)s, e.episode_id, n.retrievals, %(now)s, %(now)s
FROM unnest(%(episode_ids)s::bigint[], %(counts)s::bigint[]) AS n (episode_id, retrievals)
JOIN episodes e ON e.tenant_id = %(tenant_id)s AND e.episode_id = n.episode_id
ORDER BY e.episode_id
FOR KEY SHARE OF e
ON CONFLICT (tenant_id, episode_id) DO UPDATE
    SET retrievals = r.retrievals + excluded.retrievals, last_at = greatest(r.last_at, excluded.last_at)

-- frequent: episodes that were found so often or more, most often first
SELECT e.episode_id, s.name, e.position, e.role, e.content, e.event_time, e.external_id, e.known_from, e.metadata,
       r.retrievals, r.first_at, r.last_at
FROM episode_retrievals r JOIN episodes e USING (tenant_id, episode_id) JOIN sessions s USING (tenant_id, session_id)
WHERE r.tenant_id = %(tenant_id)s AND r.retrievals >= %(least)s AND e.known_to > clock_timestamp()
  AND (NOT %(restricted)s OR s.user_id = %(reader)s)
ORDER BY r.retrievals DESC, e.episode_id LIMIT %(limit)s

-- turn: one of a session, with those before and behind it as they stand
(SELECT e.episode_id, s.name, e.position, e.role, e.content, e.event_time, e.external_id, e.known_from, e.metadata
 FROM episodes e JOIN sessions s USING (tenant_id, session_id)
 WHERE e.tenant_id = %(tenant_id)s AND e.session_id = %(session_id)s AND e.position < %(position)s
 ORDER BY e.position DESC LIMIT %(reach)s)
UNION ALL
(SELECT e.episode_id, s.name, e.position, e.role, e.content, e.event_time, e.external_id, e.known_from, e.metadata
 FROM episodes e JOIN sessions s USING (tenant_id, session_id)
 WHERE e.tenant_id = %(tenant_id)s AND e.session_id = %(session_id)s AND e.position >= %(position)s
 ORDER BY e.position LIMIT %(reach)s + 1)
ORDER BY 3

-- delete_turn: one, with everything that was made of it alone
DELETE FROM episodes WHERE tenant_id = %(tenant_id)s AND episode_id = %(episode_id)s

-- reindex_vector: a turn that follows others now
UPDATE episode_vectors SET embedding = %(embedding)s WHERE tenant_id = %(tenant_id)s AND episode_id = %(episode_id)s

-- reindex_words: likewise
UPDATE episode_lexical SET length = %(length)s, lexemes = %(lexemes)s, weights = %(weights)s
WHERE tenant_id = %(tenant_id)s AND episode_id = %(episode_id)s

-- uncount_terms: the words of a turn that is gone
UPDATE session_terms SET frequency = frequency - 1
WHERE tenant_id = %(tenant_id)s AND session_id = %(session_id)s AND lexeme = ANY (%(lexemes)s)

-- drop_terms: words that nobody says any more
DELETE FROM session_terms
WHERE tenant_id = %(tenant_id)s AND session_id = %(session_id)s AND lexeme = ANY (%(lexemes)s) AND frequency <= 0

-- recount: a session that lost a turn
UPDATE sessions s SET turn_count = s.turn_count - 1, term_count = (
    SELECT coalesce(sum(l.length), 0) FROM episode_lexical l
    WHERE l.tenant_id = s.tenant_id AND l.session_id = s.session_id)
WHERE s.tenant_id = %(tenant_id)s AND s.session_id = %(session_id)s
