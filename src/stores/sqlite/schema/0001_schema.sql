-- Index of the runs. The transaction that appends to a journal updates the row of its run.
CREATE TABLE run (
    id          TEXT    NOT NULL PRIMARY KEY,
    tenant      TEXT    NOT NULL,
    agent       TEXT    NOT NULL,
    session     TEXT    NOT NULL,
    status      TEXT    NOT NULL,
    version     INTEGER NOT NULL,           -- length of the journal
    title       TEXT    NOT NULL,
    created_at  TEXT    NOT NULL,           -- RFC 3339, from the events
    updated_at  TEXT    NOT NULL,
    purged_at   TEXT,                       -- RFC 3339; time at which the content of the run was deleted
    owner       TEXT,                       -- set while the run is running
    lease_until INTEGER,                    -- Unix milliseconds by the database's clock
    -- Counts of the pending items, for lists, sweeps and gauges.
    approvals   INTEGER NOT NULL DEFAULT 0,
    results     INTEGER NOT NULL DEFAULT 0,
    answers     INTEGER NOT NULL DEFAULT 0,
    tasks       INTEGER NOT NULL DEFAULT 0,
    asked_at    INTEGER,                    -- Unix nanoseconds; start of the oldest pending approval
    due_at      INTEGER,                    -- Unix nanoseconds; earliest deadline
    announced   INTEGER NOT NULL DEFAULT 0  -- length of the journal up to which webhook deliveries exist
) STRICT, WITHOUT ROWID;

