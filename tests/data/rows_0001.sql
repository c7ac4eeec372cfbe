-- A row in every table of the baseline, as stores in use have them: migrations must lead these to the present schema too.
-- Frozen with the baseline.

INSERT INTO tenants (tenant_id, name) VALUES (2, 'acme');
INSERT INTO upkeep (tenant_id, task, begun_at) VALUES (1, 'audit', now());

INSERT INTO collections (tenant_id, collection_id, name, embedding_model, embedding_dimension) VALUES
    (1, 1, 'default', 'hashing', 3), (1, 2, 'hidden', 'hashing', 3);
INSERT INTO collection_state (tenant_id, collection_id, document_count, chunk_count) VALUES (1, 1, 1, 1), (1, 2, 0, 0);
INSERT INTO term_stats (tenant_id, collection_id, lexeme, document_frequency) VALUES (1, 1, 5, 1);
INSERT INTO access_lists (tenant_id, collection_id, access_id, beneath) VALUES (1, 1, 0, NULL), (1, 1, 7, 0);
INSERT INTO collection_shares (tenant_id, collection_id, reader_id) VALUES (1, 1, 2);
INSERT INTO document_sessions (tenant_id, collection_id, name, max_documents, when_full, auto_cleanup) VALUES
    (1, 2, 's', 10, 'oldest', true);

INSERT INTO sources (tenant_id, source_id, collection_id, name, type) VALUES (1, 1, 1, '/notes', 'directory');
INSERT INTO documents (tenant_id, document_id, collection_id, source_id, uri) VALUES (1, 1, 1, 1, 'policy-2025.md');
INSERT INTO document_versions (tenant_id, version_id, document_id, collection_id, access_id, version, known_from, known_to,
                               uri, title, mime_type, chunk_count, content_hash, fingerprint) VALUES
    (1, 1, 1, 1, 7, 1, '2025-01-01', '2025-02-01', 'policy-2025.md', 'Policy', 'text/plain', 0, 'a', 'f'),
    (1, 2, 1, 1, 0, 2, '2025-02-01', 'infinity', 'policy-2025.md', 'Policy', 'text/plain', 1, 'b', 'f');
INSERT INTO document_contents (tenant_id, version_id, content) VALUES (1, 1, 'old'), (1, 2, 'new');
INSERT INTO version_acronyms (tenant_id, version_id, collection_id, short, long, occurrences) VALUES
    (1, 2, 1, 'APR', 'annual percentage rate', 1);

INSERT INTO chunks (tenant_id, chunk_id, version_id, position, start_offset, end_offset, token_count, content_hash, text)
    VALUES (1, 1, 2, 0, 0, 3, 1, 'c', 'new');
INSERT INTO chunk_vectors (tenant_id, chunk_id, collection_id, version_id, known_from, embedding) VALUES
    (1, 1, 1, 2, '2025-02-01', '[1,0,0]');
INSERT INTO chunk_lexical (tenant_id, chunk_id, collection_id, version_id, known_from, length, lexemes, weights) VALUES
    (1, 1, 1, 2, '2025-02-01', 1, '{5}', '{5:1}/1000000000');
INSERT INTO chunk_token_vectors (tenant_id, chunk_id, packed) VALUES (1, 1, 'p');
INSERT INTO closed_row_segments (tenant_id, collection_id, closed_from, closed_before, chunk_count, begins, ends) VALUES
    (1, 1, '2025-01-01', '2025-03-01', 0, '{0}', '{1}');
INSERT INTO embedding_cache (tenant_id, model, content_hash, embedding) VALUES (1, 'hashing', 'c', '[1,0,0]');

INSERT INTO sessions (tenant_id, session_id, name, embedding_model, turn_count) VALUES (1, 1, 's', 'hashing', 1);
INSERT INTO episodes (tenant_id, episode_id, session_id, position, role, content) VALUES (1, 1, 1, 1, 'user', 'I live in Rome.');
INSERT INTO episode_vectors (tenant_id, episode_id, session_id, position, known_from, embedding) VALUES
    (1, 1, 1, 1, now(), '[1,0,0]');
INSERT INTO episode_lexical (tenant_id, episode_id, session_id, position, known_from, length, lexemes, weights) VALUES
    (1, 1, 1, 1, now(), 1, '{5}', '{5:1}/1000000000');
INSERT INTO session_terms (tenant_id, lexeme, session_id, frequency) VALUES (1, 5, 1, 1);
INSERT INTO episode_retrievals (tenant_id, episode_id, retrievals, first_at, last_at) VALUES (1, 1, 1, now(), now());

INSERT INTO facts (tenant_id, fact_id, chain_id, session_id, episode_id, statement, same_as, role, said_at, known_from, made_by)
    VALUES (1, 1, 1, 1, 1, 'The user lives in Rome.', 'the user lives in rome', 'user', now(), now(), 'extractive');
INSERT INTO fact_evidence (tenant_id, fact_id, episode_id, start_offset, end_offset, kind) VALUES (1, 1, 1, 0, 4, 'source');
INSERT INTO fact_index (tenant_id, fact_id, session_id, embedding, length, lexemes, weights) VALUES
    (1, 1, 1, '[1,0,0]', 1, '{5}', '{5:1}/1000000000');
INSERT INTO consolidated_episodes (tenant_id, episode_id, at, made_by) VALUES (1, 1, now(), 'extractive');

INSERT INTO audit (tenant_id, number, hash, action, actor) VALUES (1, 1, 'h', 'restore', 'user:a');
INSERT INTO audit_heads (tenant_id, number, hash) VALUES (1, 1, 'h');
INSERT INTO context_feedback (tenant_id, session_id, documents_helpful) VALUES (1, NULL, 1);
INSERT INTO search_health (tenant_id, collection_id, day) VALUES (1, 1, '2025-02-01');
