-- Answers to requests with an idempotency key. `held_until` while nobody has answered, `head` and `body` once somebody has;
-- neither where the answer is not kept.
CREATE TABLE reply (
    tenant      TEXT    NOT NULL,
    caller      TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL,
    run         TEXT,
    held_until  INTEGER,
    head        TEXT,
    body        BLOB,
    expires_at  INTEGER NOT NULL,
    UNIQUE (tenant, caller, key)
) STRICT;
CREATE INDEX reply_expires_at ON reply (expires_at);
