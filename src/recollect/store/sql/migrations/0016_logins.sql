-- Who is logged in with a browser, whose cookie holds a secret of 256 random bits; its SHA-256 is kept. One that was made with
-- a key is as that key is: it ends with the key, and with the secret of the key that it was made with. One that an issuer vouched
-- for is as its token said then.
CREATE TABLE logins (
    tenant_id    int         NOT NULL REFERENCES tenants,
    login_id     text        COLLATE "C" NOT NULL CHECK (login_id ~ '^[0-9A-Za-z]{14}$'),
    secret_hash  bytea       NOT NULL CHECK (octet_length(secret_hash) = 32),
    key_id       text        COLLATE "C",
    key_hash     bytea       CHECK (octet_length(key_hash) = 32), -- of the key's secret that was presented
    scopes       text[]      CHECK (scopes <@ '{read,write,admin,operator}'::text[]),
    principal    jsonb       CHECK (jsonb_typeof(principal) = 'object'),
    id_token     bytea,      -- as the issuer wants it back at a logout; sealed with the cookie's secret
    created_at   timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz NOT NULL DEFAULT now(), -- to the minute
    idle_seconds float8      NOT NULL CHECK (idle_seconds > 0),
    expires_at   timestamptz NOT NULL,
    ended_at     timestamptz,
    PRIMARY KEY (tenant_id, login_id),
    FOREIGN KEY (tenant_id, key_id) REFERENCES api_keys ON DELETE CASCADE,
    CHECK ((key_id IS NULL) = (key_hash IS NULL)),
    CHECK ((key_id IS NULL) = (scopes IS NOT NULL AND principal IS NOT NULL))
);

CREATE INDEX logins_by_key ON logins (tenant_id, key_id) WHERE key_id IS NOT NULL;
