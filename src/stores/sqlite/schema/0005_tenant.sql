-- Whose a run is, and what it is owed besides approvals.
ALTER TABLE run ADD COLUMN tenant  TEXT    NOT NULL DEFAULT 'default';
ALTER TABLE run ADD COLUMN results INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN answers INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN tasks   INTEGER NOT NULL DEFAULT 0;

CREATE INDEX run_by_tenant ON run (tenant, id);
CREATE INDEX run_by_approvals ON run (id) WHERE approvals > 0;
CREATE INDEX run_by_tasks ON run (id) WHERE tasks > 0;
