-- Up to which length of its journal webhooks told of a run. Runs from before are no news.
ALTER TABLE run ADD COLUMN told INTEGER NOT NULL DEFAULT 0;
UPDATE run SET told = version;

CREATE INDEX run_by_untold ON run (id) WHERE told < version AND status <> 'running';

-- Where webhooks go. What attempts to deliver change stands in columns, the rest in `body`.
CREATE TABLE webhook_endpoint (
    id            TEXT    NOT NULL PRIMARY KEY,
    tenant        TEXT    NOT NULL,
    configured    INTEGER NOT NULL, -- 1: it stands in the operator's configuration
    revision      INTEGER NOT NULL,
    created_at    INTEGER NOT NULL, -- unix nanoseconds
    failing_since INTEGER,          -- unix nanoseconds
    disabled      TEXT,             -- JSON: when and why
    body          TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX webhook_endpoint_by_tenant ON webhook_endpoint (tenant, id);

-- Messages, and what became of them.
CREATE TABLE webhook_delivery (
    id         TEXT    NOT NULL PRIMARY KEY,
    endpoint   TEXT    NOT NULL,
    created_at INTEGER NOT NULL, -- unix nanoseconds
    due_at     INTEGER,          -- unix nanoseconds; none when it is settled
    body       TEXT    NOT NULL
) STRICT;

CREATE INDEX webhook_delivery_by_endpoint ON webhook_delivery (endpoint, created_at, id);
CREATE INDEX webhook_delivery_by_due ON webhook_delivery (endpoint, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_delivery_by_age ON webhook_delivery (created_at);
