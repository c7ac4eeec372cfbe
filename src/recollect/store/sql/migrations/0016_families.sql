-- Documents whose paths differ only in a year, a date or a version (policy-2023.md, policy-2025.pdf, policy.md) belong to
-- one family. What is equal here may be one; retrieval/staleness.py looks closer.
ALTER TABLE documents ADD COLUMN family text NOT NULL GENERATED ALWAYS AS (
    regexp_replace(
        regexp_replace(regexp_replace(lower(uri), '\.[a-z0-9]{1,5}$', ''),
                       '[-_. ]*(version|ver|rev|v)?[-_. ]*[0-9][0-9._-]*', '', 'g'),
        '[-_. ]+', '', 'g')) STORED;

CREATE INDEX documents_by_family ON documents (tenant_id, collection_id, family);
