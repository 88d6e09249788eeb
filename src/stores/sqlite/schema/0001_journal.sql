-- One index row for each run, derived from its journal and changed in the same transaction.
CREATE TABLE run (
    id          TEXT    NOT NULL PRIMARY KEY,
    agent       TEXT    NOT NULL,
    session     TEXT    NOT NULL,
    status      TEXT    NOT NULL,
    version     INTEGER NOT NULL, -- the length of the journal
    title       TEXT    NOT NULL,
    created_at  TEXT    NOT NULL, -- RFC 3339, from the events
    updated_at  TEXT    NOT NULL,
    owner       TEXT,             -- only while running
    lease_until INTEGER           -- unix milliseconds by the database's own clock
) STRICT, WITHOUT ROWID;

CREATE INDEX run_by_status ON run (status, id);
CREATE INDEX run_by_session ON run (session, id);
CREATE INDEX run_by_agent ON run (agent, id);
CREATE INDEX run_by_owner ON run (owner) WHERE owner IS NOT NULL;

-- The facts. An event is its JSON; its place and time are columns.
CREATE TABLE journal (
    run       TEXT    NOT NULL,
    seq       INTEGER NOT NULL,
    at        TEXT    NOT NULL, -- RFC 3339
    commit_id BLOB    NOT NULL, -- UUIDv7 of the append: tells a lost acknowledgement from a lost race
    event     TEXT    NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT;

CREATE TABLE approval_grant (
    session    TEXT    NOT NULL,
    tool       TEXT    NOT NULL,
    hash       TEXT    NOT NULL,
    granted_by TEXT    NOT NULL,
    granted_at INTEGER NOT NULL, -- unix milliseconds by the database's own clock
    PRIMARY KEY (session, tool, hash)
) STRICT, WITHOUT ROWID;
