-- Keys that let applications in, by the hash of their secret. What changes of one stands in columns of its own.
CREATE TABLE access_key (
    id         TEXT    PRIMARY KEY,
    hash       BLOB    NOT NULL UNIQUE,
    tenant     TEXT    NOT NULL,
    created_at TEXT    NOT NULL,
    body       TEXT    NOT NULL,
    used_at    TEXT,
    revoked    TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX access_key_tenant ON access_key (tenant, created_at);
