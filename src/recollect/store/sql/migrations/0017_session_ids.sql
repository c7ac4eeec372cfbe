-- Every user has ids of his own for conversations and for sessions with documents, so that nobody learns of another's by
-- finding one taken. What belongs to nobody in particular has one of each.

ALTER TABLE sessions DROP CONSTRAINT sessions_tenant_id_name_key;
ALTER TABLE sessions ADD CONSTRAINT sessions_by_name UNIQUE NULLS NOT DISTINCT (tenant_id, name, user_id);

ALTER TABLE document_sessions DROP CONSTRAINT document_sessions_tenant_id_name_key;
ALTER TABLE document_sessions ADD CONSTRAINT document_sessions_by_name UNIQUE NULLS NOT DISTINCT (tenant_id, name, owner);

UPDATE collections c SET name = concat_ws(chr(31), 'session', coalesce(s.owner, ''), s.name) FROM document_sessions s
WHERE s.tenant_id = c.tenant_id AND s.collection_id = c.collection_id AND c.hidden;
