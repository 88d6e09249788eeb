-- Log of the commits of each tenant: one row for each append to a journal. SQLite has one writer at a time, so the numbers
-- become visible in their order. The latest row of a tenant is never deleted, so no number is used twice.
CREATE TABLE commit_log (
    tenant   TEXT    NOT NULL,
    position INTEGER NOT NULL, -- from 1, without gaps
    run      TEXT    NOT NULL,
    first    INTEGER NOT NULL, -- journal position of its first event
    length   INTEGER NOT NULL, -- length of the journal after its last event
    PRIMARY KEY (tenant, position)
) STRICT, WITHOUT ROWID;

-- Triggers write the log, so that processes of earlier versions that still have the file open write it too.
CREATE TRIGGER run_created AFTER INSERT ON run BEGIN
    INSERT INTO commit_log (tenant, position, run, first, length)
    SELECT NEW.tenant, coalesce(max(position), 0) + 1, NEW.id, 0, NEW.version FROM commit_log WHERE tenant = NEW.tenant;
END;

CREATE TRIGGER run_advanced AFTER UPDATE OF version ON run WHEN NEW.version > OLD.version BEGIN
    INSERT INTO commit_log (tenant, position, run, first, length)
    SELECT NEW.tenant, coalesce(max(position), 0) + 1, NEW.id, OLD.version, NEW.version
    FROM commit_log WHERE tenant = NEW.tenant;
END;

-- The last 100000 commits of a tenant are kept. Older ones are deleted a thousand at a time.
CREATE TRIGGER commit_log_trimmed AFTER INSERT ON commit_log WHEN NEW.position % 1000 = 0 BEGIN
    DELETE FROM commit_log WHERE tenant = NEW.tenant AND position <= NEW.position - 100000;
END;
