-- The run whose messages alone an endpoint receives; null for an endpoint of a tenant.
ALTER TABLE webhook_endpoint ADD COLUMN run TEXT;
CREATE INDEX webhook_endpoint_by_run ON webhook_endpoint (run) WHERE run IS NOT NULL;
CREATE INDEX webhook_endpoint_of_run_by_age ON webhook_endpoint (created_at) WHERE run IS NOT NULL;
-- There may be many endpoints of runs: lists of a tenant's endpoints, and the search for due ones, do not read them.
DROP INDEX webhook_endpoint_by_tenant;
CREATE INDEX webhook_endpoint_by_tenant ON webhook_endpoint (tenant, created_at, id) WHERE run IS NULL;

-- 1: the endpoint of the delivery is one of a run. Due endpoints of runs are found by their deliveries.
ALTER TABLE webhook_delivery ADD COLUMN of_run INTEGER NOT NULL DEFAULT 0;
CREATE INDEX webhook_delivery_of_run_by_due ON webhook_delivery (due_at, endpoint)
    WHERE of_run = 1 AND due_at IS NOT NULL;
