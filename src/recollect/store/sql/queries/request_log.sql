-- append: many at once
INSERT INTO request_log (tenant_id, at, kind, provider, model, inputs, input_tokens, output_tokens, tokens_estimated,
                         attempts, milliseconds, error, status, cost)
SELECT %(tenant_id)s, * FROM unnest(
    %(at)s::timestamptz[], %(kind)s::text[], %(provider)s::text[], %(model)s::text[], %(inputs)s::int[],
    %(input_tokens)s::bigint[], %(output_tokens)s::bigint[], %(tokens_estimated)s::boolean[], %(attempts)s::int[],
    %(milliseconds)s::real[], %(error)s::text[], %(status)s::smallint[], %(cost)s::float8[])

-- page: newest first
SELECT request_id, at, kind, provider, model, inputs, input_tokens, output_tokens, tokens_estimated, attempts,
       milliseconds, error IS NULL AS success, error, status, cost
FROM request_log
WHERE tenant_id = %(tenant_id)s
  AND (%(kind)s::text IS NULL OR kind = %(kind)s)
  AND (NOT %(failed)s OR error IS NOT NULL)
  AND (%(before)s::bigint IS NULL OR request_id < %(before)s)
  AND (%(since)s::timestamptz IS NULL OR at >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR at < %(until)s)
ORDER BY request_id DESC LIMIT %(limit)s

-- totals: by kind and model
SELECT kind, provider, model, count(*) AS requests, count(error) AS failures, sum(attempts) AS attempts,
       sum(inputs) AS inputs, sum(input_tokens)::bigint AS input_tokens, sum(output_tokens)::bigint AS output_tokens,
       avg(milliseconds) FILTER (WHERE error IS NULL) AS mean_milliseconds,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY milliseconds) FILTER (WHERE error IS NULL) AS p95_milliseconds,
       sum(cost) AS cost
FROM request_log
WHERE tenant_id = %(tenant_id)s
  AND (%(since)s::timestamptz IS NULL OR at >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR at < %(until)s)
GROUP BY kind, provider, model ORDER BY kind, provider, model
