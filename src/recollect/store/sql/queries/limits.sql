-- take: tokens of several buckets
SELECT granted, remaining, wait
FROM take_tokens(%(tenant_id)s, %(buckets)s, %(seconds)s, %(sizes)s, %(wanted)s)

-- forget: buckets that are full again
DELETE FROM rate_limits WHERE tenant_id = %(tenant_id)s AND due < extract(epoch FROM now())

-- upload: bytes of today, unless they would be too many
INSERT INTO uploads AS u (tenant_id, day, bytes)
SELECT %(tenant_id)s, (now() AT TIME ZONE 'UTC')::date, %(bytes)s WHERE %(bytes)s <= %(limit)s
ON CONFLICT (tenant_id, day) DO UPDATE SET bytes = u.bytes + excluded.bytes
    WHERE u.bytes + excluded.bytes <= %(limit)s
RETURNING bytes

-- uploaded: today
SELECT coalesce(sum(bytes), 0)::bigint FROM uploads
WHERE tenant_id = %(tenant_id)s AND day = (now() AT TIME ZONE 'UTC')::date

-- give_back: what was not uploaded after all
UPDATE uploads SET bytes = greatest(bytes - %(bytes)s, 0)
WHERE tenant_id = %(tenant_id)s AND day = (now() AT TIME ZONE 'UTC')::date

-- forget_uploads: of days before yesterday
DELETE FROM uploads WHERE tenant_id = %(tenant_id)s AND day < (now() AT TIME ZONE 'UTC')::date - 1
