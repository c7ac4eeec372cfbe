-- The audit as a chain, one a tenant: each entry holds the SHA-256 of the hash before it and of its own content
-- (routines/audit.sql), so that an entry that was changed, removed or put in between shows.

ALTER TABLE audit
    ADD COLUMN number bigint, -- 1, 2, … within the tenant
    ADD COLUMN hash   bytea;

-- Where a chain begins and ends, apart from its entries: neither those at its end nor those that were dropped at its
-- beginning can be taken away unnoticed. No foreign key: a chain outlives its tenant, as the receipts in it do.
CREATE TABLE audit_heads (
    tenant_id    int         PRIMARY KEY,
    number       bigint      NOT NULL DEFAULT 0, -- of the newest entry
    hash         bytea       NOT NULL DEFAULT decode(repeat('00', 32), 'hex'),
    at           timestamptz NOT NULL DEFAULT '-infinity',
    dropped      bigint      NOT NULL DEFAULT 0, -- the last number that retention or an erasure took away
    dropped_hash bytea       NOT NULL DEFAULT decode(repeat('00', 32), 'hex')
) WITH (fillfactor = 50); -- its rows are updated with every entry

-- Entries of before the chain are linked as they stand.
DO $chain$
DECLARE
    entry record;
    head audit_heads;
BEGIN
    FOR entry IN SELECT * FROM audit ORDER BY tenant_id, at, audit_id LOOP
        IF entry.tenant_id IS DISTINCT FROM head.tenant_id THEN
            INSERT INTO audit_heads (tenant_id) VALUES (entry.tenant_id) RETURNING * INTO head;
        END IF;
        head.number := head.number + 1;
        head.hash := sha256(head.hash || convert_to(jsonb_build_object(
            'tenant_id', entry.tenant_id, 'number', head.number, 'audit_id', entry.audit_id,
            'at', to_char(entry.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
            'action', entry.action, 'actor', entry.actor, 'details', entry.details)::text, 'UTF8'));
        UPDATE audit SET number = head.number, hash = head.hash
            WHERE tenant_id = entry.tenant_id AND at = entry.at AND audit_id = entry.audit_id;
        UPDATE audit_heads SET number = head.number, hash = head.hash, at = entry.at WHERE tenant_id = entry.tenant_id;
    END LOOP;
END
$chain$;

ALTER TABLE audit ALTER COLUMN number SET NOT NULL, ALTER COLUMN hash SET NOT NULL;

CREATE INDEX audit_by_action ON audit (tenant_id, action, audit_id);
