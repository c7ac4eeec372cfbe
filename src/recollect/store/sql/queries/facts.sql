-- candidates: turns that were found so often or more and were not looked at yet, most often first
SELECT e.episode_id, s.name, e.position, e.role, e.content, e.event_time, e.external_id, e.known_from, e.metadata,
       e.session_id, s.user_id, s.embedding_model
FROM episode_retrievals r JOIN episodes e USING (tenant_id, episode_id) JOIN sessions s USING (tenant_id, session_id)
WHERE r.tenant_id = %(tenant_id)s AND r.retrievals >= %(least)s AND e.known_to > clock_timestamp()
  AND (%(user_id)s::text IS NULL OR s.user_id = %(user_id)s)
  AND (NOT %(restricted)s OR s.user_id = %(reader)s)
  AND NOT EXISTS (
      SELECT FROM consolidated_episodes c WHERE c.tenant_id = r.tenant_id AND c.episode_id = r.episode_id)
ORDER BY r.retrievals DESC, e.episode_id LIMIT %(limit)s

-- lock: of one tenant, one at a time draws facts; whoever writes turns does not wait
SELECT pg_advisory_xact_lock(hashtext('recollect.facts'), %(tenant_id)s) IS NULL

-- still_open: those of given turns that are there and were not looked at meanwhile
SELECT e.episode_id FROM episodes e
WHERE e.tenant_id = %(tenant_id)s AND e.episode_id = ANY (%(episode_ids)s)
  AND NOT EXISTS (
      SELECT FROM consolidated_episodes c WHERE c.tenant_id = e.tenant_id AND c.episode_id = e.episode_id)
ORDER BY e.episode_id FOR KEY SHARE OF e

-- related: every fact of the chains of an owner that new ones may belong to
SELECT f.fact_id, f.chain_id, f.session_id, f.episode_id, f.subject, f.attribute, f.value, f.same_as, f.said_at
FROM facts f WHERE f.tenant_id = %(tenant_id)s AND f.chain_id IN (
    SELECT h.chain_id FROM facts h JOIN sessions s USING (tenant_id, session_id)
    WHERE h.tenant_id = %(tenant_id)s AND (s.user_id = %(user_id)s OR s.session_id = %(session_id)s)
      AND (h.fact_id = ANY (%(fact_ids)s) OR h.same_as = ANY (%(same_as)s)
           OR (h.subject = ANY (%(subjects)s) AND h.attribute = ANY (%(attributes)s))))

-- attributes: what an owner's facts say of given subjects, the latest fact of each
SELECT DISTINCT ON (f.subject, f.attribute) f.fact_id, f.subject, f.attribute
FROM facts f JOIN sessions s USING (tenant_id, session_id)
WHERE f.tenant_id = %(tenant_id)s AND (s.user_id = %(user_id)s OR s.session_id = %(session_id)s)
  AND f.subject = ANY (%(subjects)s) AND f.attribute IS NOT NULL
ORDER BY f.subject, f.attribute, f.said_at DESC, f.fact_id DESC

-- allocate: numbers for new facts
SELECT ARRAY(SELECT nextval('facts_fact_id_seq') FROM generate_series(1, %(count)s))

-- insert_fact: one
INSERT INTO facts (tenant_id, fact_id, chain_id, session_id, episode_id, statement, same_as, subject, attribute, value,
                   role, event_time, said_at, known_from, made_by)
VALUES (%(tenant_id)s, %(fact_id)s, %(chain_id)s, %(session_id)s, %(episode_id)s, %(statement)s, %(same_as)s,
        %(subject)s, %(attribute)s, %(value)s, %(role)s, %(event_time)s, %(said_at)s, %(now)s, %(made_by)s)

-- insert_evidence: words that a fact rests on
INSERT INTO fact_evidence (tenant_id, fact_id, episode_id, start_offset, end_offset, kind)
VALUES (%(tenant_id)s, %(fact_id)s, %(episode_id)s, %(start_offset)s, %(end_offset)s, %(kind)s)
ON CONFLICT DO NOTHING

-- insert_index: what searches scan of a fact
INSERT INTO fact_index (tenant_id, fact_id, session_id, embedding, length, lexemes, weights)
VALUES (%(tenant_id)s, %(fact_id)s, %(session_id)s, %(embedding)s, %(length)s, %(lexemes)s, %(weights)s)

-- mark: turns that were looked at
INSERT INTO consolidated_episodes (tenant_id, episode_id, at, made_by)
SELECT %(tenant_id)s, e.episode_id, %(now)s, %(made_by)s FROM unnest(%(episode_ids)s::bigint[]) AS e (episode_id)

-- facts_page: what was said last comes first; whoever is restricted has those of their own conversations alone
SELECT * FROM facts_as_of(%(tenant_id)s, %(as_of)s) AS f
WHERE (%(user_id)s::text IS NULL OR f.user_id = %(user_id)s)
  AND (%(session)s::text IS NULL OR f.session = %(session)s)
  AND (%(superseded)s OR f.superseded_by IS NULL)
  AND (NOT %(restricted)s OR f.user_id = %(reader)s)
  AND (%(after_id)s::bigint IS NULL OR (f.said_at, f.fact_id) < (%(after_at)s::timestamptz, %(after_id)s::bigint))
ORDER BY f.said_at DESC, f.fact_id DESC LIMIT %(limit)s

