-- What started a run; null if its first event was deleted before this column existed.
ALTER TABLE run ADD COLUMN trigger_type TEXT;
ALTER TABLE run ADD COLUMN schedule TEXT;
UPDATE run SET trigger_type = (
    SELECT CASE json_type(event, '$.trigger')
        WHEN 'object' THEN (SELECT key FROM json_each(event, '$.trigger'))
        ELSE coalesce(event ->> '$.trigger', 'manual')
    END FROM journal WHERE journal.run = run.id AND seq = 0);

-- Lists of one tenant by trigger and by schedule. The columns after the id answer the other filters from the index alone.
CREATE INDEX run_by_tenant_trigger ON run (tenant, trigger_type, id, status, agent, purged_at) WHERE purged_at IS NULL;
CREATE INDEX run_by_tenant_schedule ON run (tenant, schedule, id, status, agent, trigger_type, purged_at)
    WHERE schedule IS NOT NULL AND purged_at IS NULL;
