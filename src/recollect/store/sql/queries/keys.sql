-- create: a key
INSERT INTO api_keys (tenant_id, key_id, name, secret_hash, scopes, principal, created_by, expires_at, collection,
                      origins)
VALUES (%(tenant_id)s, %(key_id)s, %(name)s, %(secret_hash)s, %(scopes)s, %(principal)s, %(created_by)s, %(expires_at)s,
        %(collection)s, %(origins)s)

-- page: keys, newest first; of all users, or of one
SELECT k.tenant_id, k.key_id, k.name, k.scopes, k.principal, k.created_by, k.created_at, k.expires_at, k.rotated_at,
       CASE WHEN k.previous_until > now() THEN k.previous_until END, k.revoked_at, k.last_used_at,
       CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked' WHEN k.expires_at <= now() THEN 'expired' ELSE 'active' END,
       k.collection, k.origins
FROM api_keys k
WHERE k.tenant_id = %(tenant_id)s
  AND (%(user)s::text IS NULL OR k.principal ->> 'user_id' = %(user)s)
  AND (%(key_id)s::text IS NULL OR k.key_id = %(key_id)s)
  AND (%(before)s::text IS NULL OR k.key_id < %(before)s)
ORDER BY k.key_id DESC LIMIT %(limit)s

-- lock: until the end of the transaction nobody else changes the key
SELECT FROM api_keys WHERE tenant_id = %(tenant_id)s AND key_id = %(key_id)s FOR UPDATE

-- revoke: it is taken no longer
UPDATE api_keys SET revoked_at = now(), previous_hash = NULL, previous_until = NULL
WHERE tenant_id = %(tenant_id)s AND key_id = %(key_id)s

-- rotate: another secret; the one before is taken a while longer
UPDATE api_keys SET previous_hash = CASE WHEN %(grace)s > 0 THEN secret_hash END,
                    previous_until = CASE WHEN %(grace)s > 0 THEN now() + make_interval(secs => %(grace)s) END,
                    secret_hash = %(secret_hash)s, rotated_at = now(), expires_at = %(expires_at)s
WHERE tenant_id = %(tenant_id)s AND key_id = %(key_id)s

-- presented: the hashes that a key's secret may have now, how its tenant is, and whether it is time to note its use
SELECT k.secret_hash, CASE WHEN k.previous_until > now() THEN k.previous_hash END, t.name, t.status,
       k.last_used_at IS NULL OR k.last_used_at < now() - interval '1 minute'
FROM api_keys k JOIN tenants t USING (tenant_id)
WHERE k.tenant_id = %(tenant_id)s AND k.key_id = %(key_id)s

-- used: at most once a minute, however many processes see it
UPDATE api_keys SET last_used_at = now()
WHERE tenant_id = %(tenant_id)s AND key_id = %(key_id)s
  AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')

-- any_active: whether any tenant has a key that is taken
SELECT EXISTS (SELECT FROM api_keys k JOIN tenants t USING (tenant_id)
               WHERE t.status = 'active' AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now()))

-- users: of keys and logins, by name: as whom the newest of theirs is, how many are taken now, and when one was used last
SELECT u.user_id COLLATE "C", (array_agg(u.principal ORDER BY u.created_at DESC))[1],
       count(*) FILTER (WHERE u.is_key AND u.taken), count(*) FILTER (WHERE NOT u.is_key AND u.taken), max(u.last_used_at)
FROM (SELECT k.principal ->> 'user_id' AS user_id, k.principal, k.created_at, k.last_used_at, true AS is_key,
             k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now()) AS taken
      FROM api_keys k WHERE k.tenant_id = %(tenant_id)s AND k.principal IS NOT NULL
      UNION ALL
      SELECT coalesce(k.principal, l.principal) ->> 'user_id', coalesce(k.principal, l.principal), l.created_at,
             l.last_used_at, false,
             l.ended_at IS NULL AND least(l.expires_at, l.last_used_at + make_interval(secs => l.idle_seconds)) > now()
                 AND k.revoked_at IS NULL
      FROM logins l LEFT JOIN api_keys k USING (tenant_id, key_id) WHERE l.tenant_id = %(tenant_id)s) u
WHERE u.user_id COLLATE "C" > %(after)s AND (%(user)s::text IS NULL OR u.user_id = %(user)s)
GROUP BY u.user_id ORDER BY u.user_id COLLATE "C" LIMIT %(limit)s
