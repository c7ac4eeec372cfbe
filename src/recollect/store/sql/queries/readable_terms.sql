-- frequencies: in how many of the chunks that a caller may read each lexeme stands; explanations ask
SELECT l.lexeme, (SELECT count(*) FROM chunk_lexical c
                  WHERE c.tenant_id = %(tenant_id)s AND c.collection_id = %(collection_id)s
                    AND c.known_to = 'infinity' AND c.access_id = ANY (%(access_ids)s::int[])
                    AND c.lexemes && ARRAY[l.lexeme])
FROM unnest(%(lexemes)s::int[]) AS l (lexeme)

-- present: those of some lexemes that stand in a chunk that a caller may read
SELECT l.lexeme FROM unnest(%(lexemes)s::int[]) AS l (lexeme)
WHERE EXISTS (SELECT FROM chunk_lexical c
              WHERE c.tenant_id = %(tenant_id)s AND c.collection_id = %(collection_id)s
                AND c.known_to = 'infinity' AND c.access_id = ANY (%(access_ids)s::int[])
                AND c.lexemes && ARRAY[l.lexeme])
