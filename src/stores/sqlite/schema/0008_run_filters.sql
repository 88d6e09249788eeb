-- Principal of a run, and its metadata as JSON, for the filters of lists. Without a value, and the metadata of a deleted run, null.
ALTER TABLE run ADD COLUMN principal TEXT;
ALTER TABLE run ADD COLUMN metadata TEXT;
UPDATE run SET (principal, metadata) = (
    SELECT event ->> '$.spec.principal', event -> '$.metadata' FROM journal WHERE journal.run = run.id AND seq = 0);

-- Lists of one tenant by principal. The columns after the id answer the other filters from the index alone.
CREATE INDEX run_by_tenant_principal ON run (tenant, principal, id, status, agent, purged_at)
    WHERE principal IS NOT NULL AND purged_at IS NULL;
