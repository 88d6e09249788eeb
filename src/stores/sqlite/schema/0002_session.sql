-- Sessions: one row for a conversation of successive runs. Its status is that of its head in `run`.
CREATE TABLE session (
    tenant     TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    agent      TEXT    NOT NULL,
    principal  TEXT,
    head       TEXT,             -- the latest run
    version    INTEGER NOT NULL, -- grows by one with each change of the row
    runs       INTEGER NOT NULL, -- number of runs that were its head
    title      TEXT    NOT NULL,
    created_at INTEGER NOT NULL, -- Unix nanoseconds
    updated_at INTEGER NOT NULL, -- Unix nanoseconds
    deleted_at INTEGER,          -- Unix nanoseconds; the id of a deleted session is not used again
    body       TEXT    NOT NULL, -- JSON: metadata, authors, creator
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

-- Pages of sessions: the columns after the id answer the filters of a list, so that the index alone finds the ids of a page.
CREATE INDEX session_by_tenant ON session (tenant, created_at, id, agent, principal, deleted_at);

-- The run whose conversation a run continues.
ALTER TABLE run ADD COLUMN predecessor TEXT;

-- The part of a conversation that a run added, as JSON. The claim of its successor writes it. The run may be unknown: a
-- tenant that continues a run of another store brings the conversation along.
CREATE TABLE segment (
    tenant TEXT NOT NULL,
    run    TEXT NOT NULL,
    body   TEXT NOT NULL,
    PRIMARY KEY (tenant, run)
) STRICT;
