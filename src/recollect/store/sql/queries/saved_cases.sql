-- list: of a collection, by name
SELECT case_id, definition, as_of, made_by, made_at FROM saved_cases
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s
  AND (%(everybodys)s OR made_by = %(made_by)s)
ORDER BY name, case_id

-- hold: one at a time, so that no more are saved than may be
SELECT FROM collections WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s FOR NO KEY UPDATE

-- count: of a collection, but for one of that name, which is to be replaced
SELECT count(*) FROM saved_cases
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s
  AND (name <> %(name)s OR made_by <> %(made_by)s)

-- save: one of the same name and maker is replaced
INSERT INTO saved_cases (tenant_id, collection_id, name, definition, as_of, made_by)
VALUES (%(tenant_id)s, %(collection_id)s, %(name)s, %(definition)s, %(as_of)s, %(made_by)s)
ON CONFLICT (tenant_id, collection_id, made_by, name)
DO UPDATE SET definition = excluded.definition, as_of = excluded.as_of, made_at = now()
RETURNING case_id

-- delete: one
DELETE FROM saved_cases
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s AND case_id = %(case_id)s
  AND (%(everybodys)s OR made_by = %(made_by)s)
RETURNING case_id
