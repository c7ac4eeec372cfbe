-- Files that were sent to be stored: a job is to read each, on whichever machine, so its bytes are among the originals as
-- soon as the job is asked for. A job that has succeeded needs it no more; with a job that goes, goes what only it had.
CREATE TABLE job_uploads (
    tenant_id int    NOT NULL,
    job_id    bigint NOT NULL,
    file_hash bytea  NOT NULL,
    PRIMARY KEY (tenant_id, job_id),
    FOREIGN KEY (tenant_id, job_id) REFERENCES jobs ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, file_hash) REFERENCES originals
);

CREATE INDEX job_uploads_by_hash ON job_uploads (tenant_id, file_hash);
