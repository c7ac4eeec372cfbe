-- state: a collection at this moment
SELECT s.revision, s.revision_id::text, c.space_id, c.embedding_dimension, coalesce(s.reference_length, 1), s.chunk_count
FROM collections c JOIN collection_state s USING (tenant_id, collection_id)
WHERE c.tenant_id = %(tenant_id)s AND c.collection_id = %(collection_id)s AND NOT c.hidden

-- words: chunk, version, access list, length and weights of each current lexical row
SELECT chunk_id, version_id, access_id, length, sparsevec_send(weights) FROM chunk_lexical
WHERE tenant_id = {tenant_id} AND collection_id = {collection_id} AND known_to = 'infinity' {some}

-- vectors: chunk, version, access list and vector of each current row of a space
SELECT chunk_id, version_id, access_id, halfvec_send(embedding) FROM chunk_vectors
WHERE tenant_id = {tenant_id} AND space_id = {space_id} AND known_to = 'infinity' {some}

-- places: where the chunks of current versions stand
SELECT chunk_id, position FROM chunks
WHERE tenant_id = {tenant_id} AND version_id IN (
    SELECT version_id FROM document_versions
    WHERE tenant_id = {tenant_id} AND collection_id = {collection_id} AND known_to = 'infinity' {some})

-- term_counts: in how many chunks each word stands, by the last refresh
SELECT lexeme, document_frequency FROM term_stats WHERE tenant_id = {tenant_id} AND collection_id = {collection_id}

-- still_there: those of given versions that were not erased
SELECT version_id FROM document_versions WHERE tenant_id = %(tenant_id)s AND version_id = ANY (%(version_ids)s)
