-- Lists of one tenant: an index for each filter, so that a page costs its rows, however many runs the tenant has. Deleted runs
-- are in no list and in none of these; `purged_at` stands in them because SQLite would read each row to compare it.
DROP INDEX run_by_tenant;
CREATE INDEX run_by_tenant ON run (tenant, id, purged_at) WHERE purged_at IS NULL;
CREATE INDEX run_by_tenant_status ON run (tenant, status, id, purged_at) WHERE purged_at IS NULL;
CREATE INDEX run_by_tenant_agent ON run (tenant, agent, id, purged_at) WHERE purged_at IS NULL;
CREATE INDEX run_by_tenant_agent_status ON run (tenant, agent, status, id, purged_at) WHERE purged_at IS NULL;
-- A conversation has few runs: the columns behind the id answer its other filters without a look at the row.
CREATE INDEX run_by_tenant_session ON run (tenant, session, id, status, agent, purged_at) WHERE purged_at IS NULL;
-- The inbox of a tenant, with its filters.
CREATE INDEX run_by_tenant_approvals ON run (tenant, id, agent, session, status, approvals) WHERE approvals > 0;