CREATE INDEX run_by_status ON run (status, id);
CREATE INDEX run_by_session ON run (session, id);
CREATE INDEX run_by_agent ON run (agent, id);
CREATE INDEX run_by_owner ON run (owner) WHERE owner IS NOT NULL;
CREATE INDEX run_by_due ON run (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX run_by_approvals ON run (id) WHERE approvals > 0;
CREATE INDEX run_by_tasks ON run (id) WHERE tasks > 0;
CREATE INDEX run_by_unannounced ON run (id) WHERE announced < version AND status <> 'running';

-- Lists of one tenant: one index for each filter, so that the cost of a page depends on its rows and not on the number of
-- runs. The indexes exclude deleted runs. They contain `purged_at` because SQLite otherwise reads each row to compare it.
CREATE INDEX run_by_tenant ON run (tenant, id, purged_at) WHERE purged_at IS NULL;
CREATE INDEX run_by_tenant_status ON run (tenant, status, id, purged_at) WHERE purged_at IS NULL;
CREATE INDEX run_by_tenant_agent ON run (tenant, agent, id, purged_at) WHERE purged_at IS NULL;
CREATE INDEX run_by_tenant_agent_status ON run (tenant, agent, status, id, purged_at) WHERE purged_at IS NULL;
-- A session has few runs: the columns after the id answer its other filters from the index alone.
CREATE INDEX run_by_tenant_session ON run (tenant, session, id, status, agent, purged_at) WHERE purged_at IS NULL;
-- Approvals inbox of a tenant, with its filters.
CREATE INDEX run_by_tenant_approvals ON run (tenant, id, agent, session, status, approvals) WHERE approvals > 0;

-- Events as JSON. Position and time are columns.
CREATE TABLE journal (
    run       TEXT    NOT NULL,
    seq       INTEGER NOT NULL,
    at        TEXT    NOT NULL, -- RFC 3339
    commit_id BLOB    NOT NULL, -- UUIDv7 of the append: tells a lost acknowledgement from a lost race
    event     TEXT    NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT;

-- Content outside the journals, by the SHA-256 of its bytes.
CREATE TABLE blob (
    sha256     BLOB NOT NULL PRIMARY KEY,
    media_type TEXT NOT NULL,
    bytes      BLOB NOT NULL
) STRICT;

-- Runs that use a blob. A blob without a run can be deleted.
CREATE TABLE blob_use (
    run    TEXT NOT NULL,
    sha256 BLOB NOT NULL,
    PRIMARY KEY (run, sha256)
) STRICT, WITHOUT ROWID;

CREATE INDEX blob_use_by_blob ON blob_use (sha256);

-- Grants. `body` holds the whole grant. The revocation is a column of its own, so that it is one small write.
CREATE TABLE approval_grant (
    id         TEXT    PRIMARY KEY,
    definition TEXT    NOT NULL,
    created_at TEXT    NOT NULL,
    body       TEXT    NOT NULL,
    revoked    TEXT              -- JSON
) STRICT, WITHOUT ROWID;

-- Grants that cover a call, in each turn: by tenant, definition and session.
CREATE INDEX approval_grant_by_call ON approval_grant
    (coalesce(body ->> 'tenant', 'default'), definition, coalesce(body ->> 'session', '')) WHERE revoked IS NULL;
-- Pages of grants: the columns after the id answer the filters of a list, so that the index alone finds the ids of a page.
CREATE INDEX approval_grant_by_tenant ON approval_grant
    (coalesce(body ->> 'tenant', 'default'), created_at, id, revoked, body ->> 'expires_at', body ->> 'agent', body ->> 'session', body ->> 'tool');

-- API keys, by the hash of their secret. `body` holds what never changes.
CREATE TABLE access_key (
    id         TEXT    PRIMARY KEY,
    hash       BLOB    NOT NULL UNIQUE,
    tenant     TEXT    NOT NULL,
    created_at TEXT    NOT NULL,
    body       TEXT    NOT NULL,
    used_at    TEXT,
    revoked    TEXT              -- JSON
) STRICT, WITHOUT ROWID;

CREATE INDEX access_key_by_tenant ON access_key (tenant, created_at);

-- Requests with an idempotency key. `held_until` is set while a request is in progress; `response` and `body` hold the
-- response that was sent, unless it is not stored.
CREATE TABLE idempotency_record (
    tenant      TEXT    NOT NULL,
    caller      TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL,
    run         TEXT,
    held_until  INTEGER,          -- Unix milliseconds
    response    TEXT,             -- JSON: status, headers and the run that the response quotes
    body        BLOB,
    expires_at  INTEGER NOT NULL, -- Unix milliseconds
    UNIQUE (tenant, caller, key)
) STRICT;

CREATE INDEX idempotency_record_by_expiry ON idempotency_record (expires_at);
-- Stored responses that quote a run, which are deleted with its content.
CREATE INDEX idempotency_record_by_run ON idempotency_record (response ->> 'run');

-- Webhook endpoints. The columns hold what deliveries change, `body` the rest.
CREATE TABLE webhook_endpoint (
    id            TEXT    NOT NULL PRIMARY KEY,
    tenant        TEXT    NOT NULL,
    configured    INTEGER NOT NULL, -- 1: the operator's configuration contains the endpoint
    revision      INTEGER NOT NULL,
    created_at    INTEGER NOT NULL, -- Unix nanoseconds
    failing_since INTEGER,          -- Unix nanoseconds
    disabled      TEXT,             -- JSON: time and reason
    body          TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX webhook_endpoint_by_tenant ON webhook_endpoint (tenant, created_at, id);

-- Webhook deliveries: messages, their attempts and their outcome.
CREATE TABLE webhook_delivery (
    id         TEXT    NOT NULL PRIMARY KEY,
    endpoint   TEXT    NOT NULL,
    created_at INTEGER NOT NULL, -- Unix nanoseconds
    due_at     INTEGER,          -- Unix nanoseconds; null once the delivery is settled
    body       TEXT    NOT NULL
) STRICT;

CREATE INDEX webhook_delivery_by_endpoint ON webhook_delivery (endpoint, created_at, id);
CREATE INDEX webhook_delivery_by_due ON webhook_delivery (endpoint, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_delivery_by_age ON webhook_delivery (created_at);

-- One row that readiness checks write, to learn whether the file is writable.
CREATE TABLE write_check (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    checked_at INTEGER NOT NULL, -- Unix milliseconds by the database's clock
    filler     BLOB    NOT NULL
) STRICT;
