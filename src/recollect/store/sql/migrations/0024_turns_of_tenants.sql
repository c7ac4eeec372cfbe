-- Not procrastinate's: tenants take turns in the queue, so a worker looks for the next job by tenant. Upkeep has no tenant.
CREATE INDEX jobs_by_tenant ON recollect_jobs.procrastinate_jobs
    (coalesce((args ->> 'tenant_id')::int, 0), priority DESC, id) WHERE status = 'todo';
