-- Standing approvals. What they are looked up by stands in columns, the whole grant in `body`; a revocation is a column of
-- its own, so that it is one small write.
DROP TABLE approval_grant;
CREATE TABLE standing_grant (
    id         TEXT    PRIMARY KEY,
    definition TEXT    NOT NULL,
    created_at TEXT    NOT NULL,
    body       TEXT    NOT NULL,
    revoked    TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX standing_grant_definition ON standing_grant (definition);
