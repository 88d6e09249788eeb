-- The caller who started a run; null if there was none.
ALTER TABLE run ADD COLUMN started_by TEXT;
UPDATE run SET started_by = (SELECT event ->> '$.by' FROM journal WHERE journal.run = run.id AND seq = 0);

-- Usage by UTC day, of each caller and of its whole tenant (caller ''), while quotas are configured.
CREATE TABLE day_usage (
    day    INTEGER NOT NULL, -- days since 1970-01-01
    tenant TEXT    NOT NULL,
    caller TEXT    NOT NULL,
    runs   INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    cost   INTEGER NOT NULL, -- millionths of millionths of a US dollar
    PRIMARY KEY (day, tenant, caller)
) STRICT, WITHOUT ROWID;
