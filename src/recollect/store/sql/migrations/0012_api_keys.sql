-- What programs present to the server to say whose and who they are. A secret is drawn from 256 random bits and shown once;
-- its SHA-256 is kept, which nobody can try such secrets against. The id says when the key was made, so it sorts by that.
CREATE TABLE api_keys (
    tenant_id      int         NOT NULL REFERENCES tenants,
    key_id         text        COLLATE "C" NOT NULL CHECK (key_id ~ '^[0-9A-Za-z]{14}$'),
    name           text        NOT NULL CHECK (name <> ''),
    secret_hash    bytea       NOT NULL CHECK (octet_length(secret_hash) = 32),
    previous_hash  bytea       CHECK (octet_length(previous_hash) = 32), -- of the secret before the last rotation,
    previous_until timestamptz,                                          -- which is taken so long
    scopes         text[]      NOT NULL CHECK (scopes <> '{}' AND scopes <@ '{read,write,admin,operator}'::text[]),
    principal      jsonb       CHECK (jsonb_typeof(principal) = 'object'), -- as whom; NULL: as the store's owner
    created_by     text        NOT NULL CHECK (created_by <> ''),
    created_at     timestamptz NOT NULL DEFAULT now(),
    expires_at     timestamptz,
    rotated_at     timestamptz,
    revoked_at     timestamptz,
    last_used_at   timestamptz, -- to the minute
    PRIMARY KEY (tenant_id, key_id)
);

CREATE INDEX api_keys_by_user ON api_keys (tenant_id, (principal ->> 'user_id'), key_id) WHERE principal IS NOT NULL;
