-- add: to what was counted
INSERT INTO context_feedback AS f (tenant_id, session_id, documents_helpful, documents_not, memory_helpful, memory_not)
VALUES (%(tenant_id)s, %(session_id)s, %(documents_helpful)s, %(documents_not)s, %(memory_helpful)s, %(memory_not)s)
ON CONFLICT (tenant_id, session_id) DO UPDATE SET
    documents_helpful = f.documents_helpful + excluded.documents_helpful,
    documents_not = f.documents_not + excluded.documents_not,
    memory_helpful = f.memory_helpful + excluded.memory_helpful,
    memory_not = f.memory_not + excluded.memory_not,
    updated_at = now()

-- counts: of a session, named, and of none
SELECT f.session_id IS NOT NULL, f.documents_helpful, f.documents_not, f.memory_helpful, f.memory_not
FROM context_feedback f
LEFT JOIN sessions s ON s.tenant_id = f.tenant_id AND s.session_id = f.session_id
WHERE f.tenant_id = %(tenant_id)s
  AND (f.session_id IS NULL OR (s.name = %(name)s AND (NOT %(restricted)s OR s.user_id = %(reader)s)
                                AND (%(user_id)s::text IS NULL OR s.user_id = %(user_id)s OR s.user_id IS NULL)))
ORDER BY s.user_id NULLS FIRST

-- reset: forget what was counted
DELETE FROM context_feedback
WHERE tenant_id = %(tenant_id)s AND session_id IS NOT DISTINCT FROM %(session_id)s
RETURNING documents_helpful + documents_not + memory_helpful + memory_not
