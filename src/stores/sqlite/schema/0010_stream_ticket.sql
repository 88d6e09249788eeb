-- Stream tickets, by the hash of their secret.
CREATE TABLE stream_ticket (
    hash       BLOB    NOT NULL PRIMARY KEY,
    stream     TEXT    NOT NULL, -- JSON: the stream that it opens
    sealed     BLOB    NOT NULL, -- credentials of its creator, encrypted with a key that only the secret yields
    expires_at INTEGER NOT NULL  -- Unix milliseconds
) STRICT, WITHOUT ROWID;

CREATE INDEX stream_ticket_by_expiry ON stream_ticket (expires_at);