-- facts_by_id: given ones
SELECT * FROM facts_as_of(%(tenant_id)s, %(as_of)s) AS f
WHERE f.fact_id = ANY (%(fact_ids)s) AND (NOT %(restricted)s OR f.user_id = %(reader)s)

-- chain: every fact of a fact's chain, the one said first before the others
SELECT f.* FROM facts_as_of(%(tenant_id)s, %(as_of)s) AS f
JOIN facts o ON o.tenant_id = %(tenant_id)s AND o.fact_id = f.fact_id
WHERE f.chain_id = (SELECT chain_id FROM facts WHERE tenant_id = %(tenant_id)s AND fact_id = %(fact_id)s)
  AND (NOT %(restricted)s OR f.user_id = %(reader)s)
ORDER BY o.said_at, o.episode_id, o.fact_id

-- evidence: the words that given facts rest on
SELECT v.fact_id, v.kind, e.episode_id, s.name, e.position, e.role, e.event_time, v.start_offset, v.end_offset,
       substring(e.content FROM v.start_offset + 1 FOR v.end_offset - v.start_offset)
FROM fact_evidence v JOIN episodes e USING (tenant_id, episode_id) JOIN sessions s USING (tenant_id, session_id)
WHERE v.tenant_id = %(tenant_id)s AND v.fact_id = ANY (%(fact_ids)s)
ORDER BY v.fact_id, coalesce(e.event_time, e.known_from), e.episode_id, v.start_offset

-- delete_fact: one, with its evidence; the turns stay
DELETE FROM facts f USING sessions s
WHERE f.tenant_id = %(tenant_id)s AND f.fact_id = %(fact_id)s
  AND s.tenant_id = f.tenant_id AND s.session_id = f.session_id AND (NOT %(restricted)s OR s.user_id = %(reader)s)

-- drawn_from_session: how many facts go with a session
SELECT count(DISTINCT v.fact_id) FROM fact_evidence v JOIN episodes e USING (tenant_id, episode_id)
WHERE v.tenant_id = %(tenant_id)s AND v.kind = 'source' AND e.session_id = %(session_id)s

-- delete_drawn_from_session: facts that one of several turns of theirs is lost to
DELETE FROM facts f USING fact_evidence v, episodes e
WHERE f.tenant_id = %(tenant_id)s AND v.tenant_id = f.tenant_id AND v.fact_id = f.fact_id AND v.kind = 'source'
  AND e.tenant_id = f.tenant_id AND e.episode_id = v.episode_id AND e.session_id = %(session_id)s

-- delete_drawn_from_turns: the same, for given turns
DELETE FROM facts f USING fact_evidence v
WHERE f.tenant_id = %(tenant_id)s AND v.tenant_id = f.tenant_id AND v.fact_id = f.fact_id AND v.kind = 'source'
  AND v.episode_id = ANY (%(episode_ids)s)

-- dense: current facts by their similarity to a vector, with their words; a vector of another length is of another model,
-- and `db verify --repair` makes it anew
SELECT i.fact_id, i.length, sparsevec_send(i.weights), (-(i.embedding <#> %(embedding)s))::real
FROM fact_index i JOIN facts f USING (tenant_id, fact_id)
WHERE i.tenant_id = %(tenant_id)s AND (%(session_ids)s::bigint[] IS NULL OR i.session_id = ANY (%(session_ids)s))
  AND vector_dims(i.embedding) = vector_dims(%(embedding)s::halfvec)
  AND f.known_from <= coalesce(%(as_of)s::timestamptz, 'infinity')
  AND (%(since)s::timestamptz IS NULL OR f.event_time >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR f.event_time < %(until)s)
  AND NOT EXISTS (
      SELECT FROM facts o WHERE o.tenant_id = f.tenant_id AND o.chain_id = f.chain_id
        AND (o.said_at, o.episode_id, o.fact_id) > (f.said_at, f.episode_id, f.fact_id)
        AND o.known_from <= coalesce(%(as_of)s::timestamptz, 'infinity'))
ORDER BY i.embedding <#> %(embedding)s, i.fact_id LIMIT %(limit)s

-- lexical: current facts by their words, with their similarities where a vector is given; scored again by the caller
SELECT i.fact_id, i.length, sparsevec_send(i.weights),
       CASE WHEN vector_dims(i.embedding) = vector_dims(%(embedding)s::halfvec)
            THEN (-(i.embedding <#> %(embedding)s::halfvec))::real END
FROM fact_index i JOIN facts f USING (tenant_id, fact_id)
WHERE i.tenant_id = %(tenant_id)s AND (%(session_ids)s::bigint[] IS NULL OR i.session_id = ANY (%(session_ids)s))
  AND i.lexemes && %(lexemes)s::int[]
  AND f.known_from <= coalesce(%(as_of)s::timestamptz, 'infinity')
  AND (%(since)s::timestamptz IS NULL OR f.event_time >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR f.event_time < %(until)s)
  AND NOT EXISTS (
      SELECT FROM facts o WHERE o.tenant_id = f.tenant_id AND o.chain_id = f.chain_id
        AND (o.said_at, o.episode_id, o.fact_id) > (f.said_at, f.episode_id, f.fact_id)
        AND o.known_from <= coalesce(%(as_of)s::timestamptz, 'infinity'))
ORDER BY i.weights <#> %(query)s, i.fact_id LIMIT %(limit)s
