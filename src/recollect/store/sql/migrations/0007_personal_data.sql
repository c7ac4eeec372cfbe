-- What a tenant wants done with personal data in what it stores; NULL: what is configured. The salt goes into names of
-- documents that held some: without it, nobody can try which value a name was made of.
ALTER TABLE tenants ADD COLUMN pii text CHECK (pii IN ('off', 'tag', 'redact', 'refuse'));
ALTER TABLE tenants ADD COLUMN pii_salt uuid NOT NULL DEFAULT gen_random_uuid();
