-- create: a login
INSERT INTO logins (tenant_id, login_id, secret_hash, key_id, key_hash, scopes, principal, id_token, idle_seconds, expires_at)
VALUES (%(tenant_id)s, %(login_id)s, %(secret_hash)s, %(key_id)s, %(key_hash)s, %(scopes)s, %(principal)s, %(id_token)s,
        %(idle_seconds)s, now() + make_interval(secs => %(lifetime_seconds)s))

-- page: logins, newest first, with what a cookie is compared with; of all users, or of one. A login of a key ends with the secret
-- that it was made with, as that does: at once, or after the grace of a rotation
SELECT l.tenant_id, l.login_id, l.key_id, coalesce(k.scopes, l.scopes), coalesce(k.principal, l.principal), l.created_at,
       l.last_used_at, l.last_used_at + make_interval(secs => l.idle_seconds), least(l.expires_at, k.expires_at),
       k.expires_at, l.ended_at,
       CASE WHEN l.ended_at IS NOT NULL THEN 'ended'
            WHEN k.revoked_at IS NOT NULL OR (l.key_hash <> k.secret_hash
                 AND (k.previous_until <= now() OR l.key_hash IS DISTINCT FROM k.previous_hash)) THEN 'revoked'
            WHEN least(l.expires_at, k.expires_at, l.last_used_at + make_interval(secs => l.idle_seconds)) <= now()
                 THEN 'expired'
            ELSE 'active' END,
       l.secret_hash, t.name, t.status, l.last_used_at < now() - interval '1 minute'
FROM logins l JOIN tenants t USING (tenant_id) LEFT JOIN api_keys k USING (tenant_id, key_id)
WHERE l.tenant_id = %(tenant_id)s
  AND (%(user)s::text IS NULL OR coalesce(k.principal, l.principal) ->> 'user_id' = %(user)s)
  AND (%(login_id)s::text IS NULL OR l.login_id = %(login_id)s)
  AND (%(before)s::text IS NULL OR l.login_id < %(before)s)
ORDER BY l.login_id DESC LIMIT %(limit)s

-- used: at most once a minute, however many processes see it
UPDATE logins SET last_used_at = now()
WHERE tenant_id = %(tenant_id)s AND login_id = %(login_id)s AND last_used_at < now() - interval '1 minute'

-- end: of one, or of all of a user's; those that have ended stay as they are. Of one the sealed token of its issuer
UPDATE logins l SET ended_at = now(), id_token = NULL
FROM (SELECT o.login_id, o.id_token FROM logins o LEFT JOIN api_keys k USING (tenant_id, key_id)
      WHERE o.tenant_id = %(tenant_id)s AND o.ended_at IS NULL
        AND (%(login_id)s::text IS NULL OR o.login_id = %(login_id)s)
        AND (%(user)s::text IS NULL OR coalesce(k.principal, o.principal) ->> 'user_id' = %(user)s)
      FOR UPDATE OF o) before
WHERE l.tenant_id = %(tenant_id)s AND l.login_id = before.login_id
RETURNING l.login_id, before.id_token

-- forget: those that nobody can use any more, a month after
DELETE FROM logins WHERE tenant_id = %(tenant_id)s
  AND least(ended_at, expires_at, last_used_at + make_interval(secs => idle_seconds)) < now() - interval '30 days'
