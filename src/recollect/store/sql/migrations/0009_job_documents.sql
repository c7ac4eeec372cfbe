-- The document that a job is to store or to bring up to date has its identity as soon as the job is asked for, so that it
-- is seen as pending, and as an error where the job fails. What it says is in versions, which it has none of until then:
-- so no search, and nothing that reads versions, meets it. With an erased document its jobs go, and what they held.
ALTER TABLE jobs ADD COLUMN document_id bigint;
ALTER TABLE jobs ADD FOREIGN KEY (tenant_id, document_id) REFERENCES documents ON DELETE CASCADE;

CREATE INDEX jobs_by_document_id ON jobs (tenant_id, document_id, job_id) WHERE document_id IS NOT NULL;
DROP INDEX jobs_by_document;
