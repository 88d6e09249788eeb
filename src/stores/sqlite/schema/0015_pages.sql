-- Pages of grants: the columns behind the id answer the filters of a list, so that the index alone finds the ids of a page.
DROP INDEX standing_grant_by_tenant;
CREATE INDEX standing_grant_by_tenant ON standing_grant
    (coalesce(body ->> 'tenant', 'default'), created_at, id, revoked, body ->> 'expires_at', body ->> 'agent', body ->> 'session', body ->> 'tool');
-- Pages of webhook endpoints, oldest first.
DROP INDEX webhook_endpoint_by_tenant;
CREATE INDEX webhook_endpoint_by_tenant ON webhook_endpoint (tenant, created_at, id);
