-- So that whoever lists the standing approvals of one tenant does not read those of all.
CREATE INDEX standing_grant_by_tenant ON standing_grant (coalesce(body ->> 'tenant', 'default'), created_at, id);
