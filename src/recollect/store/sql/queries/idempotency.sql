-- begin: a request, unless one of the same key was made before; one that was given up, or whose process is gone before it
-- took effect, may be made again. Until there is a reply, the headers say which process makes it.
INSERT INTO idempotent_requests AS r (tenant_id, credential, idempotency_key, request_hash, run, headers, expires_at)
VALUES (%(tenant_id)s, %(credential)s, %(key)s, %(request_hash)s, %(run)s, %(maker)s,
        now() + make_interval(secs => %(seconds)s))
ON CONFLICT (tenant_id, credential, idempotency_key) DO UPDATE
    SET request_hash = excluded.request_hash, run = excluded.run, status = NULL, headers = excluded.headers, body = NULL,
        began_at = now(), expires_at = excluded.expires_at, took_effect_at = NULL
    WHERE r.expires_at <= now()
       OR (r.status IS NULL AND r.took_effect_at IS NULL AND r.request_hash = excluded.request_hash
           AND (r.began_at < now() - make_interval(secs => %(lease)s) OR r.run = %(ended)s))
RETURNING run

-- made: the request of a key; the last columns: it took effect; its process has not been heard of for too long
SELECT request_hash, status, headers, body, run, took_effect_at IS NOT NULL,
       began_at < now() - make_interval(secs => %(lease)s)
FROM idempotent_requests
WHERE tenant_id = %(tenant_id)s AND credential = %(credential)s AND idempotency_key = %(key)s

-- beat: the process that makes it lives
UPDATE idempotent_requests SET began_at = now()
WHERE tenant_id = %(tenant_id)s AND credential = %(credential)s AND idempotency_key = %(key)s AND run = %(run)s
  AND status IS NULL

-- end: it has a reply
UPDATE idempotent_requests SET status = %(status)s, headers = %(headers)s, body = %(body)s
WHERE tenant_id = %(tenant_id)s AND credential = %(credential)s AND idempotency_key = %(key)s AND run = %(run)s

-- took_effect: what a repetition would double is stored, in the transaction that stores it; no row: the key is another
-- attempt's by now. An answer that goes on without its connection was given up before.
INSERT INTO idempotent_requests AS r (tenant_id, credential, idempotency_key, request_hash, run, took_effect_at, expires_at)
VALUES (%(tenant_id)s, %(credential)s, %(key)s, %(request_hash)s, %(run)s, clock_timestamp(),
        now() + make_interval(secs => %(seconds)s))
ON CONFLICT (tenant_id, credential, idempotency_key) DO UPDATE SET took_effect_at = clock_timestamp()
    WHERE r.run = excluded.run
RETURNING run

-- give_up: it came to nothing, and may be made again
DELETE FROM idempotent_requests
WHERE tenant_id = %(tenant_id)s AND credential = %(credential)s AND idempotency_key = %(key)s AND run = %(run)s
  AND took_effect_at IS NULL

-- leave: it took effect, and has no reply
UPDATE idempotent_requests SET began_at = '-infinity'
WHERE tenant_id = %(tenant_id)s AND credential = %(credential)s AND idempotency_key = %(key)s AND run = %(run)s
  AND took_effect_at IS NOT NULL AND status IS NULL

-- forget: what may be made again
DELETE FROM idempotent_requests WHERE tenant_id = %(tenant_id)s AND expires_at <= now()

-- forget_replies: what replies said, for something of it was erased
UPDATE idempotent_requests SET body = NULL, headers = NULL WHERE tenant_id = %(tenant_id)s AND body IS NOT NULL
